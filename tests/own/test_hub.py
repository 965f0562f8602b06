"""Tables of the hub, with a stand-in for the hub: a folder per repository and revision."""

import sys
from pathlib import Path

import polars as pl
import pytest

import dualread
from dualread.errors import ConfigError, DataError

TABLE = pl.DataFrame({"confidence": [0.9, 0.2], "correct": [1, 0]})


@pytest.fixture
def hub(tmp_path, monkeypatch):
    import huggingface_hub

    def folder(name, revision):
        if not (place := tmp_path / name / (revision or "main")).is_dir():
            raise ConnectionError("no route to host")
        return place

    def listed(self, repo_id, *, repo_type, revision):
        assert repo_type == "dataset"
        place = folder(repo_id, revision)
        return [path.relative_to(place).as_posix() for path in sorted(place.rglob("*")) if path.is_file()]

    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", listed)
    monkeypatch.setattr(
        huggingface_hub, "hf_hub_download", lambda name, file, repo_type, revision: str(folder(name, revision) / file)
    )

    def add(file, table=TABLE, revision="main") -> Path:
        path = tmp_path / "me/mine" / revision / file
        path.parent.mkdir(parents=True, exist_ok=True)
        table.write_csv(path) if path.suffix == ".csv" else table.write_parquet(path)
        return path

    return add


def accuracy(address, **options):
    found = dualread.evaluate(address, replicates=0, **options)
    return found.metrics.filter(metric="accuracy", subset="all")["estimate"].item()


def test_the_only_table_of_a_data_set_is_read(hub):
    hub("data/answers.csv")
    (hub("x.csv", revision="v2")).with_name("README.md").write_text("# Mine\n")
    assert accuracy("hf://me/mine") == 0.5
    assert accuracy("hf://me/mine@v2") == 0.5


def test_a_file_or_a_split_may_be_named(hub):
    hub("a.csv", pl.DataFrame({"confidence": [0.5], "correct": [1]}))
    hub("data/test-00000-of-00002.parquet")
    hub("data/test-00001-of-00002.parquet", pl.DataFrame({"confidence": [0.4], "correct": [1]}))
    hub("data/test_hard-00000-of-00001.parquet")
    hub("default/test/0000.parquet", revision="refs/convert/parquet")
    assert accuracy("hf://me/mine/a.csv") == 1.0
    assert accuracy("hf://me/mine/data/test") == pytest.approx(2 / 3)  # both shards: right, wrong, right
    assert accuracy("hf://me/mine@refs/convert/parquet/default/test") == 0.5


def test_names_of_its_own_may_be_given(hub):
    hub("a.parquet", TABLE.rename({"confidence": "score"}))
    assert accuracy("hf://me/mine", columns={"confidence": "score"}) == 0.5


def test_a_log_on_the_hub_is_read(hub):
    made = Path(__file__).parents[1] / "data/logs/made/samples_organs.jsonl"
    hub("logs/a.csv").with_name("samples.jsonl").write_bytes(made.read_bytes())
    found = dualread.evaluate("hf://me/mine/logs/samples.jsonl", log_format="lm-eval", score="acc", replicates=0)
    assert found.parts[0].methods["choice_likelihood"].answers.height == 3


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("hf://mine", ConfigError, "expected hf://owner/name"),
        ("hf://me/mine", ConfigError, r"2 files could be meant\. Add /FILE or /CONFIG/SPLIT\. Files: a\.csv, b\.csv"),
        ("hf://me/mine/test", ConfigError, r"nothing is named 'test'\. .*Files: a\.csv, b\.csv"),
        ("hf://me/other", DataError, r"cannot be downloaded from the hub \(ConnectionError: no route to host\)"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused(hub, address, error, message):
    hub("a.csv")
    hub("b.csv")
    with pytest.raises(error, match=message):
        dualread.evaluate(address)


def test_files_of_different_columns_are_refused(hub):
    hub("data/test-00000-of-00002.parquet")
    hub("data/test-00001-of-00002.parquet", TABLE.rename({"correct": "label"}))
    with pytest.raises(DataError, match="its 2 files have different columns"):
        dualread.evaluate("hf://me/mine/data/test")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"huggingface-hub is not installed\. Run: pip install 'dualread\[logs\]'\."):
        dualread.evaluate("hf://me/mine")
