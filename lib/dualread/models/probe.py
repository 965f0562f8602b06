"""Experiments with a checkpoint in float32: what it needs, and which of the library's ways to read rows are right for it.

The reference is always transformers alone: the model's own pass over single rows (`own_pass`) and its own `generate`. The
library's replay, generation and scoring of choices share code, so that they may agree and be wrong.
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dualread.errors import ArtifactError
from dualread.models import own_pass
from dualread.models.backbones import parts
from dualread.models.backbones.encode import Prompt
from dualread.models.backbones.facts import READS, Facts
from dualread.models.backbones.opened import Opened
from dualread.models.generation._tree import score
from dualread.models.generation.base import Decoding
from dualread.models.generation.transformers_engine import complete
from dualread.models.replay.forward import middle_layer, replay_batch

TEXTS = ("Is this a CT scan?", "What is the size of the lesion in the upper left?", "yes or no")
SAID = "The answer is yes, it is in the upper left of the image."
TOLERANCE = (2e-5, 5e-3)  # nats by which right ways may differ: between these, ten times what rounding explains
_SIZES = ((52, 40), (36, 90))  # height and width of pictures
_N_MADE = 5
_WAYS = (*((shared, once) for shared in READS[:-1] for once in (True, False)), (READS[-1], False))


@dataclass(frozen=True, kw_only=True)
class _Row:
    inputs: Mapping[str, Any]
    prompt: Prompt
    said: list[int]


def probe(opened: Opened, where: str) -> tuple[Facts, dict[str, Any]]:
    """Return the facts of a checkpoint, and what was measured.

    Args:
        opened: The checkpoint in float32.
        where: Its name in errors.

    Raises:
        ArtifactError: Answers of the model do not depend on the image, or its states cannot be read.
    """
    import torch

    with torch.inference_mode(), _in_sdpa(opened.model):
        return _Probe(opened, where).run()


class _Probe:
    def __init__(self, opened: Opened, where: str):
        self._opened, self._model, self._where = opened, opened.model, where
        said = opened.encoder.tokenizer(SAID, add_special_tokens=False)["input_ids"]
        self._rows = [self._row(text, _picture(k, _SIZES[k]), said[i:][:6]) for i, (text, k) in enumerate(
            [*((text, 0) for text in TEXTS), (TEXTS[0], 1)]
        )]  # fmt: skip
        self._measured: dict[str, Any] = {}

    def run(self) -> tuple[Facts, dict[str, Any]]:
        rounding = self._rounding()
        self._tolerance = min(max(TOLERANCE[0], 10 * rounding), TOLERANCE[1])
        facts = Facts(completion_type=self._completion_type(), tree=False)
        self._own = [own_pass.read(self._model, row.inputs, row.said, facts.completion_type, output_hidden_states=True)
                     for row in self._rows]  # fmt: skip
        self._check_states()
        self._check_image(facts.completion_type)
        differences: dict[str, float | str] = {}
        for shared, once in _WAYS:
            trial = replace(facts, shared=shared, images_once=once)
            name = f"shares {shared}, {'images once' if once else 'images each time'}"
            differences[name] = _tried(lambda trial=trial: self._difference(trial))
            if self._agrees(differences[name]):
                facts = trial
                break
        else:
            raise self._refusal(f"no way to read rows agrees with the model's own pass: {differences}", "one that does")
        differences["many continuations in one pass"] = _tried(lambda: self._of_choices(replace(facts, tree=True)))
        facts = replace(facts, tree=self._agrees(differences["many continuations in one pass"]))
        return facts, {**self._measured, "rounding": rounding, "tolerance": self._tolerance, "differences": differences}

    def _row(self, text: str, picture: Any, said: list[int]) -> _Row:
        encoder = self._opened.encoder
        inputs = encoder.inputs(text, picture)
        prompt = encoder.prompt(text, image=picture, row=f"{self._where}: probe")
        if list(prompt.token_ids) != inputs["input_ids"][0].tolist():
            raise self._refusal("a prompt is encoded otherwise than by the processor alone", "the same ids")
        return _Row(inputs=inputs, prompt=prompt, said=said)

    def _rounding(self) -> float:
        """Return by how much the own pass differs between two implementations of attention, in nats."""
        row, found = self._rows[0], []
        for attention in ("eager", "sdpa"):
            with contextlib.suppress(ValueError, ImportError):
                self._model.set_attn_implementation(attention)
                found.append(_log_softmax(own_pass.read(self._model, row.inputs, row.said, 0).logits[0]))
        return float((found[0] - found[-1]).abs().max())

    def _completion_type(self) -> int:
        """Return the token type with which the own pass gives what the model's own generation gives."""
        row = self._rows[0]
        names = list(row.prompt.types)
        made, n = _generated(self._model, row), len(row.said)

        def difference(kind: int) -> float:
            logits = own_pass.read(self._model, row.inputs, row.said, kind).logits[0, -n - 1 : -1]
            return float((_log_softmax(logits) - made).abs().max())

        found = {kind: _tried(lambda kind=kind: difference(kind)) for kind in ((0, 1) if names else (0,))}
        self._measured |= {"token_types": names, "own generation by completion type": found}
        for kind, value in found.items():
            if self._agrees(value):
                return kind
        raise self._refusal(f"its own generation differs from its own pass by {found} nats", "rounding alone")

    def _check_states(self) -> None:
        output, text = self._own[0], self._model.config.get_text_config()
        n_states = len(output.hidden_states)
        logits = parts.head(self._model)(output.hidden_states[-1])
        difference = float((_log_softmax(logits) - _log_softmax(output.logits)).abs().max())
        self._measured |= {"layers": text.num_hidden_layers, "width": output.hidden_states[-1].shape[-1]}
        self._measured["soft cap of logits"] = getattr(text, "final_logit_softcapping", None)
        if n_states != text.num_hidden_layers + 1 or difference > self._tolerance:
            raise self._refusal(
                f"the head makes of its {n_states} states logits that differ from its own by {difference:.1e} nats",
                f"{text.num_hidden_layers + 1} states and the same logits",
            )

    def _check_image(self, kind: int) -> None:
        """Check that the image is in the states of the image tokens and nowhere else, and that it changes answers."""
        row, encoder = self._rows[0], self._opened.encoder
        other = encoder.inputs(TEXTS[0], _picture(2, _SIZES[0]))
        output = own_pass.read(self._model, other, row.said, kind, output_hidden_states=True)
        first, own = (of.hidden_states[0][0] for of in (output, self._own[0]))
        moved = {i for i, by in enumerate((first - own).abs().amax(dim=-1).tolist()) if by > 0}
        span = {i for i, token in enumerate(row.prompt.token_ids) if token == encoder.image_token_id}
        changed = float((_log_softmax(output.logits) - _log_softmax(self._own[0].logits)).abs().max())
        token = encoder.tokenizer.convert_ids_to_tokens(encoder.image_token_id)
        with parts.positions(self._model) as seen:
            own_pass.read(self._model, row.inputs, row.said, kind)
        offset = int(parts.position_offsets(seen, own[None, :, 0])[0]) if seen else 0
        self._measured |= {"image_tokens": len(span), "image_token": token, "another image changes": changed}
        self._measured |= {"changed by the image": len(moved), "positions depend on the image": offset < 0}
        if not moved or not moved <= span:
            raise self._refusal(
                f"another image changes {len(moved)} tokens of the prompt, {len(moved - span)} of them no image tokens"
                f" ({token})", "the states of image tokens, which readers need; cross attention has none",
            )  # fmt: skip
        if changed <= self._tolerance:
            raise self._refusal(f"another image changes log-probabilities by {changed:.1e} nats", "more than rounding")

    def _difference(self, facts: Facts) -> float:
        """Return the largest difference of replay and generation from the own pass: log-probabilities, relative states."""
        trial, rows = self._with(facts), self._rows
        prompts = [row.prompt for row in rows]
        replayed = replay_batch(
            self._model, trial.encoder, prompts, [row.said for row in rows], kappa=0.1, stop=trial.stop, forbidden=()
        )
        worst, middle = [], middle_layer(self._model.config.get_text_config().num_hidden_layers)
        for row, ours, own in zip(rows, replayed, self._own, strict=True):
            n, final = len(row.prompt.token_ids), own.hidden_states[-1][0]
            own_log_probs = _log_softmax(own.logits[0, n - 1 : -1])[range(len(row.said)), row.said].cpu().numpy()
            worst.append(np.abs(ours.token_log_probs - own_log_probs).max())
            is_image = [i for i, token in enumerate(row.prompt.token_ids) if token == trial.encoder.image_token_id]
            states = {
                "h_pre": final[n - 1],
                "h_global": final[is_image].mean(dim=0),
                "h_mid": own.hidden_states[middle][0, n + ours.positions.last],
            }
            for name, state in states.items():
                state = state.float().cpu().numpy()
                worst.append(np.abs(ours.vectors[name] - state).max() / max(np.abs(state).max(), 1.0))
        decoding = Decoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=_N_MADE, seed=0)
        of = [0, *range(len(rows))]
        for i, (ids, log_probs) in zip(of, complete(trial, prompts, of, decoding, None), strict=True):
            own = own_pass.log_probs(self._model, rows[i].inputs, ids, facts.completion_type)
            worst.append(np.abs(np.array(log_probs) - own).max())
        return float(np.max(worst))  # NaN stays NaN

    def _of_choices(self, facts: Facts) -> float:
        said = self._rows[0].said
        continuations = (tuple(said[:2]), (said[0], said[2], said[3]), (said[1],))
        ours = score(self._model, self._with(facts).encoder, [row.prompt for row in self._rows], continuations)
        own = [[own_pass.log_probs(self._model, row.inputs, ids, facts.completion_type).sum() for ids in continuations]
               for row in self._rows]  # fmt: skip
        return float(np.abs(ours - np.array(own)).max())

    def _with(self, facts: Facts) -> Opened:
        encoder = copy.copy(self._opened.encoder)
        encoder.facts = facts
        return replace(self._opened, encoder=encoder)

    def _agrees(self, difference: float | str) -> bool:
        return isinstance(difference, float) and difference <= self._tolerance

    def _refusal(self, what: str, expected: str) -> ArtifactError:
        return ArtifactError(f"{self._where}: {what}. Expected {expected}. Choose another model.")


