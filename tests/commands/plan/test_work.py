"""The work of the embedded study on its in-distribution data set, counted by hand, and the time that it takes."""

import pytest
import yaml

from dualread.commands.plan.report import COSTS
from dualread.commands.plan.work import STAGES, PlannedStudy, work_of
from dualread.stages import __path__ as stages
from dualread.study.config import resolve
from tests.commands.plan.paper import SIZE
from tests.study.embedded import EMBEDDED, ROOT, merged

UNITS = yaml.safe_load(COSTS.read_text())
QUESTIONS = {"train": 800, "validation": 192, "test": 384}  # 100, 24 and 48 images with 8 questions each


def study_of(changes, root=ROOT):
    config = resolve(merged(EMBEDDED, merged({"only": {"datasets": ["slake"]}}, changes)))
    return PlannedStudy(config, UNITS, root=root, results=root / "nowhere")


def totals(study):
    """(jobs, models, items) by stage."""
    found = {}
    for row in work_of(study):
        before = found.get(row.stage, (0, 0, 0))
        found[row.stage] = tuple(a + b for a, b in zip(before, (row.jobs, row.models, row.items), strict=True))
    return found


def items(study, stage):
    found = {}
    for row in work_of(study):
        if row.stage == stage:
            found[row.what] = found.get(row.what, 0) + row.items
    return found


def test_jobs_of_the_embedded_study():
    found = totals(study_of({}))
    assert set(found) <= set(STAGES)
    runs = 2 * (1 + 4 * 3)  # of two backbones the base and four actors of three seeds
    for stage in ("generate", "grade", "fit_readers", "score_answers", "compute_metrics", "measure_costs"):
        assert found[stage][0] == runs
    assert found["build_manifest"] == (3, 0, sum(QUESTIONS.values()))
    assert found["draw_phantom"] == (1, 0, 172)
    assert found["pair_donors"] == (1, 0, QUESTIONS["test"])
    assert found["summarize_data"][0] == 1
    assert found["pretrain_base"] == (2, 2, 2 * 300 * 32)
    assert found["train_actor"] == (24, 24, 24 * 8 * 4 * 8)  # 8 steps of 4 prompts with 8 completions
    assert found["replay"][:2] == (6, 6)  # only RLVR's
    assert found["build_table"][0] == len(EMBEDDED["tables"])
    # The base's method, and 20 of three seeds; and RLVR's 17, which a figure shows beside the nulls.
    assert found["compare_methods"] == (2, 0, 2 * (1 + 3 * 20) + 2 * 3 * 17)
    assert found["download_dataset"] == (0, 0, 0)
    assert found["export_records"] == (1, 0, 2)
    assert "copy_checkpoint" not in found
    assert "compare_with_paper" not in found  # none of its backbones is the paper's


def test_where_the_generation_keeps_states_a_sample_of_each_shard_is_replayed():
    only = {"methods": ["psr"], "backbones": ["medgemma-tiny"], "seeds": [29]}
    found = []
    for replay in ({}, {"from": "generation"}):
        [row] = [row for row in work_of(study_of({"only": only, "replay": replay})) if row.stage == "replay"]
        found.append((row.seconds["cpu"] - UNITS["tiny"]["start"]["model"]) / UNITS["tiny"]["replay_answer"])
    # train, validation, and test under original, donor and fixed images; the last are forced, so that all are replayed
    assert found == pytest.approx([800 + 192 + 3 * 384, 4 * 32 + 384])


def test_answers_of_one_actor():
    """RLVR of one backbone and seed, whose answers are shown in all views."""
    study = study_of({"only": {"actors": ["rlvr"], "backbones": ["medgemma-tiny"], "seeds": [29]}})
    validation, test = QUESTIONS["validation"], QUESTIONS["test"]
    viewed = validation + 2 * test  # original, and the donor's image; no views under controls
    assert items(study, "generate") == {
        "models": 1,
        "answers": sum(QUESTIONS.values()) + test,  # every split, and the donor's image
        "samples": 8 * viewed,
        "words": viewed,
        "replies": 4 * viewed,  # self-probing and three more prompts
    }
    # everything that is answered, the forced answer, and the black view of the training split
    assert items(study, "replay") == {"answers": sum(QUESTIONS.values()) + 2 * test + QUESTIONS["train"]}


