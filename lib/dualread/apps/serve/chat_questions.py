"""What a request asks: one question about one image, for which readers are fitted, or anything else, and then why.

A reader knows answers to one prompt, decoded in one way. A request that differs is answered as it is, and its answer
gets no confidence.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dualread.apps.score.loading import LoadedScorer
from dualread.apps.score.results import Question, ShownQuestion, check_texts, shown
from dualread.data.images import Decoded
from dualread.errors import DataError
from dualread.models import prompts
from dualread.models.actor import Completion, EncodedRequest, SeededDecoding
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.conditions import question_field
from dualread.seeding import derive_seed

MOST_TOKENS = 1000  # of a completion; vLLM is opened for a few more, and transformers reserves memory for all of them
_PLACE = "{QUESTION}"
_LONG = 10_000  # characters of texts; shorter ones are encoded at once


@dataclass(frozen=True, kw_only=True)
class SentImage:
    """An image of a request, and how its file is decoded again: full-size pixels are not kept while a request waits."""

    decoded: Decoded
    read_again: Callable[[], Decoded]


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One message of a conversation: texts and images in the order in which they were sent."""

    role: str
    parts: tuple[str | SentImage, ...]


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """How a request wants to be answered; None stands for what the readers were fitted on.

    Attributes:
        options: The options of a multiple-choice question; none for other questions.
        own_prompt: Whether the text is the whole prompt, instead of a question for the readers' prompt.
        temperature: 0 is greedy.
        top_p: The probability that a token is drawn from.
        most_tokens: Length of the longest completion.
        n: Number of completions.
        seed: Seed of the samples; another one each time if it is None.
        stop: Texts at the first of which a completion is cut off.
        log_probs: Whether the log-probabilities of its tokens are wanted.
        top_log_probs: For how many of the most probable tokens at each place.
        notes: What of the request has no effect.
    """

    options: tuple[str, ...] = ()
    own_prompt: bool = False
    temperature: float | None = None
    top_p: float | None = None
    most_tokens: int | None = None
    n: int = 1
    seed: int | None = None
    stop: tuple[str, ...] = ()
    log_probs: bool = False
    top_log_probs: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ActorRequest:
    """A request as an actor gets it.

    Attributes:
        prompt: The encoded prompt.
        decoding: How it is answered. Greedy completions are all the same, so that one is made for all of `n`.
        n: Number of completions that the request wants.
        shown: The question that readers know how to judge the answer to, without its picture; None if there is none.
        read_again: Decodes the picture again, for readers that have the actor asked more about each answer.
        is_conversation: Whether the prompt is of another form than one image and one text, so that nothing that was
            found out about prompts of this form holds for it.
        reasons: Why readers cannot judge the answer; none if they can.
        notes: What of the request has no effect, how the images are shown, and that little can be seen of one.
        stop: Texts at the first of which a completion is cut off.
        log_probs: Whether the request wants the log-probabilities of its tokens.
        top_log_probs: For how many of the most probable tokens at each place.
    """

    prompt: EncodedPrompt
    decoding: SeededDecoding
    n: int
    shown: ShownQuestion | None
    read_again: Callable[[], Decoded] | None = None
    is_conversation: bool = False
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    log_probs: bool = False
    top_log_probs: int = 0

    def encoded(self, name: str) -> EncodedRequest:
        """Return the request as an actor's stream gets it."""
        return EncodedRequest(
            name=name,
            prompt=self.prompt,
            decoding=self.decoding,
            alone=not self.is_conversation,
            watched=self.shown is not None,
            log_probs=self.log_probs,
            top_log_probs=self.top_log_probs,
        )


