"""Which artifacts would be made from something else now, which are found, and why; code and packages are pretended."""

import hashlib
import json
import os
import shutil
import time
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError, ConfigError
from dualread.store.digest import raw_digest
from dualread.store.key import Action
from dualread.store.place import find_target
from dualread.store.store import Store
from dualread.study import again, stale
from tests.store.entries import publish

RESULTS = Path("results/small")
ACTOR, ANSWERS, GRADED = (f"{RESULTS}/{name}" for name in ("actors", "generations", "graded"))
OFFICIAL = {"official": "official.json"}
FROM_ACTOR, FROM_ANSWERS = {"actor": f"{ACTOR}/{MANIFEST_NAME}"}, {"answers": f"{ANSWERS}/{MANIFEST_NAME}"}


class Small:
    """Grades of answers of an actor, which is trained on an official file."""

    def __init__(self):
        self.store, self.packages = Store(Path("results/store")), {"polars": "2.1.0"}  # what `publish` writes
        self.edited, self.data_files, self._times = set(), {}, count(1)
        self.index = SimpleNamespace(
            digest=lambda roots: "dc"[stage_of(roots) not in self.edited] * 64,
            table=lambda roots: {"module": "21"[stage_of(roots) not in self.edited], **self.data_files},
            packages=lambda roots: self.packages,
            way_to=lambda roots, file: ["rewards", "canonical"],
        )
        Path("official.json").write_text("[]")
        self.plan("train", ACTOR, {"steps": 3}, **OFFICIAL)
        self.plan("generate", ANSWERS, {}, **FROM_ACTOR)
        self.plan("grade", GRADED, {"n": 1}, **FROM_ANSWERS)
        self.actor = self.make("train", ACTOR, {"steps": 3}, official=self.raw())
        self.answers = self.make("generate", ANSWERS, {}, actor=self.actor)
        self.graded = self.make("grade", GRADED, {"n": 1}, answers=self.answers)

    def raw(self, path="official.json"):
        return SimpleNamespace(digest=raw_digest(Path(path)), key="")

    def make(self, stage, output, spec, *, files=None, **inputs):
        files = files or {"file": f"{stage} {spec}"}
        made = {"spec": spec, "inputs": inputs, "output": Path(output), "modules": {"module": "1"}}
        return publish(self.store, stage, files, **made)

    def plan(self, stage, output, spec, *, parts=False, of=RESULTS, at=None, **inputs):
        """Write the file of a job that is planned now, or at the time `at`."""
        at = at or next(self._times)
        entry = {"spec": spec, "inputs": inputs, "output": output, **({"parts": True} if parts else {})}
        file = of / f"jobs/{stage}/{at}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"store": "results/store", "entries": [entry]}))
        os.utime(file, (at, at))
        return file

    def now(self):
        return stale.Plan(again.planned(RESULTS), self.store)

    def stale(self):
        return self.now().stale()

    def found(self):
        plan = self.now()
        return {output.rpartition("/")[2] for output, (_, entry) in plan.jobs.items() if plan.is_found(entry)}

    def reasons(self, target=GRADED, **options):
        return list(again.reasons(find_target(target, self.store).manifest, self.store, **options))

    def outdated(self):
        return again.outdated(RESULTS, self.store)


def stage_of(roots):
    return next(root for root in roots if ".stages." in root).rpartition(".")[2]


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = Small()
    for module in (again, stale):
        monkeypatch.setattr(module, "library", lambda cache: small.index)
    return small


def lose(output):
    Path(output, MANIFEST_NAME).unlink()


