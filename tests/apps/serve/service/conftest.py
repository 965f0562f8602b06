import pytest

from tests import tiny
from tests.apps.score import small
from tests.apps.score.small import answers_exist

__all__ = ["answers_exist"]


@pytest.fixture(scope="package")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("serving")
    return small.build(tiny.build("qwen3_vl", folder / "checkpoint"), folder / "results" / "small")


@pytest.fixture(scope="package")
def bundle(study, tmp_path_factory):
    out = tmp_path_factory.mktemp("bundle") / "mine"
    return small.exported(study, out, "psr", thresholds={"dualread": 0.4, "psr": 0.6})
