"""The states of answers from the pass that made them, and a replay of some of them as a check.

A generation with `schema.replay.PassReading` stores, beside its completions, what a replay reads. `Collected` takes
it from the pass, `write` and `read` store it, and `check` compares a sample with a replay. The code of this module
is in the keys of such studies alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from dualread.artifacts.tables import read_parts
from dualread.artifacts.tensors import read_tensors, write_tensors
from dualread.errors import ArtifactError
from dualread.models.actor import PassStates, ReadSpec, Request
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import Encoder
from dualread.models.finished import parts_of
from dualread.models.replay.agreement import SAMPLE, check_states, in_both_precisions, sample
from dualread.models.replay.forward import checked_prompt, middle_layer, reading_of, replay_batch
from dualread.models.replay.positions import Positions, locate
from dualread.models.replay.replayed import Replayed, padded, stacked
from dualread.schema.answers import ReplaySpec
from dualread.schema.columns import GENERATIONS
from dualread.schema.replay import Agreement, PassReading

FILE = "states.safetensors"
_OF_TOKENS = ("token_log_probs", "argmax_gap", "token_entropies")  # padded behind the last token of each completion
_OF_ROWS = ("n_prompt_tokens", "n_image_tokens")


@dataclass(frozen=True, kw_only=True)
class Collected:
    """Implements `models.actor.Collecting`: what a replay would read, of greedy answers.

    `thinking_ends` is as in `Opened`.
    """

    spec: PassReading
    thinking_ends: str | None = None
    kinds: ClassVar[tuple[type, ...]] = (Replayed, Positions)

    def layers(self, n_layers: int) -> list[int]:
        """See `Collecting.layers`."""
        return [middle_layer(n_layers)] if self.spec.middle else []

    def reads_last(self, completion: Sequence[int], encoder: Encoder) -> bool:
        """See `Collecting.reads_last`."""
        at = locate(completion, encoder.decode, encoder.stop, self.thinking_ends)
        return len(completion) - 1 in (at.close, at.think, *at.answer, *([at.last] if self.spec.middle else ()))

    def read(
        self,
        rows: Sequence[PassStates],
        completions: Sequence[Sequence[int]],
        logits: Callable[[Any], Any],
        encoder: Encoder,
        claims: None = None,
    ) -> list[Replayed]:
        """See `Collecting.read`; of whole completions alone."""
        layers: dict[str, int] = dict(zip(("h_mid",), rows[0].layers, strict=False))
        spec = ReadSpec(**self.spec.model_dump(include={"kappa", "middle", "entropies"}))
        located = partial(locate, decode=encoder.decode, stop=encoder.stop, thinking_ends=self.thinking_ends)
        return reading_of(rows, completions, spec, layers, logits, located, encoder.forbidden)


def write(folder: Path, collected: Sequence[Replayed]) -> None:
    """Store what was collected of each row of a generations table, in its order."""
    tensors = {name: stacked(collected, name) for name in (collected[0].vectors if collected else ())}
    for name in _OF_TOKENS:
        of_rows = [getattr(answer, name) for answer in collected]
        if of_rows and of_rows[0] is not None:
            tensors[name] = padded(of_rows)
    tensors |= {name: np.array([getattr(answer, name) for answer in collected], np.int32) for name in _OF_ROWS}
    write_tensors(folder / FILE, tensors, {})


def read(folder: Path, actor: Opened, completions: pl.DataFrame) -> list[Replayed]:
    """Return what `write` has stored of the completions of a table, in its order; the actor decodes ids."""
    made = read_parts(folder, GENERATIONS, ("sample_id",))["sample_id"].to_list()
    tensors, asked = read_tensors(folder / FILE), completions["sample_id"].to_list()
    if any(len(values) != len(made) for values in tensors.values()) or set(made) != set(asked):
        raise ArtifactError(
            f"{folder}: {FILE} is not about the {len(made)} answers beside it. Generate the shard again."
        )
    of_tokens = [name for name in _OF_TOKENS if name in tensors]
    vectors = [name for name in tensors if name not in (*_OF_TOKENS, *_OF_ROWS)]
    rows = {sample_id: row for row, sample_id in enumerate(made)}
    return [
        Replayed(
            vectors={name: tensors[name][row] for name in vectors},
            positions=actor.locate(ids),
            **{name: int(tensors[name][row]) for name in _OF_ROWS},
            **{"token_entropies": None, **{name: tensors[name][row, : len(ids)] for name in of_tokens}},
        )
        for row, ids in zip((rows[name] for name in asked), completions["token_ids"].to_list(), strict=True)
    ]


def check(
    collected: Sequence[Replayed],
    actor: Opened,
    requests: Sequence[Request],
    completions: pl.DataFrame,
    spec: ReplaySpec,
    bounds: Agreement,
) -> int:
    """Replay a sample of answers, and compare it with what was collected; return how many were replayed.

    How far states may differ is measured as for log-probabilities (`agreement`): by reading the sample in float32, too.
    """
    rows = sample(len(requests), SAMPLE)
    token_ids, prompts = completions["token_ids"].to_list(), completions["prompt_sha256"].to_list()

    def replayed() -> list[Replayed]:
        answers = []
        for part in parts_of(rows, spec.replay.settings.batch_size):
            asked = [checked_prompt(actor, requests[i], prompts[i]) for i in part]
            answers += replay_batch(actor, asked, [token_ids[i] for i in part], ReadSpec(kappa=spec.replay.kappa))
        return answers

    again, exact = in_both_precisions(actor, replayed)
    names = [requests[i].row for i in rows]
    check_states([collected[i] for i in rows], again, exact, names, bounds, where=spec.shard.name)
    return len(rows)
