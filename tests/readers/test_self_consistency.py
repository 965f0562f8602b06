import numpy as np
import polars as pl
import pytest

from dualread.readers import self_consistency
from dualread.readers.base import Answers, ViewAnswers, Weights
from dualread.readers.calibration.platt import fit_platt
from tests.readers import synthetic

# sigmoid(2 * score - 1)
PLATT = Weights(notes={"platt_slope": 2.0, "platt_intercept": -1.0, "platt_clipped": False})


def sampled(*rows: tuple[str | None, list[str]], role: str = "validation") -> Answers:
    """Answers from (committed canonical answer, sampled answers); "" is a sample without an answer block."""
    table = synthetic.examples(len(rows), role=role).answers.table.with_columns(
        canonical_answer=pl.Series([committed for committed, _ in rows], dtype=pl.String)
    )
    texts = tuple(tuple(f"<answer>{a}</answer>" if a else "lost" for a in samples) for _, samples in rows)
    view = ViewAnswers(name="samples", texts=texts)
    return Answers(table=table, source={}.__getitem__, rows=np.arange(len(rows)), views=(view,))


def score(answers: Answers, k: int):
    return self_consistency.score(synthetic.reader("readers.self_consistency", PLATT, {"k": k}), answers)


def test_by_hand():
    answers = sampled(
        ("liver", ["Liver", "the livers", "lung", ""]),
        ("heart, lung", ["Lung and Heart", "heart", "Heart, Lung", "heart; lung"]),
        (None, ["", "", "liver", "."]),
        ("liver", ["", "", "", ""]),
    )
    found = score(answers, 4)
    # "the livers" is "liver"; sets have no order; what is invalid agrees with nothing
    assert found.score.tolist() == [0.5, 0.75, 0.0, 0.0]
    assert found.confidence[:2] == pytest.approx([1 / (1 + np.exp(0)), 1 / (1 + np.exp(-0.5))], abs=1e-15)
    assert not found.imputed.any()
    # The first two samples alone
    assert score(answers, 2).score.tolist() == [1.0, 0.5, 0.0, 0.0]


def test_the_map_is_platt_scaling_on_validation():
    examples = synthetic.with_views(synthetic.examples(300, role="validation"), ("samples",))
    weights = self_consistency.fit(examples, self_consistency.Settings(k=8), {}, 0)
    reader = synthetic.reader("readers.self_consistency", weights, {"k": 8})
    found = self_consistency.score(reader, examples.answers)
    expected = fit_platt(found.score, examples.correct)
    assert weights.notes == {
        "platt_slope": expected.slope,
        "platt_intercept": expected.intercept,
        "platt_clipped": False,
    }
    assert (found.confidence == expected.confidence(found.score)).all()
    assert weights.tensors == {}
