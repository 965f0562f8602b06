import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score

from dualread.apps.harnesses import scikit_learn
from dualread.apps.harnesses.scikit_learn import auroc_scorer, neg_brier_scorer, scorer
from dualread.evaluation import metrics

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)


def test_a_scorer_agrees_with_that_of_scikit_learn():
    ours = cross_val_score(LogisticRegression(), X, Y, cv=4, scoring=auroc_scorer)
    theirs = cross_val_score(LogisticRegression(), X, Y, cv=4, scoring="roc_auc")
    assert ours == pytest.approx(theirs)
    found = cross_val_score(LogisticRegression(), X, Y, cv=4, scoring=neg_brier_scorer)
    assert found == pytest.approx(cross_val_score(LogisticRegression(), X, Y, cv=4, scoring="neg_brier_score"))


@pytest.mark.parametrize("name", [name for name in scikit_learn.__all__ if name.endswith("_scorer")])
def test_a_search_chooses_by_each(name):
    search = GridSearchCV(LogisticRegression(), {"C": [1e-4, 1.0]}, scoring=getattr(scikit_learn, name), cv=3)
    search.fit(X, Y)
    assert math.isfinite(search.best_score_)
    assert (search.best_score_ <= 0) == name.startswith("neg_") or "squared" in name


def test_the_confidence_of_a_classifier_of_answers_is_its_largest_probability():
    answers = np.array(["no", "yes", "maybe"])[RNG.integers(0, 3, 300)]
    model = LogisticRegression().fit(X, answers)
    probabilities = model.predict_proba(X)
    expected = metrics.ece(probabilities.max(axis=1), model.predict(X) == answers)
    assert scorer(metrics.ece, greater_is_better=False, top_label=True)(model, X, answers) == -expected
    with pytest.raises(ValueError, match="give top_label=True"):
        auroc_scorer(model, X, answers)


def test_a_fold_with_one_class_is_nan_with_a_reason():
    model = LogisticRegression().fit(X, Y)
    with pytest.warns(UserWarning, match="auroc has no value"):
        assert math.isnan(auroc_scorer(model, X, np.ones(300, dtype=int)))
    assert auroc_scorer(model, X, Y) == pytest.approx(roc_auc_score(Y, model.predict_proba(X)[:, 1]))
