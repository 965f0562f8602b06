"""The interface of generation engines: requests and decoding in, completions or log-likelihoods out."""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from dualread.declared.answers import Decoding

if TYPE_CHECKING:
    from dualread.models.backbones.encode import Encoder
    from dualread.models.images.base import Shown


@dataclass(frozen=True, kw_only=True)
class Request:
    """One prompt: an image, and the text that follows it in the user turn.

    Attributes:
        text: Text of the user turn.
        image: The image, the path of its file, or a function that makes it when it is needed; None for no image.
        image_name: Sort key that brings requests about one image together. It does not identify the image: the encoder
            distinguishes images by their content.
        row: Name of the request, unique in a list of requests. Error messages show it, and it seeds the random numbers
            of the request's samples.
        prefix: Token ids of the completion that are given rather than generated; they follow the prompt.
    """

    text: str
    image: "Shown"
    image_name: str
    row: str
    prefix: tuple[int, ...] = ()


class SeededDecoding(Decoding):
    """How completion tokens are chosen; the prompt and its image are encoded once for all completions."""

    seed: int
    """Seed of the samples; unused in greedy decoding."""


@dataclass(frozen=True, kw_only=True)
class PassStates:
    """The states of one row, in the pass that reads or makes its completion of C ids.

    Attributes:
        n_prompt_tokens: Number of the prompt's tokens, image tokens included.
        final: Final-layer states of the prompt's last token and of the completion's [1 + C, D].
        layers: States of the completion's tokens in each wanted layer [C, D], by its number.
        image: Final-layer states of the image's tokens [M, D].
    """

    n_prompt_tokens: int
    final: Any
    layers: Mapping[int, Any]
    image: Any


class Collecting(Protocol):
    """What is read of the states of completions by the pass that makes them (`models.replay.of_generation`).

    Attributes:
        kinds: The data classes of which results consist, for `finished.each_batch`.
    """

    kinds: tuple[type, ...]

    def layers(self, n_layers: int) -> list[int]:
        """Return the layers, 1-based, whose states are wanted besides those of the last one."""
        ...

    def reads_last(self, completion: Sequence[int], decode: Callable[[Sequence[int]], str], stop: Set[int]) -> bool:
        """Return whether the states of the last token of a completion are read, which is chosen from others."""
        ...

    def read(
        self,
        rows: Sequence[PassStates],
        completions: Sequence[Sequence[int]],
        logits: Callable[[Any], Any],
        decode: Callable[[Sequence[int]], str],
        stop: Set[int],
        forbidden: Sequence[int],
    ) -> list[Any]:
        """Return one result per completion.

        Args:
            rows: The states of at least one row.
            completions: Their ids.
            logits: The model's head: states [..., D] to logits [..., V] in float32.
            decode: Returns the text of ids without special tokens.
            stop: Ids that end a turn.
            forbidden: Ids that a completion may never contain.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Completion:
    """One completion of a prompt.

    Attributes:
        prompt_token_ids: The prompt that the model read, with image tokens expanded.
        token_ids: The generated ids, including the stop token.
        token_log_probs: Log-softmax of each generated id, in nats, over the raw logits: before ids are forbidden, and
            before temperature and top-p are applied.
        text: The generated ids decoded without special tokens.
        finish_reason: "stop" after a stop token, "length" at the limit of `max_completion_tokens`.
        states: What a `Collecting` has read of its states; None without one.
    """

    prompt_token_ids: Sequence[int]
    token_ids: Sequence[int]
    token_log_probs: Sequence[float]
    text: str
    finish_reason: str
    states: Any = None


@dataclass(frozen=True, kw_only=True)
class Loglikelihoods:
    """The log-likelihoods of given continuations of one prompt.

    Attributes:
        prompt_token_ids: The prompt that the model read, with image tokens expanded and the request's prefix appended.
        values: Log-likelihood of each continuation in nats, float64 [K]: the sum of the log-probabilities of its ids.
    """

    prompt_token_ids: Sequence[int]
    values: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Step:
    """The next token of each row; a row may go on for a while after its completion has ended.

    Attributes:
        at: The completion of each row [rows].
        chosen: The id of the token [rows].
        log_probs: Its log-softmax over the raw logits, in nats [rows].
        states: The final-layer states from which it was chosen [rows, D]; first those of the prompts' last tokens.
    """

    at: Any
    chosen: Any
    log_probs: Any
    states: Any


class Engine(Protocol):
    """An opened checkpoint.

    Results depend only on the list of requests as a whole, the settings and the checkpoint.

    Attributes:
        encoder: Encodes the checkpoint's prompts.
        stop: Ids that end a turn.
    """

    encoder: "Encoder"
    stop: frozenset[int]

    def generate(
        self, requests: Sequence[Request], decoding: SeededDecoding, collecting: Collecting | None = None
    ) -> list[list[Completion]]:
        """Return `decoding.n_samples` completions of each request, in the order of the requests.

        With `collecting`, each request has one greedy completion, of whose states something is read. Only engines whose
        module declares `COLLECTS = True` are given it.
        """
        ...

    def loglikelihoods(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[Sequence[int]]]
    ) -> list[Loglikelihoods]:
        """Return the log-likelihoods of each request's continuations, in the order of the requests.

        Continuations are teacher-forced; nothing is generated. A prefix that several continuations share is read once.

        Args:
            requests: n requests.
            continuations: For each request, K lists of at least one id; K may differ between requests.
        """
        ...
