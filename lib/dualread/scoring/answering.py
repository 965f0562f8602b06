"""Ask an actor, read its states, and take views of its answers, as the workflow does, for images of one's own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from dualread.declared.answers import Decoding
from dualread.declared.recorded import RequiredView, Requirements
from dualread.grading.answers import graded_answer
from dualread.grading.canonical import question_key
from dualread.models import prompts
from dualread.models.backbones.opened import Opened
from dualread.models.conditions import black, question_field
from dualread.models.generation.base import Completion, Request, SeededDecoding
from dualread.models.generation.choices import score_choices
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.replay.forward import replay_completions, stacked
from dualread.readers.answers import COLUMNS, Answers, View
from dualread.scoring.questions import Shown
from dualread.seeding import derive_seed

if TYPE_CHECKING:
    from PIL.Image import Image

_ORIGINAL = "original"


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An actor's answers.

    Attributes:
        completions: The completion of each question.
        texts: The answer in each completion; None if it has no valid one.
        answers: The same answers as readers see them, without views.
        views: Views of the answers by name.
    """

    completions: Sequence[Completion]
    texts: Sequence[str | None]
    answers: Answers
    views: Mapping[str, View]


class Actor:
    """An opened checkpoint that answers as a reader requires."""

    def __init__(self, opened: Opened, requirements: Requirements, *, kappa: float | None, batch_size: int):
        self.encoder = opened.encoder
        self._opened = opened
        self._engine = TransformersEngine(opened, batch_size)
        self._requirements = requirements
        self._kappa = kappa
        self._batch_size = batch_size

    def answer(self, asked: Sequence[Shown], views: Sequence[RequiredView], *, states: bool) -> Answered:
        """Return the actor's answers, with the `views` of them, and with hidden states if readers need them.

        Raises:
            DataError: A prompt is too long, or its image cannot be read.
        """
        requests = [self._request(one, self._requirements.prompt.name) for one in asked]
        completions = self._complete(requests, self._requirements.decoding, "answer")
        committed = [of_one[0] for of_one in completions]
        graded = [graded_answer(found.text, self._requirements.contract) for found in committed]
        texts = [row["answer"] for row in graded]
        table = pl.DataFrame(
            [_row(one, row) for one, row in zip(asked, graded, strict=True)],
            schema=dict.fromkeys(COLUMNS, pl.String) | {"verbalized_confidence": pl.Float64},
        )
        source = self._states(requests, committed) if states else dict[str, np.ndarray]().__getitem__
        answers = Answers(table=table, source=source, rows=np.arange(len(asked)))
        taken = {view.name: self._view(view, asked, committed, texts) for view in views}
        return Answered(completions=committed, texts=texts, answers=answers, views=taken)

    def _view(
        self, view: RequiredView, asked: Sequence[Shown], committed: Sequence[Completion], texts: Sequence[str | None]
    ) -> View:
        """Return a view of the answers `texts`; a prompt that contains the answer is not put where there is none."""
        places_answer = "{ANSWER}" in prompts.template(view.prompt.name)
        requests = {
            i: self._request(one, view.prompt.name, answer=texts[i], image=view.image)
            for i, one in enumerate(asked)
            if not places_answer or texts[i] is not None
        }
        chosen = list(requests.values())
        if view.forced:
            return View(name=view.name, source=self._states(chosen, committed), rows=np.arange(len(asked)))
        if view.choices is not None:
            scored = score_choices(self._engine, chosen, [committed[i].token_ids for i in requests], view.choices)
            of_row = {i: found.log_probs for i, found in zip(requests, scored, strict=True)}
            names = dict.fromkeys(name for log_probs in of_row.values() for name in log_probs)
            every = range(len(asked))
            log_probs = {name: np.array([of_row.get(i, {}).get(name, np.nan) for i in every]) for name in names}
            return View(name=view.name, log_probs=log_probs)
        assert view.decoding is not None, "a view has completions, choices, or states"
        completions = self._complete(chosen, view.decoding, view.name)
        replies = {i: tuple(one.text for one in of) for i, of in zip(requests, completions, strict=True)}
        return View(name=view.name, texts=tuple(replies.get(i, ()) for i in range(len(asked))))

    def _request(self, one: Shown, prompt: str, *, answer: str | None = None, image: str = _ORIGINAL) -> Request:
        text = prompts.render(prompt, question=question_field(one.question, list(one.options)), answer=answer)
        shown: Path | Image = one.image if image == _ORIGINAL else black(one.image)
        return Request(text=text, image=shown, image_name=one.content, row=one.name)

    def _complete(self, requests: Sequence[Request], decoding: Decoding, name: str) -> list[list[Completion]]:
        return self._engine.generate(requests, SeededDecoding(**decoding.model_dump(), seed=derive_seed("score", name)))

    def _states(self, requests: Sequence[Request], committed: Sequence[Completion]) -> Callable[[str], np.ndarray]:
        assert self._kappa is not None, "a reader of states says how they were pooled"
        ids = [found.token_ids for found in committed]
        replayed = replay_completions(self._opened, requests, ids, kappa=self._kappa, batch_size=self._batch_size)
        return lambda name: stacked(replayed, name)


def _row(one: Shown, graded: Mapping[str, object]) -> dict[str, object]:
    return {
        **dict.fromkeys(COLUMNS),
        "sample_id": one.name,
        "condition": _ORIGINAL,
        "question_key": question_key(one.question),
        **{name: graded[name] for name in ("canonical_answer", "verbalized_confidence", "parse_status")},
    }
