"""The requests and replies of the OpenAI API for chats, and what is added to them: `dualread` in each choice.

What a request asks for is done, or the request is refused: nothing that it names is ignored.
"""

import base64
import binascii
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dualread.data.given_images import read as read_image
from dualread.data.images import Decoded
from dualread.declared.data import CtWindows
from dualread.errors import DataError
from dualread.evaluation.metrics.risk_control import DELTA
from dualread.evaluation.thresholds import CERTIFIED, Decision, Threshold
from dualread.own.serving.asked import Turn, Wanted
from dualread.own.serving.service import Abstained, Answer

MOST_CHOICES = 128  # as in OpenAI's API
_MOST_TEXT = 100_000  # characters of one text: far more than fits into a prompt
_DATA = re.compile(r"data:[\w.+-]+/[\w.+-]+;base64,", re.ASCII)
_TEXTS = Annotated[str, Field(max_length=_MOST_TEXT)]


class _Sent(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _Address(_Sent):
    url: str
    detail: Literal["auto", "low", "high"] = "auto"
    """Of no effect: the size of images is that with which readers were fitted."""


class _Image(_Sent):
    type: Literal["image_url"]
    image_url: _Address


class _Text(_Sent):
    type: Literal["text"]
    text: _TEXTS


class _Message(_Sent):
    role: Literal["system", "user", "assistant"]
    content: _TEXTS | Annotated[list[Annotated[_Image | _Text, Field(discriminator="type")]], Field(max_length=1000)]
    name: None = None

    def texts(self) -> list[str]:
        """Return its texts."""
        parts = [self.content] if isinstance(self.content, str) else self.content
        return [part if isinstance(part, str) else part.text for part in parts if not isinstance(part, _Image)]


class _StreamOptions(_Sent):
    include_usage: bool = False


class _Extension(_Sent):
    """What a request may say that is not in OpenAI's API, under `dualread` (`extra_body` of its client)."""

    id: Annotated[str, Field(max_length=200)] | None = None
    """The question's own name, for `--record`."""
    options: Annotated[list[_TEXTS], Field(max_length=100)] = []
    """The options of a multiple-choice question."""
    own_prompt: bool = False
    """Whether the text is the whole prompt."""


class _Format(_Sent):
    type: Literal["text"] = "text"


class ChatRequest(_Sent):
    """The body of a request to /v1/chat/completions."""

    messages: Annotated[list[_Message], Field(min_length=1, max_length=100)]
    model: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    n: Annotated[int, Field(ge=1, le=MOST_CHOICES)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    logprobs: bool | None = None
    dualread: _Extension = _Extension()
    # Labels that change no answer.
    user: str | None = None
    metadata: dict[str, str] | None = None
    safety_identifier: str | None = None
    # These may say what is done anyway, and nothing else.
    top_logprobs: Literal[0] | None = None
    stop: Annotated[list[str], Field(max_length=0)] | None = None
    frequency_penalty: Literal[0] | None = None
    presence_penalty: Literal[0] | None = None
    logit_bias: Annotated[dict[str, float], Field(max_length=0)] | None = None
    response_format: _Format | None = None
    tools: Annotated[list[Any], Field(max_length=0)] | None = None
    tool_choice: Literal["none"] | None = None
    store: Literal[False] | None = None

    def wanted(self) -> Wanted:
        """Return how it wants to be answered."""
        return Wanted(
            options=tuple(self.dualread.options),
            own_prompt=self.dualread.own_prompt,
            temperature=self.temperature,
            top_p=self.top_p,
            most_tokens=self.max_completion_tokens or self.max_tokens,
            n=self.n or 1,
            seed=self.seed,
            log_probs=bool(self.logprobs),
        )

    def turns(self, *, most_images: int, bits: int | None, ct_windows: CtWindows | None = None) -> list[Turn]:
        """Return the conversation with its images decoded; decoding one can take a gigabyte.

        Raises:
            DataError: There are more images than allowed, one is no data URL, or one cannot be decoded.
        """
        parts = [part for message in self.messages if not isinstance(message.content, str) for part in message.content]
        if (n := sum(isinstance(part, _Image) for part in parts)) > most_images:
            raise DataError(f"{n} images: expected at most {most_images} in one request.")
        return [
            Turn(
                role=message.role,
                parts=(message.content,)
                if isinstance(message.content, str)
                else tuple(
                    p.text if isinstance(p, _Text) else _decoded(p.image_url.url, bits, ct_windows)
                    for p in message.content
                ),
            )
            for message in self.messages
        ]


def read(body: bytes) -> ChatRequest:
    """Return the request in `body`.

    Raises:
        DataError: It is no JSON, lacks something, or asks for what this server does not do.
    """
    try:
        return ChatRequest.model_validate(json.loads(body, object_pairs_hook=_once))
    except ValidationError as error:
        raise DataError(_said(error)) from error
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"the body is no JSON ({type(error).__name__}). Expected a request as OpenAI's API has it."
        ) from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, none of whose names is there twice: one of the two values would be ignored."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in made if names.count(name) > 1)
        raise DataError(f"{twice[:50]}: is there twice. Expected each name once. Leave one out.")
    return made


def _said(error: ValidationError) -> str:
    """Return the first problem in a sentence, without what was sent: that may be long."""
    first, *others = error.errors(include_url=False, include_input=False)
    place = ".".join(str(part)[:50] for part in first["loc"]) or "the body"
    more = f" So are {len(others)} other values." if others else ""
    if first["type"] == "extra_forbidden":
        return f"{place}: this server knows no such parameter, and ignores none. Leave it out.{more}"
    return f"{place}: is not what this server takes ({first['msg'][:200]}).{more}"


def _decoded(url: str, bits: int | None, ct_windows: CtWindows | None) -> Decoded:
    if (found := _DATA.match(url)) is None:
        raise DataError(
            "an image is not given as data:image/...;base64,... Expected the image itself: this server opens no address"
            " and no file that a request names."
        )
    try:
        content = base64.b64decode(url[found.end() :], validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(f"an image is no base64 ({error}).") from error
    if not content:
        raise DataError("an image has no bytes.")
    return read_image(content, bits=bits, ct_windows=ct_windows)


def completion(name: str, model: str, choices: Sequence[Mapping[str, Any]], usage: Mapping[str, int]) -> dict[str, Any]:
    """Return a whole reply."""
    return {**_head(name, model, "chat.completion"), "choices": list(choices), "usage": usage}


def chunk(name: str, model: str, choices: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    """Return one event of a stream."""
    return {**_head(name, model, "chat.completion.chunk"), "choices": list(choices), **more}


def _head(name: str, model: str, kind: str) -> dict[str, Any]:
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}


def usage(n_prompt: int, n_said: int) -> dict[str, int]:
    """Return the counts of tokens."""
    return {"prompt_tokens": n_prompt, "completion_tokens": n_said, "total_tokens": n_prompt + n_said}


def of_answer(answer: Answer, threshold: Threshold | None) -> dict[str, Any]:
    """Return what is said about an answer: all confidences are null where readers cannot judge it."""
    reading, decision = answer.reading, answer.decision
    return {
        "answer": None if reading is None else reading.answer,
        "confidence": None if reading is None else reading.confidence,
        "psr": answer.psr,
        "per": None if reading is None else reading.per,
        "methods": {} if reading is None else {name: vars(of) for name, of in reading.methods.items()},
        "threshold": None if threshold is None else _threshold(threshold, decision),
        "abstain": None if decision is None or decision.keep is None else not decision.keep,
        "notes": list(answer.notes),
    }


def of_abstention(abstained: Abstained) -> dict[str, Any]:
    """Return what is said where no answer was made."""
    return {
        **dict.fromkeys(("answer", "confidence", "per", "threshold")),
        "psr": abstained.psr,
        "methods": {},
        "abstain": True,
        "notes": [refusal(abstained), *abstained.notes],
    }


def refusal(abstained: Abstained) -> str:
    """Return the sentence in place of an answer."""
    return (
        f"No answer was made: PSR, the probability that the model can answer this, is {abstained.psr:.4f}, below"
        f" {abstained.limit:.4f}."
    )


def _threshold(threshold: Threshold, decision: Decision | None) -> dict[str, Any]:
    target = threshold.target_risk_percent
    if threshold.value is None:
        statement = f"There is no {threshold.rule} threshold for a risk of {target}%: {threshold.reason}"
    elif threshold.rule == CERTIFIED:
        statement = (
            f"Of new answers with at least this confidence, at most {target}% are wrong, if images come from where the"
            " validation images came from. By bad luck with these, the statement is wrong with a probability of at most"
            f" {DELTA:.0%}."
        )
    else:
        statement = (
            f"Of the validation answers with at least this confidence, at most {target}% were wrong. About new answers,"
            " this promises nothing."
        )
    return {
        "value": threshold.value,
        "rule": threshold.rule,
        "target_risk_percent": target,
        "decision": None if decision is None else decision.reason,
        "statement": statement,
    }


def unknown_model(name: str, known: str) -> dict[str, str]:
    """Return the parts of an error about a model that is not here."""
    return {
        "message": f"no model {name[:200]!r} here. Known: {known}.",
        "kind": "invalid_request_error",
        "code": "model_not_found",
    }


def error(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """Return an error as OpenAI's API has it."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