class RequestReader:
    """Reads requests to the actor of `loaded`, whose requirements say what its readers were fitted on.

    Attributes:
        turn: Held by whoever encodes: a tokenizer serves one thread at a time.
    """

    def __init__(self, loaded: LoadedScorer[Any]):
        self._encoder, self._required = loaded.actor.encoder, loaded.requirements
        self._positions = getattr(loaded.actor.config, "max_position_embeddings", 2**17)
        self._has_views = bool(loaded.views)
        self.turn = threading.Lock()

    def read(self, turns: Sequence[Turn], wanted: Wanted, name: str) -> ActorRequest:
        """Return what is asked, encoded. Several threads may call it.

        Args:
            turns: The conversation, at least one turn.
            wanted: How it wants to be answered.
            name: Name of the request in errors, and the seed of its samples if it gives none.

        Raises:
            DataError: A text is empty or holds control tokens, the prompt is too long, or the model cannot be given
                this conversation.
        """
        images = [part for turn in turns for part in turn.parts if isinstance(part, SentImage)]
        texts = [part for turn in turns for part in turn.parts if isinstance(part, str)]
        names = [name for text in texts for name in prompts.made_of(text)]
        other = None if self._required.prompt.name in names else next(iter(names), None)
        reasons = [*self._of_form(turns, len(images)), *self._of_prompt(other, wanted), *self._of_decoding(wanted)]
        alone = len(turns) == 1 and turns[0].role == "user" and len(images) == 1 and len(texts) > 0
        if wanted.options and (not alone or wanted.own_prompt):
            raise DataError("options: expected with one question about one image, which the readers' prompt asks.")
        question, row = None, name
        if alone:
            field = "\n".join(texts)
            field = field if wanted.own_prompt else self._question(field)
            picture = images[0].decoded
            question = shown(Question(image=picture, question=field, options=wanted.options), picture, self._encoder)
            row = question.name
        try:
            with self.turn:
                self._check_length(texts)
                prompt = self._prompt(turns, texts, row, None if wanted.own_prompt or other else question)
        except DataError as error:  # it names the question, which may be long, and is the client's own
            raise DataError(str(error).replace(row, "the question")) from error
        seed = wanted.seed if wanted.seed is not None else name if reasons else None
        decoding, lowered = self._decoding(wanted, prompt, seed)
        judged = question is not None and not reasons
        return ActorRequest(
            prompt=prompt,
            decoding=decoding,
            n=wanted.n,
            shown=replace(question, image=Path()) if question is not None and judged else None,
            read_again=images[0].read_again if judged and self._has_views else None,
            is_conversation=not alone,
            reasons=tuple(reasons),
            notes=(
                *wanted.notes,
                *lowered,
                *(f"image: {note}" for image in images for note in (*image.decoded.notes, *image.decoded.doubts)),
            ),
            stop=wanted.stop,
            log_probs=wanted.log_probs,
            top_log_probs=wanted.top_log_probs,
        )

    def of_completion(self, asked: ActorRequest, completion: Completion) -> tuple[str, ...]:
        """Return why readers cannot judge a completion: the reasons of the request, and that of its length.

        A completion is the one that readers know if it ends by itself, or at their own limit.
        """
        fitted, n = self._required.decoding.max_completion_tokens, len(completion.token_ids)
        if asked.reasons or (n <= fitted if completion.finish_reason == "stop" else n == fitted):
            return asked.reasons
        return (f"the completion ends after {n} tokens, and readers were fitted on completions of up to {fitted}",)

    def _of_form(self, turns: Sequence[Turn], n_images: int) -> Iterator[str]:
        if len(turns) > 1 or turns[0].role != "user":
            roles = ", ".join(turn.role for turn in turns)
            yield f"the messages are of {roles}, and readers were fitted on one message of user"
        if n_images != 1:
            yield f"there are {n_images or 'no'} images, and readers were fitted on one"

    def _of_prompt(self, other: str | None, wanted: Wanted) -> Iterator[str]:
        required = self._required.prompt.name
        if wanted.own_prompt:
            yield f"the prompt is the request's own, and readers were fitted on the prompt {required!r}"
        elif other:
            yield f"the prompt is {other!r}, and readers were fitted on the prompt {required!r}"

    def _of_decoding(self, wanted: Wanted) -> Iterator[str]:
        fitted = self._required.decoding
        temperature = fitted.temperature if wanted.temperature is None else wanted.temperature
        top_p = fitted.top_p if wanted.top_p is None else wanted.top_p
        if temperature != fitted.temperature or (temperature > 0 and top_p != fitted.top_p):
            how = _drawn(fitted.temperature, fitted.top_p)
            yield f"the answer is drawn {_drawn(temperature, top_p)}, and readers were fitted on answers drawn {how}"

    def _check_length(self, texts: Sequence[str]) -> None:
        """Refuse long texts before they are rendered and kept."""
        most = self._required.model["max_prompt_tokens"]
        if sum(map(len, texts)) > _LONG and (n := len(self._encoder.tokenizer("".join(texts))["input_ids"])) > most:
            raise DataError(f"the texts have {n} tokens, more than max_prompt_tokens = {most}. Shorten them.")

    def _question(self, text: str) -> str:
        """Return the question in a text: all of it, or what is at the question's place if it is the whole prompt."""
        before, after = prompts.template(self._required.prompt.name).split(_PLACE)
        if text.startswith(before) and text.endswith(after) and len(text) > len(before) + len(after):
            return text[len(before) : len(text) - len(after)]
        return text

    def _prompt(
        self, turns: Sequence[Turn], texts: Sequence[str], row: str, question: ShownQuestion | None
    ) -> EncodedPrompt:
        """Return the readers' prompt with the question, or the conversation as it is."""
        if question is None:
            return self._conversation(turns, texts, row)
        asked = question_field(question.question, list(question.options))
        rendered = prompts.render(self._required.prompt.name, question=asked)
        return self._encoder.prompt(rendered, image=question.image, row=row)

    def _conversation(self, turns: Sequence[Turn], texts: Sequence[str], row: str) -> EncodedPrompt:
        if not any(text.strip() for text in texts):
            raise DataError("the messages have no text. Expected a question such as 'Is there a lesion?'.")
        check_texts(texts, self._encoder.tokenizer)
        return self._encoder.conversation(
            [{"role": turn.role, "content": [_part(part) for part in turn.parts]} for turn in turns], row=row
        )

    def _decoding(
        self, wanted: Wanted, prompt: EncodedPrompt, seed: int | str | None
    ) -> tuple[SeededDecoding, list[str]]:
        """Return how the request is answered, and a note if its limit of tokens had to be lowered."""
        fitted = self._required.decoding
        temperature = fitted.temperature if wanted.temperature is None else wanted.temperature
        room = min(MOST_TOKENS, self._positions - len(prompt.token_ids) - 1)  # vLLM may have to read the last one, too
        if room < 1:
            raise DataError(f"a prompt of {len(prompt.token_ids)} tokens leaves no room for an answer. Shorten it.")
        tokens = wanted.most_tokens or fitted.max_completion_tokens
        lowered = [f"max_tokens {tokens} is lowered to {room}, for which there is room"] if tokens > room else []
        decoding = SeededDecoding(
            temperature=temperature,
            top_p=fitted.top_p if wanted.top_p is None else wanted.top_p,
            n_samples=wanted.n if temperature else 1,
            max_completion_tokens=min(tokens, room),
            # Where readers know the answer, it is the one that `score` draws.
            seed=derive_seed("score", "answer") if seed is None else derive_seed("serve", seed),
        )
        return decoding, lowered


def _drawn(temperature: float, top_p: float) -> str:
    return f"with temperature {temperature:g} and top_p {top_p:g}" if temperature else "greedily"


def _part(part: str | SentImage) -> dict[str, Any]:
    return {"type": "text", "text": part} if isinstance(part, str) else {"type": "image", "image": part.decoded.image}
