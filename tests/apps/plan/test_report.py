"""What `dualread plan` prints."""

import os

import pytest
import yaml

from dualread.apps.main import main
from dualread.apps.plan.memory import needs
from dualread.apps.plan.report import comparison, forecast, time_text
from dualread.errors import ConfigError
from dualread.store.store import Store
from dualread.study.config import resolve
from dualread.study.costs import Costs
from dualread.study.work import PlannedStudy
from tests.store.entries import publish
from tests.study.embedded import EMBEDDED, ROOT, merged

PAPER = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())
# One backbone and one actor, of three seeds.
ONLY = {"only": {"backbones": ["qwen3-vl-tiny"], "actors": ["rlvr"], "methods": ["rlvr"]}}
SETTINGS = {"settings": {"processes": 2, "rollout_gpus": 2}}


def study_of(changes, costs=None):
    return PlannedStudy(resolve(merged(EMBEDDED, changes)), Costs(costs), root=ROOT, results=ROOT / "nowhere")


def lines_of(changes, costs=None, **options):
    return list(forecast(study_of(changes, costs), **{"cores": 2, "gpus": 8, **options}))


def row(lines, *start):
    """The one line that starts with these words."""
    (found,) = (line.split() for line in lines if line.split()[: len(start)] == list(start))
    return found[len(start) :]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "-"), (119.94, "119.9 s"), (120, "2.0 min"), (7199, "120.0 min"), (7200, "2.0 h"), (3.6e6, "1,000.0 h")],
)
def test_times_are_in_hours_where_they_are_many(seconds, text):
    assert time_text(seconds) == text


def test_the_embedded_study_in_distribution():
    lines = lines_of({"only": {"datasets": ["slake"]}})
    assert lines[:2] == ["study embedded", "  backbones: qwen3-vl-tiny, medgemma-tiny"]
    assert row(lines, "slake", "train") == ["800", "100", "phantoms.slake"]
    # 5.5 s, and 9,600 images of 0.0134 s
    assert row(lines, "pretrain_base", "qwen3-vl-tiny") == [*("1", "9,600", "images", "2.2", "min", "-")]
    # the run took 12 min 40 s when the costs were measured, with a few more shuffled images
    (line,) = (line for line in lines if line.startswith("on 2 CPU cores about "))
    assert 11 < float(line.split()[-2]) < 15
    assert not any(line.startswith("on") and "GPU" in line for line in lines)
    assert "  nothing" in lines  # has to be downloaded


def test_the_papers_study_says_where_its_numbers_come_from():
    lines = lines_of(PAPER)
    assert row(lines, "slake", "train") == ["4,919", "450", "the", "loader", "slake"]
    # 117 steps x 128 prompts x 8 completions, of three seeds, and of RLVR and RLCR
    assert row(lines, "train_actor", "qwen3-vl-2b", "6")[:2] == [f"{117 * 128 * 8 * 6:,}", "grpo"]
    text = "\n".join(lines)
    assert "qwen3-vl-2b: Qwen/Qwen3-VL-2B-Instruct at 89644892e4d8, 4.3 GB" in text
    assert row(lines, "generate", "answers", "medgemma-1.5-4b") == ["not", "measured:", "2", "times", "qwen3-vl-2b"]
    assert row(lines, "generate", "answers", "qwen3-vl-2b")[0] == "H200:"


def test_more_gpus_take_less_time():
    one, eight = (next(x for x in lines_of(PAPER, gpus=n) if x.startswith(f"on {n} GPU")) for n in (1, 8))
    hours = [float(line.split(" about ")[1].split()[0]) for line in (one, eight)]
    assert hours[0] == pytest.approx(8 * hours[1], rel=0.02)  # both are rounded to a decimal


def gb(changes, stage, backbone, costs=None):
    return next(need.gb for need in needs(study_of(changes, costs)) if (need.stage, need.backbone) == (stage, backbone))


