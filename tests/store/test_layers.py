import io
import json
import os
import socket
import threading
import warnings

import pytest

from dualread.store import forkserver, layers
from dualread.store.forked import ADDRESS


class Started:
    """Stands for the process that forks jobs; keeps the plan that it is given."""

    plans: list = []  # noqa: RUF012

    def __init__(self, command, **options):
        self.options = options
        self.stdin = io.BytesIO()
        self.stdin.flush = lambda: self.plans.append(json.loads(self.stdin.getvalue()))


@pytest.fixture
def plan_of(monkeypatch, tmp_path):
    """Return the plan for jobs of some stages; None if nothing is started."""
    monkeypatch.setattr(layers.subprocess, "Popen", Started)
    monkeypatch.setattr(layers, "_running", [])
    monkeypatch.setattr(layers, "_alive", [])
    monkeypatch.setattr(Started, "plans", [])
    monkeypatch.setattr(layers, "_GPUS", ())
    monkeypatch.setenv(ADDRESS, "")

    def plan(*stages, is_found=lambda entry: False):
        for stage, spec in stages:
            job = {"store": "store", "entries": [{"spec": spec, "output": "out"}]}
            (tmp_path / f"{stage}.json").write_text(json.dumps(job))
        jobs = [(stage, tmp_path / f"{stage}.json") for stage, _ in stages]
        layers.start_forkserver(jobs, tmp_path / "sources.json", {}, is_found)
        for held in layers._alive:
            held.close()
        return Started.plans[-1] if Started.plans else None

    return plan


TABLE = ("build_table", {"table": {"module": "reporting.tables.main"}})
METRICS = ("compute_metrics", {})
REPLAY = ("replay", {})
TRAINING = ("train_actor", {"training": {"module": "training.grpo"}})


def packages(layer):
    return {name.partition(".")[0] for name in layer["modules"]}


def test_a_run_of_tables_imports_no_torch(plan_of):
    (layer,) = plan_of(TABLE)
    assert "polars" in packages(layer)
    assert "torch" not in packages(layer)
    assert len(layer["listeners"]) == 1


def test_what_jobs_import_later_is_imported_once_as_well(plan_of):
    (grades,) = plan_of(("grade", {}))
    assert "pydantic.type_adapter" in grades["modules"]
    assert "scipy.sparse" not in grades["modules"]
    (metrics,) = plan_of(METRICS)
    assert "scipy.sparse" in metrics["modules"]
    _, models = plan_of(REPLAY)
    assert "torch._dynamo" in models["modules"]


def test_a_job_whose_entries_are_all_in_the_store_asks_for_no_packages(plan_of):
    (layer,) = plan_of(REPLAY, TRAINING, is_found=lambda entry: True)
    assert (layer["modules"], len(layer["listeners"])) == ([], 2)
    tables, models = plan_of(REPLAY, TRAINING, is_found=lambda entry: "training" in entry.spec)
    assert "torch" in packages(models)
    assert [len(layer["listeners"]) for layer in (tables, models)] == [1, 1]


def test_each_stage_is_served_where_its_packages_are(plan_of):
    tables, models, training = plan_of(TABLE, REPLAY, TRAINING)
    assert [len(layer["listeners"]) for layer in (tables, models, training)] == [1, 1, 1]
    assert {"torch", "transformers"} <= packages(models)
    assert "trl" in packages(training)
    assert not packages(tables) & {"torch", "transformers", "trl"}
    assert not packages(models) & {"polars", "trl"}


def test_a_job_with_torch_is_not_forked_beside_a_gpu(plan_of, monkeypatch, tmp_path):
    monkeypatch.setattr(layers, "_GPUS", (tmp_path,))
    assert plan_of(REPLAY) is None
    (layer,) = plan_of(TABLE, REPLAY)
    assert (len(layer["listeners"]), packages(layer) & {"torch"}) == (1, set())


def test_a_run_without_such_jobs_starts_nothing(plan_of):
    assert plan_of() is None


def test_a_fork_beside_threads_of_packages_is_silent(monkeypatch):
    """As Python 3.12 and later warn; each run would have begun with it."""

    def fork():
        warnings.warn("This process is multi-threaded", DeprecationWarning, stacklevel=2)
        return 7

    monkeypatch.setattr(os, "fork", fork)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert forkserver._fork() == 7


def test_where_no_more_files_can_be_open_nobody_waits_for_an_answer(monkeypatch, tmp_path):
    """Otherwise the server ends with an error, and with it all jobs that it has forked."""
    monkeypatch.setattr(forkserver, "_MOST_FILES", 2)
    ours, theirs = os.pipe()
    with open(ours) as stdin, socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as asking:
        monkeypatch.setattr("sys.stdin", stdin)
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        server = threading.Thread(target=forkserver._serve, args=([listener],))
        server.start()
        try:
            asking.settimeout(10)
            asking.connect(str(tmp_path / "socket"))
            assert asking.recv(1) == b""
        finally:
            os.close(theirs)
            server.join()
