"""The work of the embedded study on its in-distribution data set, counted by hand, and the time that it takes."""

import pytest
import yaml

from dualread.errors import ConfigError
from dualread.models.replay import agreement
from dualread.stages import __path__ as stages
from dualread.study.config import resolve
from dualread.study.costs import Costs
from dualread.study.files import load
from dualread.study.work import SAMPLE, STAGES, PlannedStudy, cluster_resources, seconds_of_jobs, work_of
from tests.study.embedded import EMBEDDED, ROOT, merged

QUESTIONS = {"train": 800, "validation": 192, "test": 384}  # 100, 24 and 48 images with 8 questions each
HUB = {"pretrain": None, "hub": "someone/model", "revision": "0" * 40}
SIZE = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())["backbones"]["qwen3-vl-2b"]["size"]


def study_of(changes, root=ROOT, costs=None):
    config = resolve(merged(EMBEDDED, merged({"only": {"datasets": ["slake"]}}, changes)))
    return PlannedStudy(config, Costs(costs), root=root, results=root / "nowhere")


def rows_of(study, stage=None):
    return [row for rows in work_of(study) for row in rows if stage in (None, row.stage)]


def totals(study):
    """(jobs, items) by stage."""
    found = {}
    for row in rows_of(study):
        jobs, items = found.get(row.stage, (0, 0))
        found[row.stage] = jobs + row.jobs, items + row.items
    return found


def seconds(study, stage):
    return sum(row.seconds for row in rows_of(study, stage))


def large(**settings):
    """A backbone of the size of Qwen3-VL-2B from the hub, in place of both tiny ones."""
    entry = {"source": HUB, "size": SIZE, **settings}
    return {"backbones": {"qwen3-vl-tiny": entry, "medgemma-tiny": None}}


def test_jobs_of_the_embedded_study():
    found = totals(study_of({}))
    assert set(found) <= set(STAGES)
    runs = 2 * (1 + 4 * 3)  # of two backbones the base and four actors of three seeds
    for stage in ("generate", "grade", "fit_readers", "score_answers", "compute_metrics", "measure_costs"):
        assert found[stage][0] == runs
    assert found["pretrain_base"] == (2, 2 * 300 * 32)
    # 8 steps of 4 prompts with 8 completions, of 24 actors; three passes more of VL-Calibration, one of them for its
    # KL penalty, are counted on GPUs alone
    assert found["train_actor"] == (24, 24 * 256 + 6 * 2 * 256)
    assert found["replay"][0] == 6  # only RLVR's
    assert "copy_checkpoint" not in found


def test_where_the_generation_keeps_states_a_sample_of_each_shard_is_replayed():
    only = {"methods": ["psr"], "backbones": ["medgemma-tiny"], "seeds": [29]}
    found = [seconds(study_of({"only": only, "replay": replay}), "replay") for replay in ({}, {"from": "generation"})]
    assert agreement.SAMPLE == SAMPLE
    # train, validation, and test under original, donor and fixed images; the last are forced, so that all are replayed
    answers = [(found[k] - 5.5) / 0.0038 for k in (0, 1)]
    assert answers == pytest.approx([800 + 192 + 3 * 384, 4 * 32 + 384])


def test_answers_of_one_actor():
    """RLVR of one backbone and seed, whose answers are shown in all views."""
    study = study_of({"only": {"actors": ["rlvr"], "backbones": ["medgemma-tiny"], "seeds": [29]}})
    found = {}
    for row in rows_of(study, "generate"):
        found[row.what] = found.get(row.what, 0) + row.items
    viewed = QUESTIONS["validation"] + 2 * QUESTIONS["test"]  # original, and the donor's image; no views under controls
    assert found == {
        "models": 1,
        "answers": sum(QUESTIONS.values()) + QUESTIONS["test"],  # every split, and the donor's image
        "samples": 8 * viewed,
        "words": viewed,
        "replies": 4 * viewed,  # self-probing and three more prompts
    }
    # everything that is answered, the forced answer, and the black view of the training split
    [replayed] = rows_of(study, "replay")
    assert replayed.items == sum(QUESTIONS.values()) + 2 * QUESTIONS["test"] + QUESTIONS["train"] == 2944


def test_groups_of_each_column_are_counted_on_the_test_answers_alone():
    only = {"methods": ["psr"], "backbones": ["medgemma-tiny"], "seeds": [29]}
    assert totals(study_of({"only": only, "subgroups": ["content_family"]}))["measure_subgroups"] == (1, 384)


