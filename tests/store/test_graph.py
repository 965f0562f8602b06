"""What artifacts were made from: targets, trees, damages, and what one walk reaches."""

import json
import shutil
from pathlib import Path

import pytest

from dualread.errors import ArtifactError
from dualread.store.batches import RECORDED, Batches, batch_files
from dualread.store.digest import raw_digest
from dualread.store.graph import Graph, Lineage, damages, keys_below, reachable
from dualread.store.manifest import RECORD_NAME
from dualread.store.place import find_key, find_target
from dualread.store.store import Store
from tests.store.entries import publish


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Store(tmp_path / "results" / "store")


def _make(store, stage, output, files, inputs=(), raw=None):
    """Publish and link one artifact; `inputs` are manifests of others, `raw` is a raw file."""
    read = {manifest.action.stage: manifest for manifest in inputs}
    paths = {"raw": str(raw)} if raw else {}
    return publish(
        store, stage, files, inputs=read, raw={"raw": raw_digest(raw)} if raw else {}, output=output, input_paths=paths
    )


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
    with pytest.raises(ArtifactError, match="xyz: no such file, and no keys in"):
        find_key("xyz", store)


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


def test_a_damaged_batch_of_an_entry_is_reported(store, study):
    batches = Batches(store=store, action=study["manifest"].action, confirm=lambda: None)
    batches.keep("a" * 64, lambda file: file.write_text("12345"))
    record = store.entry(study["manifest"].key) / RECORD_NAME
    record.chmod(0o644)
    record.write_text(json.dumps({**json.loads(record.read_text()), RECORDED: ["a" * 64, "b" * 64]}))
    assert _sentences(store) == []
    [file] = batch_files(store)
    file.chmod(0o644)
    file.write_text("12346")
    (sentence,) = _sentences(store)
    assert sentence.startswith(f"{file}: a batch of build_manifest")


def test_a_raw_input_that_changed_is_found(store, study, tmp_path):
    (tmp_path / "raw.txt").write_text("war")
    (sentence,) = _sentences(store)
    assert "raw.txt: changed since build_manifest" in sentence


def test_a_raw_input_that_is_no_longer_there_is_not_damage(store, study, tmp_path):
    (tmp_path / "raw.txt").unlink()
    assert _sentences(store) == []


class Stages(Lineage):
    def line(self, manifest):
        return f"made by {manifest.action.stage}"


def test_the_tree_shows_each_artifact_once(store, study, tmp_path):
    lines = list(Stages(store).lines(study["table"].key))
    assert lines == [
        "made by build_table",
        "  build_manifest: made by build_manifest",
        f"    raw: {tmp_path / 'raw.txt'}, sha256 {raw_digest(tmp_path / 'raw.txt')[:8]}",
        "  compute_metrics: made by compute_metrics",
        f"    above: build_manifest {study['manifest'].key[:8]}",
    ]


def test_the_tree_says_what_is_not_in_the_store(store, study):
    shutil.rmtree(store.entry(study["metrics"].key))
    lines = Stages(store).lines(study["table"].key, "table")
    assert list(lines)[-1] == f"  compute_metrics: {study['metrics'].key[:8]} is not in the store"


def test_a_graph_keeps_what_is_behind_an_artifact_and_names_what_is_missing(store, study):
    shutil.rmtree(store.entry(study["manifest"].key))
    behind = Graph(store).behind([study["table"].key])
    assert behind == {study["table"].key: study["table"], study["metrics"].key: study["metrics"]} | {
        study["manifest"].key: None
    }


def test_every_input_is_reached_once(store):
    raw = publish(store, "raw", {"a": "1"})
    left, right = (publish(store, name, {"a": name}, inputs={"raw": raw}) for name in ("left", "right"))
    top = publish(store, "top", {"a": "2"}, inputs={"left": left, "right": right})
    publish(store, "other", {"a": "3"})
    found = reachable([top.key], store)
    assert sorted(found) == sorted(manifest.key for manifest in (raw, left, right, top))


def test_a_missing_entry_is_reached_but_not_its_inputs(store):
    raw = publish(store, "raw", {"a": "1"})
    middle = publish(store, "middle", {"a": "1"}, inputs={"raw": raw})
    top = publish(store, "top", {"a": "2"}, inputs={"middle": middle})
    shutil.rmtree(store.entry(middle.key))
    assert sorted(reachable([top.key], store)) == sorted([top.key, middle.key])


def test_entries_of_a_store_inside_a_results_folder_are_not_its_artifacts(store, tmp_path):
    study = publish(store, "raw", {"a": "1"}, output=tmp_path / "results" / "small" / "raw")
    publish(store, "other", {"a": "3"})
    assert keys_below(tmp_path / "results", store) == {study.key}


def test_an_unreadable_folder_does_not_count_as_empty(store, tmp_path, monkeypatch):
    def scandir(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", scandir)
    with pytest.raises(ArtifactError, match=rf"{tmp_path}: cannot be read \(Permission denied\)"):
        keys_below(tmp_path, store)


def test_a_producer_that_was_replaced_by_one_with_equal_bytes_is_no_damage(store, study, tmp_path):
    """The raw file was edited, all was made again, and only the manifest has another key: its bytes are the same."""
    (tmp_path / "raw.txt").write_text("other")
    assert [*damages(find_target("tables/main.tex", store), store)]
    _make(store, "build_manifest", tmp_path / "results/embedded/manifest", {"m": "1"}, raw=tmp_path / "raw.txt")
    assert [*damages(find_target("tables/main.tex", store), store)] == []
    (tmp_path / "raw.txt").write_text("a third")
    (sentence,) = damages(find_target("tables/main.tex", store), store)
    assert sentence.startswith(f"{tmp_path / 'raw.txt'}: changed since build_manifest")


def test_raw_data_are_those_of_the_target_s_own_folder(store, study, tmp_path, monkeypatch):
    """Where the command is called from, there may be other data of the same name."""
    ours = tmp_path / "ours"
    (ours / "data").mkdir(parents=True)
    (ours / "data/raw.txt").write_text("raw")
    monkeypatch.chdir(ours)
    made = _make(store, "build_manifest", Path("results/small/manifest"), {"n": "1"}, raw=Path("data/raw.txt"))
    (ours / "results/small/study.json").write_text('{"store": "s"}')
    (tmp_path / "data").mkdir()
    (tmp_path / "data/raw.txt").write_text("of others")
    monkeypatch.chdir(tmp_path)
    target = find_target("ours/results/small/manifest", store)
    assert target.manifest.key == made.key
    assert [*damages(target, store)] == []
