"""Why the artifacts of a study of two stages would be made again; the code and the packages are pretended."""

import hashlib
import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from dualread.errors import ArtifactError, ConfigError
from dualread.store.digest import raw_digest
from dualread.store.place import find_target
from dualread.store.store import Store
from dualread.study import again, stale
from tests.store.entries import publish

GRADED, METRICS = "results/small/graded", "results/small/metrics"
POLARS = {"polars": "2.1.0"}  # what `publish` writes


class Small:
    """Metrics, which are made from grades, which are made from an official file."""

    def __init__(self):
        self.store = Store(Path("results/store"))
        self.index = SimpleNamespace(
            tables={"grade": {"grading": "1"}, "compute_metrics": {"metrics": "1"}},
            digest=lambda roots: "c" * 64 if self._is_old(roots) else "d" * 64,
            table=lambda roots: self.index.tables[_stage(roots)],
            packages=lambda roots: self.versions,
        )
        self.tables = {name: dict(table) for name, table in self.index.tables.items()}
        self.versions = dict(POLARS)
        Path("official.json").write_text("[]")
        raw = SimpleNamespace(digest=raw_digest(Path("official.json")), key="")
        graded = publish(
            self.store, "grade", {"a": "1"}, spec={"contract": "single"}, inputs={"official": raw},
            output=Path(GRADED), modules=self.tables["grade"],
        )  # fmt: skip
        publish(
            self.store, "compute_metrics", {"b": "2"}, spec={"n": 1}, inputs={"graded": graded},
            output=Path(METRICS), modules=self.tables["compute_metrics"],
        )  # fmt: skip
        self.plan("grade", GRADED, {"contract": "single"}, {"official": "official.json"})
        self.plan("compute_metrics", METRICS, {"n": 1}, {"graded": f"{GRADED}/MANIFEST.json"})

    def _is_old(self, roots):
        return self.index.tables[_stage(roots)] == self.tables[_stage(roots)]

    def plan(self, stage, output, spec, inputs, *, at=1, of="results/small", **more):
        """Write the job file of a plan at the time `at`."""
        job = {"store": "results/store", "entries": [{"spec": spec, "inputs": inputs, "output": output, **more}]}
        file = Path(f"{of}/jobs/{stage}/{at}.json")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(job))
        os.utime(file, (at, at))

    def reasons(self, target=METRICS):
        return list(again.reasons(find_target(target, self.store).manifest, self.store))


def _stage(roots):
    return next(root for root in roots if ".stages." in root).rpartition(".")[2]


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = Small()
    for module in (again, stale):
        monkeypatch.setattr(module, "library", lambda cache: small.index)
    return small


def test_what_a_dry_run_planned_counts_only_where_it_is_asked_for(study):
    study.plan("grade", GRADED, {"contract": "blocks"}, {"official": "official.json"}, at=2, of="results/small/dry_run")
    assert study.reasons() == []
    made = find_target(METRICS, study.store).manifest
    assert [*again.reasons(made, study.store, dry_runs=True)][1:] == ["  spec contract: single -> blocks"]
    assert again.outdated(Path("results/small"), study.store) == set()


def test_an_artifact_below_another_folder_is_not_compared(study, tmp_path, monkeypatch):
    made = find_target(METRICS, study.store).manifest
    monkeypatch.chdir(tmp_path.parent)
    with pytest.raises(ArtifactError, match="where Snakemake ran"):
        list(again.reasons(made, study.store))


def test_fewer_inputs_are_a_reason_only_where_a_part_is_not_enough(study):
    study.plan("compute_metrics", METRICS, {"n": 1}, {}, at=2, parts=True)
    assert study.reasons() == []
    study.plan("compute_metrics", METRICS, {"n": 1}, {}, at=3)
    assert study.reasons() == [f"compute_metrics {METRICS}:", "  input graded: no longer read"]


