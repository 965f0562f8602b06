import pytest
import yaml

from dualread.commands.plan.report import COSTS, forecast
from dualread.errors import ConfigError
from dualread.study.config import resolve
from tests.study.embedded import EMBEDDED, ROOT, merged


def lines_of(changes, **options):
    config = resolve(merged(EMBEDDED, changes))
    options = {"cores": 2, "gpus": 8, "costs": COSTS, **options}
    return list(forecast(config, root=ROOT, results=ROOT / "nowhere", **options))


def row(lines, *start):
    """The one line that starts with these words."""
    (found,) = (line.split() for line in lines if line.split()[: len(start)] == list(start))
    return found[len(start) :]


def test_the_embedded_study_in_distribution():
    lines = lines_of({"only": {"datasets": ["slake"]}})
    assert lines[:2] == ["study embedded", "  backbones: qwen3-vl-tiny, medgemma-tiny"]
    assert row(lines, "slake", "train") == ["800", "100", "phantoms.slake"]
    assert row(lines, "pretrain_base") == ["2", "2", "19,200", "images", "4.5", "min", "-"]
    assert row(lines, "build_manifest")[-2:] == ["-", "-"]  # not timed
    # the run took 12 min 40 s when the costs were measured, with a few more shuffled images
    (line,) = (line for line in lines if line.startswith("on 2 CPU cores about "))
    assert 12 < float(line.split()[-2]) < 15
    assert not any(line.startswith("on") and "GPU" in line for line in lines)
    assert "  nothing" in lines  # has to be downloaded


def test_the_papers_study_lists_its_assumptions():
    changes = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())
    lines = lines_of(changes)
    assert row(lines, "slake", "train") == ["4,919", "450", "the", "loader", "slake"]
    # 117 steps x 128 prompts x 8 completions, of two backbones, three seeds, and RLVR and RLCR
    assert row(lines, "train_actor", "12", "12")[:2] == [f"{117 * 128 * 8 * 12:,}", "grpo"]
    text = "\n".join(lines)
    assert "qwen3-vl-2b: Qwen/Qwen3-VL-2B-Instruct at 89644892e4d8, 4.3 GB" in text
    assert "a pass: 2 operations per weight and token, and attention, at 396 TFLOP/s in bfloat16" in text
    assert "an image has 4096 patches at most" in text  # SigLIP's 64 x 64
    assert "H200: 989 TFLOP/s and 4.8 TB/s, of which 40% and 50% are assumed" in text
    assert "also, while an actor of medgemma-1.5-4b trains" in text


def test_what_does_not_fit_is_said_with_what_to_change(tmp_path):
    changes = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())
    units = yaml.safe_load(COSTS.read_text())
    assert not any("does not fit" in line for line in lines_of(changes))
    units["gpu"] |= {"name": "H100", "memory": 8.0e10}
    (tmp_path / "smaller.yaml").write_text(yaml.safe_dump(units))
    told = [line for line in lines_of(changes, costs=tmp_path / "smaller.yaml") if "does not fit" in line]
    # VL-Calibration of Qwen3-VL-2B with fewer completions at once; the trainings of MedGemma in parts
    of_qwen = "of the 80.0 GB of an H100 90% can be counted on; set backbones.qwen3-vl-2b.training.completions_per_pass"
    assert any("vl_calibration" in line and of_qwen in line for line in told)
    of_medgemma = [line for line in told if "of medgemma-1.5-4b" in line]
    assert len(of_medgemma) == 4
    assert all("set backbones.medgemma-1.5-4b.training.shard to full." in line for line in of_medgemma)


def test_more_cores_and_gpus_take_less_time():
    changes = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())
    one, eight = (
        next(line for line in lines_of(changes, gpus=gpus) if line.startswith(f"on {gpus} GPU")) for gpus in (1, 8)
    )
    hours = [float(line.split(" about ")[1].split()[0]) for line in (one, eight)]
    assert hours[0] == pytest.approx(8 * hours[1], rel=0.02)  # both are rounded to a decimal


def test_costs_of_another_machine(tmp_path):
    units = yaml.safe_load(COSTS.read_text())
    units["tiny"]["pretrain_image"] *= 2
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(units))
    assert row(lines_of({}, costs=tmp_path / "mine.yaml"), "pretrain_base")[4] == "8.8"  # 2 x (5.5 + 9600 x 0.0268) s


def test_an_unknown_size_is_reported():
    changes = yaml.safe_load((ROOT / "workflow/studies/paper.yaml").read_text())
    changes["backbones"]["qwen3-vl-2b"]["size"] = None
    with pytest.raises(ConfigError, match=r"backbones.qwen3-vl-2b.size: missing"):
        lines_of(changes)