def test_a_training_holds_what_its_method_says():
    qwen, medgemma = "qwen3-vl-2b", "medgemma-1.5-4b"
    # weights 4, gradients 4, Adam 8, bfloat16 copies 2, and 16 completions of 2.2 GB
    assert gb(PAPER, "train_actor (rlvr)", qwen) == pytest.approx(18 * 2.128 + 16 * 2.2)
    # and a reference model
    assert gb(PAPER, "train_actor (dcpo)", qwen) == pytest.approx(22 * 2.128 + 16 * 2.2)
    # while vLLM has 30% of 141 GB, there are neither gradients nor completions
    assert gb(PAPER, "train_actor (dcpo)", medgemma) == pytest.approx(16 * 4.3 + 0.3 * 141)
    awake = {"rollout_settings": {"gpu_memory_utilization": 0.3, "sleep": False}}
    changes = merged(PAPER, {"backbones": {qwen: {"training": awake}}})
    assert gb(changes, "train_actor (rlvr)", qwen) == pytest.approx(18 * 2.128 + 16 * 2.2 + 0.3 * 141)
    # a quarter of everything, and a completion; with none of them, the whole weights in bfloat16 would take less
    sharded = {"shard": "full", "completions_per_pass": 1, "rollout_gpus": 1}
    changes = merged(PAPER, {"backbones": {qwen: {"training": sharded}}})
    assert gb(changes, "train_actor (dcpo)", qwen) == pytest.approx(22 * 2.128 / 4 + 2.2)
    # an adapter: completions are compared in float32 before the first step
    lora = merged(PAPER, {"actors": {"dcpo": {"settings": {"lora": {"rank": 2, "alpha": 4}}}}})
    alone = merged(lora, {"backbones": {medgemma: {"training": {"rollouts": None, "rollout_settings": None}}}})
    assert gb(alone, "train_actor (dcpo)", medgemma) == pytest.approx(max(4.4 * 4.3, 2.1 * 4.3 + 8 * 1.8))


def test_memory_is_planned_from_the_question_with_the_most_images():
    hub = {"hub": "SuhaoYu1020/MedFrameQA", "revision": "0" * 40}
    frames = {"label": "Frames", "loader": "medframeqa", "splits": ["test"], "roles": {"test": "ood"}, "seed": 0}
    changes = merged(PAPER, {"datasets": {"frames": {**frames, "source": hub, "prompt": "shared"}}})
    # five images: 14.0 GB with one, of which 2 x 2.128 are weights; a further image adds half of the rest
    assert gb(changes, "replay", "qwen3-vl-2b") == pytest.approx(14.0 + 4 * 0.5 * (14.0 - 4.256))
    assert gb(changes, "train_actor (rlvr)", "qwen3-vl-2b") == gb(PAPER, "train_actor (rlvr)", "qwen3-vl-2b")


def test_what_does_not_fit_is_said_with_what_to_change(tmp_path):
    assert not any("does not fit" in line for line in lines_of(PAPER))
    (tmp_path / "smaller.yaml").write_text("gpu: {name: H100, memory_gb: 80, tflops: 989}\n")
    said = [line.strip() for line in lines_of(PAPER, tmp_path / "smaller.yaml") if " fit: " in line]
    # 22 x 2.128 + 16 x 2.2 = 82.0; with 15 completions 79.8
    assert said[2] == (
        "train_actor (dcpo) of qwen3-vl-2b does not fit: it needs 82.0 GB, and H100 has 80.0 GB; set"
        " backbones.qwen3-vl-2b.training to completions_per_pass: 15."
    )
    # with a margin of a quarter, 73.5 GB may be too much
    assert said[0].startswith("train_actor (rlvr) of qwen3-vl-2b may not fit: it needs 73.5 GB")
    of_medgemma = [line for line in said if "of medgemma-1.5-4b" in line]
    assert len(of_medgemma) == 4
    assert of_medgemma[2].endswith("set backbones.medgemma-1.5-4b.training to processes: 8 and shard: full.")


