import hypothesis
import pytest

from dualread import progress

# Its limit of 0.2 s for an example is one for a machine that does nothing else.
hypothesis.settings.register_profile("dualread", deadline=None)
hypothesis.settings.load_profile("dualread")

# Begun first, so that neither process is left with a long file when the other one is done.
LONGEST = ("smoke", "tests/workflow/test_faults.py", "tests/workflow/test_jobs.py")


def pytest_collection_modifyitems(config, items):
    """Of `make test`'s processes, one runs a whole file, or all files of a group, so that fixtures are made once."""
    if not hasattr(config, "workerinput"):
        return
    groups = {}
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        groups[item] = mark.args[0] if mark else item.nodeid.partition("::")[0]
        item.add_marker(pytest.mark.xdist_group(groups[item]))
    items.sort(key=lambda item: LONGEST.index(groups[item]) if groups[item] in LONGEST else len(LONGEST))


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
