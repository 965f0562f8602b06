"""Ask an actor about images of one's own, read its states and views as the workflow does, and what readers say.

What readers say about its answers is in `readings`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from dualread import plugins
from dualread.apps.score.claims import ClaimDivider
from dualread.apps.score.results import ShownQuestion
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.grading.answers import graded_answer, graded_claim
from dualread.grading.canonical import question_key
from dualread.grading.claim_labels.base import claim_id
from dualread.grading.parse import text_after_thinking
from dualread.grading.spans.base import Span
from dualread.models import prompts
from dualread.models.actor import Completion, ReadSpec, Request, SeededDecoding, read_states, take_measure
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.conditions import question_field
from dualread.models.generation.choices import score_choices
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.images.base import changes_of, shown_images
from dualread.models.replay.replayed import stacked
from dualread.plugins import module_of
from dualread.readers.answers import COLUMNS, Answers, ViewAnswers
from dualread.readers.requirements import ScoringReader
from dualread.schema.answers import ChosenImage, Decoding, Image, name_and_settings
from dualread.schema.base import ConfiguredPlugin
from dualread.schema.recorded import Facts, PromptText, RequiredView, Requirements
from dualread.seeding import derive_seed

_ORIGINAL = "original"
_OF_ANSWERS = re.compile(r"\{(ANSWER|HINT|OPTION_TEXT)")  # in prompts that ask about more than a question
Source = Callable[[str], np.ndarray]  # the states of answers by name, float32 [n, D]
_LOG_PROBS = pl.List(pl.List(pl.Float32))


@dataclass(frozen=True, kw_only=True)
class ActorNeeds:
    """How readers need their actor to be opened and asked, and what they read of it.

    Attributes:
        requirements: How it is opened, and how the question is asked.
        views: All that is asked besides, by any of the readers; each view once.
        features: The names of the states that they read; empty where they read no states.
        kappa: Temperature of the visual pooling; None where they read no states.
        divider: Divides reports into the claims that they judge; None where they judge whole answers.
    """

    requirements: Requirements
    views: Sequence[RequiredView] = ()
    features: frozenset[str] = frozenset()
    kappa: float | None = None
    divider: ClaimDivider | None = None

    @classmethod
    def from_readers(cls, readers: Mapping[str, ScoringReader], where: str, prompt: str | None = None) -> "ActorNeeds":
        """Return what all readers of an actor need, by method; a reader that was fitted on nothing takes any images.

        `prompt` takes the place of that of the question, also in views that show the same one. A ConfigError says that
        the library has no such prompt; an ArtifactError, which names the file `where`, that they were fitted for
        different actors.
        """
        required = {name: reader.requirements for name, reader in readers.items()}
        images = next((needs.images for needs in required.values() if needs.images != ()), ())
        (first, common), *others = (
            (name, needs.model_copy(update={"views": (), "images": images if needs.images == () else needs.images}))
            for name, needs in required.items()
        )
        if other := next((name for name, needs in others if needs != common), None):
            raise ArtifactError(
                f"{where}: the readers of {first} and {other} were fitted for different actors, prompts or decodings."
                " Expected readers of one actor. Score one of them at a time."
            )
        views = list({view.name: view for reader in readers.values() for view in reader.views}.values())
        if prompt is not None:
            known = [name for name in prompts.names() if not _OF_ANSWERS.search(prompts.template(name))]
            if prompt not in (*known, common.prompt.name):
                meant = did_you_mean(prompt, known)
                raise ConfigError(
                    f"prompt {prompt!r}: no prompt for a question alone. Known: {', '.join(known)}.{meant}"
                )
            fitted, chosen = common.prompt, PromptText(name=prompt, sha256=prompts.template_sha256(prompt))
            views = [view.model_copy(update={"prompt": chosen}) if view.prompt == fitted else view for view in views]
            common = common.model_copy(update={"prompt": chosen})
        return cls(
            requirements=common,
            views=views,
            features=frozenset().union(*(reader.features for reader in readers.values())),
            kappa=next((reader.states.kappa for reader in readers.values() if reader.states is not None), None),
            divider=ClaimDivider.from_requirements(common, views, where),
        )

    @property
    def thinking_ends(self) -> str | None:
        """What ends the thinking before an answer; None where completions do not think."""
        return plugins.declared("contracts", self.requirements.contract, "THINKING_ENDS")

    def claims(
        self, asked: Sequence[ShownQuestion], completions: Sequence[Completion]
    ) -> Sequence[Sequence[Span]] | None:
        """Return the claims of each completion, in characters of its text; None where whole answers are judged."""
        if self.divider is None:
            return None
        return self.divider.claims((to.name, said.text) for to, said in zip(asked, completions, strict=True))


@dataclass(frozen=True, kw_only=True)
class Answered:
    """An actor's answers: the text of an answer is None if it has no valid one; `answers` are what readers see, without
    the views, which are there by name. Readers of claims see a row per claim, and `claims` says where they are.
    `choices` are those of the questions, as in `ShownQuestion`.
    """

    completions: Sequence[Completion]
    texts: Sequence[str | None]
    parse_status: Sequence[str]
    answers: Answers
    views: Mapping[str, ViewAnswers]
    choices: Sequence[Mapping[str, str]]
    claims: Sequence[Sequence[Span]] | None = None


class OpenActor:
    """A checkpoint, opened with transformers, that answers as its readers need it, `batch_size` answers at once.

    `opened` is the checkpoint, `encoder` encodes its prompts, and `config` is the configuration of the model's text
    part.
    """

    def __init__(self, folder: Path, needs: ActorNeeds, *, batch_size: int):
        required, self._thinking_ends = needs.requirements, needs.thinking_ends
        opened = open_checkpoint(folder, required.model, Facts(**required.facts))
        self.opened = replace(opened, thinking_ends=self._thinking_ends)
        self.encoder = self.opened.encoder
        self.config = self.opened.model.config.get_text_config()
        self._engine = TransformersEngine(self.opened, batch_size)
        self._needs, self._batch_size = needs, batch_size

    def answer(self, asked: Sequence[ShownQuestion]) -> Answered:
        """Return the actor's answers, with states and views; a DataError says that a prompt or an image is unfit."""
        required = self._needs.requirements
        requests = [question_request(question, required.prompt.name) for question in asked]
        completions = self._engine.answer(requests, _seeded(required.decoding, "answer"))
        return self.read(asked, requests, [of_one[0] for of_one in completions])

    def read(
        self, asked: Sequence[ShownQuestion], requests: Sequence[Request], committed: Sequence[Completion]
    ) -> Answered:
        """Return answers that the actor has given to `requests`, with their states and views."""
        claims = self._needs.claims(asked, committed)
        source = self._read(requests, committed, claims=claims) if self._needs.features else None
        answered = as_answered(asked, committed, self._needs.requirements.contract, source, claims)
        return self.with_views(answered, asked)

    def with_views(self, answered: Answered, asked: Sequence[ShownQuestion]) -> Answered:
        """Return answers with the views of them."""
        return replace(answered, views={view.name: self._view(view, asked, answered) for view in self._needs.views})

    def _view(self, view: RequiredView, asked: Sequence[ShownQuestion], answered: Answered) -> ViewAnswers:
        """Return a view of some answers; a prompt that contains the answer is not put where there is none."""
        committed, texts = answered.completions, answered.texts
        places_answer = "{ANSWER}" in prompts.template(view.prompt.name)
        needs_options = view.choices is not None and view.choices.options
        draws = range(view.draws or 1)
        requests = {
            (i, draw): question_request(question, view.prompt.name, answer=texts[i], image=view.image, draw=draw)
            for i, question in enumerate(asked)
            if (not places_answer or texts[i] is not None) and (question.choices or not needs_options)
            for draw in draws
        }
        chosen = list(requests.values())
        if view.measure is not None:
            plugin = ConfiguredPlugin(module=module_of("measures", view.measure.name), settings=view.measure.settings)
            ids = [completion.token_ids for completion in committed]
            measured = take_measure(self.opened, chosen, ids, plugin, batch_size=self._batch_size)
            return ViewAnswers(name=view.name, source=measured.__getitem__, rows=np.arange(len(asked)))
        if view.forced:
            source = self._read(chosen, committed, view.layers or (), answered.claims)
            return ViewAnswers(name=view.name, source=source, rows=answered.answers.rows)
        if view.choices is not None:
            ids = [committed[i].token_ids for i, _ in requests]
            named = [asked[i].choices for i, _ in requests] if needs_options else ()
            scored = score_choices(self._engine, chosen, ids, view.choices, self._thinking_ends, named)
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
        self,
        requests: Sequence[Request],
        committed: Sequence[Completion],
        depths: Sequence[float] = (),
        claims: Sequence[Sequence[Span]] | None = None,
    ) -> Source:
        if self._needs.kappa is None:
            raise ConfigError("views: a reader of layers alone does not say how states were read. Use it in a study.")
        what, ids = ReadSpec(kappa=self._needs.kappa, depths=tuple(depths)), [answer.token_ids for answer in committed]
        states = read_states(self.opened, requests, ids, what, batch_size=self._batch_size, claims=claims)
        if claims is not None:
            states = [claim for report in states for claim in report.claims]
        return lambda name: stacked(states, name)