# What is stale.
def test_each_part_of_a_key_counts(study, monkeypatch):
    assert study.stale() == []
    study.plan("train", ACTOR, {"steps": 6}, **OFFICIAL)
    assert study.stale() == [ACTOR]
    study.edited = {"grade"}
    assert sorted(study.stale()) == [ACTOR, GRADED]
    study.edited = set()
    study.plan("train", ACTOR, {"steps": 3}, **OFFICIAL)
    assert study.stale() == []  # an edit that is taken back
    Path("official.json").write_text("[1]")
    assert study.stale() == [ACTOR]
    study.packages = {"polars": "2.2.0"}
    assert sorted(study.stale()) == [ACTOR, ANSWERS, GRADED]
    study.packages = {"polars": "2.1.0"}
    Path("official.json").unlink()  # its job says how to get it
    assert study.stale() == [ACTOR]
    Path("official.json").write_text("[]")
    study.plan("copy", ACTOR, {"steps": 3}, **OFFICIAL)
    assert study.stale() == [ACTOR]
    monkeypatch.setattr(stale, "Action", partial(Action, python="3.99"))
    assert sorted(study.stale()) == [ACTOR, ANSWERS, GRADED]


def test_what_was_made_from_an_earlier_input_is_stale(study):
    """The run was lost when the actor was there, and before the answers were."""
    study.plan("train", ACTOR, {"steps": 6}, **OFFICIAL)
    study.make("train", ACTOR, {"steps": 6}, official=study.raw())
    assert study.stale() == [ANSWERS]
    assert study.reasons(ANSWERS) == [f"generate {ANSWERS}:", f"  input actor: {ACTOR}/{MANIFEST_NAME}"]
    # It was computed before.
    study.make("train", ACTOR, {"steps": 6}, files={"file": "train {'steps': 3}"}, official=study.raw())
    assert study.stale() == [ANSWERS]


def test_an_input_that_is_missing_is_stale_only_if_it_would_be_another(study):
    lose(ACTOR)
    assert study.stale() == []
    entry = study.store.entry(study.actor.key)
    kept = shutil.move(entry, "entry")
    assert study.stale() == []  # nor does the store have it
    shutil.move(kept, entry)
    study.plan("train", ACTOR, {"steps": 6}, **OFFICIAL)
    assert study.stale() == [ANSWERS]
    study.plan("train", ACTOR, {"steps": 3}, **OFFICIAL)
    lose(ANSWERS)
    assert study.stale() == []  # the store says what the answers were made from
    study.plan("train", ACTOR, {"steps": 6}, **OFFICIAL)
    assert study.stale() == [GRADED]


def test_an_input_that_is_missing_and_would_have_the_same_bytes_is_found_in_the_store(study):
    other, same = "results/other/actors", {"file": "train {'steps': 3}"}
    study.make("train", other, {"steps": 6}, files=same, official=study.raw())
    study.plan("train", ACTOR, {"steps": 6}, **OFFICIAL)
    lose(ACTOR)
    assert study.stale() == []


def test_what_is_missing_itself_and_what_no_plan_makes_is_left_to_snakemake(study):
    Path(GRADED, MANIFEST_NAME).write_text("{")  # a damaged manifest counts as missing
    assert study.stale() == []
    lose(GRADED)
    for file in RESULTS.glob("jobs/generate/*"):
        file.unlink()
    assert study.stale() == []


def test_what_was_made_from_more_inputs_is_enough_only_where_its_stage_says_so(study):
    leakage = f"{RESULTS}/leakage"
    study.plan("check", leakage, {}, parts=True, a=FROM_ACTOR["actor"])
    study.make("check", leakage, {}, a=study.actor, b=study.answers)
    assert study.stale() == study.reasons(leakage) == []
    study.plan("check", leakage, {}, a=FROM_ACTOR["actor"])
    assert study.stale() == [leakage]
    assert study.reasons(leakage) == [f"check {leakage}:", "  input b: no longer read"]
    study.plan("check", leakage, {}, parts=True, c=FROM_ACTOR["actor"])
    assert study.stale() == [leakage]


