"""Whatever bytes an official file holds, a loader reads it or refuses it with an error that names it."""

import json

from hypothesis import given
from hypothesis import strategies as st

from dualread.data.datasets.base import read_json
from dualread.data.tables.files import read_file, read_records
from dualread.errors import DataError
from tests.drawn import anything, attempt, few

_HOSTILE = [b'["\\ud800"]', b'{"a": "\\uDC00"}', b"[" * 5000, b"\xff\xfe[\0", b"[1e999, NaN]", b'{"a": 1, "a": 2}']


@few
@given(st.one_of(st.binary(max_size=40), anything.map(lambda v: json.dumps(v).encode()), st.sampled_from(_HOSTILE)))
def test_any_official_file_is_read_or_refused_by_name(tmp_path, content):
    path = tmp_path / "test.json"
    path.write_bytes(content)
    for read in (lambda: read_json(path, list, "all"), lambda: list(read_records(path).rows)):
        found, error = attempt(read, DataError)
        assert error is None or str(path) in str(error)
        json.dumps(found, ensure_ascii=False).encode()  # as it is written to a table
    for suffix in ("json", "jsonl", "csv", "parquet"):
        path = tmp_path / f"test.{suffix}"
        path.write_bytes(content)
        _, error = attempt(lambda path=path: read_file(path), DataError)
        assert error is None or str(path) in str(error)
