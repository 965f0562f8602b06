import json
import struct

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from dualread.artifacts.tables import (
    empty_table,
    from_many_rows,
    from_rows,
    read_parts,
    read_table,
    write_rows,
    write_table,
)
from dualread.artifacts.tensors import read_header, read_tensors, write_tensors
from dualread.errors import ArtifactError
from dualread.schema.columns import METRICS, PAIRS, all_schemas
from tests.drawn import anything, attempt, few

_PAIR = {
    **{"sample_id": "a", "donor_sample_id": "b", "question_key": "what is it", "source_image_id": "1"},
    **{"donor_image_id": "2", "n_candidates": 5},
}


@pytest.mark.parametrize("schema", all_schemas().values(), ids=all_schemas())
def test_every_schema_has_meanings_and_an_empty_table(schema, tmp_path):
    assert all(column.meaning for column in schema.columns.values())
    write_table(tmp_path / "empty.parquet", empty_table(schema), schema)
    assert read_table(tmp_path / "empty.parquet", schema).columns == list(schema.columns)


@pytest.mark.parametrize(
    ("rows_per_part", "files"),
    [(5, ["pairs.parquet"]), (2, ["pairs-00000.parquet", "pairs-00001.parquet", "pairs-00002.parquet"])],
)
def test_parts_are_read_as_one_table(tmp_path, rows_per_part, files):
    frame = from_rows([_PAIR | {"sample_id": name} for name in "ebacd"], PAIRS)
    assert write_rows(tmp_path, iter(frame.to_dicts()), PAIRS, rows_per_part=rows_per_part) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == files
    assert read_parts(tmp_path, PAIRS).equals(frame)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7])
def test_rows_one_by_one_give_the_bytes_of_their_tables(tmp_path, monkeypatch, n):
    rows = [{**_PAIR, "sample_id": f"{i}", "n_candidates": i} for i in range(n)]
    assert write_rows(tmp_path, iter(rows), PAIRS, rows_per_part=3) == n
    files = sorted(path.name for path in tmp_path.iterdir())
    assert len(files) == max(1, -(-n // 3))
    for k, name in enumerate(files):
        write_table(tmp_path / "part", from_rows(rows[3 * k : 3 * k + 3], PAIRS), PAIRS)
        assert (tmp_path / name).read_bytes() == (tmp_path / "part").read_bytes()
    monkeypatch.setattr("dualread.artifacts.tables.ROWS_PER_PART", 3)
    assert from_many_rows(iter(rows), PAIRS).equals(from_rows(rows, PAIRS))


def test_a_missing_part_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match=r"pairs\.parquet: cannot be read"):
        read_parts(tmp_path, PAIRS)
    write_rows(tmp_path, [_PAIR] * 3, PAIRS, rows_per_part=1)
    (tmp_path / "pairs-00001.parquet").unlink()
    with pytest.raises(ArtifactError, match=r"expected pairs-00000\.parquet, pairs-00001\.parquet"):
        read_parts(tmp_path, PAIRS)


def test_equal_values_give_equal_bytes_and_are_read_in_the_order_of_the_schema(tmp_path):
    frame = from_rows([_PAIR, _PAIR], PAIRS)
    for name, columns in (("a", frame.columns), ("b", reversed(frame.columns))):
        write_table(tmp_path / name, frame.select(columns), PAIRS)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert read_table(tmp_path / "b", PAIRS).equals(frame)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (from_rows([_PAIR], PAIRS).drop("sample_id"), "column 'sample_id' is missing, expected sample_id, donor_sam"),
        (from_rows([_PAIR], PAIRS).cast({"n_candidates": pl.Int64}), "'n_candidates' is Int64, expected Int32"),
        (from_rows([{**_PAIR, "sample_id": None}], PAIRS), "'sample_id' holds 1 nulls"),
    ],
)
def test_a_table_that_breaks_its_schema_is_neither_written_nor_read(tmp_path, frame, message):
    path = tmp_path / "pairs.parquet"
    with pytest.raises(ArtifactError, match=message):
        write_table(path, frame, PAIRS)
    assert not path.exists()
    frame.write_parquet(path)
    with pytest.raises(ArtifactError, match=message):
        read_table(path, PAIRS)


