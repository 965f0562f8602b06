"""Scoring reads the state at the end of thinking as the workflow does, and says where there is none."""

from dataclasses import replace

import numpy as np
import pytest

from dualread.apps.score.answering import ActorNeeds, OpenActor, as_answered
from dualread.apps.score.readings import LoadedReaders
from dualread.apps.score.results import Question, shown
from dualread.grading.answers import why_no_answer
from dualread.models.actor import ReadSpec, Request, read_states
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.prompts import render
from dualread.readers.base import FittedReader, Weights, settings_of
from dualread.readers.requirements import NAME, ScoringReader
from dualread.schema.answers import Decoding
from dualread.schema.recorded import RequiredView
from tests.apps.score import small
from tests.readers import synthetic
from tests.tiny import MODEL, image

CONTRACT = """
from dualread.grading.parse import Parsed, text_after_thinking

THINKING_ENDS = {ends!r}


def parse(text):
    after = text_after_thinking(text, THINKING_ENDS)
    status = "no_end_of_thinking" if after is None else "invalid_confidence"
    return Parsed(answer=None if after is None else "left", confidence=None, status=status)
"""
QUESTIONS = ("Where?", "Is this a CT scan?", "What is the size of the lesion?")


@pytest.fixture
def required(tiny, tmp_path, monkeypatch):
    """The requirements of a reader; what ends the thinking is something that the untrained model says."""
    plain = open_checkpoint(tiny.checkpoint, MODEL)
    needs = small.requirements()
    actor = OpenActor(tiny.checkpoint, ActorNeeds(requirements=needs), batch_size=4)
    [first, *_] = actor.answer(asked(plain, needs)).completions
    ends = next(text for token in first.token_ids[3:] if (text := plain.encoder.decode([token])).strip())
    package = f"thinks_{tiny.family}"
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    (tmp_path / package / "form.py").write_text(CONTRACT.format(ends=ends))
    monkeypatch.syspath_prepend(tmp_path)
    return needs.model_copy(update={"contract": f"{package}.form"}), ends


def asked(opened, needs):
    pictures = [image(i) for i in range(3)]
    return [
        shown(Question(image=picture, question=question), picture, opened.encoder, needs)
        for picture, question in zip(pictures, QUESTIONS, strict=True)
    ]


def test_the_state_at_the_end_of_thinking(tiny, required, monkeypatch):
    needs, ends = required
    samples = RequiredView(
        name="samples", image="original", prompt=needs.prompt, decoding=Decoding(**small.DECODING | {"n_samples": 1})
    )
    reads = ActorNeeds(requirements=needs, views=[samples], features=frozenset({"h_think"}), kappa=0.1)
    actor = OpenActor(tiny.checkpoint, reads, batch_size=4)
    answered = actor.answer(questions := asked(actor.opened, needs))
    opened = replace(open_checkpoint(tiny.checkpoint, MODEL), thinking_ends=ends)
    requests = [
        Request(text=render("shared", question=q), images=[image(i)], image_name=str(i), row=q)
        for i, q in enumerate(QUESTIONS)
    ]
    ids = [completion.token_ids for completion in answered.completions]
    by_hand = read_states(opened, requests, ids, ReadSpec(kappa=0.1), batch_size=1)
    states = np.stack([row.vectors["h_think"] for row in by_hand])
    np.testing.assert_allclose(answered.answers.features("h_think"), states, atol=2e-5)
    endless = np.isnan(states).all(axis=1)
    assert not endless[0]
    for completion, [text] in zip(answered.completions, answered.views["samples"].texts, strict=True):
        assert text == completion.text.rpartition(ends)[2] or ends not in completion.text

    width = states.shape[1]
    linear = {"mean": np.zeros(width), "scale": np.ones(width), "weight": np.ones((1, width)), "bias": np.zeros(1)}
    reader = FittedReader(
        module="readers.after_thinking",
        settings=settings_of("readers.after_thinking", dict(synthetic.P_STATE)),
        weights=Weights(tensors=linear, notes={"temperature": 1.0}),
        provenance={"features": ["h_think"], "method": "thought", NAME: needs.model_dump()},
    )
    cut = as_answered(
        questions,
        [replace(completion, text="no end") for completion in answered.completions],
        needs.contract,
        answered.answers.source,
    )
    scoring = ScoringReader.from_fitted(reader, where="here", packages=[needs.contract])
    readers = LoadedReaders(by_method={"thought": scoring}, method="thought")
    whole = readers.readings(replace(answered, views={}))
    assert whole[0].confidence == pytest.approx(1 / (1 + np.exp(-float(states[0].astype(np.float64).sum()))), abs=1e-6)
    monkeypatch.setattr("dualread.apps.score.readings.why_no_answer", why_no_answer)  # other tests change it
    for row in readers.readings(cut):
        assert row.confidence is None
        assert "thinking" in row.reason
