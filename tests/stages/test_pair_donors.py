import polars as pl
import pytest

from dualread.artifacts.tables import read_table, write_table
from dualread.schema.columns import MANIFEST, PAIRS
from dualread.schema.data import PairDonorsSpec
from dualread.stages import build_manifest, draw_phantom, pair_donors
from tests import specs


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("manifest")
    images = {"train": 1, "validation": 1, "test": 12}
    draw_phantom.compute(specs.phantom(images=images), {}, source)
    build_manifest.compute(specs.manifest(), {"source": source}, folder)
    return folder


def _pair(manifest, out, match_on):
    out.mkdir()
    summary = pair_donors.compute(
        PairDonorsSpec(dataset="slake", split="test", match_on=list(match_on)), {"manifest": manifest}, out
    )
    return summary, read_table(out / "pairs.parquet", PAIRS), pl.read_parquet(out / "audit.parquet")


def test_pairs_and_both_rules_of_the_audit(manifest, tmp_path):
    summary, pairs, audit = _pair(manifest, tmp_path / "a", ["modality"])
    assert audit["rule"].to_list() == ["match on modality", "match on nothing"]
    assert audit["n_questions"].to_list() == [96, 96]
    assert 0 < pairs.height == audit["n_pairs"][0] <= audit["n_pairs"][1]
    assert summary.startswith(f"read 96 questions, wrote {pairs.height} pairs")
    assert pairs["sample_id"].is_sorted()
    questions = read_table(manifest / "manifest.parquet", MANIFEST).select("sample_id", "modality", "image_id")
    joined = pairs.join(questions, on="sample_id").join(
        questions, left_on="donor_sample_id", right_on="sample_id", suffix="_donor"
    )
    assert joined.height == pairs.height
    assert (joined["modality"] == joined["modality_donor"]).all()
    assert (joined["image_id"] != joined["image_id_donor"]).all()
    assert (joined["image_id_donor"] == joined["donor_image_id"]).all()


def test_without_a_match_there_is_one_rule(manifest, tmp_path):
    _, pairs, audit = _pair(manifest, tmp_path / "a", [])
    assert audit["rule"].to_list() == ["match on nothing"]
    assert audit["n_pairs"].to_list() == [pairs.height]


def test_donors_named_by_the_data_set_are_one_rule(manifest, tmp_path):
    questions = read_table(manifest / "manifest.parquet", MANIFEST)
    _, pairs, _ = _pair(manifest, tmp_path / "computed", ["modality"])
    source, donor = pairs.row(0)[:2]
    named = pl.when(pl.col("sample_id") == source).then(pl.lit(donor)).alias("donor_sample_id")
    (written := tmp_path / "named").mkdir()
    write_table(written / "manifest.parquet", questions.with_columns(named), MANIFEST)
    summary, pairs, audit = _pair(written, tmp_path / "out", ["modality"])
    assert pairs.select("sample_id", "donor_sample_id").rows() == [(source, donor)]
    assert audit["rule"].to_list() == ["named by the data set"]
    assert summary.endswith("wrote 1 pairs: 1 pairs (named by the data set)")
