"""`replay: {from: generation}`: readers, confidences and tables are those of a study whose answers are replayed."""

import numpy as np
import polars as pl
import pytest

from dualread.artifacts.tensors import read_tensors
from dualread.store.manifest import read_manifest
from tests.workflow.faults import MICRO, STUDY, copy

pytestmark = pytest.mark.long

RUN = "qwen3-vl-tiny/rlvr/17"
OVERLAY = """
study: kept
replay: {from: generation}
tables: {costs: {}}
"""


@pytest.fixture(scope="module")
def both(micro, tmp_path_factory):
    """The results of the micro study, those of the same study with states of the pass that answers, and its run."""
    checkout = copy(micro, tmp_path_factory.mktemp("kept") / "checkout")
    (checkout.folder / "kept.yaml").write_text(OVERLAY)
    done = checkout.snakemake("tables/main.tex", "tables/costs.tex", study=f"{STUDY} kept.yaml")
    assert done.returncode == 0, done.text
    return checkout.folder / MICRO, checkout.folder / "results/kept", done


def test_only_answers_and_what_follows_from_them_are_made_again(both):
    *_, done = both
    assert {"generate", "replay", "fit_readers", "measure_costs"} <= done.computed()
    assert not {"pretrain_base", "train_actor", "probe_checkpoint", "build_manifest", "pair_donors"} & done.computed()
    assert "replay" not in {stage for stage, _ in done.entries("hit")}


def test_states_and_confidences_are_the_same_within_rounding(both):
    replayed, kept, _ = both
    files = sorted(path.relative_to(replayed) for path in replayed.glob(f"features/{RUN}/**/features.safetensors"))
    assert len(files) == 4  # train, validation, test, and donors
    for file in files:
        before, after = read_tensors(replayed / file), read_tensors(kept / file)
        assert before.keys() - {"h_mid"} == after.keys()  # nobody here reads the middle layer
        for name, values in after.items():
            np.testing.assert_allclose(values, before[name], atol=1e-4)
    for method in ("psr", "p_state", "per", "dualread"):
        before, after = (
            pl.read_parquet(results / f"predictions/{RUN}/{method}/predictions.parquet") for results in both[:2]
        )
        assert before.drop("score", "confidence").equals(after.drop("score", "confidence"))
        np.testing.assert_allclose(after["confidence"], before["confidence"], atol=1e-3)


def test_the_printed_table_is_the_same_and_a_replay_costs_nothing(both):
    replayed, kept, _ = both
    assert (kept / "tables/main/main.tex").read_text() == (replayed / "tables/main/main.tex").read_text().replace(
        "study micro", "study kept"
    )
    costs = {
        results.name: {
            method: pl.read_parquet(results / f"costs/{RUN}/{method}/costs.parquet").row(0, named=True)
            for method in ("psr", "dualread")
        }
        for results in (replayed, kept)
    }
    assert [costs["micro"][name]["replay_passes"] for name in ("psr", "dualread")] == [0, 1]
    assert costs["micro"]["psr"]["prompt_only_passes"] == 1
    assert {(of["replay_passes"], of["prompt_only_passes"]) for of in costs["kept"].values()} == {(0, 0)}
    assert "The pass that answers keeps the hidden states" in (kept / "tables/costs/costs.tex").read_text()


def test_specs_and_keys_name_the_states_only_where_they_are_kept(both):
    replayed, kept, _ = both
    for stage in ("generations", "features"):
        for path in replayed.glob(f"{stage}/{RUN}/**/MANIFEST.json"):
            assert "states" not in read_manifest(path).action.spec
            spec = read_manifest(kept / path.relative_to(replayed)).action.spec
            assert spec["states"] == {
                "module": "models.replay.of_generation", "kappa": 0.1, "middle": False, "entropies": False
            }  # fmt: skip
            assert "from" not in spec.get("replay", {})