def test_packages_of_another_environment_are_not_compared(study, monkeypatch):
    vllm = {"n": 1, "engine": {"module": "models.generation.vllm_engine"}}
    study.plan("grade", GRADED, vllm, **FROM_ANSWERS)
    study.packages = {}
    assert study.reasons() == [
        f"grade {GRADED}:",
        "  spec engine.module: added (models.generation.vllm_engine)",
        f"generate {ANSWERS}, train {ACTOR}:",
        "  package polars: removed",
    ]
    study.plan("grade", GRADED, {"n": 1}, **FROM_ANSWERS)
    assert sorted(study.stale()) == [ACTOR, ANSWERS, GRADED]
    monkeypatch.setattr(stale, "runs_elsewhere", lambda roots: True)
    assert study.stale() == []


# What is found.
def test_what_is_there_or_in_the_store_is_found(study):
    assert study.found() == {"actors", "generations", "graded"}
    for output in (ACTOR, ANSWERS, GRADED):
        lose(output)
    assert study.found() == {"actors", "generations", "graded"}


def test_what_rests_on_something_that_has_to_be_computed_is_not_found(study):
    study.edited = {"generate"}
    assert study.found() == {"actors"}  # the grades that are there are those of other answers
    lose(GRADED)
    assert study.found() == {"actors"}


def test_what_rests_on_the_same_bytes_from_other_settings_is_found(study):
    study.plan("train", ACTOR, {"steps": 6}, **OFFICIAL)
    assert study.found() == set()
    other, same = "results/other/actors", {"file": "train {'steps': 3}"}
    study.make("train", other, {"steps": 6}, files=same, official=study.raw())
    assert study.found() == {"actors", "generations", "graded"}
    study.make("train", other, {"steps": 9}, official=study.raw())  # other bytes
    study.plan("train", ACTOR, {"steps": 9}, **OFFICIAL)
    assert study.found() == {"actors"}


# Why.
def test_an_edited_module_an_edited_setting_and_another_package_are_named(study):
    study.edited = {"grade"}
    study.plan("grade", GRADED, {"n": 2}, **FROM_ANSWERS)
    study.packages = {"polars": "2.2.0"}
    assert study.reasons() == [
        f"grade {GRADED}:",
        "  code module: changed",
        "  spec n: 1 -> 2",
        "  package polars: 2.1.0 -> 2.2.0",
        f"generate {ANSWERS}, train {ACTOR}:",
        "  package polars: 2.1.0 -> 2.2.0",
    ]


def test_a_data_file_has_the_modules_by_which_a_stage_reaches_it(study):
    study.data_files, study.edited = {"file:a.json": "1"}, {"grade"}
    assert study.reasons()[1] == "  code file:a.json: added, by rewards -> canonical"


def test_artifacts_with_the_same_reasons_are_counted_and_three_are_named(study):
    """Grades are made of five answers, of which all have the same new setting and one has another one, too."""
    outputs = [f"{RESULTS}/five/{name}" for name in "abcde"]
    for output in outputs:
        study.make("generate", output, {"of": output})
        study.plan("generate", output, {"of": output, "strict": True, **({"n": 1} if output == outputs[-1] else {})})
    study.plan("grade", GRADED, {"n": 1}, **{output: f"{output}/{MANIFEST_NAME}" for output in outputs})
    lines = study.reasons()
    assert lines[0] == f"grade {GRADED}:"
    assert lines[-5:] == [
        f"4 artifacts, such as generate {outputs[0]}, generate {outputs[1]}, generate {outputs[2]}:",
        "  spec strict: added (true)",
        f"generate {outputs[4]}:",
        "  spec n: added (1)",
        "  spec strict: added (true)",
    ]


def test_a_raw_input_that_changed_is_named_where_it_is_read(study):
    Path("official.json").write_text("[1]")
    assert study.reasons() == [f"train {ACTOR}:", "  input official: official.json"]


def test_the_pictures_that_changed_are_named(study):
    Path("official/imgs").mkdir(parents=True)
    images = {f"{name}.png": name.encode() for name in "abc"}
    for name, content in images.items():
        Path("official/imgs", name).write_bytes(content)
    files = [[f"images/{hashlib.sha256(content).hexdigest()}.png"] for content in images.values()]
    manifest = pl.DataFrame({"image_id": list("abc"), "image_files": files})
    written = partial(lambda table, folder: table.write_parquet(folder / "manifest.parquet"), manifest)
    study.make("grade", GRADED, {"n": 1}, files=written, source=study.raw("official"))
    study.plan("grade", GRADED, {"n": 1}, source="official")
    Path("official/imgs/b.png").write_bytes(b"B")
    line = "  input source: official; 1 of 3 pictures are others now: b"
    assert study.reasons() == [f"grade {GRADED}:", line]


