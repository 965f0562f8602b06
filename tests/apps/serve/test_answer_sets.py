"""Answer sets of requests: those that `score` gives, in whole replies and in streams."""

import dataclasses
from types import SimpleNamespace

import pytest
from openai import BadRequestError

from dualread.apps.score.scorer import Scorer
from tests.apps.score import small
from tests.apps.serve.running import LESION, opened, serving


@pytest.fixture(scope="module")
def bundle(study, tmp_path_factory):
    return small.exported(study, tmp_path_factory.mktemp("sets") / "mine", "choices", sets={20: 0.3, 5: None})


@pytest.fixture(scope="module")
def server(bundle):
    folder = SimpleNamespace(reader=lambda method: bundle, actor=None)
    with opened(folder, methods=["choices"], engine="transformers") as service, serving(service) as running:
        yield running


@pytest.mark.parametrize("asked", [{"options": ["CT", "MRI", "X-ray"]}, {"answer_type": "closed"}, {}])
def test_served_sets_are_scored_sets(bundle, server, study, asked):
    scored = Scorer.load(bundle, methods=["choices"])(study.image(1), LESION, **asked)
    expected = [dataclasses.asdict(found) for found in scored.answer_sets]
    reply = server.ask(study.image(1), LESION, extra_body={"dualread": asked})
    *_, last = server.ask(study.image(1), LESION, stream=True, extra_body={"dualread": asked})
    for found in (choice.dualread["answer_sets"] for choice in (*reply.choices, *last.choices)):
        assert [{**of, "options": None} for of in found] == [{**of, "options": None} for of in expected]
        for mine, theirs in zip(found, expected, strict=True):
            assert len(mine["options"]) == len(theirs["options"]) == (3 if "options" in asked else 2 * bool(asked))
            for option, same in zip(mine["options"], theirs["options"], strict=True):
                assert option == {**same, "probability": pytest.approx(same["probability"], abs=1e-6)}


def test_a_type_is_of_one_question_and_has_a_known_name(server, study):
    for asked in ({"answer_type": "closed", "own_prompt": True}, {"answer_type": "yes/no"}):
        with pytest.raises(BadRequestError, match="answer_type"):
            server.ask(study.image(1), LESION, extra_body={"dualread": asked})
    reply = server.ask(LESION)  # no image, so that readers judge nothing
    assert reply.choices[0].dualread["answer_sets"] == []
