"""Ask an actor about images of one's own, read its states and views as the workflow does, and what readers say.

`OpenActor` answers; `readings` are what the readers say about its answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from dualread import plugins
from dualread.apps.score.distance import StateDistances
from dualread.apps.score.results import Confidence, Reading, ShownQuestion
from dualread.errors import ArtifactError, ConfigError, DualReadError, ReaderError, UndefinedScoreError, in_a_line
from dualread.grading.answers import graded_answer, why_no_answer
from dualread.grading.canonical import question_key
from dualread.grading.parse import text_after_thinking
from dualread.models import prompts
from dualread.models.actor import Completion, ReadSpec, Request, SeededDecoding, read_states, take_measure
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.conditions import question_field
from dualread.models.generation.choices import score_choices
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.images.base import changes_of, shown_images
from dualread.models.replay.forward import TENSORS, VECTORS
from dualread.models.replay.replayed import stacked
from dualread.plugins import module_of
from dualread.readers.answers import COLUMNS, Answers, ViewAnswers
from dualread.readers.base import FittedReader, Scores, score
from dualread.readers.requirements import views_read
from dualread.schema.answers import ChosenImage, Decoding, Image, name_and_settings
from dualread.schema.base import ConfiguredPlugin
from dualread.schema.recorded import Facts, RequiredView, Requirements
from dualread.seeding import derive_seed

_ORIGINAL = "original"
Source = Callable[[str], np.ndarray]  # the states of answers by name, float32 [n, D]
_LOG_PROBS = pl.List(pl.List(pl.Float32))


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An actor's answers: the text of an answer is None if it has no valid one; `answers` are what readers see, without
    the views, which are there by name.
    """

    completions: Sequence[Completion]
    texts: Sequence[str | None]
    answers: Answers
    views: Mapping[str, ViewAnswers]


