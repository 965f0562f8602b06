"""Commands find the store and the configuration of the study that they are about."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from dualread.apps.main import main
from dualread.source_snapshot import ROOT
from dualread.store.code import library, stage_roots
from dualread.store.digest import sha256_file
from dualread.store.key import Action
from dualread.store.manifest import read_manifest
from dualread.store.place import write_study
from dualread.store.results import link
from dualread.store.store import Store
from dualread.study.config import resolve
from dualread.study.files import merged

TABLE = Path("results/embedded/tables/data")
SPEC = {"table": {"module": "reporting.tables.data"}}


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A study with one table, whose store is elsewhere, as a run of the present code and settings leaves it."""
    monkeypatch.chdir(tmp_path)
    store = Store(tmp_path / "elsewhere")
    index, roots = library(), stage_roots("build_table", SPEC)
    action = Action(stage="build_table", code=index.digest(roots), spec=SPEC, inputs={}, packages=index.packages(roots))
    with store.scratch(action.key) as scratch:
        for kind in ("tex", "csv"):
            (scratch / f"data.{kind}").write_text("1\n")
        manifest = store.publish(scratch, action, input_keys={}, record={"modules": index.table(roots)})
    link(store.entry(manifest.key), manifest, TABLE)
    Path("tables").mkdir()
    Path("tables/data.tex").write_text("% study: embedded\n1\n")
    note(store)
    plan(SPEC)
    return store


def note(store, given=None):
    settings = resolve(merged([], ROOT.parents[1], given)).as_mapping()
    write_study(Path("results/embedded"), store, files=[], given=given or {}, settings=json.loads(json.dumps(settings)))


def plan(spec):
    job = {"store": "elsewhere", "entries": [{"spec": spec, "output": str(TABLE)}]}
    file = Path("results/embedded/jobs/build_table/1.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(job))


@pytest.mark.parametrize("target", ["tables/data.tex", str(TABLE)])
def test_verify_and_explain_look_into_the_study_s_own_store(store, target, capsys):
    assert main(["verify", target]) == 0
    assert capsys.readouterr().out == (f"{target}: intact, down to the raw data; of this configuration (config.yaml)\n")
    assert main(["explain", target]) == 0
    assert "build_table" in capsys.readouterr().out
    assert main(["explain", "tables/data.tex", "--again"]) == 0
    assert "\nnothing has changed since it was made\n" in capsys.readouterr().out
    assert main(["gc"]) == 0
    assert f"{store.root}: nothing was removed." in capsys.readouterr().out


def test_verify_names_settings_that_changed_since_the_plan(store, capsys):
    note(store, given={"metrics": {"bootstrap": {"replicates": 77}}})
    noted = json.loads(Path("results/embedded/study.json").read_text())
    Path("results/embedded/study.json").write_text(json.dumps({**noted, "given": {}}))
    assert main(["verify", "tables/data.tex"]) == 0
    said = capsys.readouterr().out
    assert "the settings changed since they were planned: setting metrics.bootstrap.replicates: 77 -> " in said
    assert "; not of this configuration (config.yaml)" in said


def test_verify_names_what_the_last_plan_would_make_otherwise(store, capsys):
    plan({**SPEC, "layout": {"study": "embedded"}})
    assert main(["verify", "tables/data.tex"]) == 0
    said = capsys.readouterr().out
    assert f"build_table {TABLE}:" in said
    assert "spec layout.study: added (embedded)" in said
    assert "; not of this configuration (config.yaml)" in said


def test_lock_and_restore_use_the_study_s_own_store(store, capsys):
    assert main(["store", "lock", "results/embedded"]) == 0
    assert capsys.readouterr().out == "results/embedded/results.lock: 1 artifacts of embedded\n"
    assert main(["store", "restore", "results/embedded/results.lock"]) == 0
    assert main(["verify", "restored/tables/data.tex"]) == 0
    assert capsys.readouterr().out.endswith("restored/tables/data.tex: intact, down to the raw data\n")
    plan({**SPEC, "layout": {"study": "embedded"}})
    assert main(["store", "lock", "results/embedded"]) == 0
    assert capsys.readouterr().out.endswith("; 1 of them are of an earlier configuration\n")


def test_a_whole_report_is_not_overwritten_by_one_that_lacks_half(store, capsys, monkeypatch):
    monkeypatch.setattr("dualread.reporting.report.page.render", lambda *_, **__: "a page")
    page = Path("results/embedded/report.html")
    assert main(["report", "results/embedded"]) == 0
    assert page.read_text() == "a page"
    page.write_text("a whole page")
    assert main(["report", "results/embedded", "--store", "nowhere"]) == 1
    assert "left as it is. nowhere lacks 1 of the artifacts behind the tables" in capsys.readouterr().err
    assert page.read_text() == "a whole page"
    assert main(["report", "results/embedded", "--store", "nowhere", "--out", "other.html"]) == 0


def test_an_entry_that_somebody_replaced_consistently_shows_in_the_lock(store, capsys):
    """The entry alone says that it is intact, and verify says what that is worth."""
    assert main(["store", "lock", "results/embedded"]) == 0
    (key,) = store.stored_keys()
    entry = store.entry(key)
    (entry / "data.csv").chmod(0o644)
    (entry / "data.csv").write_text("2\n")
    made = read_manifest(entry / "MANIFEST.json")
    replaced = replace(made, files={**made.files, **{"data.csv": file_table_of(entry / "data.csv")}})
    (entry / "MANIFEST.json").chmod(0o644)
    (entry / "MANIFEST.json").write_bytes(replaced.to_bytes())
    capsys.readouterr()
    assert main(["verify", key[:8]]) == 0
    assert "Whoever can write into the store can replace both" in capsys.readouterr().out
    link(entry, replaced, TABLE)
    assert main(["verify", str(TABLE)]) == 1
    assert "somebody replaced them" in capsys.readouterr().out


def file_table_of(path):
    return {"sha256": sha256_file(path), "size": path.stat().st_size}


def test_verify_from_another_folder_compares_files_and_no_configuration(store, tmp_path, monkeypatch, capsys):
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert main(["verify", "../tables/data.tex"]) == 0
    assert "intact, down to the raw data; not compared with the study's configuration (" in capsys.readouterr().out


def test_a_table_of_the_study_that_was_not_planned_last_says_whose_it_is(store, capsys):
    """A dry run of another study, which would put its own table in this place."""
    other = Path("results/second/dry_run")
    write_study(other, store, files=[], given={}, settings={"study": "second"})
    os.utime(Path("results/embedded/study.json"), (1, 1))
    assert main(["explain", "tables/data.tex", "--again"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("tables/data.tex: shows the study embedded, and a run of second, which was planned last,")
    assert "dualread explain results/second/tables/data --again" in said
    os.utime(other / "study.json", (0, 0))
    assert main(["explain", "tables/data.tex", "--again"]) == 0
    assert "nothing has changed" in capsys.readouterr().out