def test_an_edited_module_an_edited_setting_and_another_package_are_named(study):
    study.index.tables = {**study.tables, "compute_metrics": {"metrics": "2"}}
    study.plan("compute_metrics", METRICS, {"n": 2}, {"graded": f"{GRADED}/MANIFEST.json"}, at=2)
    study.versions["polars"] = "2.2.0"
    assert study.reasons() == [
        f"compute_metrics {METRICS}:",
        "  code metrics: changed",
        "  spec n: 1 -> 2",
        "  package polars: 2.1.0 -> 2.2.0",
        f"grade {GRADED}:",
        "  package polars: 2.1.0 -> 2.2.0",
    ]


def test_a_data_file_has_the_modules_by_which_a_stage_reaches_it(study):
    study.index.tables = {**study.tables, "compute_metrics": {**study.tables["compute_metrics"], "file:a.json": "1"}}
    study.index.way_to = lambda roots, file: ["rewards", "canonical"] if file == "a.json" else []
    study.plan("compute_metrics", METRICS, {"n": 1}, {"graded": f"{GRADED}/MANIFEST.json"}, at=2)
    assert study.reasons() == [f"compute_metrics {METRICS}:", "  code file:a.json: added, by rewards -> canonical"]


def test_artifacts_with_the_same_reasons_are_counted_and_three_are_named(study):
    """The metrics are made from five grades, of which all have the same new setting and one has another one, too."""
    outputs = [f"results/small/grades/{name}" for name in "abcde"]
    for output in outputs:
        publish(study.store, "grade", {"a": output}, spec={"contract": output}, output=Path(output), modules={})
        extra = {"n": 1} if output == outputs[-1] else {}
        study.plan("grade", output, {"contract": output, "strict": True, **extra}, {}, at=2 + outputs.index(output))
    paths = {output: f"{output}/MANIFEST.json" for output in outputs}
    study.plan("compute_metrics", METRICS, {"n": 1}, paths, at=2)
    lines = study.reasons()
    assert lines[0] == f"compute_metrics {METRICS}:"
    assert lines[-5:] == [
        f"4 artifacts, such as grade {outputs[0]}, grade {outputs[1]}, grade {outputs[2]}:",
        "  spec strict: added (true)",
        f"grade {outputs[4]}:",
        "  spec n: added (1)",
        "  spec strict: added (true)",
    ]


def test_an_edit_taken_back_counts_as_the_last_plan_has_it(study):
    study.plan("compute_metrics", METRICS, {"n": 2}, {"graded": f"{GRADED}/MANIFEST.json"}, at=2)
    study.plan("compute_metrics", METRICS, {"n": 1}, {"graded": f"{GRADED}/MANIFEST.json"}, at=3)
    assert study.reasons() == []


def test_what_is_stale_and_what_is_made_from_it_is_outdated(study, tmp_path):
    assert again.outdated(Path("results/small"), study.store) == set()
    study.plan("grade", GRADED, {"contract": "dual"}, {"official": "official.json"}, at=2)
    assert again.outdated(Path("results/small"), study.store) == {GRADED, METRICS}
    (tmp_path / METRICS / "MANIFEST.json").unlink()
    assert again.outdated(Path("results/small"), study.store) == {GRADED}


def test_what_a_plugin_made_that_is_no_more_is_outdated(study, monkeypatch):
    def gone(roots):
        raise ConfigError("dualread.readers.mine: no such module.")

    study.plan(
        "compute_metrics", METRICS, {"n": 1, "module": "readers.mine"}, {"graded": f"{GRADED}/MANIFEST.json"}, at=2
    )
    old = study.index.digest
    study.index.digest = lambda roots: gone(roots) if "dualread.readers.mine" in roots else old(roots)
    monkeypatch.setattr(stale, "runs_elsewhere", lambda roots: False)
    assert again.outdated(Path("results/small"), study.store) == {METRICS}
    assert study.reasons() == [
        f"compute_metrics {METRICS}:",
        "  cannot be made again: dualread.readers.mine: no such module.",
    ]


def test_half_a_job_file_counts_as_none(study, tmp_path):
    (tmp_path / "results/small/jobs/grade/half.json").write_text('{"')
    assert study.reasons() == []


