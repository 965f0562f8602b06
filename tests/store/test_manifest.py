import dataclasses
import json

import pytest

from dualread.errors import ArtifactError
from dualread.store.key import Action
from dualread.store.manifest import Manifest, artifact_directory, file_table, read_manifest

ACTION = Action(stage="grade", code="c0", spec={"n": 1}, inputs={"a": "d0"}, packages={"polars": "2.1.0"})


@pytest.mark.parametrize(
    "change",
    [
        {"stage": "replay"},
        {"code": "c1"},
        {"spec": {"n": 2}},
        {"inputs": {"a": "d1"}},
        {"inputs": {"b": "d0"}},
        {"packages": {"polars": "2.2.0"}},
        {"python": "3.99"},
    ],
)
def test_every_part_of_an_action_is_in_its_key(change):
    assert dataclasses.replace(ACTION, **change).key != ACTION.key


def _manifest(directory, **files):
    for name, text in files.items():
        (directory / name).write_text(text)
    return Manifest(action=ACTION, files=file_table(directory), input_keys={"a": "k0"})


def test_the_content_digest_is_that_of_the_files_alone(tmp_path):
    manifest = _manifest(tmp_path, one="1")
    other = dataclasses.replace(ACTION, code="c1")
    assert Manifest(action=other, files=manifest.files).digest == manifest.digest
    (tmp_path / "one").write_text("2")
    assert Manifest(action=ACTION, files=file_table(tmp_path)).digest != manifest.digest


@pytest.mark.parametrize("name", ["spec", "files", "code", "digest", "key", "format"])
def test_an_edited_manifest_is_refused(tmp_path, name):
    document = json.loads(_manifest(tmp_path, one="1").to_bytes())
    document[name] = {"edited": {}} if isinstance(document[name], dict) else "edited"
    path = tmp_path / "MANIFEST.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ArtifactError, match="the format, key or digest does not match the contents"):
        read_manifest(path)


def test_each_wrong_file_is_reported_once(tmp_path):
    manifest = _manifest(tmp_path, flipped="abc", longer="abc", missing="abc", whole="abc")
    (tmp_path / "flipped").write_text("abd")
    (tmp_path / "longer").write_text("abcd")
    (tmp_path / "missing").unlink()
    sizes = list(manifest.wrong_sizes(tmp_path))
    assert [line.split("/")[-1].split(" (")[0] for line in sizes] == ["longer: 4 bytes, expected 3", "missing: missing"]
    names = [line.split("/")[-1].split(":")[0] for line in manifest.wrong_bytes(tmp_path)]
    assert names == ["flipped", "longer", "missing"]


def test_an_artifact_is_a_directory_with_a_manifest_or_that_manifest(tmp_path):
    assert artifact_directory(tmp_path) is None
    (tmp_path / "MANIFEST.json").touch()
    assert artifact_directory(tmp_path) == tmp_path
    assert artifact_directory(tmp_path / "MANIFEST.json") == tmp_path
    # If a tracked manifest is missing, its artifact is missing: the path is not raw data.
    assert artifact_directory(tmp_path / "gone" / "MANIFEST.json") == tmp_path / "gone"