def test_undefined_is_null_and_never_nan(tmp_path):
    row = {name: None if column.nullable else 0 for name, column in METRICS.columns.items()}
    row = {n: str(v) if METRICS.columns[n].dtype == pl.String and v is not None else v for n, v in row.items()}
    write_table(tmp_path / "metrics.parquet", from_rows([row], METRICS), METRICS)
    with pytest.raises(ArtifactError, match="'estimate' holds NaN"):
        write_table(tmp_path / "nan.parquet", from_rows([{**row, "estimate": float("nan")}], METRICS), METRICS)


def test_a_row_with_an_unknown_column_is_refused():
    with pytest.raises(ArtifactError, match=r"pairs: no column donor. Known: sample_id"):
        from_rows([{**_PAIR, "donor": "b"}], PAIRS)


@pytest.mark.parametrize("content", [None, b"", b"PAR1 truncated"])
def test_a_damaged_table_is_reported(tmp_path, content):
    path = tmp_path / "pairs.parquet"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"pairs.parquet: cannot be read as a pairs table.*run the same command"):
        read_table(path, PAIRS)


@given(
    tensors=st.dictionaries(
        st.text(alphabet="abc_", min_size=1, max_size=6),
        arrays.arrays(
            st.sampled_from([np.float32, np.float64, np.int64]), arrays.array_shapes(min_dims=0, max_dims=3, max_side=4)
        ),
        max_size=3,
    )
)
def test_tensors_are_read_bit_by_bit(tmp_path_factory, tensors):
    path = tmp_path_factory.mktemp("tensors") / "x.safetensors"
    tensors = {**tensors, "m": np.arange(6, dtype=np.float32).reshape(2, 3).T}  # in another order in memory
    write_tensors(path, tensors, {"n": 1})
    back = read_tensors(path)
    assert back.keys() == tensors.keys()
    for name, array in tensors.items():
        assert back[name].shape == array.shape
        assert back[name].dtype == array.dtype
        assert back[name].tobytes() == array.tobytes()


def test_the_header_is_read_alone_and_names_select(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"a": np.zeros(2), "b": np.ones(2)}, {"layer": 3, "names": ["a"]})
    assert read_header(path) == {"layer": 3, "names": ["a"]}
    assert list(read_tensors(path, ["b"])) == ["b"]
    with pytest.raises(ArtifactError, match=r"no tensor c, d. It holds: a, b"):
        read_tensors(path, ["d", "a", "c"])


def test_the_order_of_tensors_and_header_is_not_in_the_bytes(tmp_path):
    for name, tensors, header in (("1", "ab", "xy"), ("2", "ba", "yx")):
        made = {of: np.full(2, ord(of)) for of in tensors}
        write_tensors(tmp_path / name, made, {key: ord(key) for key in header})
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


@pytest.mark.parametrize("content", [None, b"", b"\x10\x00\x00\x00\x00\x00\x00\x00{"])
def test_a_damaged_tensor_file_is_reported(tmp_path, content):
    path = tmp_path / "x.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"x.safetensors: not a readable safetensors file"):
        read_tensors(path)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "reader.safetensors"
    write_tensors(path, {"weight": np.arange(6.0).reshape(2, 3), "bias": np.zeros(1)}, {"layer": 2})
    return path


def reads(path):
    """Check that a file of tensors is read, or refused with an error that names it."""
    found, error = attempt(lambda: (read_header(path), read_tensors(path)), ArtifactError)
    assert error is None or str(path) in str(error)
    assert found is None or all(isinstance(part, dict) for part in found)


@few
@given(st.data())
def test_broken_safetensors_are_refused_by_name(file, data):
    """A file in which only a value changed can still be read; the sha256 that the store keeps reveals the change."""
    whole = file.read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.booleans())
    flipped = whole[:position] + bytes([whole[position] ^ data.draw(st.integers(1, 255))]) + whole[position + 1 :]
    file.write_bytes(whole[:position] if cut else flipped)
    reads(file)
    file.write_bytes(whole)


@few
@given(st.one_of(st.binary(max_size=80), anything.map(lambda value: json.dumps(value).encode())))
def test_any_header_of_safetensors_is_refused_by_name(tmp_path, header):
    path = tmp_path / "reader.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 16)
    reads(path)
