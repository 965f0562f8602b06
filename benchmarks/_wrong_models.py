"""Replays of answers by the model that generated them, and by models or with inputs that differ a little."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
from _rehearsal import Rehearsal
from _replays import compare, without_types

from dualread.artifacts.tables import read_parts
from dualread.models.actor import Completion
from dualread.models.backbones.checkpoint import Opened, open_checkpoint
from dualread.models.backbones.processor import load_processor
from dualread.models.replay import agreement
from dualread.schema.columns import GENERATIONS
from dualread.schema.replay import Agreement
from dualread.stages._asked import read_asked

# Adam moves a weight by at most about the learning rate per step: paper.yaml's 117 steps of 1e-6.
STEPS, LEARNING_RATE = 117, 1e-6


def wrong_models(rehearsal: Rehearsal) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield replays of the greedy answers by the model that generated, and by others that differ from it."""
    opened = _Lazy(rehearsal)
    settings = Agreement(**rehearsal.config.as_mapping()["replay"]["agreement"])
    walk = LEARNING_RATE * math.sqrt(STEPS)
    kinds: dict[str, tuple[bool | None, Callable[[], Opened]]] = {
        "itself": (False, opened),
        # LLaVA's processor gives none.
        **({"no token types": (True, lambda: without_types(opened()))} if rehearsal.family != "llava" else {}),
        **({"half the size": (True, lambda: opened(4))} if rehearsal.family == "qwen3_vl" else {}),
        "1% of each weight": (True, lambda: opened.changed(lambda w, noise: w + 0.01 * w * noise)),
        f"{STEPS} steps, one way": (
            None, lambda: opened.changed(lambda w, noise: w + STEPS * LEARNING_RATE * noise.sign()),
        ),
        f"{STEPS} steps, any way": (None, lambda: opened.changed(lambda w, noise: w + walk * noise)),
    }  # fmt: skip
    rounding: list[float] = []

    def judged(wrong: bool | None, made_by: Callable[[], Opened]) -> str:
        about, made = _answers(rehearsal)
        # Rounding is measured on the model that generated. Measuring it on each would take most of the time.
        known = rounding[0] if rounding else None
        found = compare(made_by(), about, made, noise=known, tolerance=settings.argmax_tolerance)
        rounding[:] = [found["rounding"]]
        bounds = agreement.allowed(settings, found["rounding"])
        refused = (
            found["mean difference"] > bounds.max_mean_log_prob_difference
            or found["worse tokens"] > bounds.max_argmax_mismatch_share
        )
        said = (
            f"{'refused' if refused else 'accepted'}: differs by {found['mean difference']:.2e}, rounding explains"
            f" {found['rounding']:.2e}, bound {bounds.max_mean_log_prob_difference:.2e}, worse tokens"
            f" {found['worse tokens']:.1%}"
        )
        assert wrong is None or refused == wrong, f"{said}; expected {'refused' if wrong else 'accepted'}"
        return said

    for name, (wrong, made_by) in kinds.items():
        yield name, lambda wrong=wrong, made_by=made_by: judged(wrong, made_by)


class _Lazy:
    """The model that generated, opened at the first call."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        self._rehearsal = rehearsal
        self._folder = rehearsal.answering / "checkpoint"
        self._opened: Opened | None = None

    def __call__(self, fewer_pixels: int = 1) -> Opened:
        """Return it with a new encoder, for images of fewer pixels."""
        settings = self._rehearsal.settings
        self._opened = self._opened or open_checkpoint(self._folder, settings)
        limits = {name: settings[name] // fewer_pixels for name in ("min_pixels", "max_pixels")}
        if fewer_pixels > 1:
            limits["max_pixels"] = self._rehearsal.scale.side**2 // fewer_pixels
        return Opened.of(self._opened.model, load_processor(self._folder, settings | limits), settings | limits)

    def changed(self, change: Callable[[Any, Any], Any]) -> Opened:
        """Return it with other weights; `change` gets those of the checkpoint and normal numbers, in float32."""
        import torch
        from safetensors import safe_open

        opened = self()
        weights = dict(opened.model.named_parameters())
        # Drawn once, as drawing takes longer than the replay. Its length is prime, so that rows of weights differ.
        drawn = torch.empty(1_000_003).normal_(generator=torch.Generator().manual_seed(0))
        for file in sorted(self._folder.glob("*.safetensors")):
            with safe_open(file, framework="pt") as tensors, torch.no_grad():
                for name in tensors.keys():  # noqa: SIM118
                    value, weight = tensors.get_tensor(name), weights[name]
                    changed = torch.empty_like(value, dtype=weight.dtype)
                    pieces = [tensor.flatten().split(len(drawn)) for tensor in (value, changed)]
                    for old, new in zip(*pieces, strict=True):  # pieces that stay in the processor's cache
                        new.copy_(change(old.float(), drawn[: len(old)]))
                    weight.data = changed.to(weight.device)
        opened.model.tie_weights()
        return opened


def _answers(rehearsal: Rehearsal) -> tuple[list[Any], list[Completion]]:
    manifest = rehearsal.manifest()
    questions = {q.sample_id: q for q in read_asked(rehearsal.asked(), {"manifest": manifest})}
    rows = read_parts(rehearsal.answers("greedy"), GENERATIONS).filter(pl.col("sample_index") == 0).to_dicts()
    made = [
        Completion(
            prompt_token_ids=(), token_ids=row["token_ids"], token_log_probs=row["token_log_probs"], text=row["text"],
            finish_reason=row["finish_reason"],
        )
        for row in rows
    ]  # fmt: skip
    return [questions[row["sample_id"]].request(manifest) for row in rows], made
