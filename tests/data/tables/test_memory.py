"""A table in memory or on the hub means what the same table means in a file."""

import decimal
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dualread
from dualread.data.tables.hub import read_address
from dualread.data.tables.memory import read_frame
from dualread.errors import ConfigError, DataError

C, Z = [0.9, 0.2, 0.3], [0, 1, 1]
PLAIN = {"confidence": C, "correct": Z}
FRAME = pd.DataFrame(PLAIN)


def forms():
    yield "mapping", PLAIN
    yield "arrays", {"confidence": np.array(C), "correct": np.array(Z, dtype=bool)}
    yield "rows", [{"confidence": c, "correct": z} for c, z in zip(C, Z, strict=True)]
    yield "pandas", FRAME
    yield "polars", pl.DataFrame(PLAIN)
    yield "lazy", pl.LazyFrame(PLAIN)
    yield "pyarrow", pa.table(PLAIN)
    yield "batch", pa.RecordBatch.from_pydict(PLAIN)
    yield "nullable", FRAME.astype({"confidence": "Float64", "correct": "boolean"})
    yield "guessed", FRAME.convert_dtypes()
    yield (
        "decimals",
        {"confidence": [decimal.Decimal(str(c)) for c in C], "correct": ["True" if z else "False" for z in Z]},
    )
    for kind in (np.float32, np.float16, np.longdouble):
        yield kind.__name__, {"confidence": kind(C), "correct": np.array(Z)}
        yield f"pandas {kind.__name__}", pd.DataFrame({"confidence": kind(C), "correct": Z})
    yield "objects", pd.DataFrame({"confidence": pd.Series([np.float32(0.9), 0.2, "0.3"], dtype=object), "correct": Z})
    yield "nullable 32", FRAME.astype({"confidence": "Float32", "correct": "Int64"})
    yield "arrow 32", FRAME.astype({"confidence": "float[pyarrow]", "correct": "bool[pyarrow]"})
    yield "polars 32", pl.DataFrame(PLAIN).cast({"confidence": pl.Float32})
    yield "polars 16", pl.DataFrame({"confidence": pl.Series(C, dtype=pl.Float16), "correct": Z})
    yield "pyarrow 32", pa.table({"confidence": pa.array(C, pa.float32()), "correct": Z})
    yield "index", FRAME.set_index(pd.Index(["a", "b", "c"], name="sample_id"))
    yield "own index", FRAME.set_index("confidence")


@pytest.mark.parametrize(("name", "table"), forms())
def test_every_form_gives_the_same_numbers(name, table):
    found = dualread.evaluate(table, replicates=0).metrics.filter(subset="all")
    values = dict(found.select("metric", "estimate").rows())
    # the wrong answer has .9: hce90 1/3; Brier (.81 + .64 + .49) / 3
    assert (values["accuracy"], values["auroc"], values["hce90"]) == pytest.approx((2 / 3, 0, 1 / 3), abs=1e-15)
    assert values["brier"] == pytest.approx(1.94 / 3, abs=1e-12)


def test_tensors_and_datasets():
    torch, datasets = pytest.importorskip("torch"), pytest.importorskip("datasets")
    for kind in (torch.float32, torch.bfloat16, torch.float64):
        given = read_frame({"confidence": torch.tensor([0.9, 0.2], dtype=kind), "correct": torch.tensor([0, 1])}, "x")
        assert given.frame["confidence"].to_list() == [0.9, 0.2]
    given = read_frame({"confidence": [torch.tensor(0.9, requires_grad=True)], "correct": [torch.tensor(True)]}, "x")
    assert given.frame.row(0) == (0.9, "true")
    chosen = datasets.Dataset.from_dict(PLAIN).select([2, 0])
    assert read_frame(chosen, "x").frame["confidence"].to_list() == [0.3, 0.9]
    with pytest.raises(ConfigError, match=r"has several splits: test\. Give one of them"):
        read_frame(datasets.DatasetDict({"test": chosen}), "x")


def test_what_stands_for_a_missing_value_is_one():
    table = pd.DataFrame(
        {
            "confidence": [0.9, 0.8],
            "answer": pd.array([2, None], dtype="Int64"),
            "taken": pd.to_datetime(["2020-01-01", None]),
            "kind": pd.Categorical(["a", None]),
            "mask": [b"\xff\x00", None],
            "golds": [["x", None], None],
        }
    )
    given = read_frame(table, "x")
    for name in ("answer", "taken", "kind"):
        assert given.frame[name].is_null().to_list() == [False, True]
    assert given.frame["answer"][0] == "2"
    assert given.frame["golds"].to_list() == [["x", None], None]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            pd.DataFrame([[0.9, 0.1, 1]], columns=["confidence", "confidence", "correct"]),
            "'confidence' occurs more than",
        ),
        (pa.table([[0.9], [0.1]], names=["a", "a"]), "'a' occurs more than once"),
        ({"confidence": np.ones((2, 2)), "correct": [0, 1]}, r"'confidence' has the shape \(2, 2\)"),
        ({"confidence": 0.9, "correct": [0, 1]}, "'confidence' is one float; expected one value per row"),
        ({"confidence": "high", "correct": [0, 1]}, "'confidence' is one str"),
        ({"confidence": [0.9], "correct": [0, 1]}, r"different lengths \(confidence: 1, correct: 2\)"),
        ({"confidence": np.ma.array([0.9, 0.2], mask=[0, 1]), "correct": [0, 1]}, "row 1 is masked"),
        ({"confidence": np.array([0.9 + 1j]), "correct": [1]}, "expected a probability"),
        (pd.Series([1, 2]), "Series; expected a data frame"),
        ({}, "has no rows"),
        ([], "has no rows"),
    ],
)
def test_what_is_no_table_is_a_sentence(table, message):
    with pytest.raises(DataError, match=f"^predictions: .*{message}"):
        dualread.evaluate(table, replicates=0)


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
        return [path.relative_to(place).as_posix() for path in sorted(place.rglob("*"))[::-1] if path.is_file()]

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
    read = read_address("hf://me/mine/data/test").frame  # in the order of the shards, whatever that of the hub's list
    assert read["confidence"].cast(pl.Float64).to_list() == [0.9, 0.2, 0.4]
    assert accuracy("hf://me/mine@refs/convert/parquet/default/test") == 0.5


@pytest.mark.parametrize(
    ("address", "error", "message"),
    [
        ("hf://mine", ConfigError, "expected hf://owner/name"),
        ("hf://me/mine", ConfigError, r"2 files could be meant\. Add /FILE or /CONFIG/SPLIT\. Files: b\.csv, a\.csv"),
        ("hf://me/mine/test", ConfigError, r"nothing is named 'test'\. .*Files: b\.csv, a\.csv"),
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


def test_a_log_on_the_hub_is_read(hub):
    made = Path(__file__).parents[1] / "logs/made/samples_organs.jsonl"
    hub("logs/a.csv").with_name("samples.jsonl").write_bytes(made.read_bytes())
    found = dualread.evaluate("hf://me/mine/logs/samples.jsonl", log_format="lm-eval", score="acc", replicates=0)
    assert found.parts[0].methods["choice_likelihood"].answers.height == 3


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"huggingface-hub is not installed\. Run: pip install 'dualread\[logs\]'\."):
        dualread.evaluate("hf://me/mine")