def _tried(measure: Callable[[], float]) -> float | str:
    try:
        return measure()
    except Exception as error:  # whatever a model does with inputs that it does not expect
        return f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"


def _generated(model: Any, row: _Row) -> Any:
    """Return the log-probabilities [C, V] of the model's own generation, which is made to say `row.said`."""
    import torch
    from transformers import LogitsProcessorList

    n = row.inputs["input_ids"].shape[1]

    def force(ids: Any, scores: Any) -> Any:
        forced = torch.full_like(scores, -torch.inf)
        forced[:, row.said[ids.shape[1] - n]] = 0.0
        return forced

    given = {name: value.to(model.device) for name, value in row.inputs.items() if name != "labels"}
    made = model.generate(
        **given,
        logits_processor=LogitsProcessorList([force]),
        do_sample=False,
        max_new_tokens=len(row.said),
        output_logits=True,
        return_dict_in_generate=True,
    )
    return _log_softmax(torch.cat(made.logits))


def _log_softmax(logits: Any) -> Any:
    return logits.double().log_softmax(dim=-1)


def _picture(seed: int, size: Sequence[int]) -> Any:
    from PIL import Image

    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (*size, 3)).astype(np.uint8))


@contextlib.contextmanager
def _in_sdpa(model: Any) -> Iterator[None]:
    """Flash attention cannot compute in float32."""
    configured = model.config._attn_implementation
    with contextlib.suppress(ValueError, ImportError):
        model.set_attn_implementation("sdpa")
    try:
        yield
    finally:
        model.set_attn_implementation(configured)
