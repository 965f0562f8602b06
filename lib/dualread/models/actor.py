"""One way to ask an actor, and to read its states: stages, scoring, `dualread.confidences` and serving are its callers.

- `AnsweringActor` completes a list of requests (`answer`), and scores given continuations (`loglikelihoods`).
- A `streams.Stream` of an opened checkpoint completes requests token by token, for whoever waits for them.
- `read_states` reads the states of completions in a pass of its own; `take_measure` measures something else there.

Neither is a method of `AnsweringActor`: a key covers a class as a whole, and an edit to them has to generate nothing
again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from dualread.schema.answers import Decoding
from dualread.schema.base import ConfiguredPlugin
from dualread.seeding import generator

if TYPE_CHECKING:
    from dualread.models.backbones.checkpoint import Opened
    from dualread.models.backbones.encode import EncodedPrompt, Encoder
    from dualread.models.images.base import Shown
    from dualread.models.prompts import Turn
    from dualread.models.replay.replayed import Replayed


ClaimSpan = tuple[int, int]  # (start, end) in characters of a completion


@dataclass(frozen=True, kw_only=True)
class Request:
    """One prompt: images, and the text that follows them in the last turn, which is the user's.

    Attributes:
        text: Text of the last turn.
        images: The images in order, or none: each an image, the path of its file, or a function that makes it when it
            is needed.
        image_name: Sort key that brings requests about the same images together. It does not identify them: the encoder
            distinguishes images by their content.
        row: Name of the request, unique in a list of requests. Error messages show it, and it seeds the random numbers
            of the request's samples.
        prefix: Token ids of the completion that are given rather than generated; they follow the prompt.
        before: The turns before the last one.
    """

    text: str
    images: Sequence["Shown"]
    image_name: str
    row: str
    prefix: tuple[int, ...] = ()
    before: "tuple[Turn, ...]" = ()

    def encoded(self, encoder: "Encoder") -> "EncodedPrompt":
        """Return what the model reads; see `Encoder.prompt`."""
        prompt = encoder.prompt(self.text, images=self.images, row=self.row, before=self.before)
        return prompt.followed_by(self.prefix)


class SeededDecoding(Decoding):
    """How completion tokens are chosen; the prompt and its image are encoded once for all completions."""

    seed: int
    """Seed of the samples; unused in greedy decoding."""


@dataclass(frozen=True, kw_only=True)
class EncodedRequest:
    """A request as a stream gets it.

    Attributes:
        name: Unique among the requests that are being answered.
        prompt: The prompt; its `row` seeds the samples.
        decoding: How it is answered.
        alone: Whether the prompt is of a study, or of its form. Nothing that was found out about such prompts holds for
            other conversations.
        watched: Whether states are read, where the pass that answers gives them.
        log_probs: Whether log-probabilities are wanted: an engine may have to normalize all logits for them.
        top_log_probs: Of how many of the most probable tokens they are wanted besides, where a stream gives them.
        drawn_by: What seeds the generator of each completion with transformers; None for the decoding's seed, the
            prompt's `row`, and the completion's number.
    """

    name: str
    prompt: "EncodedPrompt"
    decoding: SeededDecoding
    alone: bool = True
    watched: bool = False
    log_probs: bool = True
    top_log_probs: int = 0
    drawn_by: Sequence[tuple[str | int, ...]] | None = None

    def generator(self, index: int) -> np.random.Generator:
        """Return the random numbers of a completion."""
        names = self.drawn_by[index] if self.drawn_by else ("sample", self.decoding.seed, self.prompt.row, index)
        return generator(*names)


@dataclass(frozen=True, kw_only=True)
class Completion:
    """One completion of a prompt.

    Attributes:
        prompt_token_ids: The prompt that the model read, with image tokens expanded.
        token_ids: The generated ids, including the stop token.
        token_log_probs: Log-softmax of each generated id, in nats, over the raw logits: before ids are forbidden, and
            before temperature and top-p are applied. Empty where a stream was not asked for them.
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
class Rollout:
    """One completion that an engine has drawn: its ids, including the one that ends the turn.

    `log_probs` are those of the ids by the policy, in nats: before ids are forbidden, and before top-p. `drawn_with` is
    what the engine itself says that it drew with, as in the function of this name.
    """

    token_ids: Sequence[int]
    log_probs: Sequence[float]
    drawn_with: Mapping[str, Any]


def drawn_with(
    *,
    temperature: float,
    top_p: float,
    max_completion_tokens: int,
    seed: int,
    stop: Iterable[int],
    forbidden: Iterable[int],
) -> dict[str, Any]:
    """Return the parameters with which a completion is drawn.

    An engine reports these, and under names of its own any other one that changes what is drawn.
    """
    return {
        "temperature": temperature,
        "top_p": top_p,
        "max_completion_tokens": max_completion_tokens,
        "seed": seed,
        "ids that end a turn": sorted(stop),
        "forbidden ids": sorted(forbidden),
    }


