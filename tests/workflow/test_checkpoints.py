"""Checkpoints that are more than weights, on the whole road: trained with LoRA, brought as an adapter, or quantized."""

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
from dualread.store.manifest import read_manifest
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.long

RUN = "qwen3-vl-tiny/rlvr/17"
BASE = "actors/qwen3-vl-tiny/base/0"
# Micro's 40 steps teach hardly any valid answers. Where all rewards are equal, an actor learns nothing.
LONGER = {"qwen3-vl-tiny": {"source": {"pretrain": {"training": {"steps": 200}}}}}


@pytest.fixture(scope="module")
def study_of(tmp_path_factory):
    """Return a function that runs the micro study with changes laid over it, and returns its results."""
    checkout = Checkout.create(tmp_path_factory.mktemp("checkpoints"))

    def run(name, *targets, **changes):
        file = checkout.folder / f"{name}.yaml"
        file.write_text(yaml.safe_dump({"study": name, **changes}))
        paths = [f"results/{name}/{target}/MANIFEST.json" for target in targets]
        done = checkout.snakemake(*paths, study=f"workflow/studies/micro.yaml {file}")
        assert done.returncode == 0, done.text
        return checkout.folder / "results" / name

    return run


@pytest.fixture(scope="module")
def trained(study_of):
    """The study of an actor that is trained with LoRA."""
    settings = {"lora": {"rank": 4, "alpha": 8}, "learning_rate": 0.01, "prompts_per_step": 4}
    return study_of("mine", "metrics", backbones=LONGER, actors={"rlvr": {"settings": settings}})


def first_question(results):
    """Return the file, text and options of a question, and its confidence in the study."""
    manifest = results / "manifests/slake/test"
    row = pl.read_parquet(manifest / "manifest.parquet").row(0, named=True)
    predictions = pl.read_parquet(results / f"predictions/{RUN}/dualread/predictions.parquet")
    of_row = predictions.filter(condition="original", split="test", sample_id=row["sample_id"])
    return manifest / row["image_files"][0], row["question"], row["options"], of_row["confidence"].item()


def scored_and_exported(results, tolerance):
    """Score a question as the study did; return the card of the exported reader."""
    file, question, options, expected = first_question(results)
    scorer = Scorer.load(results / "readers" / RUN / "dualread", results / "actors" / RUN)
    assert scorer(file, question, options=options).confidence == pytest.approx(expected, abs=tolerance)
    shared = results.parents[1] / f"of {results.name}"
    export(results, ("qwen3-vl-tiny", "rlvr", 17), shared, method="dualread")
    return (shared / "README.md").read_text()


def test_an_actor_that_was_trained_with_lora_goes_all_the_way_to_a_score(trained):
    base, actor = (load_file(trained / at / "checkpoint/model.safetensors") for at in (BASE, f"actors/{RUN}"))
    changed = {name for name in base if not torch.equal(base[name], actor[name])}
    assert changed
    assert all(".language_model.layers." in name for name in changed)
    card = scored_and_exported(trained, 1e-6)
    assert "a LoRA adapter merged into them: trained by DualRead with alpha 8, rank 4." in card


def test_a_reader_scores_with_an_adapter_that_peft_wrote_and_its_base(trained, study_of):
    model = load(trained / BASE / "checkpoint", {"dtype": "float32", "attention": "sdpa"})
    config = peft.LoraConfig(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(model, config)
    torch.manual_seed(0)
    for name, weight in adapted.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.02)
    adapter = trained.parents[1] / "adapter"
    adapted.save_pretrained(adapter)
    of_rlvr = {"training": None, "reward": None, "settings": None}
    of_rlvr["checkpoints"] = {"qwen3-vl-tiny": {17: {"adapter": {"folder": "adapter"}}}}
    target = f"predictions/{RUN}/dualread"
    results = study_of("adapted", target, backbones=LONGER, actors={"rlvr": of_rlvr})
    asked, reader, base = first_question(results)[:2], results / "readers" / RUN / "dualread", results / BASE
    whole = Scorer.load(reader, results / "actors" / RUN)(*asked)
    parts = Scorer.load(reader, adapter, base=base)(*asked)
    assert (parts.answer, parts.confidence, parts.notes) == (whole.answer, whole.confidence, ())
    with pytest.raises(ConfigError, match=r"adapter: an adapter without a base\. .*\(--base\)"):
        Scorer.load(reader, adapter)
    with pytest.raises(ConfigError, match=r"a whole model, and a base"):
        Scorer.load(reader, base, base=base)


@pytest.mark.parametrize("bits", [8, 4])
def test_answers_and_replay_are_of_one_quantized_model(study_of, bits):
    settings = {"qwen3-vl-tiny": {"settings": {"quantization": {"bits": bits}}}}
    results = study_of(f"bits{bits}", backbones=settings)
    # In the keys of what is answered, with its package; what is trained is not quantized.
    for stage in ("generations", "features"):
        action = read_manifest(next((results / stage / RUN).rglob("MANIFEST.json"))).action
        assert action.spec["model"]["quantization"] == {"bits": bits, "module": "models.quantized"}
        assert "bitsandbytes" in action.packages
    for made in (f"actors/{RUN}", "facts/qwen3-vl-tiny/base/0"):
        action = read_manifest(results / made / "MANIFEST.json").action
        assert "quantization" not in action.spec["model"]
        assert "bitsandbytes" not in action.packages
    card = scored_and_exported(results, 1e-2 if bits == 8 else 1e-6)
    assert f"rounded to {bits} bits by bitsandbytes" in card