def test_seconds_are_the_items_times_the_units():
    study = study_of({"only": {"actors": ["rlvr"], "backbones": ["medgemma-tiny"], "seeds": [29]}})
    assert not any(row.gpus for row in rows_of(study))
    assert seconds(study, "replay") == pytest.approx(5.5 + 2944 * 0.0038)
    assert seconds(study, "train_actor") == pytest.approx(5.5 + 256 * 0.024)
    assert seconds(study, "pretrain_base") == pytest.approx(5.5 + 9600 * 0.0134)
    viewed = 192 + 2 * 384
    generated = 1760 * 0.0055 + 8 * viewed * 0.0025 + viewed * 0.0029 + 4 * viewed * 0.0027
    assert seconds(study, "generate") == pytest.approx(5.5 + generated)
    # the number of answers and the width of the states are those of the measurement; 9 of 17 readers take the minimum
    fits = 5.0 + 3.1 + 0.5 + 0.35 + 0.25 + 3 * 0.3 + 9 * 0.1
    assert seconds(study, "fit_readers") == pytest.approx(0.5 + fits)


def test_a_reader_of_wider_states_takes_longer():
    narrow, wide = (
        seconds(study_of({"only": {"methods": ["psr"]}, "backbones": backbones}), "fit_readers")
        for backbones in ({}, {"medgemma-tiny": {"source": {"pretrain": {"architecture": {"hidden_size": 256}}}}})
    )
    # three seeds of one of the two backbones: 0.5 seconds more each
    assert wide - narrow == pytest.approx(3 * 0.5)


def test_an_actor_that_comes_as_a_checkpoint_is_copied():
    of = {str(seed): {"hub": "someone/actor", "revision": "0" * 40} for seed in (17, 29, 43)}
    entry = {"training": None, "reward": None, "settings": None}
    rlvr = {"checkpoints": {"qwen3-vl-tiny": of, "medgemma-tiny": of}, **entry}
    found = totals(study_of({"actors": {"rlvr": rlvr}, "figures": None, "only": {"methods": ["dualread"]}}))
    assert found["copy_checkpoint"] == (6, 6)
    assert not {"train_actor", "pretrain_base"} & {*found}  # no training starts from the base, and it answers nothing


