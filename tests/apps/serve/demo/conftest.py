from dataclasses import dataclass

import pytest

from dualread.apps.score.scorer import Scorer
from dualread.apps.serve.demo.page import application, listen, server
from tests.apps.score import small
from tests.apps.score.small import answers_exist
from tests.service import running

__all__ = ["answers_exist"]


@dataclass(frozen=True, kw_only=True)
class Demo:
    """A running demo, and what it runs with."""

    port: int
    scorer: Scorer
    study: small.Study

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture(scope="package")
def demo(study):
    """The page of an untrained model, served as the command serves it."""
    scorer = Scorer.load(study.reader("dualread"), study.actor, methods=["question_prior", "rlvr"])
    with running(server(application(scorer)), listen(0)) as port:
        yield Demo(port=port, scorer=scorer, study=study)
