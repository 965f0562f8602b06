"""Generation with `transformers`: batches of prompts of similar length, or about one image, padded on the left.

Suited to tiny models and small machines; it runs in the main environment. The loop over tokens is written out here,
because `model.generate` would encode the prompt and its image again for every sample.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dualread.models.actor import Collecting, Completion, EncodedRequest, Loglikelihoods, Request, SeededDecoding
from dualread.models.backbones.checkpoint import Opened, open_checkpoint
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.finished import in_batches, parts_of
from dualread.models.generation._transformers_stream import complete
from dualread.models.generation.data_parallel import by_image, by_length
from dualread.schema.base import Positive, Section, Wire
from dualread.schema.recorded import USUAL, Facts

COLLECTS = True


class Settings(Section):
    """How many completions are made together."""

    batch_size: Positive
    """Completions in one batch. Results do not depend on it."""
    by_image: bool | None = None
    """Whether a batch has questions about few images, so that an edit of one answers few others again."""


def open_engine(checkpoint: Path, settings: Wire, engine: Wire, facts: Facts = USUAL) -> "TransformersEngine":
    """Load `checkpoint`; `engine` is what `Settings` declares."""
    return TransformersEngine(open_checkpoint(checkpoint, settings, facts), **engine)


class TransformersEngine:
    """Implements `dualread.models.actor.AnsweringActor` with `transformers`."""

    def __init__(self, opened: Opened, batch_size: int, by_image: bool | None = None):
        self._opened, self._by_image = opened, bool(by_image)
        self.model = opened.model
        self.encoder = opened.encoder
        self.batch_size = batch_size

    def answer(
        self, requests: Sequence[Request], decoding: SeededDecoding, collecting: Collecting | None = None
    ) -> list[list[Completion]]:
        """Complete `requests`; see `AnsweringActor.answer`."""
        import torch

        kinds = (Completion, *(collecting.kinds if collecting else ()))

        def of_batch(batch: Sequence[int]) -> list[list[Completion]]:
            prompts = self._encode([requests[i] for i in batch])
            asked = [EncodedRequest(name=str(i), prompt=prompt, decoding=decoding) for i, prompt in enumerate(prompts)]
            with torch.inference_mode():
                return complete(self._opened, asked, collecting)

        order, size = by_length(requests, by_image=self._by_image), max(1, self.batch_size // decoding.n_samples)
        return in_batches(parts_of(order, size), of_batch, *kinds, rows=[requests], label="generating (batches)")

    def _encode(self, requests: Sequence[Request]) -> list[EncodedPrompt]:
        # Those about one image follow each other, so that it is changed and processed once; a few are kept in memory.
        made = {i: requests[i].encoded(self.encoder) for i in by_image(requests)}
        return [made[i] for i in range(len(requests))]

    def loglikelihoods(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[Sequence[int]]]
    ) -> list[Loglikelihoods]:
        """Score the `continuations` of each request; see `AnsweringActor.loglikelihoods`."""
        from dualread.models.generation._tree import score

        by_tree: dict[Any, list[int]] = {}
        for i, of_request in enumerate(continuations):
            by_tree.setdefault(tuple(map(tuple, of_request)), []).append(i)
        batches: list[Sequence[int]] = []
        for same in by_tree.values():
            order = [same[k] for k in by_length([requests[i] for i in same], by_image=self._by_image)]
            batches += parts_of(order, self.batch_size)

        def of_batch(batch: Sequence[int]) -> list[Loglikelihoods]:
            prompts = self._encode([requests[i] for i in batch])
            values = score(self._opened, prompts, tuple(map(tuple, continuations[batch[0]])))
            return [
                Loglikelihoods(prompt_token_ids=p.token_ids, values=v) for p, v in zip(prompts, values, strict=True)
            ]

        rows, label = [requests, continuations], "scoring continuations (batches)"
        return in_batches(batches, of_batch, Loglikelihoods, rows=rows, label=label)
