import numpy as np
import polars as pl
import pytest

from dualread.evaluation.metrics.grounding import natural_ccg_auc, strict_ccg_auc
from dualread.readers import question_answer_prior, question_prior
from dualread.readers.base import Answers, Examples
from dualread.readers.settings import PriorSettings
from tests.readers import synthetic

PRIOR = PriorSettings(**synthetic.PRIOR)


def tiny(rows: list[tuple[str, str | None, bool]], role: str = "fit") -> Examples:
    table = synthetic.examples(len(rows), role=role).answers.table.with_columns(
        question_key=pl.Series([row[0] for row in rows]),
        canonical_answer=pl.Series([row[1] for row in rows], dtype=pl.String),
    )
    answers = Answers(table=table, source={}.__getitem__, rows=np.arange(len(rows)))
    return Examples(answers=answers, correct=np.array([row[2] for row in rows]))


FIT = tiny([("q", "a", True), ("q", "a", True), ("q", "b", False), ("r", None, False)])
ASKED = tiny([("q", "a", True), ("q", "b", True), ("q", "c", True), ("r", None, True), ("new", "a", True)], role="test")


def test_question_prior_by_hand():
    weights = question_prior.fit(FIT, PriorSettings(pseudo_counts=5), {}, 0)
    found = question_prior.score(synthetic.reader("readers.question_prior", weights), ASKED.answers).confidence
    q, r = (2 + 5 * 0.5) / (3 + 5), (0 + 5 * 0.5) / (1 + 5)  # .5625, .41667; the whole is 2 / 4
    assert found.tolist() == [q, q, q, r, 0.5]


def test_question_answer_prior_by_hand():
    weights = question_answer_prior.fit(FIT, PriorSettings(pseudo_counts=5), {}, 0)
    reader = synthetic.reader("readers.question_answer_prior", weights)
    found = question_answer_prior.score(reader, ASKED.answers).confidence
    q, r = (2 + 5 * 0.5) / (3 + 5), (0 + 5 * 0.5) / (1 + 5)
    # (q, a): (2 + 5 q) / 7; (q, b): 5 q / 6; (q, c) was never seen: q; (r, none): 5 r / 6; new question: the whole.
    assert found.tolist() == pytest.approx([(2 + 5 * q) / 7, 5 * q / 6, q, 5 * r / 6, 0.5], abs=1e-15)


@pytest.mark.parametrize(("n_correct", "n"), [(1, 3), (2, 3), (1, 10), (7, 10), (5, 6)])
@pytest.mark.parametrize("pseudo_counts", [5, 2.5])
def test_questions_that_were_right_as_often_as_the_whole_tie_with_an_unseen_one(n_correct, n, pseudo_counts):
    rows = [("q", "a", i % n < n_correct) for i in range(n)] + [("r", "b", i % n < n_correct) for i in range(2 * n)]
    asked = tiny([("q", "a", True), ("r", "b", True), ("new", "c", True), ("q", "new", True)], role="test").answers
    for module in (question_prior, question_answer_prior):
        weights = module.fit(tiny(rows), PriorSettings(pseudo_counts=pseudo_counts), {}, 0)
        found = module.score(synthetic.reader(module.__name__, weights), asked).confidence
        assert found.tolist() == [n_correct / n] * 4


def swapped_pairs(seed: int) -> tuple[Answers, Answers, dict]:
    """Real and donor answers of 400 pairs: one question, perhaps another answer, other states."""
    real, donor = synthetic.examples(400, seed=seed, role="test"), synthetic.examples(400, seed=seed + 1, role="test")
    table = donor.answers.table.with_columns(real.answers.table["question_key"], condition=pl.lit("donor"))
    other = Answers(table=table, source=donor.answers.source, rows=donor.answers.rows)
    return real.answers, other, {"correct_real": real.correct, "correct_donor": donor.correct}


def test_the_nulls_have_the_ccg_that_defines_them():
    fit = synthetic.examples(600, seed=5)
    real, donor, correct = swapped_pairs(7)
    answers = {
        "canonical_real": real.table["canonical_answer"].to_list(),
        "canonical_donor": donor.table["canonical_answer"].to_list(),
    }
    prior = synthetic.reader("readers.question_prior", question_prior.fit(fit, PRIOR, {}, 0))
    pair = [question_prior.score(prior, side).confidence for side in (real, donor)]
    assert (pair[0] == pair[1]).all()
    assert natural_ccg_auc(*pair, **correct) == 0.5
    assert strict_ccg_auc(*pair, **correct, **answers) == 0.5

    weights = question_answer_prior.fit(fit, PRIOR, {}, 0)
    reader = synthetic.reader("readers.question_answer_prior", weights)
    pair = [question_answer_prior.score(reader, side).confidence for side in (real, donor)]
    assert (pair[0] != pair[1]).any()
    assert strict_ccg_auc(*pair, **correct, **answers) == 0.5
