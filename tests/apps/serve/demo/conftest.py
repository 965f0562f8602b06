import threading
import time
from dataclasses import dataclass

import pytest

from dualread.apps.score.scorer import Scorer
from dualread.apps.serve.demo.application import application, listen, server
from tests.apps.score import small
from tests.apps.score.small import answers_exist

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
    listening = listen(0)
    serving = server(application(scorer))
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [listening]})
    thread.start()
    while not serving.started:
        time.sleep(0.01)
    yield Demo(port=listening.getsockname()[1], scorer=scorer, study=study)
    serving.should_exit = True
    thread.join()
    listening.close()
