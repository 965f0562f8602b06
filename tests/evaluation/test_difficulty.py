from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dualread.evaluation.difficulty import RunAnswers, controls, exchange
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.evaluation.statistics.p_values import P, holm

NULLS = ("prior",)


def study(seed, n_images=150, n_questions=3):
    """Answers to yes-or-no questions. Half of the images are hazy: there, answers are guesses.

    "sees" is a confidence that follows the haze, "blind" one that is noise, and "prior" knows the question alone.
    """
    rng = np.random.default_rng(seed)
    image = np.repeat(np.arange(n_images), n_questions)
    question = np.tile(np.arange(n_questions), n_images)
    haze = np.where(image % 2, 0.9, 0.0)
    correct = rng.random(len(image)) < np.where(haze > 0, 0.5, 0.95)
    noise = rng.normal(0, 0.05, (2, len(image)))
    return RunAnswers(
        seed=seed,
        image_ids=[f"i{i:03d}" for i in image],
        questions=[f"q{q}" for q in question],
        answers=[("yes", "no")[k] for k in rng.integers(0, 2, len(image))],
        correct=correct,
        haze=haze,
        confidences={
            "sees": np.clip(np.where(haze > 0, 0.4, 0.7) + noise[0], 0, 1),
            "blind": np.clip(0.5 + noise[1], 0, 1),
            "prior": 0.7 + 0.01 * question,
        },
    )


def draws_of(run, replicates=2000):
    return ClusterDraws(names=("t",), cluster_ids=tuple(sorted(set(run.image_ids))), replicates=replicates)


def row(rows, **wanted):
    wanted = {"reading": "own", "metric": "auroc", "method": None, "baseline": None} | wanted
    [found] = [r for r in rows if all(r.get(key) == value for key, value in wanted.items())]
    return found


def test_exchange_by_hand():
    images = ["a", "b", "c", "a", "b", "d"]
    questions = ["q", "q", "q", "r", "r", "r"]
    answers = ["yes", "yes", "no", None, None, "no"]
    # Answers 0 and 1 are equal, as are 3 and 4 (no answer); 2 and 5 have no equal.
    assert exchange(images, questions, answers).tolist() == [1, 0, -1, 4, 3, -1]


def test_an_answer_is_never_exchanged_for_one_about_its_own_image():
    assert exchange(["a", "a"], ["q", "q"], ["yes", "yes"]).tolist() == [-1, -1]


def test_exchange_gives_equal_answers_once_each_whatever_the_order_of_the_rows():
    run = study(0)
    other = exchange(run.image_ids, run.questions, run.answers)
    for place, partner in enumerate(other):
        assert run.questions[place] == run.questions[partner]
        assert run.answers[place] == run.answers[partner]
        assert run.image_ids[place] != run.image_ids[partner]
    assert sorted(other) == list(range(len(other)))
    order = [int(i) for i in np.random.default_rng(1).permutation(len(other))]
    permuted = exchange(
        [run.image_ids[i] for i in order], [run.questions[i] for i in order], [run.answers[i] for i in order]
    )
    assert [order[partner] for partner in permuted] == [other[i] for i in order]


def test_values_are_those_of_scikit_learn():
    run = study(1)
    rows = controls([run], NULLS, draws_of(run))
    assert row(rows)["estimate"] == pytest.approx(roc_auc_score(run.correct, -run.haze))
    assert row(rows, method="sees")["estimate"] == pytest.approx(roc_auc_score(run.correct, run.confidences["sees"]))
    other = exchange(run.image_ids, run.questions, run.answers)
    exchanged = roc_auc_score(run.correct, run.confidences["sees"][other])
    assert row(rows, reading="exchanged", method="sees")["estimate"] == pytest.approx(exchanged)
    difference = row(rows, method="sees", baseline="prior")
    assert difference["estimate"] == pytest.approx(
        row(rows, method="sees")["estimate"] - row(rows, method="prior")["estimate"]
    )
    hazy = run.haze > 0
    assert row(rows, metric="accuracy_hazy")["estimate"] == pytest.approx(run.correct[hazy].mean())
    assert row(rows, metric="accuracy_clear")["estimate"] == pytest.approx(run.correct[~hazy].mean())
    assert row(rows, metric="accuracy_clear")["n_clusters"] == 75


def test_the_positive_control_finds_what_is_there_and_the_negative_one_nothing():
    found = {"own": 0, "exchanged": 0}
    for seed in range(40):
        run = study(100 + seed)
        rows = controls([run], NULLS, draws_of(run, 500))
        for reading in found:
            tested = row(rows, reading=reading, method="sees", baseline="prior")
            found[reading] += tested["p_holm"] < 0.05 and tested["estimate"] > 0
    assert found["own"] == 40
    # One side of a test at .05 shared by two methods: about .0125 each, 0.5 of 40 in all; 4 or more in 1 of 500 times.
    assert found["exchanged"] < 4


def test_holm_covers_all_methods_and_nulls_of_a_reading():
    run = study(3)
    run = replace(run, confidences={**run.confidences, "other": run.confidences["prior"][::-1]})
    rows = controls([run], ("prior", "other"), draws_of(run))
    for reading in ("own", "exchanged"):
        tested = [r for r in rows if r["reading"] == reading and r.get("baseline")]
        assert [(r["method"], r["baseline"]) for r in tested] == [
            (method, null) for method in ("sees", "blind") for null in ("prior", "other")
        ]
        adjusted = holm([P(r["p"], at_most=r["p_at_most"]) for r in tested])
        assert [r["p_holm"] for r in tested] == [p.value for p in adjusted if p]


def test_runs_are_averaged():
    runs = [study(4), study(5)]
    rows = controls(runs, NULLS, draws_of(runs[0]))
    alone = [controls([run], NULLS, draws_of(run)) for run in runs]
    both = [row(one, method="sees")["estimate"] for one in alone]
    assert row(rows, method="sees")["estimate"] == pytest.approx(sum(both) / 2)
    assert row(rows, method="sees")["n_seeds"] == 2


def test_without_a_wrong_answer_there_is_a_reason_and_no_number():
    run = replace(study(6), correct=np.ones(450, dtype=bool))
    rows = controls([run], NULLS, draws_of(run, 10))
    for found in (row(rows), row(rows, method="sees"), row(rows, method="sees", baseline="prior")):
        assert found["estimate"] is None
        assert found["low"] is None
        assert found["reason"]
    assert row(rows, method="sees", baseline="prior")["p"] is None


def test_without_hazy_images_their_accuracy_is_undefined():
    run = replace(study(7), haze=np.zeros(450))
    rows = controls([run], NULLS, draws_of(run, 10))
    assert row(rows, metric="accuracy_hazy")["estimate"] is None
    assert row(rows)["estimate"] == 0.5  # all images are equally hard


def test_the_interval_of_an_accuracy_is_that_of_a_share():
    run = replace(study(8, n_images=40, n_questions=1), haze=np.zeros(40), correct=np.ones(40, dtype=bool))
    found = row(controls([run], NULLS, draws_of(run)), metric="accuracy_clear")
    # Clopper and Pearson for 40 of 40: .025^(1/40) = exp(ln(.025) / 40) = exp(-3.6889 / 40) = .9119
    assert (found["low"], found["high"]) == (pytest.approx(0.9119, abs=1e-4), 1.0)
