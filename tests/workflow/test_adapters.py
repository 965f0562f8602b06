"""Adapters on the whole road: trained by the study, or brought as a folder that peft wrote."""

import shutil
from pathlib import Path

import peft
import polars as pl
import pytest
import torch
import yaml
from safetensors.torch import load_file

from dualread.apps.score.bundle_writer import export
from dualread.apps.score.scorer import Scorer
from dualread.errors import ConfigError
from dualread.models.backbones.checkpoint import load
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.long

RUN, METRICS = "qwen3-vl-tiny/rlvr/17", "results/mine/metrics/MANIFEST.json"
# Micro's 40 steps teach hardly any valid answers. Where all rewards are equal, an actor learns nothing.
LONGER = {"qwen3-vl-tiny": {"source": {"pretrain": {"training": {"steps": 200}}}}}
GIVEN = {"training": None, "reward": None, "settings": None}


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The micro study, whose actor is trained with LoRA."""
    checkout = Checkout.create(tmp_path_factory.mktemp("adapters"))
    settings = {"lora": {"rank": 4, "alpha": 8}, "learning_rate": 0.01, "prompts_per_step": 4}
    run = lay(checkout, "lora", {"study": "mine", "actors": {"rlvr": {"settings": settings}}}, METRICS)
    assert run.returncode == 0, run.text
    return checkout


def lay(checkout, name, changes, *targets):
    """Run the micro study, whose backbone is trained for longer, with changes laid over it."""
    file = checkout.folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump({"backbones": LONGER, **changes}))
    return checkout.snakemake(*targets, study=f"workflow/studies/micro.yaml {file}")


def brought(checkpoints, study):
    """The changes with which the actor comes from somewhere else."""
    return {"study": study, "actors": {"rlvr": {**GIVEN, "checkpoints": {"qwen3-vl-tiny": {17: checkpoints}}}}}


def confidences(folder: Path, study: str) -> pl.DataFrame:
    parts = (folder / "results" / study / "predictions" / RUN).glob("*/predictions.parquet")
    keys = ["method", "sample_id", "condition"]
    return pl.concat(pl.read_parquet(part) for part in sorted(parts)).sort(keys).select(*keys, "confidence")


@pytest.fixture(scope="module")
def adapter(checkout):
    """An adapter of the study's base that peft alone made and wrote."""
    base = checkout.folder / "results/mine/actors/qwen3-vl-tiny/base/0/checkpoint"
    model = load(base, {"dtype": "float32", "attention": "sdpa"})
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, config)
    torch.manual_seed(0)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)
    adapted.save_pretrained(checkout.folder / "adapter")
    adapted.merge_and_unload().save_pretrained(checkout.folder / "merged")
    for file in base.iterdir():
        if file.name not in ("config.json", "generation_config.json", "model.safetensors"):
            shutil.copy2(file, checkout.folder / "merged")
    return checkout.folder / "adapter"


@pytest.fixture(scope="module")
def adapted(checkout, adapter) -> Path:
    """The results of a study whose actor is that adapter, up to the confidences of one reader."""
    target = f"results/adapted/predictions/{RUN}/dualread/MANIFEST.json"
    run = lay(checkout, "adapted", brought({"adapter": {"folder": "adapter"}}, "adapted"), target)
    assert run.returncode == 0, run.text
    return checkout.folder / "results/adapted"


def test_an_actor_that_was_trained_with_lora_goes_all_the_way_to_a_score(checkout):
    results = checkout.folder / "results/mine"
    folders = ("qwen3-vl-tiny/base/0", RUN)
    base, actor = (load_file(results / "actors" / at / "checkpoint/model.safetensors") for at in folders)
    changed = {name for name in base if not torch.equal(base[name], actor[name])}
    assert changed
    assert all(".language_model.layers." in name for name in changed)
    expected = {
        i: c for m, i, s, c in confidences(checkout.folder, "mine").iter_rows() if (m, s) == ("dualread", "original")
    }
    manifest = results / "manifests/slake/test"
    row = pl.read_parquet(manifest / "manifest.parquet").row(0, named=True)
    scorer = Scorer.load(results / "readers" / RUN / "dualread", results / "actors" / RUN)
    found = scorer(manifest / row["image_files"][0], row["question"], options=row["options"])
    assert found.confidence == pytest.approx(expected[row["sample_id"]], abs=1e-6)
    export(results, ("qwen3-vl-tiny", "rlvr", 17), checkout.folder / "shared", method="dualread")
    card = (checkout.folder / "shared/README.md").read_text()
    assert "a LoRA adapter merged into them: trained by DualRead with alpha 8, rank 4." in card


def test_a_reader_scores_with_the_adapter_and_its_base(checkout, adapter, adapted):
    row = pl.read_parquet(adapted / "manifests/slake/test/manifest.parquet").row(0, named=True)
    asked = (adapted / "manifests/slake/test" / row["image_files"][0], row["question"])
    reader, base = adapted / "readers" / RUN / "dualread", adapted / "actors/qwen3-vl-tiny/base/0"
    whole = Scorer.load(reader, adapted / "actors" / RUN)(*asked)
    parts = Scorer.load(reader, adapter, base=base)(*asked)
    assert (parts.answer, parts.confidence, parts.notes) == (whole.answer, whole.confidence, ())
    with pytest.raises(ConfigError, match=r"adapter: an adapter without a base\. .*\(--base\)"):
        Scorer.load(reader, adapter)
    with pytest.raises(ConfigError, match=r"a whole model, and a base"):
        Scorer.load(reader, base, base=base)