class OpenActor:
    """A checkpoint, opened with transformers, that answers as a reader requires.

    Args:
        folder: The checkpoint.
        requirements: How its readers require it to be opened and asked.
        kappa: Temperature of the visual pooling; None if no reader reads states.
        batch_size: Number of answers that are made at once.

    Attributes:
        opened: The checkpoint.
        encoder: Encodes its prompts.
        config: The configuration of the model's text part.
    """

    def __init__(self, folder: Path, requirements: Requirements, kappa: float | None, *, batch_size: int):
        self._thinking_ends = plugins.declared("contracts", requirements.contract, "THINKING_ENDS")
        opened = open_checkpoint(folder, requirements.model, Facts(**requirements.facts))
        self.opened = replace(opened, thinking_ends=self._thinking_ends)
        self.encoder = self.opened.encoder
        self.config = self.opened.model.config.get_text_config()
        self._engine = TransformersEngine(self.opened, batch_size)
        self._requirements, self._kappa, self._batch_size = requirements, kappa, batch_size

    def answer(self, asked: Sequence[ShownQuestion], views: Sequence[RequiredView], *, states: bool) -> Answered:
        """Return the actor's answers, with the `views` of them, and with hidden states if readers need them.

        Raises:
            DataError: A prompt is too long, or its image cannot be read.
        """
        requests = [question_request(question, self._requirements.prompt.name) for question in asked]
        completions = self._engine.answer(requests, _seeded(self._requirements.decoding, "answer"))
        return self.read(asked, [of_one[0] for of_one in completions], views, states=states)

    def read(
        self,
        asked: Sequence[ShownQuestion],
        committed: Sequence[Completion],
        views: Sequence[RequiredView],
        *,
        states: bool,
        encoded: Sequence[EncodedPrompt] = (),
    ) -> Answered:
        """Return answers that the actor has given, with the `views` of them and perhaps their hidden states.

        With the `encoded` prompts of the questions, their pictures are read for views alone.
        """
        requests: Sequence[Request]
        if encoded:
            requests = [
                _EncodedBefore(text=to.question, images=(), image_name=to.name, row=to.name, prompt=prompt)
                for to, prompt in zip(asked, encoded, strict=True)
            ]
        else:
            requests = [question_request(question, self._requirements.prompt.name) for question in asked]
        source = self._read(requests, committed) if states else None
        answered = as_answered(asked, committed, self._requirements.contract, source)
        return replace(
            answered, views={view.name: self._view(view, asked, committed, answered.texts) for view in views}
        )

    def _view(
        self,
        view: RequiredView,
        asked: Sequence[ShownQuestion],
        committed: Sequence[Completion],
        texts: Sequence[str | None],
    ) -> ViewAnswers:
        """Return a view of the answers `texts`; a prompt that contains the answer is not put where there is none."""
        places_answer = "{ANSWER}" in prompts.template(view.prompt.name)
        draws = range(view.draws or 1)
        requests = {
            (i, draw): question_request(question, view.prompt.name, answer=texts[i], image=view.image, draw=draw)
            for i, question in enumerate(asked)
            if not places_answer or texts[i] is not None
            for draw in draws
        }
        chosen = list(requests.values())
        if view.measure is not None:
            plugin = ConfiguredPlugin(module=module_of("measures", view.measure.name), settings=view.measure.settings)
            ids = [completion.token_ids for completion in committed]
            measured = take_measure(self.opened, chosen, ids, plugin, batch_size=self._batch_size)
            return ViewAnswers(name=view.name, source=measured.__getitem__, rows=np.arange(len(asked)))
        if view.forced:
            source = self._read(chosen, committed, view.layers or ())
            return ViewAnswers(name=view.name, source=source, rows=np.arange(len(asked)))
        if view.choices is not None:
            ids = [committed[i].token_ids for i, _ in requests]
            scored = score_choices(self._engine, chosen, ids, view.choices, self._thinking_ends)
            of_row = {i: scores.log_probs for (i, _), scores in zip(requests, scored, strict=True)}
            names = dict.fromkeys(name for log_probs in of_row.values() for name in log_probs)
            every = range(len(asked))
            log_probs = {name: np.array([of_row.get(i, {}).get(name, np.nan) for i in every]) for name in names}
            return ViewAnswers(name=view.name, log_probs=log_probs)
        assert view.decoding is not None, "a view has completions, choices, or states"
        completions = self._engine.answer(chosen, _seeded(view.decoding, view.name))
        made = dict(zip(requests, completions, strict=True))
        of_draws = [[completion for draw in draws for completion in made.get((i, draw), ())] for i in range(len(asked))]
        of_tokens = [[list(completion.token_log_probs) for completion in row] for row in of_draws]
        return ViewAnswers(
            name=view.name,
            texts=tuple(
                tuple(text_after_thinking(made.text, self._thinking_ends) or "" for made in row) for row in of_draws
            ),
            token_log_probs=pl.Series(of_tokens, dtype=_LOG_PROBS),
        )

    def _read(
        self, requests: Sequence[Request], committed: Sequence[Completion], depths: Sequence[float] = ()
    ) -> Source:
        if self._kappa is None:
            raise ConfigError("views: a reader of layers alone does not say how states were read. Use it in a study.")
        what, ids = ReadSpec(kappa=self._kappa, depths=tuple(depths)), [answer.token_ids for answer in committed]
        states = read_states(self.opened, requests, ids, what, batch_size=self._batch_size)
        return lambda name: stacked(states, name)


def question_request(
    asked: ShownQuestion, prompt: str, *, answer: str | None = None, image: Image = _ORIGINAL, draw: int = 0
) -> Request:
    """Return a question as an actor is asked it, or as a view asks: about its `answer`, with a changed image.

    Raises:
        ConfigError: The view shows another image of the data set in place of the question's own.
    """
    module, settings = name_and_settings(image)
    role = None if isinstance(image, str) else image.role
    if hasattr(plugins.load("images", module), "choose"):
        raise ConfigError(
            f"views: the reader reads a view that shows another image of its data set ({module}), and one's own"
            " image is in none. Expected a reader without it. Choose another method."
        )
    changes = changes_of([ChosenImage(module=module_of("images", module), settings=settings, role=role)])
    field = question_field(asked.question, list(asked.options))
    *before, last = prompts.rendered_turns(prompt, question=field, answer=answer)
    name, shown = shown_images(asked.images, asked.contents, asked.roles, changes, draw)
    row = asked.name if draw == 0 else f"{asked.name} draw {draw}"
    return Request(text=last.text, images=shown, image_name=name, row=row, before=tuple(before))


