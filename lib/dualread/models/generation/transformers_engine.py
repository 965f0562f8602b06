"""Generation with `transformers`: batches of prompts of similar length, padded on the left.

Suited to tiny models and small machines; it runs in the main environment. The loop over tokens is written out here,
because `model.generate` would encode the prompt and its image again for every sample.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.declared.base import Positive, Section, Wire
from dualread.declared.recorded import USUAL, Facts
from dualread.models.backbones import parts
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.opened import Opened, open_checkpoint
from dualread.models.finished import each_batch
from dualread.models.generation.base import Collecting, Completion, Loglikelihoods, Request, SeededDecoding, Step
from dualread.models.generation.data_parallel import by_image
from dualread.models.prefixes import NOTHING
from dualread.progress import track
from dualread.seeding import generator

if TYPE_CHECKING:
    from dualread.models.generation._kept import Kept

COLLECTS = True

_LEAST_GOING = 0.75  # finished rows are dropped when fewer than this share still go on, because that copies the others


class Settings(Section):
    """How many completions are made together."""

    batch_size: Positive
    """Completions in one batch. Results do not depend on it."""


def open_engine(checkpoint: Path, settings: Wire, engine: Wire, facts: Facts = USUAL) -> "TransformersEngine":
    """Load `checkpoint`; `engine` holds the `batch_size`, the number of completions that are generated at once."""
    return TransformersEngine(open_checkpoint(checkpoint, settings, facts), engine["batch_size"])


class TransformersEngine:
    """Implements `dualread.models.generation.base.Engine` with `transformers`."""

    def __init__(self, opened: Opened, batch_size: int):
        self._opened = opened
        self.model = opened.model
        self.encoder = opened.encoder
        self.forbidden = list(opened.forbidden)
        self.stop = opened.stop
        self.batch_size = batch_size

    def generate(
        self, requests: Sequence[Request], decoding: SeededDecoding, collecting: Collecting | None = None
    ) -> list[list[Completion]]:
        """Complete `requests`; see `Engine.generate`."""
        results: list[list[Completion]] = [[] for _ in requests]
        batches = _batches(requests, max(1, self.batch_size // decoding.n_samples))
        kinds = (Completion, *(collecting.kinds if collecting else ()))

        def of_batch(batch: Sequence[int]) -> list[list[Completion]]:
            return self._complete([requests[i] for i in batch], decoding, collecting)

        for batch, found in each_batch(batches, of_batch, *kinds, label="generating (batches)"):
            for i, completions in zip(batch, found, strict=True):
                results[i] = completions
        return results

    def _complete(
        self, requests: Sequence[Request], decoding: SeededDecoding, collecting: Collecting | None
    ) -> list[list[Completion]]:
        import torch

        prompts, n = self._encode(requests), decoding.n_samples
        rows = [(i, k) for i in range(len(prompts)) for k in range(n)]
        of, uniform = [i for i, _ in rows], _uniform(requests, rows, decoding)
        with torch.inference_mode():
            kept = None
            if collecting is not None:
                from dualread.models.generation._kept import Kept

                kept = Kept(self._opened, prompts, decoding, collecting)
            found = complete(self._opened, prompts, of, decoding, uniform, kept)
            states = [None] * len(rows) if kept is None else kept.read([ids for ids, _ in found])
        made = [self._completion(prompts[i].token_ids, *row) for i, row in zip(of, found, strict=True)]
        made = [replace(one, states=of_row) for one, of_row in zip(made, states, strict=True)]
        return [made[i * n : (i + 1) * n] for i in range(len(prompts))]

    def _encode(self, requests: Sequence[Request]) -> list[EncodedPrompt]:
        # Those about one image follow each other, so that it is changed and processed once; a few are kept in memory.
        made = {i: self._prompt(requests[i]) for i in by_image(requests)}
        return [made[i] for i in range(len(requests))]

    def _prompt(self, request: Request) -> EncodedPrompt:
        return self.encoder.prompt(request.text, image=request.image, row=request.row).followed_by(request.prefix)

    def _completion(self, prompt: Sequence[int], tokens: list[int], log_probs: list[float]) -> Completion:
        return Completion(
            prompt_token_ids=prompt,
            token_ids=tokens,
            token_log_probs=log_probs,
            text=self.encoder.tokenizer.decode(tokens, skip_special_tokens=True),
            finish_reason="stop" if tokens[-1] in self.stop else "length",
        )

    def loglikelihoods(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[Sequence[int]]]
    ) -> list[Loglikelihoods]:
        """Score the `continuations` of each request; see `Engine.loglikelihoods`."""
        from dualread.models.generation._tree import score

        by_tree: dict[Any, list[int]] = {}
        for i, of_request in enumerate(continuations):
            by_tree.setdefault(tuple(map(tuple, of_request)), []).append(i)
        batches = [
            (ids, [rows[k] for k in batch])
            for ids, rows in by_tree.items()
            for batch in _batches([requests[i] for i in rows], self.batch_size)
        ]
        results: dict[int, Loglikelihoods] = {}
        for ids, batch in track(batches, total=len(batches), label="scoring continuations (batches)"):
            prompts = self._encode([requests[i] for i in batch])
            values = score(self._opened, prompts, ids)
            results |= {
                i: Loglikelihoods(prompt_token_ids=prompt.token_ids, values=of_prompt)
                for i, prompt, of_prompt in zip(batch, prompts, values, strict=True)
            }
        return [results[i] for i in range(len(requests))]


def _batches(requests: Sequence[Request], size: int) -> list[list[int]]:
    # Ties are broken by position, so the batches depend on the list of requests and on nothing else.
    order = sorted(range(len(requests)), key=lambda i: (len(requests[i].text) + len(requests[i].prefix), i))
    return [order[i : i + size] for i in range(0, len(order), size)]


def _uniform(
    requests: Sequence[Request], rows: Sequence[tuple[int, int]], decoding: SeededDecoding
) -> np.ndarray | None:
    """Return random numbers in [0, 1), [rows, tokens], or None for greedy decoding.

    The generator of each row is seeded with the request's name and the number of the sample, so that samples do not
    depend on what else is in the batch.
    """
    if decoding.temperature == 0:
        return None
    drawn = [generator("sample", decoding.seed, requests[i].row, k) for i, k in rows]
    return np.stack([rng.random(decoding.max_completion_tokens) for rng in drawn])


def complete(
    opened: Opened,
    prompts: Sequence[EncodedPrompt],
    of: Sequence[int],
    decoding: SeededDecoding,
    uniform: np.ndarray | None,
    kept: "Kept | None" = None,
) -> list[tuple[list[int], list[float]]]:
    """Return the ids of each completion, and their log-softmax over the raw logits, in nats; see `steps`."""
    import torch

    device, stop = opened.model.device, torch.tensor(sorted(opened.stop), device=opened.model.device)
    n_tokens = decoding.max_completion_tokens
    tokens = torch.full((len(of), n_tokens + 1), int(stop[0]), device=device)
    log_probs = torch.zeros(tokens.shape, device=device)
    for number, step in enumerate(steps(opened, prompts, of, decoding, uniform, kept=kept)):
        tokens[step.at, number] = step.chosen
        log_probs[step.at, number] = step.log_probs
    lengths = _lengths(torch.isin(tokens[:, :n_tokens], stop)).tolist()  # a row may have gone on after its stop token
    rows = zip(tokens.tolist(), log_probs.tolist(), lengths, strict=True)
    return [(ids[:length], values[:length]) for ids, values, length in rows]


def steps(
    opened: Opened,
    prompts: Sequence[EncodedPrompt],
    of: Sequence[int],
    decoding: SeededDecoding,
    uniform: np.ndarray | None,
    ended: Set[int] = frozenset(),
    kept: "Kept | None" = None,
) -> Iterator[Step]:
    """Complete prompts in one batch, token by token; each prompt is read once, whatever the number of its completions.

    Args:
        opened: The model, and how to encode its prompts.
        prompts: The encoded prompts.
        of: For each completion, the position of its prompt in `prompts`.
        decoding: How tokens are chosen; `n_samples` and `seed` are not read.
        uniform: Random numbers in [0, 1), [completions, max_completion_tokens]; None for greedy decoding.
        ended: Completions that nobody wants any longer; the caller may add some between two steps.
        kept: Keeps all states, for which the last token of each completion is read as well.
    """
    import torch

    from dualread.models.generation._states import CachedStates, Rows

    model, n_tokens, head = opened.model, decoding.max_completion_tokens, parts.head(opened.model)
    stop, forbidden = (torch.tensor(sorted(ids), device=model.device) for ids in (opened.stop, opened.forbidden))
    layers = () if kept is None else kept.layers
    if opened.encoder.facts.shared == NOTHING:
        states = Rows(opened, [prompts[i] for i in of], layers)
    else:
        states = CachedStates(opened, prompts, of, room=n_tokens - (kept is None), layers=layers)
    at = torch.arange(len(of), device=model.device)  # the completion of each row of `states`
    going = torch.ones(len(of), dtype=torch.bool, device=model.device)
    said = torch.zeros_like(going)  # whether a row has chosen a token that ends it
    for step in range(n_tokens if kept is None else n_tokens + 1):
        if kept is not None:
            kept.take(step, at, states)
        scores = head(states.last).float()
        total = scores.logsumexp(dim=-1)
        scores[:, forbidden] = -torch.inf
        chosen = _choose(scores, decoding, None if uniform is None else uniform[at.cpu().numpy(), step])
        log_probs = scores.gather(1, chosen[:, None])[:, 0] - total
        yield Step(at=at, chosen=chosen, log_probs=log_probs, states=states.last)
        before, said = said, said | torch.isin(chosen, stop)
        going &= ~(said if kept is None else before)  # where states are kept, the token that ends a row is read, too
        if ended:
            going &= torch.tensor([row not in ended for row in at.tolist()], device=model.device)
        n_going = int(going.sum())
        if not n_going or step + 1 == n_tokens + (kept is not None):
            break
        if n_going < _LEAST_GOING * len(at):
            left = going.nonzero()[:, 0]
            states.select(left)
            at, chosen, going, said = at[left], chosen[left], going[left], said[left]
        states.append(chosen)


def _choose(scores: Any, decoding: SeededDecoding, uniform: np.ndarray | None) -> Any:
    """Return one id per row of `scores` [rows, V]: the argmax, or a sample by inverse transform sampling.

    A sample is the first id at which the cumulative probability exceeds u; `uniform` holds one u per row, or is None
    for greedy decoding.
    """
    import torch

    if uniform is None:
        return scores.argmax(dim=-1)
    probabilities = torch.softmax(scores.double() / decoding.temperature, dim=-1)
    if decoding.top_p < 1:  # keep the smallest set of ids with at least this mass
        ordered, ids = probabilities.sort(dim=-1, descending=True, stable=True)
        outside = ordered.cumsum(dim=-1) - ordered >= decoding.top_p
        probabilities = probabilities.masked_fill(torch.zeros_like(outside).scatter(1, ids, outside), 0.0)
    reached = probabilities.cumsum(dim=-1)
    at = torch.from_numpy(uniform).to(scores.device)[:, None] * reached[:, -1:]
    return torch.searchsorted(reached, at, right=True)[:, 0]  # right: never an id of probability 0


def _lengths(stops: Any) -> Any:
    """Return the number of ids up to and with the first stop token of each row [rows]; all if it has none."""
    return stops.shape[1] - (stops.cumsum(dim=1) > 0).sum(dim=1) + stops.any(dim=1)