@dataclass(frozen=True, kw_only=True)
class Loglikelihoods:
    """The log-likelihoods in nats of given continuations of one prompt, float64 [K]: sums over their ids.

    `prompt_token_ids` are what the model read, with image tokens expanded and the request's prefix appended.
    """

    prompt_token_ids: Sequence[int]
    values: np.ndarray


class AnsweringActor(Protocol):
    """An opened checkpoint; `encoder` encodes its prompts, and knows which ids end a turn.

    Results depend only on the list of requests as a whole, the settings and the checkpoint.
    """

    encoder: "Encoder"

    def answer(
        self, requests: Sequence[Request], decoding: SeededDecoding, collecting: "Collecting | None" = None
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

        Continuations, K lists of at least one id for each request, are teacher-forced; nothing is generated. A prefix
        that several of them share is read once.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class ReadSpec:
    """What is read of the states of a completion.

    Attributes:
        kappa: Temperature of the evidence pooling.
        middle: Whether h_mid is read, of one middle layer.
        depths: Depths, from 0 to 1, at which the answer's states are read besides (`forward.layer_vector`).
        entropies: Whether the entropies of tokens are computed.
        images: Whether the means over the tokens of single images are read besides (`replayed.with_images`).
    """

    kappa: float
    middle: bool = True
    depths: tuple[float, ...] = ()
    entropies: bool = False
    images: bool = False


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

    `kinds` are the data classes of which results consist, for `finished.in_batches`.
    """

    kinds: ClassVar[tuple[type, ...]]

    def layers(self, n_layers: int) -> list[int]:
        """Return the layers, 1-based, whose states are wanted besides those of the last one."""
        ...

    def reads_last(self, completion: Sequence[int], encoder: "Encoder") -> bool:
        """Return whether the states of the last token of a completion are read, which is chosen from others."""
        ...

    def read(
        self,
        rows: Sequence[PassStates],
        completions: Sequence[Sequence[int]],
        logits: Callable[[Any], Any],
        encoder: "Encoder",
        claims: Sequence[Sequence[ClaimSpan]] | None = None,
    ) -> list[Any]:
        """Return one result per completion.

        `rows` are the states of at least one row, `completions` their ids, `logits` is the model's head: states [...,
        D] to logits [..., V] in float32. `claims` are those of completions that go on, of which alone something is
        read; None at their end.
        """
        ...


def read_states(
    opened: "Opened",
    requests: Sequence[Request],
    completions: Sequence[Sequence[int]],
    spec: ReadSpec,
    *,
    batch_size: int,
    prompts: Sequence[str] | None = None,
    claims: Sequence[Sequence[ClaimSpan]] | None = None,
) -> "list[Replayed]":
    """Read the states of one completion of each request, in a teacher-forced pass.

    Args:
        opened: The opened checkpoint.
        requests: n requests without a prefix.
        completions: The generated ids of each request, at least one.
        spec: What is read.
        batch_size: Completions that are read together.
        prompts: `prompt_sha256` of the prompt that each completion was generated from, which has to be the same; None
            if that was another one.
        claims: The claims of each completion, in characters, which are read besides; None for none.
    """
    from dualread.models.finished import in_batches, parts_of
    from dualread.models.replay.forward import checked_prompt, replay_batch
    from dualread.models.replay.positions import Positions
    from dualread.models.replay.replayed import Replayed

    def of_batch(batch: Sequence[int]) -> list[Replayed]:
        asked = [checked_prompt(opened, requests[i], None if prompts is None else prompts[i]) for i in batch]
        return replay_batch(opened, asked, [completions[i] for i in batch], spec, claims and [claims[i] for i in batch])

    # Rows about one image follow each other, so that it is encoded once per batch.
    order = sorted(range(len(requests)), key=lambda i: (requests[i].image_name, len(completions[i]), i))
    rows: list[Sequence[Any]] = [of_rows for of_rows in (requests, completions, prompts, claims) if of_rows is not None]
    batches = parts_of(order, batch_size)
    return in_batches(batches, of_batch, Replayed, Positions, rows=rows, label="replaying (batches)")


def take_measure(
    opened: "Opened",
    requests: Sequence[Request],
    completions: Sequence[Sequence[int]],
    plugin: ConfiguredPlugin,
    *,
    batch_size: int,
) -> dict[str, np.ndarray]:
    """Return what a measure finds of one completion of each request, float32 [n, d] by name; arguments as in
    `read_states`.
    """
    from dualread.models.finished import in_batches, parts_of
    from dualread.models.measures import measure_batch

    def of_batch(batch: Sequence[int]) -> list[dict[str, np.ndarray]]:
        prompts = [requests[i].encoded(opened.encoder) for i in batch]
        return measure_batch(opened, prompts, [completions[i] for i in batch], plugin)

    # Prompts of one length are read together, and those are mostly of texts of one length.
    order = sorted(range(len(requests)), key=lambda i: (len(requests[i].text), requests[i].image_name, i))
    rows, label = [requests, completions], "measuring (batches)"
    measured = in_batches(parts_of(order, batch_size), of_batch, rows=rows, label=label)
    names = measured[0] if measured else ()
    return {name: np.stack([row[name] for row in measured]).astype(np.float32) for name in names}
