"""What a request asks: one question about images, for which readers are fitted, or anything else, and then why.

A reader knows answers to one prompt, decoded in one way. A request that differs is answered as it is, and its answer
gets no confidence. If the prompt has turns before the question, a client may send these turns, or the question alone.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dualread.apps.score.answering import question_request
from dualread.apps.score.loading import LoadedScorer
from dualread.apps.score.results import Question, ShownQuestion, check_texts, shown
from dualread.apps.serve.wire import ChatRequest, SentImage, Turn
from dualread.data.images import Decoded
from dualread.errors import DataError
from dualread.limits import COMPLETION_TOKENS
from dualread.models import prompts
from dualread.models.actor import Completion, EncodedRequest, Request, SeededDecoding
from dualread.models.backbones.encode import EncodedPrompt
from dualread.seeding import derive_seed

_PLACE = "{QUESTION}"
_LONG = 10_000  # characters of texts; tokens of more are counted before they are rendered and kept


@dataclass(frozen=True, kw_only=True)
class ActorRequest:
    """A request as an actor gets it: what is `sent`, and the `encoded` prompt with how it is answered.

    `shown` is the question that readers know how to judge the answer to, without its pictures, which `read_again`
    decodes for readers that have the actor asked more. Where there is none, `reasons` say why. `notes` say what of the
    request has no effect, how the images are shown, and that little can be seen of one.
    """

    sent: ChatRequest
    encoded: EncodedRequest
    shown: ShownQuestion | None
    read_again: Sequence[Callable[[], Decoded]] = ()
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class RequestReader:
    """Reads requests to the actor of `loaded`, whose needs say what its readers were fitted on.

    `turn` is held by whoever encodes: a tokenizer serves one thread at a time.
    """

    def __init__(self, loaded: LoadedScorer[Any]):
        self._encoder, self._required = loaded.actor.encoder, loaded.needs.requirements
        self._positions = getattr(loaded.actor.config, "max_position_embeddings", 2**17)
        self._has_views = bool(loaded.needs.views)
        self.turn = threading.Lock()

    def read(self, turns: Sequence[Turn], sent: ChatRequest, name: str) -> ActorRequest:
        """Return what is asked, encoded. Several threads may call it.

        How it is to be answered is in `sent`, whose messages are not read: these are the `turns`. The `name` is that of
        the request in errors, and the seed of its samples if it gives none. A DataError says that a text is empty or
        holds control tokens, that the prompt is too long, or that the model cannot be given this conversation.
        """
        images = [part for turn in turns for part in turn.parts if isinstance(part, SentImage)]
        texts = [part for turn in turns for part in turn.parts if isinstance(part, str)]
        own_prompt, required = sent.dualread.own_prompt, self._required.prompt.name
        question, is_prompt = self._question(turns[-1], images, sent)
        if (sent.dualread.options or sent.dualread.answer_type) and (question is None or own_prompt):
            field = "options" if sent.dualread.options else "answer_type"
            raise DataError(f"{field}: expected with one question about an image, which the readers' prompt asks.")
        request = None if question is None else question_request(question, required)
        earlier = [(turn.role, *turn.parts) for turn in turns[:-1]]
        if request is not None and earlier and (own_prompt or earlier != list(request.before)):
            request = question = None
        alone, row = question is not None, name if question is None else question.name
        names = [name for text in texts for name in prompts.made_of(text)]
        other = None if is_prompt or required in names else next(iter(names), None)
        reasons = tuple(self._reasons(turns, alone, len(images), other, sent))
        try:
            prompt = self._prompt(turns, texts, None if own_prompt or other else request, row)
        except DataError as error:  # it names the question, which may be long, and is the client's own
            raise DataError(str(error).replace(row, "the question")) from error
        decoding, lowered = self._decoding(sent, len(prompt.token_ids), name if reasons else None)
        judged = None if reasons or question is None else replace(question, images=())
        encoded = EncodedRequest(
            name=name,
            prompt=prompt,
            decoding=decoding,
            alone=alone,
            watched=judged is not None,
            log_probs=sent.log_probs,
            top_log_probs=sent.top_logprobs,
        )
        of_images = [f"image: {note}" for image in images for note in (*image.decoded.notes, *image.decoded.doubts)]
        return ActorRequest(
            sent=sent,
            encoded=encoded,
            shown=judged,
            read_again=[image.read_again for image in images] if judged is not None and self._has_views else (),
            reasons=reasons,
            notes=(*sent.without_effect, *lowered, *of_images),
        )

    def of_completion(self, asked: ActorRequest, completion: Completion) -> tuple[str, ...]:
        """Return why readers cannot judge a completion: the reasons of the request, and that of its length.

        A completion is the one that readers know if it ends by itself, or at their own limit.
        """
        fitted, n = self._required.decoding.max_completion_tokens, len(completion.token_ids)
        if asked.reasons or (n <= fitted if completion.finish_reason == "stop" else n == fitted):
            return asked.reasons
        return (f"the completion ends after {n} tokens, and readers were fitted on completions of up to {fitted}",)

    def _question(
        self, last: Turn, images: Sequence[SentImage], sent: ChatRequest
    ) -> tuple[ShownQuestion | None, bool]:
        """Return the question about all images that the last turn asks, if it does, and whether its text is the whole
        prompt of the readers.
        """
        texts = [part for part in last.parts if isinstance(part, str)]
        together = len(last.parts) == len(texts) + len(images)
        if last.role != "user" or not texts or not together or not self._required.fits(len(images)):
            return None, False
        field, pictures = "\n".join(texts), [image.decoded for image in images]
        before, after = prompts.turns(self._required.prompt.name)[-1].text.split(_PLACE)
        is_prompt = field.startswith(before) and field.endswith(after) and len(field) > len(before) + len(after)
        if is_prompt and not sent.dualread.own_prompt:  # the question is what is at its place
            field = field[len(before) : len(field) - len(after)]
        choices = {"options": tuple(sent.dualread.options), "answer_type": sent.dualread.answer_type}
        asked = Question(image=pictures, question=field, **choices)
        return shown(asked, pictures, self._encoder, self._required), is_prompt

    def _reasons(
        self, turns: Sequence[Turn], alone: bool, n_images: int, other: str | None, sent: ChatRequest
    ) -> Iterator[str]:
        """Yield why readers cannot judge the answer: its form, its prompt (`other` is one of ours), how it is drawn."""
        required, fitted = self._required.prompt.name, self._required.decoding
        roles, fitted_roles = (
            ", ".join(turn.role for turn in conversation) for conversation in (turns, prompts.turns(required))
        )
        if roles not in ("user", fitted_roles):
            known = "one message of user" if fitted_roles == "user" else f"messages of {fitted_roles}"
            yield f"the messages are of {roles}, and readers were fitted on {known}"
        elif len(turns) > 1 and not alone:
            yield f"the messages before the question are not those of the prompt {required!r}"
        if not self._required.fits(n_images):
            yield f"there are {n_images or 'no'} images, and readers were fitted on {self._required.numbers}"
        if sent.dualread.own_prompt or other:
            asked = "the request's own" if sent.dualread.own_prompt else repr(other)
            yield f"the prompt is {asked}, and readers were fitted on the prompt {required!r}"
        temperature, top_p = self._drawn(sent)
        if temperature != fitted.temperature or (temperature > 0 and top_p != fitted.top_p):
            how, known = (
                f"with temperature {heat:g} and top_p {share:g}" if heat else "greedily"
                for heat, share in ((temperature, top_p), (fitted.temperature, fitted.top_p))
            )
            yield f"the answer is drawn {how}, and readers were fitted on answers drawn {known}"

    def _drawn(self, sent: ChatRequest) -> tuple[float, float]:
        """Return temperature and top_p of a request."""
        fitted = self._required.decoding
        temperature = fitted.temperature if sent.temperature is None else sent.temperature
        return temperature, fitted.top_p if sent.top_p is None else sent.top_p

    def _prompt(self, turns: Sequence[Turn], texts: Sequence[str], request: Request | None, row: str) -> EncodedPrompt:
        """Return the prompt of a request as a study asks it, or the conversation as it is, encoded."""
        with self.turn:
            most, is_long = self._required.model["max_prompt_tokens"], sum(map(len, texts)) > _LONG
            if is_long and (n := len(self._encoder.tokenizer("".join(texts))["input_ids"])) > most:
                raise DataError(f"the texts have {n} tokens, more than max_prompt_tokens = {most}. Shorten them.")
            if request is not None:
                return request.encoded(self._encoder)
            if not any(text.strip() for text in texts):
                raise DataError("the messages have no text. Expected a question such as 'Is there a lesion?'.")
            check_texts(texts, self._encoder.tokenizer)
            return self._encoder.conversation([turn.message() for turn in turns], row=row)

    def _decoding(self, sent: ChatRequest, n_prompt: int, name: str | None) -> tuple[SeededDecoding, list[str]]:
        """Return how the request is answered, and a note if its limit of tokens had to be lowered."""
        room = min(COMPLETION_TOKENS, self._positions - n_prompt - 1)  # vLLM may have to read the last one, too
        if room < 1:
            raise DataError(f"a prompt of {n_prompt} tokens leaves no room for an answer. Shorten it.")
        tokens = sent.max_completion_tokens or sent.max_tokens or self._required.decoding.max_completion_tokens
        lowered = [f"max_tokens {tokens} is lowered to {room}, for which there is room"] if tokens > room else []
        temperature, top_p = self._drawn(sent)
        seed = name if sent.seed is None else sent.seed
        decoding = SeededDecoding(
            temperature=temperature,
            top_p=top_p,
            n_samples=sent.n if temperature else 1,  # greedy completions are all the same
            max_completion_tokens=min(tokens, room),
            # Where readers know the answer, it is the one that `score` draws.
            seed=derive_seed("score", "answer") if seed is None else derive_seed("serve", seed),
        )
        return decoding, lowered
