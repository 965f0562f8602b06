"""What a service is asked: one request per question of a shard, or several where it gives few completions at once.

The body of a call has one user turn, first the images and then the text, as engines of our own show them.
"""

import base64
import hashlib
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dualread.data.images import open_image, read_file, shown_alike
from dualread.errors import ArtifactError, ConfigError
from dualread.models.conditions import Asked
from dualread.models.meaning import LONGEST_REPLY
from dualread.schema.answers import Service, ShardSpec
from dualread.schema.base import Wire

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

TOP_LOG_PROBS = 20  # the most that services give

# What changes what a reply tells, but not what is answered. It is in no id, so that a study that reads less, or more,
# still finds the responses that it has.
_NOT_ASKED = ("logprobs", "top_logprobs")


@dataclass(frozen=True, kw_only=True)
class ServiceRequest:
    """One request: a question with its image, and the `body` of the call without its messages.

    `custom_id` is the digest of all that is asked, in 64 hexadecimal digits. The reply has to have `n` completions from
    the sample_index `first` on, with the log-probabilities of their tokens if `log_probs`.
    """

    custom_id: str
    question: Asked
    first: int
    n: int
    log_probs: bool
    body: Mapping[str, Any]


def needs_likelihoods(shard: ShardSpec, service: Service) -> bool:
    """Return whether the log-probabilities of the tokens of its completions are needed; those of views are not."""
    return service.log_probs and "/" not in shard.condition


def requests_of(shard: ShardSpec, service: Service, questions: Iterable[Asked]) -> Iterator[ServiceRequest]:
    """Return the requests for the `questions` of a shard or view, in their order; each is made when it is taken.

    The id depends on the shard, the question's sample_id, the text, the content of the image, the model and the
    decoding. A response can therefore only be taken for the answer to what was really asked. A ConfigError refuses
    what services do not give: the likelihood of integers, and states.
    """
    if shard.completions is not None or (shard.choices is not None and shard.choices.words is None):
        raise ConfigError(
            f"{shard.name}: services give no states and no likelihoods of integers. Leave the method out."
        )
    total = 1 if shard.decoding is None else shard.decoding.n_samples
    log_probs = shard.choices is not None or needs_likelihoods(shard, service)
    most = min(total, service.max_choices or total)
    numbers = {first: min(most, total - first) for first in range(0, total, most)}
    bodies = {n: _body(shard, service, n, log_probs) for n in numbers.values()}
    return (
        ServiceRequest(
            custom_id=_digest(_identity(shard, question, first, bodies[n])),
            question=question,
            first=question.draw * total + first,
            n=n,
            log_probs=log_probs,
            body=bodies[n],
        )
        for question in questions
        for first, n in numbers.items()
    )


def _body(shard: ShardSpec, service: Service, n: int, log_probs: bool) -> dict[str, Any]:
    """Return what is asked besides the messages; the first token of a reply decides between words."""
    decoding = shard.decoding
    body: dict[str, Any] = {
        "model": service.model,
        "temperature": decoding.temperature if decoding else 0.0,
        "top_p": decoding.top_p if decoding else 1.0,
        "n": n,
        "max_completion_tokens": decoding.max_completion_tokens if decoding else 1,
    }
    if log_probs:
        body["logprobs"] = True
    if shard.choices is not None:
        body["top_logprobs"] = TOP_LOG_PROBS
    return body | dict(service.body)


def _identity(shard: ShardSpec, question: Asked, first: int, body: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "dataset": shard.dataset,
        "split": shard.split,
        "condition": shard.condition,
        "sample_id": question.sample_id,
        "first": first,
        "text": question.text,
        # An image alone is no list, so that responses to requests of earlier versions are still found.
        "image": question.contents[0] if len(question.contents) == 1 else question.contents,
        **({"changes": question.changes, "draw": question.draw} if question.changes else {}),
        **({"before": question.before} if question.before else {}),
        "body": {name: value for name, value in body.items() if name not in _NOT_ASKED},
    }


def _digest(identity: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def judge_request(grader: str, text: str, *, name: str, model: str, body: Wire) -> ServiceRequest:
    """Return the request of a `text` alone, by which a grader asks a model; errors call it `name`."""
    body = {"model": model, "temperature": 0.0, "max_completion_tokens": LONGEST_REPLY} | dict(body)
    custom_id = _digest({"grader": grader, "text": text, "body": body})
    question = Asked(sample_id=name, text=text, image_files=(), image_id="")
    return ServiceRequest(custom_id=custom_id, question=question, first=0, n=1, log_probs=False, body=body)


def judge_body(request: ServiceRequest) -> dict[str, Any]:
    """Return the body of the call of a `judge_request`."""
    return {**request.body, "messages": [{"role": "user", "content": request.question.text}]}


# Formats that services open as we do, unless the picture is turned, transparent, or has other than 8 bits.
_TYPES: dict[str | None, str] = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}

ImageUrl = Callable[[Path], str]


def image_url(images: str) -> ImageUrl:
    """Return what gives the URL of an image: "data", the picture itself; "file", its path, for a service on the same
    machine; or an address, before the file's name, where the files of the manifests were put.
    """
    if images == "data":
        return _data_url
    if images == "file":
        return lambda path: path.resolve().as_uri()
    return lambda path: f"{images.rstrip('/')}/{quote(path.name)}"


def body_of(request: ServiceRequest, manifest: Path, url_of: ImageUrl) -> dict[str, Any]:
    """Return the body of the call; `manifest` is the artifact with the images, and an image outside it is refused.

    A picture that is changed before it is shown has no file, and travels in the body as PNG, however others travel.
    """
    for file in map(PurePosixPath, request.question.image_files):
        if file.is_absolute() or ".." in file.parts:
            raise ArtifactError(
                f"{manifest}: the image {file} is outside the artifact, and is not sent. Make it again."
            )
    content: list[dict[str, Any]] = []
    for shown in request.question.request(manifest).images:
        url = url_of(shown) if isinstance(shown, Path) else _png_url(shown() if callable(shown) else shown)
        content.append({"type": "image_url", "image_url": {"url": url}})
    content.append({"type": "text", "text": request.question.text})
    before = [{"role": role, "content": text} for role, text in request.question.before]
    return {**request.body, "messages": [*before, {"role": "user", "content": content}]}


def _data_url(path: Path) -> str:
    """Return the file's bytes as a data URL, or a PNG of the picture that our own engines see."""
    content = read_file(path)
    kind = _TYPES.get(shown_alike(content))
    return _png_url(open_image(path)) if kind is None else _as_data(kind, content)


def _png_url(picture: "Picture") -> str:
    written = io.BytesIO()
    picture.save(written, "PNG")
    return _as_data("image/png", written.getvalue())


def _as_data(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
