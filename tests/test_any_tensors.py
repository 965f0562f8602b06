"""Arbitrary bytes as a tensor file: the file is either read or refused by name."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.artifacts.tensors import read_header, read_tensors, write_tensors
from dualread.errors import ArtifactError
from tests.drawn import anything, attempt, few


@pytest.fixture
def tensors(tmp_path):
    path = tmp_path / "reader.safetensors"
    write_tensors(path, {"weight": np.arange(6.0).reshape(2, 3), "bias": np.zeros(1)}, {"layer": 2})
    return path


def reads(path):
    """Read a tensor file, or check that it is refused by name."""
    found, error = attempt(lambda: (read_header(path), read_tensors(path)), ArtifactError)
    assert error is None or str(path) in str(error)
    assert found is None or all(isinstance(part, dict) for part in found)


@few
@given(st.data())
def test_broken_safetensors_are_refused_by_name(tensors, data):
    """Flipped values may be read, since sha256 detects them; any other damage has to be refused."""
    whole = tensors.read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.booleans())
    flipped = whole[:position] + bytes([whole[position] ^ data.draw(st.integers(1, 255))]) + whole[position + 1 :]
    tensors.write_bytes(whole[:position] if cut else flipped)
    reads(tensors)
    tensors.write_bytes(whole)


@few
@given(st.one_of(st.binary(max_size=80), anything.map(lambda value: json.dumps(value).encode())))
def test_any_header_of_safetensors_is_refused_by_name(tmp_path, header):
    path = tmp_path / "reader.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 16)
    reads(path)
