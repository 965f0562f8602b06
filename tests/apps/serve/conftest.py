import pytest

from dualread.apps.score.scorer import Scorer
from dualread.grading.contracts import single
from tests.apps.serve.running import opened, serving, whole_answers

METHODS = ["question_prior", "rlvr", "expected"]


@pytest.fixture(scope="package", autouse=True)
def answers():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(single, "parse", whole_answers)
        yield


@pytest.fixture(scope="package")
def scorer(study):
    return Scorer.load(study.reader("dualread"), study.actor, methods=METHODS)


@pytest.fixture(scope="package")
def server(study):
    with opened(study, methods=METHODS) as service, serving(service) as running:
        yield running