@pytest.mark.parametrize(
    ("files", "costs"),
    [(["paper.yaml"], None), (["paper.yaml", "larger.yaml"], None), (["one_gpu_lora.yaml"], "rtx_4090.yaml")],
)
def test_the_shipped_studies_fit_into_their_gpus(files, costs):
    changes = {}
    for file in files:
        changes = merged(changes, yaml.safe_load((ROOT / "workflow/studies" / file).read_text()))
    study = study_of(changes, costs and ROOT / "workflow/costs" / costs)
    found = list(needs(study))
    assert found
    assert {(need.stage, need.backbone): need.gb for need in found if need.gb > study.costs["gpu"]["memory_gb"]} == {}


def publish_results(root):
    made = {
        "a": ("train_actor", SETTINGS, {"seconds": 10.0, "peak_memory_mb": 700.0, "peak_gpu_memory_mb": 9e3}),
        "b": ("train_actor", {"settings": {}}, {"seconds": 5.0, "peak_memory_mb": 600.0}),
        "c": ("grade", {}, {"seconds": 4.0}),
        "d": ("grade", {}, {"seconds": 0.0}),
    }
    store = Store(root / "results/store")
    for name, (stage, spec, record) in made.items():
        publish(store, stage, {"a": name}, spec={**spec, "of": name}, output=root / "results/embedded" / name, **record)
    return store


def test_times_are_those_of_all_gpus_and_a_part_is_compared_with_its_part_of_the_plan(tmp_path):
    found = list(comparison(study_of(ONLY), tmp_path / "results/embedded", publish_results(tmp_path)))
    # 10 s on 2 x (1 + 2) GPUs and 5 s on one. Each of three trainings is planned with 5.5 s to start and 8 steps of
    # 4 x 8 completions of 0.024 s, 11.644 s: 65 / (2 x 11.644) = 2.79
    assert row(found, "train_actor") == ["3", "2", "23.3", "s", "65.0", "s", "2.79", "700", "MB", "9,000", "MB"]
    assert row(found, "grade")[1] == "2"
    assert row(found, "grade")[4:6] == ["4.0", "s"]
    assert row(found, "grade")[-2:] == ["-", "-"]  # nobody recorded its memory
    assert row(found, "score_answers")[-4:] == ["-"] * 4
    planned = 2 * 11.644 + float(row(found, "grade")[2])
    assert row(found, "what", "was", "measured") == [f"{planned:.1f}", "s", "69.0", "s", f"{69 / planned:.2f}"]


def test_a_study_without_results_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="results/embedded: no results"):
        list(comparison(study_of(ONLY), tmp_path / "results/embedded", Store(tmp_path / "results/store")))


def test_a_pilot_run_gives_the_times_of_its_machine(tmp_path, monkeypatch, capsys):
    publish_results(tmp_path)
    (tmp_path / "config.yaml").write_text((ROOT / "config.yaml").read_text())
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(ONLY))
    (tmp_path / "envs").symlink_to(ROOT / "envs")
    monkeypatch.chdir(tmp_path)
    assert main(["plan", "--configfile", os.fspath("one.yaml"), "--pilot", "one.yaml"]) == 0
    lines = capsys.readouterr().out.splitlines()
    # three trainings, of which two took 65 s; 5.5 s and 128 completions of 0.024 s are 8.572 s
    assert row(lines, "train_actor", "qwen3-vl-tiny")[:5] == ["3", "384", "grpo", "completions", "97.5"]
    basis = row(lines, "train_actor", "grpo", "completions", "qwen3-vl-tiny")
    assert " ".join(basis) == "the pilot: 3.79 times the table (a run of config.yaml; sampling included)"
    assert row(lines, "score_answers", "confidences", "one", "core") == ["a", "run", "of", "config.yaml"]  # not in it
