"""What differs: results folders in their bytes, and results in the parts of their keys."""

import json
from dataclasses import replace

import pytest

from dualread.apps import main as program
from dualread.store.differences import differences
from dualread.store.digest import MANIFEST_NAME
from dualread.store.key import Action
from dualread.store.manifest import Manifest
from dualread.store.store import Store


def _artifact(folder, place, digests, *, inputs=(), code="c"):
    """Write the manifest of an artifact, whose files have these digests and whose inputs have those."""
    action = Action(stage=place.split("/")[0], code=code, spec={}, inputs=dict(inputs), packages={})
    files = {name: {"sha256": digest, "size": 1} for name, digest in digests.items()}
    path = folder / place / MANIFEST_NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(Manifest(action=action, files=files).to_bytes())


@pytest.fixture
def folders(tmp_path):
    before, after = tmp_path / "before", tmp_path / "after"
    for folder, code, changed in ((before, "1", "a"), (after, "2", "b")):
        _artifact(folder, "grade/one", {"graded.parquet": "same"}, code=code)
        _artifact(folder, "replay/one", {"states": changed, "table": "same"}, inputs={"graded": "same"})
        _artifact(folder, "fit/one", {"weights": changed, "card": changed}, inputs={"states": changed})
        _artifact(folder, "store/one", {"weights": changed})
    return before, after


def test_an_artifact_of_one_folder_is_named(folders, capsys):
    before, after = folders
    _artifact(before, "tables/main", {"main.tex": "a"})
    _artifact(after, "figures/one", {"one.pdf": "a"})
    assert program.main(["compare", str(before), str(after), "--ignore", "replay", "fit"]) == 1
    assert capsys.readouterr().out.splitlines()[:2] == [
        f"only in {before}: tables/main",
        f"only in {after}: figures/one",
    ]


def test_what_is_printed(folders, capsys):
    before, after = map(str, folders)
    assert program.main(["compare", before, after]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "replay replay/one: states; first here",
        "fit fit/one: card, weights",
        "1 artifacts with equal bytes, 2 with others, 0 and 0 that only one folder has",
    ]
    assert program.main(["compare", before, before]) == 0
    assert program.main(["compare", before, after, "--ignore", "replay", "fit"]) == 0
    assert "2 of ignored stages with others" in capsys.readouterr().out


def test_folders_without_artifacts_and_damaged_manifests_are_refused(folders, tmp_path, capsys):
    before, after = folders
    (tmp_path / "empty").mkdir()
    for name, reason in (("nowhere", "no such folder"), ("empty", "holds no MANIFEST.json")):
        assert program.main(["compare", str(tmp_path / name), str(after)]) == 1
        assert reason in capsys.readouterr().err
    path = after / "grade/one" / MANIFEST_NAME
    path.write_text(json.dumps({**json.loads(path.read_text()), "code": "another"}))
    assert program.main(["compare", str(before), str(after)]) == 1
    assert "does not match the contents" in capsys.readouterr().err


def test_differences_cover_every_part_of_the_key(tmp_path):
    store = Store(tmp_path)
    old = Manifest(
        action=Action(
            stage="build_table",
            code="c" * 64,
            spec={"layout": {"digits": 3}, "gone": 1},
            inputs={"raw": "a" * 64},
            packages={"polars": "2.0", "numpy": "2"},
            python="3.10",
        ),
        files={},
    )
    new = replace(
        old,
        action=replace(
            old.action,
            spec={"layout": {"digits": 2}, "new": [1]},
            inputs={"raw": "b" * 64},
            packages={"polars": "2.1", "scipy": "1"},
            python="3.11",
        ),
    )
    assert list(differences(old, new, store)) == [
        "spec gone: removed",
        "spec layout.digits: 3 -> 2",
        "spec new: added ([1])",
        "python: 3.10 -> 3.11",
        "package numpy: removed",
        "package polars: 2.0 -> 2.1",
        "package scipy: added (1)",
        f"input raw: {'a' * 12} -> {'b' * 12}",
    ]
    assert list(differences(old, old, store)) == []
