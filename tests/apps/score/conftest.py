import pytest

from dualread.apps.score.scorer import Scorer
from tests.apps.score.small import answers_exist

__all__ = ["answers_exist"]

OTHERS = ["rlvr", "question_prior", "expected", "sequence_likelihood"]


@pytest.fixture(scope="session")
def scorer(study):
    return Scorer.load(study.reader("dualread"), study.actor, methods=OTHERS, batch_size=4)
