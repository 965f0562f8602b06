"""Labels that another method gives: where its scores are divided, and what a probe of them is."""

from dataclasses import replace

import numpy as np

from dualread.readers import linear_probe, semantic_uncertainty
from dualread.readers.base import Examples, fit, score, settings_of
from dualread.readers.labels import best_split, labels_by
from dualread.readers.linear import linear_log_odds
from tests.readers import synthetic
from tests.readers.synthetic import PLATT

SETTINGS = {**synthetic.P_STATE, "state": "h_close"}
TEACHER = synthetic.reader("readers.semantic_uncertainty", PLATT, {"k": 8})


def literal_split(values):
    def distance(side):
        return sum((value - sum(side) / len(side)) ** 2 for value in side)

    cuts = sorted(set(values))[1:]
    return min(
        cuts,
        key=lambda cut: round(distance([v for v in values if v < cut]) + distance([v for v in values if v >= cut]), 9),
    )


def test_the_split_against_its_definition():
    rng = np.random.default_rng(0)
    for _ in range(50):
        values = rng.integers(0, 6, size=12) / 7
        if len(set(values)) > 1:
            assert best_split(values) == literal_split(values.tolist())


def test_low_entropy_takes_the_place_of_correctness_where_a_reader_learns():
    examples = synthetic.with_views(synthetic.examples(300), ("samples",))
    entropy = -semantic_uncertainty.score(TEACHER, examples.answers).score
    labeled, reason = labels_by(TEACHER, examples)
    assert reason is None
    role = examples.answers.table["role"]
    learned = role.is_in(["fit", "stop"]).to_numpy()
    high = -literal_split((-entropy[(role == "fit").to_numpy()]).tolist())
    assert labeled.correct[learned].tolist() == (entropy <= high)[learned].tolist()
    assert labeled.correct[~learned].tolist() == examples.correct[~learned].tolist()
    weights = fit("readers.linear_probe", labeled, SETTINGS, {}, 17)
    again = fit("readers.p_state", labeled, synthetic.P_STATE, {}, 17)
    assert all((weights.tensors[name] == again.tensors[name]).all() for name in again.tensors)
    reader = synthetic.reader("readers.linear_probe", weights, SETTINGS)
    assert settings_of("readers.linear_probe", SETTINGS).state == "h_close"
    without = replace(examples.answers, views=())  # to score, it needs no sample
    found = score(reader, without)
    assert (found.score == linear_log_odds(without.features("h_close"), weights.tensors)).all()
    assert (found.confidence == linear_probe.score(reader, without).confidence).all()


def test_a_teacher_that_says_the_same_of_all_answers_gives_no_labels():
    examples = synthetic.with_views(synthetic.examples(60), ("samples",))
    one = replace(examples.answers.views[0], texts=(("<answer>a</answer>",) * 8,) * 60)
    alike = Examples(answers=replace(examples.answers, views=(one,)), correct=examples.correct)
    assert "one score" in labels_by(TEACHER, alike)[1]
    two = replace(one, texts=tuple((*row[1:], f"<answer>{'ab'[k % 2]}</answer>") for k, row in enumerate(one.texts)))
    assert labels_by(TEACHER, replace(alike, answers=replace(alike.answers, views=(two,))))[1] is None
    assert labels_by(replace(TEACHER, unfitted="no answer is right"), examples)[1].endswith("no answer is right")
