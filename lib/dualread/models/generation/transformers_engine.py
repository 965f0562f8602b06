"""Generation with `transformers`: batches of prompts of similar length, padded on the left.

Suited to tiny models and small machines; it runs in the main environment. The loop over tokens is written out here,
because `model.generate` would encode the prompt and its image again for every sample.
"""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from dualread.models.backbones.encode import Opened, Prompt, open_checkpoint
from dualread.models.generation.base import Completion, Decoding, Loglikelihoods, Request
from dualread.progress import track
from dualread.seeding import generator
from dualread.specs.parts import Settings

SETTINGS = {"batch_size": {"type": "integer", "minimum": 1}}

_CONTINUATIONS_PER_SLOT = 4  # times batch_size: a continuation has a few ids, a completion many


def open_engine(checkpoint: Path, backbone: ModuleType, settings: Settings, engine: Settings) -> "TransformersEngine":
    """Load `checkpoint`.

    Args:
        checkpoint: The checkpoint's folder.
        backbone: The module of its backbone.
        settings: The `settings` of the backbone's config entry.
        engine: `batch_size`: completions that are generated at once.
    """
    return TransformersEngine(open_checkpoint(checkpoint, backbone, settings), engine["batch_size"])


class TransformersEngine:
    """Implements `dualread.models.generation.base.Engine` with `transformers`."""

    def __init__(self, opened: Opened, batch_size: int):
        self._opened = opened
        self.model = opened.model
        self.encoder = opened.encoder
        self.forbidden = list(opened.forbidden)
        self.stop = opened.stop
        self.batch_size = batch_size

    def generate(self, requests: Sequence[Request], decoding: Decoding) -> list[list[Completion]]:
        """Complete `requests`; see `Engine.generate`."""
        results: list[list[Completion]] = [[] for _ in requests]
        size = max(1, self.batch_size // decoding.n_samples)
        batches = _batches(requests, size)
        for batch in track(batches, total=len(batches), label="generating (batches)"):
            completions = self._complete([requests[i] for i in batch], decoding)
            for i, found in zip(batch, completions, strict=True):
                results[i] = found
        return results

    def loglikelihoods(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[Sequence[int]]]
    ) -> list[Loglikelihoods]:
        """Score the `continuations` of each request; see `Engine.loglikelihoods`."""
        results: dict[int, Loglikelihoods] = {}
        most = max((len(of_request) for of_request in continuations), default=1)
        size = max(1, _CONTINUATIONS_PER_SLOT * self.batch_size // most)
        batches = _batches(requests, size)
        for batch in track(batches, total=len(batches), label="scoring continuations (batches)"):
            scored = self._loglikelihoods([requests[i] for i in batch], [continuations[i] for i in batch])
            results.update(zip(batch, scored, strict=True))
        return [results[i] for i in range(len(requests))]

    def _complete(self, requests: Sequence[Request], decoding: Decoding) -> list[list[Completion]]:
        import torch

        prompts = self._encode(requests)
        n = decoding.n_samples
        rows = [(i, k) for i in range(len(prompts)) for k in range(n)]
        with torch.inference_mode():
            found = complete(self._opened, prompts, [i for i, _ in rows], decoding, _uniform(requests, rows, decoding))
        made = [self._completion(prompts[i].token_ids, *row) for (i, _), row in zip(rows, found, strict=True)]
        return [made[i * n : (i + 1) * n] for i in range(len(prompts))]

    def _loglikelihoods(
        self, requests: Sequence[Request], continuations: Sequence[Sequence[Sequence[int]]]
    ) -> list[Loglikelihoods]:
        """Walk the prefix tree of each request's continuations level by level.

        A node is (position of the request, ids of the prefix); one pass reads all nodes of a level, each once.
        """
        import torch

        prompts = self._encode(requests)
        totals = [np.zeros(len(of_request)) for of_request in continuations]
        nodes: list[tuple[int, tuple[int, ...]]] = [(i, ()) for i in range(len(prompts))]
        with torch.inference_mode():
            states = _States(self.model, self.encoder, prompts)
            depth = 0
            while nodes:
                log_probs = torch.log_softmax(self.model.lm_head(states.last).double(), dim=-1).cpu().numpy()
                at = {node: k for k, node in enumerate(nodes)}
                following: dict[tuple[int, tuple[int, ...]], int] = {}
                for i, of_request in enumerate(continuations):
                    for k, ids in enumerate(of_request):
                        if len(ids) > depth:
                            parent = at[i, tuple(ids[:depth])]
                            totals[i][k] += log_probs[parent, ids[depth]]
                            if len(ids) > depth + 1:
                                following[i, tuple(ids[: depth + 1])] = parent
                nodes, depth = list(following), depth + 1
                if nodes:
                    states.select(list(following.values()))
                    states.append(torch.tensor([ids[-1] for _, ids in nodes], device=self.model.device))
        return [Loglikelihoods(prompt_token_ids=p.token_ids, values=t) for p, t in zip(prompts, totals, strict=True)]

    def _encode(self, requests: Sequence[Request]) -> list[Prompt]:
        return [self.encoder.prompt(r.text, image=r.image, row=r.row).followed_by(r.prefix) for r in requests]

    def _completion(self, prompt: Sequence[int], tokens: list[int], log_probs: list[float]) -> Completion:
        return Completion(
            prompt_token_ids=prompt,
            token_ids=tokens,
            token_log_probs=log_probs,
            text=self.encoder.tokenizer.decode(tokens, skip_special_tokens=True),
            finish_reason="stop" if tokens[-1] in self.stop else "length",
        )


def complete(
    opened: Opened, prompts: Sequence[Prompt], of: Sequence[int], decoding: Decoding, uniform: np.ndarray | None
) -> list[tuple[list[int], list[float]]]:
    """Complete prompts in one batch; each prompt is read once, whatever the number of its completions.

    Args:
        opened: The model, and how to encode its prompts.
        prompts: The encoded prompts.
        of: For each completion, the position of its prompt in `prompts`.
        decoding: How tokens are chosen; `n_samples` and `seed` are not read.
        uniform: Random numbers in [0, 1), [completions, max_completion_tokens]; None for greedy decoding.

    Returns:
        The ids of each completion, and the log-softmax of each id over the raw logits, in nats.
    """
    import torch

    model, stop = opened.model, torch.tensor(sorted(opened.stop))
    tokens: list[list[int]] = [[] for _ in of]
    log_probs: list[list[float]] = [[] for _ in of]
    states = _States(model, opened.encoder, prompts)
    states.select(of)
    active = torch.arange(len(of))
    for step in range(decoding.max_completion_tokens):
        scores = model.lm_head(states.last).float()
        noted = torch.log_softmax(scores, dim=-1)
        scores[:, list(opened.forbidden)] = -torch.inf
        chosen = _choose(scores, decoding, None if uniform is None else uniform[active.numpy(), step])
        noted = noted.gather(1, chosen[:, None])[:, 0]
        for row, token, log_prob in zip(active.tolist(), chosen.tolist(), noted.tolist(), strict=True):
            tokens[row].append(token)
            log_probs[row].append(log_prob)
        going = ~torch.isin(chosen.cpu(), stop)
        if not going.any() or step + 1 == decoding.max_completion_tokens:
            break
        if not going.all():  # finished rows need no further passes
            kept = going.nonzero()[:, 0]
            active, chosen = active[kept], chosen[kept.to(chosen.device)]
            states.select(kept.tolist())
        states.append(chosen)
    return list(zip(tokens, log_probs, strict=True))


class _States:
    """The cached keys and values of a batch of rows, and the final-layer state of each row's last token.

    Attributes:
        last: Final-layer states of the last tokens [rows, D].
    """

    def __init__(self, model: Any, encoder: Any, prompts: Sequence[Prompt]):
        import torch

        self._model, self._backbone = model, encoder.backbone
        batch = {name: tensor.to(model.device) for name, tensor in encoder.batch(prompts).items()}
        output = model.model(**batch, **encoder.shared_images(model, prompts), use_cache=True)
        self._cache, self.last = output.past_key_values, output.last_hidden_state[:, -1]
        self._mask = batch["attention_mask"]
        self._prompt = torch.arange(len(prompts), device=model.device)  # the prompt of each row

    def select(self, rows: Sequence[int]) -> None:
        """Keep the rows at these positions, in this order; a row may be repeated."""
        import torch

        if list(rows) == list(range(len(self._prompt))):
            return
        index = torch.tensor(rows, device=self.last.device)
        self._cache.batch_select_indices(index)
        self.last, self._mask, self._prompt = self.last[index], self._mask[index], self._prompt[index]

    def append(self, tokens: Any) -> None:
        """Read one more token per row; `tokens` holds their ids [rows]."""
        import torch

        n_before = self._mask.sum(dim=1)
        self._mask = torch.cat([self._mask, torch.ones_like(self._mask[:, :1])], dim=1)
        output = self._model.model(
            input_ids=tokens[:, None],
            attention_mask=self._mask,
            position_ids=self._backbone.next_position_ids(self._model, n_before, self._prompt),
            past_key_values=self._cache,
            use_cache=True,
        )
        self.last = output.last_hidden_state[:, -1]


def _batches(requests: Sequence[Request], size: int) -> list[list[int]]:
    # Ties are broken by position, so the batches depend on the list of requests and on nothing else.
    order = sorted(range(len(requests)), key=lambda i: (len(requests[i].text) + len(requests[i].prefix), i))
    return [order[i : i + size] for i in range(0, len(order), size)]


def _uniform(requests: Sequence[Request], rows: Sequence[tuple[int, int]], decoding: Decoding) -> np.ndarray | None:
    """Return random numbers in [0, 1), [rows, tokens], or None for greedy decoding.

    The generator of each row is seeded with the request's name and the number of the sample, so that samples do not
    depend on what else is in the batch.
    """
    if decoding.temperature == 0:
        return None
    drawn = [generator("sample", decoding.seed, requests[i].row, k) for i, k in rows]
    return np.stack([rng.random(decoding.max_completion_tokens) for rng in drawn])


def _choose(scores: Any, decoding: Decoding, uniform: np.ndarray | None) -> Any:
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
