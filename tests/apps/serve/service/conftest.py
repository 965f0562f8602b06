import pytest

from tests.apps.score import small
from tests.apps.score.small import answers_exist

__all__ = ["answers_exist"]


@pytest.fixture(scope="package")
def bundle(study, tmp_path_factory):
    out = tmp_path_factory.mktemp("bundle") / "mine"
    return small.exported(study, out, "psr", thresholds={"dualread": 0.4, "psr": 0.6})
