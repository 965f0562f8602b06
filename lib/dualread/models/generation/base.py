"""What every generation engine takes and returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from PIL.Image import Image

    from dualread.models.backbones.encode import Encoder


@dataclass(frozen=True, kw_only=True)
class Request:
    """One prompt: text of the user turn and the image before it.

    Attributes:
        text: Text of the user turn.
        image: The image, or its file.
        image_name: Requests are sorted by it, so that those about one image are side by side. It identifies nothing:
            the encoder tells images apart by their content.
        row: Names the request in error messages and, for samples, its random numbers: unique in a list of requests.
        prefix: Completion ids that stand already behind the prompt.
    """

    text: str
    image: "Path | Image"
    image_name: str
    row: str
    prefix: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How tokens are chosen.

    Attributes:
        temperature: 0 is greedy.
        top_p: Share of the probability mass that is sampled from; 1 is all of it.
        n_samples: Completions a prompt; 1 when greedy. They share the encoded prompt and image.
        max_completion_tokens: Budget a completion.
        seed: Seed of the samples; unused when greedy.
    """

    temperature: float
    top_p: float
    n_samples: int
    max_completion_tokens: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class Completion:
    """One completion.

    Attributes:
        prompt_token_ids: The prompt as the model read it, image tokens expanded.
        token_ids: Generated ids, the stop token included.
        token_log_probs: Raw log-softmax of each id, before forbidden ids, temperature and top-p.
        text: The ids decoded without special tokens.
        finish_reason: "stop" or "length".
    """

    prompt_token_ids: Sequence[int]
    token_ids: Sequence[int]
    token_log_probs: Sequence[float]
    text: str
    finish_reason: str


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """The choices behind one prompt.

    Attributes:
        prompt_token_ids: The prompt as the model read it, image tokens expanded, and the request's prefix.
        log_probs: Log-probability in nats of each choice's ids, float64 [K]: the sum over its ids.
    """

    prompt_token_ids: Sequence[int]
    log_probs: np.ndarray


class Engine(Protocol):
    """An opened checkpoint. Results are functions of the whole list of requests, the settings and the checkpoint."""

    encoder: "Encoder"
    stop: frozenset[int]

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> list[list[Completion]]:
        """Return `decoding.n_samples` completions for each request, in the order of the requests."""
        ...

    def weigh(self, requests: Sequence[Request], choices: Sequence[Sequence[Sequence[int]]]) -> list[Weighed]:
        """Return how likely each of a request's choices is as the next ids, in the order of the requests.

        Nothing is generated: choices are teacher-forced, and those that begin alike share what they share.

        Args:
            requests: n prompts, perhaps with a prefix.
            choices: For each request K lists of ids, each at least one.
        """
        ...
