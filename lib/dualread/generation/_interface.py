"""What every generation engine takes and returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Request:
    """One prompt: text of the user turn and the image before it.

    Attributes:
        text: Text of the user turn.
        image: The image file.
        image_key: Equal keys share an image.
        row: A name for error messages.
    """

    text: str
    image: Path
    image_key: str
    row: str


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """How tokens are chosen.

    Attributes:
        temperature: 0 is greedy.
        top_p: Share of the probability mass that is sampled from; 1 is all of it.
        n_samples: Completions a prompt; 1 when greedy.
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


class Engine(Protocol):
    """An opened checkpoint."""

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> list[list[Completion]]:
        """Return `decoding.n_samples` completions for each request, in the order of the requests.

        The result is a function of the whole list of requests, the decoding and the checkpoint alone.
        """
        ...
