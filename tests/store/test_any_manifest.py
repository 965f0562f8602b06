"""Arbitrary bytes as a MANIFEST.json: the file is either used or refused by name."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import ArtifactError, ConfigError
from dualread.store.digest import MANIFEST_NAME
from dualread.store.key import Action
from dualread.store.manifest import Manifest, read_manifest
from tests.drawn import anything, attempt, few

_ACTION = Action(stage="grade", code="c0", spec={"n": 1}, inputs={"a": "0" * 64}, packages={"numpy": "2"})
_MANIFEST = Manifest(action=_ACTION, files={"a.txt": {"sha256": "0" * 64, "size": 1}}, input_keys={"a": "1" * 64})


def uses(manifest: Manifest, folder: Path) -> None:
    """Use a manifest as the runner does."""
    assert isinstance(manifest.key, str)
    list(manifest.wrong_sizes(folder))
    list(manifest.wrong_bytes(folder))
    assert all((folder / name).resolve().is_relative_to(folder.resolve()) for name in manifest.files)


@few
@given(st.one_of(st.binary(max_size=60), anything.map(lambda value: json.dumps(value).encode())))
def test_a_file_that_is_not_a_manifest_is_refused_by_name(tmp_path, content):
    path = tmp_path / MANIFEST_NAME
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=re.escape(str(path))):
        read_manifest(path)


@few
@given(st.sampled_from(["stage", "code", "spec", "inputs", "python", "packages", "files", "input_keys"]), anything)
def test_a_manifest_with_any_field_is_used_or_refused_by_name(tmp_path, field, value):
    """Even if the digests agree with the contents."""
    path = tmp_path / MANIFEST_NAME
    parts = {**_MANIFEST.action.fields(), "files": _MANIFEST.files, "input_keys": _MANIFEST.input_keys, field: value}
    action = {name: parts[name] for name in _MANIFEST.action.fields()}
    try:
        forged = Manifest(action=Action(**action), files=parts["files"], input_keys=parts["input_keys"]).to_bytes()
    except ConfigError:
        forged = json.dumps({**json.loads(_MANIFEST.to_bytes()), field: value}).encode()
    path.write_bytes(forged)
    manifest, error = attempt(lambda: read_manifest(path), ArtifactError)
    if manifest is not None:
        uses(manifest, tmp_path)
    else:
        assert str(path) in str(error)


def test_a_manifest_with_outside_paths_or_deep_nesting_is_refused(tmp_path):
    path = tmp_path / MANIFEST_NAME
    for name in ("../a.txt", "/etc/passwd", "a/../../b", ""):
        path.write_bytes(Manifest(action=_ACTION, files={name: {"sha256": "0" * 64, "size": 1}}).to_bytes())
        with pytest.raises(ArtifactError, match=re.escape(str(path))):
            read_manifest(path)
    path.write_bytes(b"[" * 100_000)
    with pytest.raises(ArtifactError, match=re.escape(str(path))):
        read_manifest(path)