def test_seconds_are_the_items_times_the_units():
    study = study_of({"only": {"actors": ["rlvr"], "backbones": ["medgemma-tiny"], "seeds": [29]}})
    seconds = {}
    for row in work_of(study):
        assert set(row.seconds) <= {"cpu"}
        seconds[row.stage] = seconds.get(row.stage, 0) + row.seconds.get("cpu", 0)
    assert seconds["replay"] == pytest.approx(5.5 + 2944 * 0.0038)
    assert seconds["train_actor"] == pytest.approx(6.0 + 256 * 0.024)
    assert seconds["pretrain_base"] == pytest.approx(5.5 + 9600 * 0.0134)
    # the number of answers and the width of the states are those of the measurement; 11 of 17 readers take the minimum
    assert seconds["fit_readers"] == pytest.approx(0.5 + 5.0 + 3.1 + 0.5 + 0.35 + 0.25 + 3 * 0.3 + 9 * 0.1)


def test_a_reader_of_wider_states_takes_longer():
    narrow, wide = (
        sum(
            row.seconds["cpu"]
            for row in work_of(study_of({"only": {"methods": ["psr"]}, "backbones": backbones}))
            if row.stage == "fit_readers"
        )
        for backbones in ({}, {"medgemma-tiny": {"source": {"pretrain": {"architecture": {"hidden_size": 256}}}}})
    )
    # three seeds of one of the two backbones: 0.5 seconds more each
    assert wide - narrow == pytest.approx(3 * 0.5)


def test_an_actor_that_comes_as_a_checkpoint_is_copied():
    of = {str(seed): {"hub": "someone/actor", "revision": "0" * 40} for seed in (17, 29, 43)}
    own = {
        "checkpoints": {"qwen3-vl-tiny": of, "medgemma-tiny": of},
        "training": None,
        "reward": None,
        "settings": None,
    }
    study = study_of({"actors": {"rlvr": own}, "figures": None, "only": {"methods": ["dualread"]}})
    found = totals(study)
    assert found["copy_checkpoint"] == (6, 0, 6)
    assert "train_actor" not in found
    assert "pretrain_base" not in found  # no training starts from the base, and it answers nothing
    assert not study.needs_base


def test_a_backbone_from_the_hub_computes_on_gpus():
    source = {"pretrain": None, "hub": "someone/model", "revision": "0" * 40}
    study = study_of({"backbones": {"qwen3-vl-tiny": {"source": source, "size": SIZE}, "medgemma-tiny": None}})
    by_stage = {}
    for row in work_of(study):
        by_stage.setdefault(row.stage, set()).update(device for device, value in row.seconds.items() if value)
    assert by_stage["train_actor"] == by_stage["generate"] == by_stage["replay"] == {"gpu"}
    assert by_stage["fit_readers"] == by_stage["compute_metrics"] == {"cpu"}
    assert totals(study)["copy_checkpoint"] == (1, 0, 1)


def test_an_existing_folder_is_not_downloaded(tmp_path):
    source = {"phantom": None, "folder": "official", "hub": "someone/data", "revision": "0" * 40}
    changes = {"datasets": {"slake": {"source": source}}}
    assert study_of(changes, tmp_path).downloaded() == ["slake"]
    (tmp_path / "official").mkdir()
    assert study_of(changes, tmp_path).downloaded() == []


def test_the_list_of_stages_is_complete():
    for stage in STAGES:
        assert any((ROOT / path / f"{stage}.py").exists() for path in stages), stage
