"""How many examples property tests draw, how tests are shared out to processes, and the fixtures of all tests."""

import gc
import os
import sys
from functools import cache

import hypothesis
import pytest

from dualread import progress
from tests.once import once

# As for the jobs of a study (`dualread.study.run`): the threads of several processes would compete for the cores.
for name in ("OMP_NUM_THREADS", "POLARS_MAX_THREADS"):  # read when numpy, torch and polars are imported
    os.environ.setdefault(name, "1")

# `make test` chooses "quick" (CONTRIBUTING.md). Hypothesis's limit of 0.2 s per example is for an idle machine.
hypothesis.settings.register_profile("thorough", deadline=None, max_examples=100)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=20)
hypothesis.settings.load_profile("thorough")


# What is imported and collected stays until the end. The garbage collector need not visit it again and again.
gc.disable()
_FROZEN = [len(sys.modules)]  # how many there were each time that objects were frozen


def pytest_collection_finish():
    _freeze()
    gc.enable()


def pytest_runtest_logfinish():
    """Leave out as well what the first test of models imports: every training collects garbage, in half a second."""
    if len(sys.modules) > _FROZEN[-1] + 100:
        gc.collect()
        _freeze()


def _freeze():
    gc.freeze()
    _FROZEN.append(len(sys.modules))


# The tests of a file run in one process, because they share fixtures. Files with one entry here share a process too.
OF_SMOKE = ("smoke", "recount", "scoring", "snippets", "given_answers")
TOGETHER = {f"tests/workflow/test_{name}.py": "the smoke study" for name in OF_SMOKE}
# In these files all that takes long is made once for all processes (tests/once.py), so each test may run in any.
APART = tuple(f"tests/workflow/test_{name}.py" for name in ("faults", "never_stale", "devices", "jobs", "selections"))
# What takes longest starts first, so that no process is left with it at the end; then the other files of this folder.
FIRST = ("the smoke study", *APART)
THEN = "tests/workflow/"


def _group(nodeid):
    """Return the file of a test, or what its file has in common with others."""
    file = nodeid.partition("::")[0]
    return TOGETHER.get(file, file)


def _part(nodeid):
    """Return the name of the tests that this test shares a process with."""
    group = _group(nodeid)
    return nodeid if group in APART else group


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Share out parts, never single tests of one (xdist 3.8 does not see marks of groups under pytest 9.2)."""
    from xdist.scheduler import LoadScopeScheduling

    class WholeParts(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _part(nodeid)

    return WholeParts(config, log)


def pytest_collection_modifyitems(config, items):
    """Begin with what takes longest, where there are processes to share the tests out to."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _place(_group(item.nodeid)))


def _place(group):
    return FIRST.index(group) if group in FIRST else len(FIRST) + (not group.startswith(THEN))


@pytest.fixture(scope="session", params=["qwen3_vl", "gemma3"])
def tiny(request, tmp_path_factory):
    """An untrained checkpoint of each architecture."""
    import torch

    from tests import tiny as builder

    torch.set_num_threads(1)
    return builder.build(request.param, tmp_path_factory.mktemp(request.param) / "checkpoint")


@pytest.fixture(scope="session")
def studies(tmp_path_factory):
    """A function that returns the readers of an untrained actor of a family; no test edits them."""
    from tests import tiny as builder
    from tests.apps.score import small

    @cache
    def study(family="qwen3_vl"):
        folder = tmp_path_factory.mktemp(f"readers {family}")
        return small.build(builder.build(family, folder / "checkpoint"), folder / "results" / "small")

    return study


@pytest.fixture(scope="session")
def study(studies):
    """Those of one family."""
    return studies()


@pytest.fixture(scope="session")
def micro(tmp_path_factory):
    """The micro study, run from nothing without a fault; no test edits it."""
    from tests.workflow.checkout import Checkout
    from tests.workflow.faults import from_nothing

    return Checkout(folder=once(tmp_path_factory, "micro", from_nothing))


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A running Chromium, for tests with the mark `needs_chromium`."""
    from tests.reporting import devtools

    with devtools.browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(autouse=True)
def fresh_progress(monkeypatch):
    """What a test logs is not attributed to a job of an earlier test."""
    monkeypatch.setattr(progress, "_VOICE", progress._Voice())
