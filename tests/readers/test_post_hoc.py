"""Maps of any method's confidences: by hand, against scikit-learn, and with parents of other splits and views."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize

from dualread.errors import ReaderError, UnfittedError
from dualread.readers import hac
from dualread.readers.base import Answers, Examples, FittedReader, Weights, fit, score
from tests.readers import synthetic


def stated(confidence: list[float | None], correct: list[bool], role: str = "validation") -> Examples:
    """Answers that state these confidences; None is invalid, and imputed."""
    table = synthetic.examples(len(confidence), role=role).answers.table.with_columns(
        verbalized_confidence=pl.Series(confidence, dtype=pl.Float64),
        parse_status=pl.Series(["invalid_confidence" if c is None else "valid" for c in confidence]),
    )
    answers = Answers(table=table, source={}.__getitem__, rows=np.arange(len(confidence)))
    return Examples(answers=answers, correct=np.array(correct))


VERBALIZED = synthetic.reader("readers.verbalized", Weights())


def fitted(name: str, examples: Examples, settings=None, **parents: FittedReader) -> FittedReader:
    parents = parents or {"of": VERBALIZED}
    weights = fit(f"readers.{name}", examples, settings or {}, parents, 0)
    return synthetic.reader(f"readers.{name}", weights, settings or {}, parents)


def confidences(reader: FittedReader, values: list[float | None]) -> list[float]:
    return score(reader, stated(values, [True] * len(values)).answers).confidence.tolist()


FIVE = stated([0.2, 0.4, 0.6, 0.8, None], [False, True, False, True, True])


def test_isotonic_by_hand():
    # .2: 0; .4 and .6 are pooled, because 1, 0 falls: .5; .8: 1. Between .2 and .4 the map is linear.
    reader = fitted("isotonic", FIVE)
    assert confidences(reader, [0.1, 0.2, 0.3, 0.5, 0.7, 0.9]) == pytest.approx([0.0, 0.0, 0.25, 0.5, 0.75, 1.0])


def test_bins_by_hand():
    # Two bins, split at the quantile .6: .2, .4 have 1 right of 2, and .6, .8 too; four bins are one answer each.
    assert confidences(fitted("histogram_binning", FIVE, {"bins": 2}), [0.0, 0.59, 0.6, 1.0]) == [0.5, 0.5, 0.5, 0.5]
    four = fitted("histogram_binning", FIVE, {"bins": 4})
    assert confidences(four, [0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0]) == [0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]
    # Equal scores are in one bin, however many bins are asked for, and none is empty.
    same = stated([0.5] * 6 + [0.9] * 2, [True, False, False, False, False, False, True, True])
    many = fitted("histogram_binning", same, {"bins": 5})
    assert confidences(many, [0.2, 0.5, 0.9]) == pytest.approx([1 / 6, 1 / 6, 1.0])


def test_a_temperature_divides_log_odds():
    # 80% is right in 3 of 5, and 20% in 2 of 5: T with sigmoid(ln 4 / T) = .6, so T = ln 4 / ln 1.5.
    given = stated([0.8] * 5 + [0.2] * 5, [True] * 3 + [False] * 2 + [True] * 2 + [False] * 3)
    reader = fitted("temperature_scaling", given)
    assert reader.weights.notes["divisor"] == pytest.approx(np.log(4) / np.log(1.5), rel=1e-6)
    assert confidences(reader, [0.8, 0.2, 0.5]) == pytest.approx([0.6, 0.4, 0.5], abs=1e-6)


def test_hac_is_the_best_of_its_form():
    given = stated([0.9, 0.8, 0.9, 0.6, 0.7, 0.8, 0.9, 0.5], [True, True, False, False, True, True, False, False])
    # As the hallucination score, the statement itself with its sign turned: h = -c.
    for form in ("regression", "gate"):
        reader = fitted("hac", given, {"form": form}, confidence=VERBALIZED, hallucination=VERBALIZED)
        notes = reader.weights.notes
        assert notes["b"] <= 0
        assert notes["a"] >= 0
        c = score(VERBALIZED, given.answers).confidence
        h = (-c - notes["mean"]) / notes["scale"]

        def loss(x, form=form, c=c, h=h):
            sigmoid = 1 / (1 + np.exp(-(x[1] * h + x[2] + (x[0] * np.log(c / (1 - c)) if form == "regression" else 0))))
            p = sigmoid if form == "regression" else c * sigmoid
            return -np.mean(np.log(np.where(given.correct, p, 1 - p)))

        bounds = [(0, 20) if form == "regression" else (1, 1), (-20, 0), (-20, 20)]
        best = min(minimize(loss, [1, b, d], bounds=bounds).fun for b in (-3, -0.5, 0) for d in (-2, 0, 2))
        assert loss([notes["a"], notes["b"], notes["d"]]) == pytest.approx(best, abs=1e-6)
        expected = hac._confidence(notes, dict.fromkeys(hac.PARENTS, score(VERBALIZED, given.answers)))
        assert score(reader, given.answers).confidence == pytest.approx(expected)


@pytest.mark.parametrize(
    ("form", "b", "stated_as", "expected"),
    [
        ("gate", -1.0, [0.8], [0.551980]),  # h = -.8: .8 sigmoid(.8) = .8 * .689974
        # It gives back the confidence, but for those beyond half a percent, which count as half a percent.
        ("regression", 0.0, [0.9, 0.2, 0.994, 0.006, 1.0, 0.999, 0.0], [0.9, 0.2, 0.994, 0.006, 0.995, 0.995, 0.005]),
    ],
)
def test_hac_by_hand(form, b, stated_as, expected):
    notes = {"form": form, "a": 1.0, "b": b, "d": 0.0, "mean": 0.0, "scale": 1.0}
    parents = dict.fromkeys(hac.PARENTS, VERBALIZED)
    reader = synthetic.reader("readers.hac", Weights(notes=notes), {"form": form}, parents)
    assert confidences(reader, stated_as) == pytest.approx(expected)


def test_what_has_no_value_stays_imputed_and_is_no_part_of_the_fit():
    found = score(fitted("isotonic", FIVE), FIVE.answers)
    assert found.imputed.tolist() == [False] * 4 + [True]
    assert found.confidence[4] == 0.5
    with pytest.raises(UnfittedError, match="of 1 answers with values, 1 are correct"):
        fitted("isotonic", stated([0.5, None], [True, False]))


def test_a_parent_gets_its_own_views():
    """A map of a method with views: its own answers have none, and the parent's are among `others`."""
    given = synthetic.with_views(synthetic.examples(60, role="validation"), ("samples", "yes_no"))
    samples, yes_no = given.answers.views
    scoring = {"scoring": {"views": [{"name": "samples"}]}}
    weights = fit("readers.self_consistency", synthetic.with_views(given, ("samples",)), {"k": 4}, {}, 0)
    parent = replace(synthetic.reader("readers.self_consistency", weights, {"k": 4}), provenance=scoring)
    alone = score(parent, replace(given.answers, views=(samples,)))
    below = Examples(answers=replace(given.answers, views=(), others=(yes_no, samples)), correct=given.correct)
    reader = replace(fitted("isotonic", below, of=parent), provenance={"scoring": {"views": []}})
    mapped = score(reader, below.answers)
    order = np.argsort(alone.score, kind="stable")
    assert (np.diff(mapped.confidence[order]) >= -1e-12).all()
    assert (score(parent, below.answers).score == alone.score).all()
    part = below.answers.take(np.arange(5))
    assert score(reader, part).confidence.tolist() == mapped.confidence[:5].tolist()
    with pytest.raises(ReaderError, match="there is no view samples of these answers"):
        score(parent, replace(given.answers, views=(), others=(yes_no,)))