def test_plans_of_a_week_ago_are_forgotten_once_others_make_all_that_they_made(study, tmp_path):
    """A cluster may start a job of yesterday's plan."""
    jobs = tmp_path / "results/small/jobs"
    study.plan("grade", GRADED, {"contract": "dual"}, {"official": "official.json"}, at=2)
    (jobs / "grade/1.planned").write_text("")
    study.plan("grade", GRADED, {"contract": "none"}, {"official": "official.json"}, at=int(time.time()) - 3600)
    study.plan("grade", GRADED, {"contract": "last"}, {"official": "official.json"}, at=int(time.time()))
    again.forget_old_plans(Path("results/small"))
    assert {file.parent.name for file in jobs.glob("*/1.json")} == {"compute_metrics"}  # nothing else makes these
    assert len(list((jobs / "grade").iterdir())) == 2


def test_a_raw_input_that_changed_is_named_where_it_is_read(study, tmp_path):
    (tmp_path / "official.json").write_text("[1]")
    assert study.reasons() == [f"grade {GRADED}:", "  input official: official.json"]


def test_the_pictures_that_changed_are_named(study, tmp_path):
    (tmp_path / "official/imgs").mkdir(parents=True)
    images = {f"{name}.png": name.encode() for name in "abc"}
    for name, content in images.items():
        (tmp_path / "official/imgs" / name).write_bytes(content)
    files = [[f"images/{hashlib.sha256(content).hexdigest()}.png"] for content in images.values()]
    manifest = pl.DataFrame({"image_id": list("abc"), "image_files": files})
    publish(
        study.store, "grade", lambda folder: manifest.write_parquet(folder / "manifest.parquet"),
        spec={"contract": "single"}, inputs={"source": SimpleNamespace(digest=raw_digest(Path("official")), key="")},
        output=Path(GRADED), modules=study.tables["grade"],
    )  # fmt: skip
    study.plan("grade", GRADED, {"contract": "single"}, {"source": "official"}, at=2)
    (tmp_path / "official/imgs/b.png").write_bytes(b"B")
    line = "  input source: official; 1 of 3 pictures are others now: b"
    assert study.reasons(GRADED) == [f"grade {GRADED}:", line]


def test_an_artifact_that_is_not_there_is_no_change_of_what_is_made_from_it(study, tmp_path):
    (tmp_path / GRADED / "MANIFEST.json").unlink()
    line = "  is not there; it is made again if a job has to read it, or if its MANIFEST.json is given as a target"
    assert study.reasons() == [f"grade {GRADED}:", line]
    made = find_target(METRICS, study.store).manifest
    assert [*again.reasons(made, study.store, missing=False)] == []
    study.plan("grade", GRADED, {"contract": "dual"}, {"official": "official.json"}, at=2)
    *_, said = again.reasons(made, study.store, missing=False)
    assert said.startswith(f"  input graded: {GRADED}/MANIFEST.json is not there, and would not be the one")


def test_an_input_that_was_made_again_since_is_a_change(study, tmp_path):
    changed = publish(study.store, "grade", {"a": "2"}, spec={"contract": "dual"})
    (tmp_path / GRADED / "MANIFEST.json").write_bytes(changed.to_bytes())
    assert f"  input graded: {GRADED}/MANIFEST.json" in study.reasons()


def test_packages_of_another_environment_are_not_compared(study):
    spec = {"engine": {"module": "models.generation.vllm_engine"}}
    study.plan("compute_metrics", METRICS, spec, {"graded": f"{GRADED}/MANIFEST.json"}, at=2)
    study.versions = {}
    assert study.reasons() == [
        f"compute_metrics {METRICS}:",
        "  spec engine.module: added (models.generation.vllm_engine)",
        "  spec n: removed",
        f"grade {GRADED}:",
        "  package polars: removed",
    ]


def test_an_entry_of_the_store_and_what_no_plan_makes_are_refused(study, tmp_path):
    key = find_target(METRICS, study.store).manifest.key
    with pytest.raises(ArtifactError, match=r"an entry of the store is never made again\. Give its folder below"):
        study.reasons(key)
    for file in (tmp_path / "results/small/jobs/compute_metrics").iterdir():
        file.unlink()
    with pytest.raises(ArtifactError, match=rf"^{METRICS}: no plan of results/small makes it\. Run `snakemake -n`"):
        study.reasons()
