"""A backbone whose weights are quantized when it answers: the whole road, and what is measured on it."""

import polars as pl
import pytest
import yaml

from dualread.apps.score.bundle_writer import export
from dualread.apps.score.scorer import Scorer
from dualread.store.manifest import read_manifest
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.long

RUN = "qwen3-vl-tiny/rlvr/17"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return Checkout.create(tmp_path_factory.mktemp("quantized"))


def confidences(results) -> pl.DataFrame:
    frame = pl.read_parquet(results / "predictions" / RUN / "dualread/predictions.parquet")
    return frame.filter(condition="original", split="test").sort("sample_id")


@pytest.mark.parametrize("bits", [8, 4])
def test_answers_and_replay_are_of_one_quantized_model(checkout, bits):
    changes = {"study": f"bits{bits}", "backbones": {"qwen3-vl-tiny": {"settings": {"quantization": {"bits": bits}}}}}
    (checkout.folder / "mine.yaml").write_text(yaml.safe_dump(changes))
    run = checkout.snakemake(study=f"workflow/studies/micro.yaml {checkout.folder / 'mine.yaml'}")
    assert run.returncode == 0, run.text
    results = checkout.folder / "results" / f"bits{bits}"
    # In the keys of what is answered, with its package; what is trained is not quantized.
    for stage in ("generations", "features"):
        action = read_manifest(next((results / stage / RUN).rglob("MANIFEST.json"))).action
        assert action.spec["model"]["quantization"] == {"bits": bits, "module": "models.quantized"}
        assert "bitsandbytes" in action.packages
    for trained in (f"actors/{RUN}", "facts/qwen3-vl-tiny/base/0"):
        action = read_manifest(results / trained / "MANIFEST.json").action
        assert "quantization" not in action.spec["model"]
        assert "bitsandbytes" not in action.packages
    row = pl.read_parquet(results / "manifests/slake/test/manifest.parquet").row(0, named=True)
    expected = confidences(results).filter(sample_id=row["sample_id"])["confidence"].item()
    scorer = Scorer.load(results / "readers" / RUN / "dualread", results / "actors" / RUN)
    found = scorer(results / "manifests/slake/test" / row["image_files"][0], row["question"], options=row["options"])
    assert found.confidence == pytest.approx(expected, abs=1e-2 if bits == 8 else 1e-6)
    export(results, ("qwen3-vl-tiny", "rlvr", 17), checkout.folder / f"shared{bits}", method="dualread")
    card = (checkout.folder / f"shared{bits}/README.md").read_text()
    assert f"rounded to {bits} bits by bitsandbytes" in card
