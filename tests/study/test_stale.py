"""Which artifacts would be made from something else now, and which are found; code and packages are pretended."""

from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

from dualread.digests import MANIFEST_NAME
from dualread.store.digest import raw_digest
from dualread.store.job import Entry
from dualread.store.key import Action
from dualread.store.store import Store
from dualread.study import stale
from dualread.study.stale import Plan
from tests.store.entries import publish

ACTOR, ANSWERS, GRADED = (f"results/small/{name}" for name in ("actors", "generations", "graded"))


class Small:
    """Grades of answers of an actor, which is trained on an official file."""

    def __init__(self):
        self.store = Store(Path("results/store"))
        self.code, self.packages = {}, {"polars": "2.1.0"}  # what `publish` writes
        Path("official.json").write_text("[]")
        self.jobs = {}
        self.plan("train", ACTOR, {"steps": 3}, official="official.json")
        self.plan("generate", ANSWERS, {}, actor=f"{ACTOR}/{MANIFEST_NAME}")
        self.plan("grade", GRADED, {}, answers=f"{ANSWERS}/{MANIFEST_NAME}")
        raw = SimpleNamespace(digest=raw_digest(Path("official.json")), key="")
        self.actor = self.make("train", ACTOR, {"steps": 3}, official=raw)
        self.answers = self.make("generate", ANSWERS, {}, actor=self.actor)
        self.graded = self.make("grade", GRADED, {}, answers=self.answers)

    def make(self, stage, output, spec, *, text=None, **inputs):
        return publish(
            self.store, stage, {"file": text or f"{stage} {spec}"}, spec=spec, inputs=inputs, output=Path(output)
        )

    def plan(self, stage, output, spec, *, parts=False, **inputs):
        paths = {name: Path(path) for name, path in inputs.items()}
        self.jobs[output] = (stage, Entry(spec=spec, inputs=paths, output=Path(output), parts=parts))

    def stale(self):
        return Plan(self.jobs, self.store).stale()


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = Small()
    index = SimpleNamespace(
        digest=lambda roots: small.code.get(next(r for r in roots if ".stages." in r).rpartition(".")[2], "c" * 64),
        packages=lambda roots: small.packages,
    )
    monkeypatch.setattr(stale, "library", lambda cache: index)
    return small


def lose(output):
    Path(output, MANIFEST_NAME).unlink()


def test_what_would_be_made_the_same_is_not_stale(study):
    assert study.stale() == []


def test_each_part_of_a_key_counts(study):
    study.plan("train", ACTOR, {"steps": 6}, official="official.json")
    assert study.stale() == [ACTOR]
    study.code["grade"] = "d" * 64
    assert study.stale() == [ACTOR, GRADED]
    Path("official.json").write_text("[1]")
    study.plan("train", ACTOR, {"steps": 3}, official="official.json")
    assert study.stale() == [ACTOR, GRADED]
    study.packages = {"polars": "2.2.0"}
    assert study.stale() == [ACTOR, ANSWERS, GRADED]


def test_so_do_the_version_of_python_and_the_stage(study, monkeypatch):
    study.plan("copy", ACTOR, {"steps": 3}, official="official.json")
    assert study.stale() == [ACTOR]
    monkeypatch.setattr(stale, "Action", partial(Action, python="3.99"))
    assert study.stale() == [ACTOR, ANSWERS, GRADED]


def test_what_was_made_from_an_earlier_input_is_stale(study):
    """The run was lost when the actor was there, and before the answers were."""
    study.plan("train", ACTOR, {"steps": 6}, official="official.json")
    raw = SimpleNamespace(digest=raw_digest(Path("official.json")), key="")
    study.make("train", ACTOR, {"steps": 6}, official=raw)
    assert study.stale() == [ANSWERS]
    study.make("train", ACTOR, {"steps": 6}, text="train {'steps': 3}", official=raw)  # it was computed before
    assert study.stale() == [ANSWERS]


def test_an_input_that_is_missing_is_stale_only_if_it_would_be_another(study):
    lose(ACTOR)
    assert study.stale() == []
    study.plan("train", ACTOR, {"steps": 6}, official="official.json")
    assert study.stale() == [ANSWERS]
    study.plan("train", ACTOR, {"steps": 3}, official="official.json")
    lose(ANSWERS)
    assert study.stale() == []  # the store says what the answers were made from
    study.plan("train", ACTOR, {"steps": 6}, official="official.json")
    assert study.stale() == [GRADED]


def test_an_input_that_is_missing_and_would_have_the_same_bytes_is_found_in_the_store(study):
    raw = SimpleNamespace(digest=raw_digest(Path("official.json")), key="")
    study.make("train", "results/other/actors", {"steps": 6}, text="train {'steps': 3}", official=raw)
    study.plan("train", ACTOR, {"steps": 6}, official="official.json")
    lose(ACTOR)
    assert study.stale() == []


def test_what_is_missing_itself_and_what_no_plan_makes_is_left_to_snakemake(study):
    Path(GRADED, MANIFEST_NAME).write_text("{")  # a damaged manifest counts as missing
    assert study.stale() == []
    lose(GRADED)
    del study.jobs[ANSWERS]
    assert study.stale() == []


def test_a_raw_input_that_is_gone_makes_stale(study):
    """Its job says how to get it."""
    Path("official.json").unlink()
    assert study.stale() == [ACTOR]


def test_what_was_made_from_more_inputs_is_enough_only_where_its_stage_says_so(study):
    study.plan("check", "results/small/leakage", {}, parts=True, a=f"{ACTOR}/{MANIFEST_NAME}")
    study.make("check", "results/small/leakage", {}, a=study.actor, b=study.answers)
    assert study.stale() == []
    study.plan("check", "results/small/leakage", {}, a=f"{ACTOR}/{MANIFEST_NAME}")
    assert study.stale() == ["results/small/leakage"]
    study.plan("check", "results/small/leakage", {}, parts=True, c=f"{ACTOR}/{MANIFEST_NAME}")
    assert study.stale() == ["results/small/leakage"]


def test_packages_of_another_environment_are_not_compared(study, monkeypatch):
    monkeypatch.setattr(stale, "runs_elsewhere", lambda roots: True)
    study.packages = {}
    assert study.stale() == []


def found(study):
    known = Plan(study.jobs, study.store)
    return {output.rpartition("/")[2] for output, (_, entry) in study.jobs.items() if known.is_found(entry)}


def test_what_is_there_or_in_the_store_is_found(study):
    assert found(study) == {"actors", "generations", "graded"}
    for output in (ACTOR, ANSWERS, GRADED):
        lose(output)
    assert found(study) == {"actors", "generations", "graded"}


def test_what_rests_on_something_that_has_to_be_computed_is_not_found(study):
    study.code["generate"] = "d" * 64
    assert found(study) == {"actors"}  # the grades that are there are those of other answers
    lose(GRADED)
    assert found(study) == {"actors"}


def test_what_rests_on_the_same_bytes_from_other_settings_is_found(study):
    study.plan("train", ACTOR, {"steps": 6}, official="official.json")
    assert found(study) == set()
    raw = SimpleNamespace(digest=raw_digest(Path("official.json")), key="")
    study.make("train", "results/other/actors", {"steps": 6}, text="train {'steps': 3}", official=raw)
    assert found(study) == {"actors", "generations", "graded"}
    study.make("train", "results/other/actors", {"steps": 9}, official=raw)  # other bytes
    study.plan("train", ACTOR, {"steps": 9}, official="official.json")
    assert found(study) == {"actors"}
