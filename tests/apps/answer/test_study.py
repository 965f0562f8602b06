"""Which methods a call has, what they are fitted on, and which jobs it takes."""

from pathlib import Path

import pytest

from dualread.apps.answer.examples import read_examples
from dualread.apps.answer.jobs import Jobs
from dualread.apps.answer.study import changes_of, check_examples, chosen_methods, known_methods, needed_parts, study_of
from dualread.errors import ConfigError, DataError
from tests.apps.answer.test_examples import png

ROOT = Path(__file__).parents[3]
BACKBONE = {
    "source": {"folder": "/somewhere"},
    "settings": {"dtype": "float32", "attention": "sdpa", "max_prompt_tokens": 100},
}
HOW = {"prompt": "shared", "batch_size": 8, "max_completion_tokens": 20}


PROBE = {"steps": 10, "learning_rate": 1e-3, "l2": 1e-4}


def study(*methods, **changes):
    known = known_methods(changes)
    return study_of(BACKBONE, chosen_methods(methods, known), changes=changes, **HOW)


def test_methods_have_the_names_of_the_config_and_of_readers():
    known = known_methods({})
    assert {"verbalized", "expected_confidence", "p_true", "sc8", "dualread", "psr"} <= set(known)
    assert not {"rlvr", "rlcr", "base"} & set(known)


def test_parents_come_first_and_once():
    chosen = chosen_methods(["dualread", "per"], known_methods({}))
    assert list(chosen) == ["psr", "p_state", "per", "dualread"]


def test_an_entry_of_ones_own_and_another_setting():
    own = {"sc20": {"reader": "self_consistency", "views": ["samples"], "settings": {"k": 20}}, "p_true": None}
    chosen = chosen_methods(own, known_methods({}))
    assert chosen["sc20"]["settings"] == {"k": 20}
    assert chosen["p_true"]["views"] == ["p_true"]
    changes = {"views": {"samples": {"decoding": {"n_samples": 20}}}}
    made = study_of(BACKBONE, chosen, changes=changes, **HOW)
    assert made.views["samples"].decoding.n_samples == 20
    assert made.views["samples"].decoding.max_completion_tokens == 20


def test_methods_of_a_file_that_is_laid_over_a_study(tmp_path):
    """workflow/studies/field.yaml is about trained actors, with conditions of its own; here, of its methods."""
    changes = changes_of(ROOT / "workflow/studies/field.yaml")
    known = known_methods(changes)
    assert known["isotonic_stated"]["parents"] == {"of": "verbalized"}  # there, the statement is named after its actor
    chosen = chosen_methods(["hac_vase"], known)
    assert list(chosen) == ["verbalized", "vase", "hac_vase"]
    assert list(chosen_methods(["sep"], known)) == ["semantic_uncertainty", "sep"]
    made = study_of(BACKBONE, chosen, changes=changes, **HOW)
    assert list(made.conditions) == ["original"]
    jobs = Jobs(made, dict.fromkeys(("validation", "test"), tmp_path), ["test"], ["hac_vase"], Path("/out"))
    assert [place for place in places(jobs)["generate"] if "views" in place] == [
        f"views/{split}/original/{view}" for split in ("validation", "test") for view in ("samples", "distorted")
    ]


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (["p_treu"], "no method 'p_treu'. Known: .* Did you mean 'p_true'"),
        ([], "methods: none"),
        ({"a": {"reader": "dualread", "parents": {"pre": "a", "post": "psr"}}}, "'a' builds on itself"),
    ],
)
def test_wrong_methods_are_refused(methods, said):
    with pytest.raises(ConfigError, match=said):
        chosen_methods(methods, known_methods({}))


def test_parts_that_are_needed():
    assert needed_parts(study("verbalized", "p_true"), ["test"]) == {"test": []}
    assert needed_parts(study("psr", "sc8"), ["test"]) == {"test": [], "fit": ["psr"], "validation": ["sc8"]}


def examples(*parts, answer="yes"):
    rows = [{"image": png(k), "question": "Is it?", "part": part, "answer": answer} for k, part in enumerate(parts)]
    return read_examples(rows, "examples")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (examples("test"), "psr is fitted on answers to the part 'fit', of which there is no example"),
        (examples("fit"), "no example of the part 'test'"),
        (examples("test", "fit", answer=None), "where 1 of 1 examples have no reference answer, such as .*row 1"),
    ],
)
def test_what_is_missing_is_said(given, said):
    with pytest.raises(DataError, match=said):
        check_examples(given, needed_parts(study("psr"), ["test"]), ["verbalized"])


def test_nine_images_are_enough_to_fit_on():
    parts = needed_parts(study("psr"), ["test"])
    check_examples(examples("test", *["fit"] * 9), parts, ["verbalized"])
    with pytest.raises(DataError, match=r"which has 8 images\. Expected at least 9"):
        check_examples(examples("test", *["fit"] * 8), parts, ["verbalized"])


def places(jobs):
    def place(entry):
        return str(entry.output.relative_to("/out")).replace("/model/base/0", "").replace("examples/", "")

    return {stage: [place(entry) for entry in entries] for stage, entries in jobs}


def test_groups_and_a_target_are_made_where_they_are_read(tmp_path):
    groups = {"by": "entailment", "of": ["samples"], "source": {"folder": "nli"}}
    entropy = {"reader": "semantic_uncertainty", "views": ["samples", "meaning"], "settings": {"k": 8}}
    probe = {"reader": "linear_probe", "parents": {"target": "entropy"}, "settings": {**PROBE, "state": "h_pre"}}
    changes = {"views": {"meaning": {"groups": groups}}}
    chosen = chosen_methods({"probe": probe, "entropy": entropy}, known_methods(changes))
    made = study_of(BACKBONE, chosen, changes=changes, **HOW)
    splits = dict.fromkeys(("train", "validation", "test"), tmp_path)
    stages = places(Jobs(made, splits, ["test"], ["probe"], Path("/out")))
    # The target is fitted on validation answers and judges training answers; the probe alone judges test answers.
    of_both = ("train", "validation")
    assert stages["group_answers"] == [f"views/{split}/original/meaning" for split in of_both]
    assert [place for place in stages["generate"] if "views" in place] == [
        f"views/{split}/original/samples" for split in of_both
    ]
    assert list(stages).index("grade") < list(stages).index("group_answers") < list(stages).index("fit_readers")


def test_only_what_is_read_is_made(tmp_path):
    made = places(Jobs(study("verbalized"), {"test": tmp_path}, ["test"], ["verbalized"], Path("/out")))
    assert made["generate"] == ["generations/test/original"]
    assert "replay" not in made
    assert "check_leakage" not in made


def test_views_and_states_of_the_parts_that_need_them(tmp_path):
    sources = dict.fromkeys(("train", "validation", "test"), tmp_path)
    wanted = ["dualread", "sc8", "bicr"]
    made = places(Jobs(study(*wanted), sources, ["test"], wanted, Path("/out")))
    assert made["generate"] == [
        *("generations/train/original", "generations/validation/original", "generations/test/original"),
        *("views/validation/original/samples", "views/test/original/samples"),
    ]
    # BICR is fitted with a black image as well; SC reads no states.
    assert made["replay"] == ["features/train/original", "features/test/original", "views/train/original/black"]
    assert made["score_answers"] == [f"predictions/{method}" for method in wanted]  # not those of parents