def test_an_artifact_that_is_not_there_is_no_change_of_what_is_made_from_it(study):
    lose(ANSWERS)
    line = "  is not there; it is made again if a job has to read it, or if its MANIFEST.json is given as a target"
    assert study.reasons() == [f"generate {ANSWERS}:", line]
    assert study.reasons(missing=False) == []
    study.plan("generate", ANSWERS, {"n": 2}, **FROM_ACTOR)
    *_, said = study.reasons(missing=False)
    assert said.startswith(f"  input answers: {ANSWERS}/MANIFEST.json is not there, and would not be the one")


def test_an_entry_of_the_store_another_folder_and_what_no_plan_makes_are_refused(study, monkeypatch):
    with pytest.raises(ArtifactError, match=r"an entry of the store is never made again\. Give its folder below"):
        study.reasons(study.graded.key)
    made = find_target(GRADED, study.store).manifest
    for file in RESULTS.glob("jobs/grade/*"):
        file.unlink()
    with pytest.raises(ArtifactError, match=rf"^{GRADED}: no plan of results/small makes it\. Run `snakemake -n`"):
        study.reasons()
    monkeypatch.chdir(Path.cwd().parent)
    with pytest.raises(ArtifactError, match="where Snakemake ran"):
        list(again.reasons(made, study.store))


# Plans, and what is of an earlier one.
def test_what_a_dry_run_planned_counts_only_where_it_is_asked_for(study):
    study.plan("grade", GRADED, {"n": 2}, of=RESULTS / "dry_run", **FROM_ANSWERS)
    assert study.reasons() == []
    assert study.reasons(dry_runs=True)[1:] == ["  spec n: 1 -> 2"]
    assert study.outdated() == set()


def test_what_is_stale_and_what_is_made_from_it_is_outdated(study):
    assert study.outdated() == set()
    study.plan("generate", ANSWERS, {"n": 2}, **FROM_ACTOR)
    assert study.outdated() == {ANSWERS, GRADED}
    lose(GRADED)
    assert study.outdated() == {ANSWERS}


def test_what_a_plugin_made_that_is_no_more_is_outdated(study, monkeypatch):
    def gone(roots):
        if "dualread.readers.mine" in roots:
            raise ConfigError("dualread.readers.mine: no such module.")
        return "c" * 64

    study.plan("grade", GRADED, {"n": 1, "module": "readers.mine"}, **FROM_ANSWERS)
    study.index.digest = gone
    monkeypatch.setattr(stale, "runs_elsewhere", lambda roots: False)
    assert study.outdated() == {GRADED}
    said = "  cannot be made again: dualread.readers.mine: no such module."
    assert study.reasons() == [f"grade {GRADED}:", said]


def test_half_a_job_file_counts_as_none_and_plans_of_a_week_ago_are_forgotten_once_others_make_the_same(study):
    """A cluster may start a job of yesterday's plan."""
    old = study.plan("grade", GRADED, {"n": 3}, **FROM_ANSWERS)
    old.with_suffix(".planned").write_text("")
    yesterday, now = (study.plan("grade", GRADED, {"n": 4}, at=int(time.time()) - s, **FROM_ANSWERS) for s in (3600, 0))
    (half := now.with_name("half.json")).write_text('{"')
    assert study.reasons() == [f"grade {GRADED}:", "  spec n: 1 -> 4"]
    again.forget_old_plans(RESULTS)
    assert {*RESULTS.glob("jobs/grade/*")} == {yesterday, now, half}
    assert len([*RESULTS.glob("jobs/*/*.json")]) == 3 + 2  # nothing else makes the actor and its answers
