"""Answer sets of a study, by hand: from likelihoods of choices to metrics."""

import math

import numpy as np
import pytest

from dualread.evaluation.answer_sets import set_rows
from dualread.schema.metrics import Bootstrap, ComputeMetricsSpec, Metrics
from dualread.stages._choices import answer_set_rows, choices_of, read_scored
from tests.specs import changed
from tests.stages import shards

# Options, type, gold answer, and the likelihood of each choice: of (b), "C" has none of the others' .5 + .1.
QUESTIONS = (
    (["Lung", "Heart"], "open", "heart", {"A": 0.2, "B": 0.6}),  # .25 and .75: right
    (["Lung", "Heart", "Liver"], "open", "liver", {"A": 0.5, "B": 0.1, "C": 0.4}),  # .5, .1, .4
    ([], "closed", "No", {"yes": 0.3, "no": 0.1}),  # .75 and .25
    ([], "closed", "left", {"yes": 0.1, "no": 0.1}),  # another answer than yes and no
    ([], "open", "lung", {}),  # no choices
)


@pytest.fixture
def inputs(tmp_path):
    rows = shards.manifest_rows(len(QUESTIONS), split="validation", roles=("validation",))
    rows = [
        {**row, "options": options, "answer_type": kind, "reference_answers": [gold]}
        for row, (options, kind, gold, _) in zip(rows, QUESTIONS, strict=True)
    ]
    scored = [
        {"sample_id": row["sample_id"], "condition": "original/choices", "choice": name, "log_prob": math.log(p),
         "n_prompt_tokens": 3}
        for row, (*_, likelihoods) in zip(rows, QUESTIONS, strict=True)
        for name, p in likelihoods.items()
    ]  # fmt: skip
    place = "slake/validation"
    view = shards.write(tmp_path / "view", "choices", scored)
    manifest = shards.write(tmp_path / "manifest", "manifest", rows)
    return {f"manifest/{place}": manifest, f"view/choices/{place}/original": view}


def test_probabilities_are_among_the_choices_of_each_question(inputs):
    found = choices_of(*read_scored("choices", ("slake", "validation"), inputs))
    assert found.of_right == pytest.approx([0.75, 0.4, 0.25])
    assert (found.n_without, found.n_unknown) == (1, 1)
    assert len(np.unique(found.cluster)) == 3
    assert np.nansum(found.probabilities, axis=1) == pytest.approx([1, 1, 1])
    assert np.isnan(found.probabilities).sum(axis=1).tolist() == [3, 2, 3]  # of five names, the choices of others


def test_sets_by_hand(inputs):
    questions = choices_of(*read_scored("choices", ("slake", "validation"), inputs))
    rows = {row["metric"]: row for row in set_rows(questions, questions, [50, 10])}
    # Three images and a new one: half of four is two, and the second largest probability of a right choice is .4. The
    # sets are {Heart}, {Lung, Liver}, {yes}: two of three have the right one, and four choices are in them.
    estimates = {name: row["estimate"] for name, row in rows.items() if row["estimate"] is not None}
    assert estimates == {
        "set_questions_with_choices": 3.0,
        "set_questions_without": 1.0,
        "set_questions_unknown": 1.0,
        "set_threshold_at_miss_50": pytest.approx(0.4),
        "set_coverage_at_miss_50": pytest.approx(2 / 3),
        "set_coverage_of_clusters_at_miss_50": pytest.approx(2 / 3),
        "set_mean_size_at_miss_50": pytest.approx(4 / 3),
        "set_empty_at_miss_50": 0.0,
        "set_single_at_miss_50": pytest.approx(2 / 3),
    }
    assert "expected at least 9" in rows["set_coverage_at_miss_10"]["reason"]
    assert rows["set_coverage_at_miss_50"]["low"] < 2 / 3 < rows["set_coverage_at_miss_50"]["high"]
    none = questions._replace(probabilities=np.zeros((0, 2)), of_right=np.zeros(0), cluster=np.zeros(0, np.int64))
    assert {row["estimate"] for row in set_rows(questions, none, [50]) if "_at_miss_" in row["metric"]} == {None}


def test_groups_have_the_threshold_of_all(inputs):
    """The sets are those above: of open questions {Heart} and {Lung, Liver}, of a closed one {yes}, which misses no."""
    spec = ComputeMetricsSpec(
        **{"study": "s", "backbone": "tiny", "actor": "rlvr", "seed": 17, "method": "choice", "choices": "choices"},
        metrics=Metrics(bootstrap=Bootstrap(replicates=0), target_risk_percent=[], miss_percent=[50]),
        **{"splits": {"slake": ("validation",)}, "thresholds_from": "slake/validation"},
        subgroups=("answer_type", "location"),  # no question has a location
    )
    rows = list(answer_set_rows(spec, ("slake", "validation"), inputs))
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        found.setdefault(row["subset"], {})[row["metric"].removeprefix("set_").removesuffix("_at_miss_50")] = row[
            "estimate"
        ]
    assert list(found) == ["all", "group:answer_type=closed", "group:answer_type=open"]
    names = ("questions_with_choices", "questions_without", "questions_unknown", "threshold", "coverage", "mean_size")
    closed, opened = ([found[f"group:answer_type={kind}"][name] for name in names] for kind in ("closed", "open"))
    assert closed == [1, 0, 1, pytest.approx(0.4), 0, 1]
    assert opened == [2, 1, 0, pytest.approx(0.4), 1, 1.5]
    assert [row["estimate"] for row in rows if row["subset"] == "all"] == [
        row["estimate"] for row in answer_set_rows(changed(spec, subgroups=None), ("slake", "validation"), inputs)
    ]