@dataclass(frozen=True, kw_only=True)
class _EncodedBefore(Request):
    """A request whose prompt was encoded for its answer."""

    prompt: EncodedPrompt

    def encoded(self, encoder: Encoder) -> EncodedPrompt:
        return self.prompt


def as_answered(
    asked: Sequence[ShownQuestion], committed: Sequence[Completion], contract: str, source: Source | None
) -> Answered:
    """Return committed completions as readers see them; `source` gives their states, if there are any."""
    parse = plugins.load("contracts", contract).parse
    graded = [graded_answer(parse(completion.text)) for completion in committed]
    names = ("canonical_answer", "verbalized_confidence", "parse_status")
    table = pl.DataFrame(
        [
            {
                **dict.fromkeys(COLUMNS),
                **{"sample_id": question.name, "condition": _ORIGINAL},
                "question_key": question_key(question.question),
                **{name: row[name] for name in names},
            }
            for question, row in zip(asked, graded, strict=True)
        ],
        schema=dict.fromkeys(COLUMNS, pl.String) | {"verbalized_confidence": pl.Float64},
    )
    answers = Answers(table=table, source=source or dict[str, np.ndarray]().__getitem__, rows=np.arange(len(asked)))
    return Answered(completions=committed, texts=[row["answer"] for row in graded], answers=answers, views={})


def _seeded(decoding: Decoding, name: str) -> SeededDecoding:
    return SeededDecoding(**decoding.model_dump(), seed=derive_seed("score", name))


# The roles under which a reader of both branches holds its parts.
_PSR, _PER = "pre", "post"


def features_of(*readers: FittedReader) -> set[str]:
    """Return the names of the states that readers read.

    Raises:
        ArtifactError: A file does not say it as this version writes it.
    """
    names: set[str] = set()
    for reader in readers:
        features = reader.provenance.get("features", [])
        if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
            method = reader.provenance.get("method")
            raise ArtifactError(
                f"{method}: its features are {features!r:.100}. Expected a list of names. Fit it again."
            )
        names.update(features)
    return names


def readings(
    readers: Mapping[str, FittedReader], method: str, answered: Answered, distances: StateDistances | None = None
) -> list[Reading]:
    """Return what the readers say about each answer; the confidence is that of `method`.

    An answer that does not exist, or whose logits or states are not finite, has no confidence, and a reason. With
    `distances`, each reading says how unlike the validation questions its question is.

    Raises:
        ReaderError: A reader does not fit the actor's states.
    """
    of_method, table = readers[method], answered.answers.table
    not_finite = _not_finite(readers, answered)
    no_answer = list(map(why_no_answer, answered.texts, table["canonical_answer"], table["parse_status"]))
    finite = [i for i, why in enumerate(not_finite) if why is None]
    judged = [i for i in finite if no_answer[i] is None]
    by_method = {name: _confidences(name, reader, answered, judged) for name, reader in readers.items()}
    parts = {
        role: _confidences(role, of_method.parents[role], answered, finite if role == _PSR else judged)
        for role in (_PSR, _PER)
        if role in of_method.parents
    }
    percentiles: dict[int, float] = {}
    if distances is not None and finite:
        states = answered.answers.features("h_pre")[finite]
        percentiles = dict(zip(finite, distances.percentiles(states).tolist(), strict=True))
    read, none = [], Confidence(confidence=None, score=None, imputed=False)
    for i, completion in enumerate(answered.completions):
        why = not_finite[i] or no_answer[i]
        methods = {name: outcomes.get(i, why) for name, outcomes in by_method.items()}
        outcome = methods[method]
        read.append(
            Reading(
                answer=answered.texts[i],
                completion=completion.text,
                parse_status=table["parse_status"][i],
                finish_reason=completion.finish_reason,
                confidence=_number(outcome),
                psr=_number(parts.get(_PSR, {}).get(i)),
                per=_number(parts.get(_PER, {}).get(i)),
                methods={name: value if isinstance(value, Confidence) else none for name, value in methods.items()},
                reason=None if isinstance(outcome, Confidence) else outcome,
                distance_percentile=percentiles.get(i),
            )
        )
    return read


def _number(outcome: Confidence | str | None) -> float | None:
    return outcome.confidence if isinstance(outcome, Confidence) else None


