import dataclasses

import pytest

from dualread.errors import ArtifactError
from dualread.store.differences import differences
from dualread.store.digest import raw_digest
from dualread.store.key import Action
from dualread.store.lineage import damages, find_key, find_target, tree
from dualread.store.link import link
from dualread.store.store import Store


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Store(tmp_path / "results" / "store")


def _make(store, stage, output, files, inputs=(), spec=None, raw=None, **record):
    """Publish and link one artifact; `inputs` are manifests of others, `raw` is a raw file."""
    digests = {manifest.action.stage: manifest.digest for manifest in inputs}
    keys = {manifest.action.stage: manifest.key for manifest in inputs}
    if raw is not None:
        digests["raw"] = raw_digest(raw)
        record["input_paths"] = {"raw": str(raw)}
    action = Action(stage=stage, code="c" * 64, spec=spec or {}, inputs=digests, packages={})
    with store.scratch(action.key) as scratch:
        for name, text in files.items():
            (scratch / name).write_text(text)
        manifest = store.publish(scratch, action, input_keys=keys, record={"seconds": 1.5, **record})
    link(store.entry(action.key), manifest, output)
    return manifest


@pytest.fixture
def study(store, tmp_path):
    """raw.txt -> manifest -> metrics -> table; the table also reads the manifest."""
    (tmp_path / "raw.txt").write_text("raw")
    results = tmp_path / "results" / "embedded"
    manifest = _make(store, "build_manifest", results / "manifest", {"m": "1"}, raw=tmp_path / "raw.txt")
    metrics = _make(store, "compute_metrics", results / "metrics", {"n": "2"}, [manifest])
    text = "% study: embedded\n\\begin{tabular}\n"
    table = _make(store, "build_table", results / "tables", {"main.tex": text, "main.csv": "1"}, [metrics, manifest])
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "main.tex").write_text(text)
    (tmp_path / "tables" / "main.csv").write_text("1")
    return {"manifest": manifest, "metrics": metrics, "table": table}


@pytest.mark.parametrize(
    "target",
    [
        "tables/main.tex",
        "tables/main.csv",
        "results/embedded/tables",
        "results/embedded/tables/MANIFEST.json",
        "results/embedded/tables/main.csv",
    ],
)
def test_a_target_is_found_by_any_of_its_names(store, study, target):
    assert find_target(target, store).manifest == study["table"]
    assert list(damages(find_target(target, store), store)) == []


def test_a_key_is_found_by_its_first_digits(store, study):
    assert find_target(study["table"].key[:8], store).manifest == study["table"]
    with pytest.raises(ArtifactError, match="xyz: no such file, and no such key in"):
        find_key("xyz", store)


def test_a_table_without_a_mark_or_with_an_unknown_study_is_refused(store, study, tmp_path):
    (tmp_path / "tables" / "other.tex").write_text("\\begin{tabular}")
    with pytest.raises(ArtifactError, match=r"neither an artifact .* nor a table whose first line is"):
        find_target("tables/other.tex", store)
    (tmp_path / "tables" / "other.tex").write_text("% study: gone\n")
    with pytest.raises(ArtifactError, match="its study 'gone' has no tables"):
        find_target("tables/other.tex", store)


def _sentences(store, target="tables/main.tex"):
    return list(damages(find_target(target, store), store))


def test_an_edited_copy_of_a_table_is_found(store, study, tmp_path):
    (tmp_path / "tables" / "main.tex").write_text("% study: embedded\n\\begin{tabular} 0.99")
    (sentence,) = _sentences(store)
    assert sentence.startswith("tables/main.tex: differs from")


def test_a_damaged_file_that_everything_was_made_from_is_reported_once(store, study):
    path = store.entry(study["manifest"].key) / "m"
    path.chmod(0o644)
    path.write_text("9")
    (sentence,) = _sentences(store)
    assert sentence.startswith(f"{path}: sha256")


def test_a_raw_input_that_changed_is_found(store, study, tmp_path):
    (tmp_path / "raw.txt").write_text("war")
    (sentence,) = _sentences(store)
    assert "raw.txt: changed since build_manifest" in sentence


def test_a_raw_input_that_is_no_longer_there_is_not_damage(store, study, tmp_path):
    (tmp_path / "raw.txt").unlink()
    assert _sentences(store) == []


def test_the_tree_shows_each_artifact_once(store, study, tmp_path):
    lines = list(tree(find_target("tables/main.tex", store), store))
    keys = {name: manifest.key[:8] for name, manifest in study.items()}
    starts = [
        f"build_table {keys['table']}  code cccccccc",
        f"  build_manifest: build_manifest {keys['manifest']}  code cccccccc",
        f"    raw: {tmp_path / 'raw.txt'}, sha256 ",
        f"  compute_metrics: compute_metrics {keys['metrics']}  code cccccccc",
        f"    build_manifest: build_manifest {keys['manifest']} (above)",
    ]
    assert len(lines) == len(starts)
    assert all(line.startswith(start) for line, start in zip(lines, starts, strict=True)), lines


def test_differences_cover_every_part_of_the_key(store, study):
    old = dataclasses.replace(
        study["table"],
        action=Action(
            stage="build_table",
            code="c" * 64,
            spec={"layout": {"digits": 3}, "gone": 1},
            inputs={"raw": "a" * 64},
            packages={"polars": "2.0", "numpy": "2"},
            python="3.10",
        ),
        input_keys={},
    )
    new = dataclasses.replace(
        old,
        action=dataclasses.replace(
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