def test_work_on_a_gpu_is_counted_in_the_units_of_its_engine():
    only = {"only": {"datasets": ["slake"], "methods": ["psr", "p_true"], "seeds": [17]}}
    study = study_of(merged(large(), only))
    by_stage = {stage: {bool(row.gpus) for row in rows_of(study, stage) if row.seconds} for stage in STAGES}
    assert by_stage["train_actor"] == by_stage["generate"] == by_stage["replay"] == {True}
    assert by_stage["fit_readers"] == by_stage["compute_metrics"] == {False}
    # transformers: a step gives a token of each row of a batch, 64 are the budget; 800, 192 and 2 x 384 answers
    rows = {row.what: row for row in rows_of(study, "train_actor")}
    at_once = EMBEDDED["generation"]["settings"]["batch_size"]
    steps = sum(-(-n // at_once) * 64 for n in (800, 192, 384, 384))
    answers = sum(row.seconds for row in rows_of(study, "generate") if row.what == "answers")
    assert answers == pytest.approx(steps * 0.024)
    # Yes and No of 192 + 2 x 384 answers
    words = sum(row.seconds for row in rows_of(study, "generate") if row.what == "words")
    assert words == pytest.approx((192 + 2 * 384) * 2 * 4.0e-3)
    assert rows["grpo completions"].seconds == pytest.approx(60 + 256 * 0.142)
    at_once = EMBEDDED["actors"]["rlvr"]["settings"]["completions_per_pass"]
    assert rows["sampled tokens"].seconds == pytest.approx(256 / at_once * 64 * 0.024)
    # vLLM: tokens, half of the budget
    engine = {"generation": {"engine": "vllm_engine", "settings": {"batch_size": None, "max_num_seqs": 256}}}
    answers = rows_of(study_of(merged(merged(large(), only), engine)), "generate")
    assert sum(row.seconds for row in answers if row.what == "answers") == pytest.approx(1760 * 32 * 2.42e-4)


def test_a_training_that_keeps_gpus_for_sampling_pays_for_all_of_them():
    def of(training):
        changes = large(training={"rollouts": "vllm", **training})
        return study_of(merged(changes, {"only": {"methods": ["psr"], "seeds": [17]}}))

    alone, apart = (rows_of(of(training), "train_actor") for training in ({}, {"rollout_gpus": 2}))
    assert [row.seconds for row in apart] == pytest.approx([3 * row.seconds for row in alone])
    assert {row.gpus for row in alone} == {1}
    assert {row.gpus for row in apart} == {3}
    # tokens by vLLM: 256 completions of half of 64 tokens
    assert alone[-1].seconds == pytest.approx(256 * 32 * 7.0e-5)


def test_another_backbone_and_another_gpu_are_scaled_and_named(tmp_path):
    twice = large(**{"size": {**SIZE, "parameters": 2 * 2.128e9}})
    only = {"only": {"methods": ["psr"], "seeds": [17]}}
    measured, other = (rows_of(study_of(merged(c, only)), "train_actor")[0] for c in (large(), twice))
    assert measured.basis.startswith("H200: ")
    # MedGemma has 1% more parameters, but nobody measured its training; one GPU has 3.17 times the operations
    assert other.seconds == pytest.approx(2 * measured.seconds)
    assert other.basis == "not measured: 2 times qwen3-vl-2b"
    (tmp_path / "gpu.yaml").write_text("gpu: {name: A100, memory_gb: 80, tflops: 312}\n")
    slower = rows_of(study_of(merged(large(), only), costs=tmp_path / "gpu.yaml"), "train_actor")
    assert slower[0].seconds == pytest.approx(measured.seconds * 989 / 312)
    assert slower[0].basis.endswith("; times 3.2 on A100, not measured")
    assert slower[1].seconds == rows_of(study_of(merged(large(), only)), "train_actor")[1].seconds  # a step is a step


def test_a_file_of_costs_may_have_times_of_its_own(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "times: [{stage: pretrain_base, model: tiny, per: images, seconds: 0.0268, from: my laptop}]\n"
    )
    found = rows_of(study_of({}, costs=tmp_path / "mine.yaml"), "pretrain_base")
    assert [row.seconds for row in found] == pytest.approx([5.5 + 9600 * 0.0268] * 2)
    assert {row.basis for row in found} == {"my laptop"}


def test_every_number_of_the_table_says_where_it_was_measured_and_of_which_stage_it_is():
    costs = Costs()
    known = {"any", *STAGES}
    for row in [*costs["times"], *costs["memory"]]:
        assert row["from"], row
        assert row["stage"] in known, row
        assert row["model"] in {"core", "tiny", *costs["backbones"]}, row


def test_an_unknown_size_is_reported():
    with pytest.raises(ConfigError) as error:
        rows_of(study_of(large(size=None)))
    assert str(error.value).startswith("backbones.qwen3-vl-tiny.size: missing.")


def test_a_job_of_a_cluster_gets_the_time_and_memory_that_are_expected_with_a_margin(tmp_path):
    config = load([ROOT / "workflow/studies/paper.yaml"], ROOT)
    asked = cluster_resources(config, root=ROOT, results=tmp_path)
    # VL-Calibration of MedGemma: 117 x 1,024 completions, 3 extra passes each, 512 tokens, on 8 GPUs
    n, ratio = 117 * 1024, 4.3 / 2.128
    hours = (60 * ratio + n * ratio * (0.142 + 3 * 0.036 + 256 * 7.0e-5)) / 8 / 3600
    assert asked["train_actor"] == {"runtime": 30 * (int(hours * 3 * 2 + 1) + 1), "mem_mb": 188000}
    assert asked["build_manifest"] == {"mem_mb": 16000}
    # 8 processes read MedGemma in float32: 137.6 GB, times 1.25, and 16 GB
    assert asked["generate"]["mem_mb"] == 64000
    assert seconds_of_jobs(config, root=ROOT, results=tmp_path)["train_actor"] < 3600 * hours


def test_where_sizes_are_not_known_a_cluster_is_asked_for_memory_alone_and_nothing_is_expected(tmp_path):
    source = {"phantom": None, "folder": "nowhere"}
    slake = {"source": source, "loader": "table", "settings": None}
    config = resolve(merged(EMBEDDED, {"datasets": {"slake": slake}}))
    assert cluster_resources(config, root=tmp_path, results=tmp_path)["generate"] == {"mem_mb": 64000}
    assert seconds_of_jobs(config, root=tmp_path, results=tmp_path) == {}


def test_the_list_of_stages_is_complete():
    for stage in STAGES:
        assert any((ROOT / path / f"{stage}.py").exists() for path in stages), stage
