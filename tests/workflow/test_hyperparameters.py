"""The values in the table hparams are those that the study's jobs get: one dry run, no job is started."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import polars as pl
import pytest
import yaml

from dualread.reporting.tables import hparams
from dualread.reporting.tables.hparams import number, told_apart
from dualread.schema.tables import BuildTableSpec
from dualread.stages import build_table
from tests.workflow.checkout import Checkout, Run

pytestmark = pytest.mark.rest

PAPER = "workflow/studies/paper.yaml"


@pytest.fixture(scope="module")
def asked(unedited: Checkout, dry: Callable[..., Run]) -> Mapping[str, list[dict[str, Any]]]:
    """The specs of the study's jobs, by stage; those of one stage in the order of backbones, actors and seeds."""
    assert dry(study=PAPER).returncode == 0
    files = sorted((unedited.folder / "results/paper/dry_run/jobs").glob("*/*.json"))
    config = yaml.safe_load((unedited.folder / PAPER).read_text())
    backbones = [name for name, backbone in config["backbones"].items() if backbone]
    actors = ["base", "rlvr", "rlcr", "dcpo", "vl_calibration"]
    specs: dict[str, list[dict[str, Any]]] = {}
    for file in files:
        specs.setdefault(file.parent.name, []).extend(e["spec"] for e in json.loads(file.read_text())["entries"])
    for stage in ("train_actor", "generate", "replay", "fit_readers"):
        specs[stage].sort(key=lambda s: (backbones.index(s["backbone"]), actors.index(s["actor"]), s["seed"]))
    return specs


@pytest.fixture(scope="module")
def printed(asked: Mapping[str, list[dict[str, Any]]]) -> dict[str, str]:
    (spec,) = [spec for spec in asked["build_table"] if spec["table"]["module"] == "reporting.tables.hparams"]
    shown = BuildTableSpec.from_spec(spec, "build_table").settings
    data = pl.DataFrame([("slake", "train", 4919)], schema=["dataset", "split", "questions"], orient="row")
    return dict(build_table.build(hparams, data, shown).cells.select("row", "printed").iter_rows())


LABELS = {
    **{"qwen3-vl-2b": "Qwen3VL-2B", "medgemma-1.5-4b": "MedGemma1.5-4B", "base": "Base", "rlvr": "GRPO (RLVR)"},
    **{"rlcr": "RLCR", "dcpo": "DCPO", "vl_calibration": "VL-Cal."},
}


def told(specs: list[dict[str, Any]], value) -> str:
    """What a cell says of `value(spec)`: one value, and who has another one."""
    return told_apart({(LABELS[s["backbone"]], LABELS[s["actor"]]): number(value(s)) for s in specs})


def test_trainings(asked, printed):
    jobs = asked["train_actor"]
    assert len(jobs) == 2 * 4 * 3  # backbones, actors, seeds

    def each(name: str) -> str:
        return told(jobs, lambda spec: spec["settings"][name])

    limit = told(jobs, lambda spec: spec["settings"].get("max_prompt_tokens", spec["model"]["max_prompt_tokens"]))
    assert printed["Max prompt / completion length"] == f"{limit} / {each('max_completion_tokens')}"
    assert "VL-Cal. with MedGemma1.5-4B: 1024" in limit
    assert printed["Advantage estimator"].endswith(each("group_size").replace("8", "𝐺=8", 1))
    assert printed["Rollout temperature / top-𝑝"] == f"{each('temperature')} / {each('top_p')}"
    assert printed["PPO clip (low / high)"] == f"{each('clip_low')} / {each('clip_high')}"
    assert each("learning_rate") in printed["Optimizer"]
    assert {tuple(spec["settings"]["betas"]) for spec in jobs} == {(0.9, 0.95)}
    assert {spec["settings"]["warmup_fraction"] for spec in jobs} == {0.05}
    assert printed["Weight decay / grad-norm clip"] == f"{each('weight_decay')} / {each('clip_norm')}"
    assert printed["Prompt batch / global batch"].startswith(each("prompts_per_step"))
    assert each("passes") in printed["Training exposure"]
    assert {spec["seed"] for spec in jobs} == {17, 29, 43}
    assert printed["Seeds"] == "{17, 29, 43}"
    assert {(spec["model"]["dtype"], spec["model"]["attention"]) for spec in jobs} == {("bfloat16", "sdpa")}
    assert printed["Precision / attention"] == "BF16 / SDPA; weights in training FP32"
    by_backbone = {spec["backbone"]: spec["settings"]["processes"] for spec in jobs}
    assert by_backbone == {"qwen3-vl-2b": 4, "medgemma-1.5-4b": 8}
    assert printed["Hardware"].startswith("4 processes (MedGemma1.5-4B: 8 processes)")
    kl = {spec["actor"]: spec["settings"]["kl_coefficient"] for spec in jobs}
    assert kl == {"rlvr": 0.0, "rlcr": 0.0, "dcpo": 1e-3, "vl_calibration": 1e-4}
    for actor in ("dcpo", "vl_calibration"):
        coefficient = number(kl[actor], "coef=")
        assert f"{LABELS[actor]}: {coefficient}" in printed["KL penalty"]


def test_answers(asked, printed):
    answers = [spec for spec in asked["generate"] if "/" not in spec["shard"]["condition"]]
    limit = told(answers, lambda spec: spec["model"]["max_prompt_tokens"])
    budget = told(answers, lambda spec: spec["shard"]["decoding"]["max_completion_tokens"])
    assert printed["Max prompt / answer length"] == f"{limit} / {budget}"
    assert {spec["shard"]["decoding"]["temperature"] for spec in answers} == {0.0}
    assert printed["Decoding"] == "greedy (temperature 0)"
    assert {spec["engine"]["module"] for spec in asked["generate"]} == {"models.generation.vllm_engine"}
    assert printed["Generation engine"].startswith(r"vllm_engine, ")
    assert {number(spec["replay"]["kappa"], "κ=") for spec in asked["replay"]} == {r"κ=0.1"}
    assert printed["Visual pooling"].endswith(r"κ=0.1")


def test_heads(asked, printed):
    rows = {"psr": "PSR head (pre-answer)", "saplma": "SAPLMA head", "bicr": "BICR head"}
    for method, row in rows.items():
        fits = [spec["settings"] for spec in asked["fit_readers"] if spec["reader"]["method"] == method]
        assert len(fits) == 2 * 3
        for settings in fits:
            numbers = [v for name, v in settings.items() if name not in ("hidden", "max_epochs")]
            assert all(number(value) in printed[row] for value in [*numbers, *settings["hidden"]])
            assert number(settings["max_epochs"], "≤") in printed[row]
    linear = {method: [] for method in ("p_state", "per")}
    for spec in asked["fit_readers"]:
        if (method := spec["reader"]["method"]) in linear:
            linear[method].append(spec["settings"])
    (state,), (visual,) = ({tuple(sorted(s.items())) for s in linear[method]} for method in ("p_state", "per"))
    assert dict(state)["steps"] == dict(visual)["steps"] == 1000
    l2 = " / ".join(number(dict(settings)["l2"]) for settings in (state, visual))
    assert printed["𝐿2 (P-State / P-Visual)"] == l2
    assert "1000 full-batch steps, lr 1×10⁻³" in printed["PER heads (post-answer)"]


def test_resamples(asked, printed):
    replicates = {spec["metrics"]["bootstrap"]["replicates"] for spec in asked["compute_metrics"]}
    assert {number(n, "𝐵=") in printed["Bootstrap"] for n in replicates} == {True}