def question_request(
    asked: ShownQuestion, prompt: str, *, answer: str | None = None, image: Image = _ORIGINAL, draw: int = 0
) -> Request:
    """Return a question as an actor is asked it, or as a view asks: about its `answer`, with a changed image.

    A ConfigError says that the view shows another image of the data set in place of the question's own.
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


def as_answered(
    asked: Sequence[ShownQuestion],
    committed: Sequence[Completion],
    contract: str,
    source: Source | None,
    claims: Sequence[Sequence[Span]] | None = None,
) -> Answered:
    """Return committed completions as readers see them; `source` gives their states, or those of their `claims`."""
    parse = plugins.load("contracts", contract).parse
    graded = [graded_answer(parse(completion.text)) for completion in committed]
    rows = [(question.name, question, row) for question, row in zip(asked, graded, strict=True)]
    if claims is not None:
        rows = [
            (claim_id(name, k), question, graded_claim(report.text[start:end], row["verbalized_confidence"]))
            for (name, question, row), report, of_report in zip(rows, committed, claims, strict=True)
            for k, (start, end) in enumerate(of_report)
        ]
    names = ("canonical_answer", "verbalized_confidence", "parse_status")
    table = pl.DataFrame(
        [
            {
                **dict.fromkeys(COLUMNS),
                **{"sample_id": name, "condition": _ORIGINAL},
                "question_key": question_key(question.question),
                **{name: row[name] for name in names},
            }
            for name, question, row in rows
        ],
        schema=dict.fromkeys(COLUMNS, pl.String) | {"verbalized_confidence": pl.Float64},
    )
    answers = Answers(table=table, source=source or dict[str, np.ndarray]().__getitem__, rows=np.arange(len(rows)))
    return Answered(
        completions=committed,
        texts=[row["answer"] for row in graded],
        parse_status=[row["parse_status"] for row in graded],
        answers=answers,
        views={},
        choices=[question.choices for question in asked],
        claims=claims,
    )


def _seeded(decoding: Decoding, name: str) -> SeededDecoding:
    return SeededDecoding(**decoding.model_dump(), seed=derive_seed("score", name))
