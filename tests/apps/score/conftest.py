import pytest

from dualread.apps.score.scorer import Scorer
from tests.apps.score import small
from tests.apps.score.small import answers_exist

__all__ = ["answers_exist"]

OTHERS = ["rlvr", "question_prior", "expected", "sequence_likelihood"]


@pytest.fixture(scope="session")
def study(tiny, tmp_path_factory):
    return small.build(tiny, tmp_path_factory.mktemp(f"scoring {tiny.family}") / "results" / "small")


@pytest.fixture(scope="session")
def scorer(study):
    return Scorer.load(study.reader("dualread"), study.actor, methods=OTHERS, batch_size=4)
