import hypothesis
import pytest

from dualread import progress

# Its limit of 0.2 s for an example is one for a machine that does nothing else.
hypothesis.settings.register_profile("dualread", deadline=None)
hypothesis.settings.load_profile("dualread")

# Files that share a fixture of the session; and what takes longest, so that neither process is left with it at the end.
TOGETHER = {f"tests/workflow/test_{name}.py": "the smoke study" for name in ("smoke", "recount")}
LONGEST = ("the smoke study", "tests/workflow/test_faults.py", "tests/workflow/test_jobs.py")


def _part(nodeid):
    file = nodeid.partition("::")[0]
    return TOGETHER.get(file, file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Each of `make test`'s processes runs whole parts (xdist 3.8 finds no groups of its own under pytest 9.2)."""
    from xdist.scheduler import LoadScopeScheduling

    class WholeParts(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return _part(nodeid)

    return WholeParts(config, log)


def pytest_collection_modifyitems(config, items):
    """Begin with the longest parts, where there are processes to share them out to."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (*LONGEST, _part(item.nodeid)).index(_part(item.nodeid)))


@pytest.fixture(scope="session", params=["qwen3_vl", "gemma3"])
def tiny(request, tmp_path_factory):
    """An untrained checkpoint of each architecture."""
    import torch

    from tests import tiny as builder

    torch.set_num_threads(1)
    return builder.build(request.param, tmp_path_factory.mktemp(request.param) / "checkpoint")


@pytest.fixture(autouse=True)
def own_voice(monkeypatch):
    """Progress speaks for no job of an earlier test."""
    monkeypatch.setattr(progress, "_VOICE", progress._Voice())
