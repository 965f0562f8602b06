import polars as pl
import pytest

from dualread.artifacts.tables import read_table
from dualread.schema.base import NoSpec
from dualread.schema.columns import DATA, PAIRS
from dualread.stages import summarize_data


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


def test_manifests_and_pairs_are_summed_up(hospital, out):
    inputs = {"manifest/slake/test": hospital["manifest"], "pairs/slake/test": hospital["pairs"]}
    said = summarize_data.compute(NoSpec(), inputs, out)
    (row,) = read_table(out / "data.parquet", DATA).rows(named=True)
    pairs = read_table(hospital["pairs"] / "pairs.parquet", PAIRS)
    # Four images with four questions each.
    assert (row["role"], row["questions"], row["images"], row["pairs"]) == ("test", 16, 4, pairs.height)
    assert row["open"] + row["closed"] == 16
    assert row["manifest_sha256"] == (hospital["manifest"] / "manifest_digest.txt").read_text().strip()
    assert said == f"read 1 manifests, wrote 1 rows: 16 questions on 4 images, {pairs.height} pairs"
    steps = pl.read_csv(out / "audit.csv")
    assert steps["step"].to_list()[:2] == ["language", "empty answers"]
    assert row["source_rows"] == steps["kept"][0] + steps["dropped"][0]
    assert steps.filter(step="donors")["kept"].to_list() == [pairs.height]


def test_a_split_without_pairs_is_there_too(hospital, out):
    summarize_data.compute(NoSpec(), {"manifest/slake/test": hospital["manifest"]}, out)
    (row,) = read_table(out / "data.parquet", DATA).rows(named=True)
    assert (row["pairs"], row["reason"]) == (None, "the study pairs no questions of this split")
