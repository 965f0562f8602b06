import pytest

from dualread import progress


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