def _not_finite(readers: Mapping[str, FittedReader], answered: Answered) -> list[str | None]:
    """Return which numbers of the model are NaN or infinite for each answer; None where all are finite."""
    reasons: list[str | None] = [
        None
        if np.isfinite(completion.token_log_probs).all()
        else "the model's logits are NaN or infinite: its numbers overflow in this dtype or on this hardware"
        for completion in answered.completions
    ]
    for name in sorted(features_of(*readers.values()) & set(TENSORS)):
        for i in np.flatnonzero(~np.isfinite(answered.answers.features(name)).all(axis=1)):
            reasons[i] = reasons[i] or f"the model's state {name} is missing, NaN or infinite"
    return reasons


def _confidences(
    name: str, reader: FittedReader, answered: Answered, rows: Sequence[int]
) -> dict[int, Confidence | str]:
    """Return what a reader says about some of the answers, by row: a confidence, or why it has none."""
    if not rows:
        return {}
    index = np.array(rows)
    views = {view: view_answers.take(index) for view, view_answers in answered.views.items()}
    try:
        scores = scores_of(name, reader, replace(answered, answers=answered.answers.take(index), views=views))
    except UndefinedScoreError as error:
        if len(rows) == 1:
            return {rows[0]: str(error)}
        return {row: outcome for i in rows for row, outcome in _confidences(name, reader, answered, [i]).items()}
    return {
        row: Confidence(
            confidence=float(scores.confidence[k]), score=float(scores.score[k]), imputed=bool(scores.imputed[k])
        )
        for k, row in enumerate(rows)
    }


def before_answer(readers: Mapping[str, FittedReader], method: str, states: np.ndarray) -> list[float | None] | None:
    """Return what `method` says before there is an answer, and None where a state is not finite.

    There is nothing for a method without such a part.

    Args:
        readers: The readers by method.
        method: The method whose reader gives the confidence: its part before the answer, or itself if it is PSR.
        states: `h_pre` of each answer, float32 [n, D].
    """
    reader = readers[method].parents.get(_PSR, readers[method])
    if features_of(reader) != {"h_pre"}:
        return None
    finite = np.flatnonzero(np.isfinite(states).all(axis=1))
    table = pl.DataFrame([dict.fromkeys(COLUMNS, "")] * len(finite), schema=dict.fromkeys(COLUMNS, pl.String))
    answers = Answers(table=table, source={"h_pre": states}.__getitem__, rows=finite)
    confidences = _scored(method, reader, answers).confidence.tolist() if len(finite) else []
    return [dict(zip(finite.tolist(), confidences, strict=True)).get(i) for i in range(len(states))]


def check_widths(readers: Mapping[str, FittedReader], width: int) -> None:
    """Let each reader of states score one answer with states of `width` numbers, before any question is asked.

    Raises:
        ReaderError: A reader was fitted on states of another width.
    """
    table = pl.DataFrame([dict.fromkeys(COLUMNS, "")], schema=dict.fromkeys(COLUMNS, pl.String))
    states = {name: np.full((1, width), 0.5, np.float32) for name in (*VECTORS, "h_think")}
    states["answer_log_prob"] = np.full((1, 1), -0.5, np.float32)
    answers = Answers(table=table, source=states.__getitem__, rows=np.zeros(1, np.int64))
    for name, reader in readers.items():
        if features_of(reader) and not views_read(reader, where=name):
            _scored(name, reader, answers)


def scores_of(name: str, reader: FittedReader, answered: Answered) -> Scores:
    """Return what a reader says about all answers, also about those that do not exist.

    Raises:
        UndefinedScoreError: A score is not finite.
        ReaderError: The reader does not fit the actor's states.
    """
    if not answered.views:  # which a reader reads would take longer to find out than to score one answer
        return _scored(name, reader, answered.answers)
    views = tuple(answered.views[view.name] for view in views_read(reader, where=name))
    return _scored(name, reader, replace(answered.answers, views=views))


def _scored(name: str, reader: FittedReader, answers: Answers) -> Scores:
    try:
        return score(reader, answers)
    except DualReadError:
        raise
    except Exception as error:  # whatever the numbers and texts of a file from elsewhere make of it
        raise ReaderError(
            f"{name}: the reader's weights do not fit the states of this actor ({in_a_line(error)}). Expected the actor"
            " on whose answers it was fitted."
        ) from error
