"""What readers read of the states of the pass that answers: of a whole answer, or of each claim of a report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dualread.apps.score.answering import ActorNeeds
from dualread.apps.score.claims import ClaimDivider
from dualread.errors import DataError
from dualread.grading.answers import character_spans, tokens_within
from dualread.models.actor import ClaimSpan, PassStates
from dualread.models.backbones.encode import Encoder
from dualread.models.replay.forward import middle_layer, vectors_of
from dualread.models.replay.positions import Positions, locate
from dualread.models.replay.replayed import log_probs_of

_LOG_PROB, _MIDDLE = "answer_log_prob", "h_mid"
FINAL = ("h_pre", "h_close", "h_ans", "h_global", "h_evid", "h_think", _LOG_PROB)  # of the final layer alone
# Where a claim is, or None for the whole answer, and its vectors by name, float32.
Vectors = tuple[ClaimSpan | None, dict[str, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class ReadersVectors:
    """Implements `models.actor.Collecting`: what readers read, as a replay reads it.

    `kappa` is the temperature of the visual pooling, and `names` are the vectors that are brought to the host. The
    `divider` divides a completion into claims, each of which is read; without it, whole answers are.
    """

    kappa: float
    names: frozenset[str] = frozenset(FINAL)
    thinking_ends: str | None = None
    divider: ClaimDivider | None = None
    kinds: ClassVar[tuple[type, ...]] = ()

    @classmethod
    def from_needs(cls, needs: ActorNeeds) -> "ReadersVectors | None":
        """Return what readers need; None if none reads states."""
        if needs.kappa is None:
            return None
        names = needs.features | {"h_pre"}  # by which a question is compared with others, and which is before an answer
        return cls(kappa=needs.kappa, names=names, thinking_ends=needs.thinking_ends, divider=needs.divider)

    def layers(self, n_layers: int) -> list[int]:
        """See `Collecting.layers`."""
        return [middle_layer(n_layers)] if _MIDDLE in self.names else []

    def reads_last(self, completion: Sequence[int], encoder: Encoder) -> bool:
        """See `Collecting.reads_last`."""
        places = self._places(completion, encoder, None) or ()
        return any(len(completion) - 1 in (at.close, at.think, *at.answer) for _, at in places)

    def read(
        self,
        rows: Sequence[PassStates],
        completions: Sequence[Sequence[int]],
        logits: Callable[[Any], Any],
        encoder: Encoder,
        claims: Sequence[Sequence[ClaimSpan]] | None = None,
    ) -> list[list[Vectors] | None]:
        """See `Collecting.read`; None for a completion that cannot be divided."""
        places = [
            self._places(ids, encoder, None if claims is None else claims[k]) for k, ids in enumerate(completions)
        ]
        return [
            None if at is None else [(span, self._vectors(row, ids, a, logits, encoder.forbidden)) for span, a in at]
            for row, ids, at in zip(rows, completions, places, strict=True)
        ]

    def _places(
        self, ids: Sequence[int], encoder: Encoder, claims: Sequence[ClaimSpan] | None
    ) -> list[tuple[ClaimSpan | None, Positions]] | None:
        """Return what is read of a completion, and where: `claims`, or all of them at its end; or its answer."""
        report = locate(ids, encoder.decode, encoder.stop, self.thinking_ends)
        if self.divider is None:
            return [(None, report)]
        if claims is None:
            try:
                [claims] = self.divider.claims([("", encoder.decode(ids))])
            except DataError:  # which whoever asks for the answer is told
                return None
        _, spans = character_spans(ids, encoder.decode)
        return [((start, end), report.of_claim(tokens_within(spans, start, end))) for start, end in claims]

    def _vectors(
        self,
        row: PassStates,
        ids: Sequence[int],
        at: Positions,
        logits: Callable[[Any], Any],
        forbidden: Sequence[int],
    ) -> dict[str, np.ndarray]:
        import torch

        vectors = vectors_of(row.final, next(iter(row.layers.values()), None), row.image, at, self.kappa)
        names = [name for name in vectors if name in self.names]
        together = torch.stack([vectors[name].float() for name in names]).cpu() if names else ()  # one copy
        numbers = {name: np.asarray(vector) for name, vector in zip(names, together, strict=True)}
        if _LOG_PROB in self.names:
            answer = list(at.answer)
            ids_of_answer = torch.tensor([ids[t] for t in answer], device=row.final.device)
            log_probs, _ = log_probs_of(logits, row.final[answer], ids_of_answer, forbidden)
            numbers[_LOG_PROB] = log_probs.mean(keepdims=True).astype(np.float32)
        return numbers
