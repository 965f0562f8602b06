"""Experiments with a checkpoint in float32: what it needs, and which ways to read rows are right for it.

The reference is always transformers alone: the model's own pass over single rows (`own_pass`) and its own `generate`.
The library's replay, generation and scoring of choices share code, so that they may agree and be wrong.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dualread.errors import ArtifactError, DualReadError, in_a_line
from dualread.models import own_pass
from dualread.models.actor import EncodedRequest, ReadSpec, SeededDecoding
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.backbones.processor import long_text
from dualread.models.backbones.tokenizer import ids_alone
from dualread.models.generation._transformers_stream import complete
from dualread.models.generation._tree import score
from dualread.models.replay.forward import middle_layer, replay_batch, vectors_of
from dualread.schema.recorded import READS, Facts

TEXTS = ("Is this a CT scan?", "What is the size of the lesion in the upper left?", "yes or no")
SAID = "The answer is yes, it is in the upper left of the image."
TOLERANCE = (2e-5, 5e-3)  # nats by which right ways may differ: between these, ten times what rounding explains
_SQUARE, _FLAT = (52, 40), (36, 90)  # height and width of pictures
_LONG = (500, 1000)  # words of long questions
_BESIDE = 8  # their first and last tokens, with which what is beside them may be merged
_WAYS = (*((shared, once) for shared in READS[:-1] for once in (True, False)), (READS[-1], False))
_GREEDY = SeededDecoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=5, seed=0)


@dataclass(frozen=True, kw_only=True)
class Probed:
    """The outcome of the experiments; all numbers are in nats, and depend on hardware a little.

    Attributes:
        facts: The facts that passes depend on.
        found: What else was found, which no hardware changes.
        differences: By how much each way that was tried differs from the model's own pass, or the error of this way.
        rounding: By how much two implementations of attention differ.
        allowed: By how much a right way may differ.
        by_image: By how much another image changes the log-probabilities of the next token.
        by_each_image: By how much another image in each place does, of two; nothing if prompts take one.
    """

    facts: Facts
    found: dict[str, Any]
    differences: dict[str, float | str]
    rounding: float
    allowed: float
    by_image: float
    by_each_image: tuple[float, ...]

    @property
    def largest(self) -> float:
        """The largest difference of the ways that agree, in nats."""
        return max(gap for gap in self.differences.values() if isinstance(gap, float) and gap <= self.allowed)


@dataclass(frozen=True, kw_only=True)
class _Row:
    inputs: Mapping[str, Any]
    prompt: EncodedPrompt
    completion: list[int]


def probe(opened: Opened, where: str) -> Probed:
    """Experiment with a checkpoint that was opened in float32; `where` names it in errors.

    A model whose answers do not depend on the image, whose states cannot be read, or that no way to read rows is right
    for, is refused.
    """
    import torch

    try:
        with torch.inference_mode():
            return _Probe(opened, where).run()
    except DualReadError:
        raise
    except Exception as error:  # whatever a model does that has not the parts of most
        raise ArtifactError(
            f"{where}: experiments with it fail ({in_a_line(error)}). Expected a model whose core"
            " (`model.model`) reads image tokens among the others, and a processor that makes its inputs. Choose"
            " another model."
        ) from error


class _Probe:
    def __init__(self, opened: Opened, where: str):
        self._opened, self._model, self._where = opened, opened.model, where
        self._found: dict[str, Any] = {}
        self._differences: dict[str, float | str] = {}
        token_ids = opened.encoder.tokenizer(SAID, add_special_tokens=False)["input_ids"]
        # Prompts of one length are read in one pass: in some models, an image then depends on those of other rows.
        asked = [*((text, _picture(0, _SQUARE)) for text in TEXTS), (TEXTS[0], _picture(3, _SQUARE))]
        asked.append((TEXTS[0], _picture(1, _FLAT)))
        self._rows = [self._row(text, picture, token_ids[i:][:6]) for i, (text, picture) in enumerate(asked)]

    def run(self) -> Probed:
        self._check_whole()
        rounding = self._rounding()
        self._tolerance = min(max(TOLERANCE[0], 10 * rounding), TOLERANCE[1])
        by_image = self._check_image()
        kind = self._completion_type()
        self._own = [self._read(row.inputs, row.completion, kind) for row in self._rows]
        self._check_states()
        facts = self._fastest(Facts(completion_type=kind, tree=False))
        tree = self._agrees(
            "many continuations in one pass", lambda: self._of_choices(facts.model_copy(update={"tree": True}))
        )
        return Probed(
            facts=facts.model_copy(update={"tree": tree}),
            found=self._found,
            differences=self._differences,
            rounding=rounding,
            allowed=self._tolerance,
            by_image=by_image,
            by_each_image=self._by_each_image(),
        )

    def _row(self, text: str, picture: Any, completion: list[int]) -> _Row:
        encoder = self._opened.encoder
        inputs = encoder.inputs(text, [picture])
        prompt = encoder.prompt(text, images=[picture], row=f"{self._where}: probe")
        if list(prompt.token_ids) != inputs["input_ids"][0].tolist():
            raise self._refusal("a prompt is encoded otherwise than by the processor alone", "the same ids")
        return _Row(inputs=inputs, prompt=prompt, completion=completion)

    def _check_whole(self) -> None:
        """Check that long questions are in their prompts, with the ids that the package tokenizers alone gives them."""
        # Both sides of every other comparison are encoded by transformers, which may cut a text or leave out a part.
        behind = [self._behind(n) for n in _LONG]
        if -1 in behind or len(set(behind)) > 1:
            missing = [n for n, n_behind in zip(_LONG, behind, strict=True) if n_behind == -1]
            raise self._refusal(
                f"the prompt of a question of {(missing or _LONG)[-1]} words has not all its tokens",
                "those that the package tokenizers gives the question, and as many behind them as for any other",
            )

    def _behind(self, n_words: int) -> int:
        """Return how many ids of a prompt are behind those of a question of so many words; -1 without the latter."""
        encoder, text = self._opened.encoder, long_text(n_words)
        prompt_ids = encoder.inputs(text, [_picture(0, _SQUARE)])["input_ids"][0].tolist()
        if (alone := ids_alone(encoder.tokenizer, text)) is None:
            return 0
        prompt, question = ("".join(f" {token}" for token in ids) for ids in (prompt_ids, alone[_BESIDE:-_BESIDE]))
        _, there, rest = f"{prompt} ".partition(f"{question} ")
        return len(rest.split()) if there else -1

    def _read(self, inputs: Mapping[str, Any], completion: Sequence[int] = (), kind: int = 0) -> Any:
        return own_pass.read(self._model, inputs, completion, kind, output_hidden_states=True)

    def _rounding(self) -> float:
        """Return by how much the own pass differs between two implementations of attention, in nats."""
        row, logits = self._rows[0], []
        for attention in ("eager", "sdpa", self._model.config._attn_implementation):
            with contextlib.suppress(ValueError, ImportError):  # not every model has both
                self._model.set_attn_implementation(attention)
            logits.append(self._read(row.inputs).logits)
        return max(_difference(output, logits[-1]) for output in logits)

    def _completion_type(self) -> Literal[0, 1]:
        """Return the token type with which the own pass gives what the model's own generation gives."""
        row = self._rows[0]
        self._found["token_types"] = list(row.prompt.types)
        made, n = own_pass.generated(self._model, row.inputs, row.completion), len(row.completion)
        for kind in (0, 1) if row.prompt.types else (0,):
            if self._agrees(
                f"own generation, completion of type {kind}",
                lambda kind=kind: _difference(
                    self._read(row.inputs, row.completion, kind).logits[0, -n - 1 : -1], made
                ),
            ):
                return kind
        raise self._refusal("its own generation differs from its own pass", "rounding alone")

    def _check_states(self) -> None:
        output, text = self._own[0], self._model.config.get_text_config()
        n_states, last = len(output.hidden_states), output.hidden_states[-1]
        self._found |= {"layers": text.num_hidden_layers, "width": last.shape[-1]}
        self._found["soft_cap"] = getattr(text, "final_logit_softcapping", None)
        same = self._agrees("head", lambda: _difference(parts.head(self._model)(last), output.logits))
        if n_states != text.num_hidden_layers + 1 or not same:
            raise self._refusal(
                f"it gives {n_states} states, and its head makes logits of the last one that differ from its own",
                f"{text.num_hidden_layers + 1} states and the same logits",
            )

    def _check_image(self) -> float:
        """Check that image tokens alone hold the image; return by how much another image changes answers, in nats."""
        row, encoder = self._rows[0], self._opened.encoder
        reference = self._read(row.inputs)
        with parts.positions(self._model) as seen:
            output = self._read(encoder.inputs(TEXTS[0], [_picture(2, _SQUARE)]))
        offset = int(parts.position_offsets(seen, reference.logits[..., 0].long())[0])
        by = (output.hidden_states[0][0] - reference.hidden_states[0][0]).abs().amax(dim=-1).tolist()
        moved = {i for i, of_token in enumerate(by) if of_token > 0}
        span = {i for i, token in enumerate(row.prompt.token_ids) if token == encoder.image_token_id}
        changed = _difference(output.logits, reference.logits)
        token = encoder.tokenizer.convert_ids_to_tokens(encoder.image_token_id)
        self._found |= {"image_token": token, "image_tokens": len(span), "image_tokens_that_images_change": len(moved)}
        self._found["positions_depend_on_the_image"] = offset < 0
        if not moved or not moved <= span:
            raise self._refusal(
                f"another image changes {len(moved)} tokens of the prompt, {len(moved - span)} of them no {token}",
                "states of image tokens, which readers need and cross attention has not",
            )
        if changed <= self._tolerance:
            raise self._refusal(f"another image changes log-probabilities by {changed:.1e} nats", "more than rounding")
        return changed

    def _by_each_image(self) -> tuple[float, ...]:
        """Return by how much another image in each place changes answers, of two; nothing where prompts take one."""
        encoder, shown = self._opened.encoder, [_picture(0, _SQUARE), _picture(1, _FLAT)]
        try:
            encoder.prompt(TEXTS[0], images=shown, row=f"{self._where}: probe")
        except DualReadError:  # its template has one place
            return ()
        others = ([_picture(2, _SQUARE), shown[1]], [shown[0], _picture(3, _FLAT)])
        first, *changed = (self._read(encoder.inputs(TEXTS[0], pictures)).logits for pictures in (shown, *others))
        return tuple(_difference(logits, first) for logits in changed)

    def _fastest(self, facts: Facts) -> Facts:
        for shared, once in _WAYS:
            trial = facts.model_copy(update={"shared": shared, "images_once": once})
            name = f"rows share {shared}, images {'once' if once else 'each time'}"
            if self._agrees(name, lambda trial=trial: self._of_rows(trial)):
                return trial
        raise self._refusal("no way to read rows agrees with the model's own pass", "one")

    def _of_rows(self, facts: Facts) -> float:
        """Return the largest difference of replay and generation from the own pass, in nats or of relative states."""
        trial, rows = self._opened.with_facts(facts), self._rows
        prompts, completions = [row.prompt for row in rows], [row.completion for row in rows]
        replayed = replay_batch(trial, prompts, completions, ReadSpec(kappa=0.1))
        worst, middle = [], middle_layer(self._model.config.get_text_config().num_hidden_layers)
        for row, ours, reference in zip(rows, replayed, self._own, strict=True):
            n, final = len(row.prompt.token_ids), reference.hidden_states[-1][0]
            log_probs = reference.logits[0, n - 1 : -1].double().log_softmax(dim=-1)
            expected = log_probs[range(len(row.completion)), row.completion]
            worst.append(np.abs(ours.token_log_probs - expected.cpu().numpy()).max())
            is_image = [i for i, token in enumerate(row.prompt.token_ids) if token == trial.encoder.image_token_id]
            middles, at = reference.hidden_states[middle][0, n:], ours.positions
            # Both at the replay's positions: this compares how rows are read, and not which positions are chosen.
            states = vectors_of(final[n - 1 :], middles, final[is_image], at, kappa=0.1)
            for name in ("h_pre", "h_global", "h_mid"):
                state = states[name].float().cpu().numpy()
                difference = np.abs(ours.vectors[name] - state).max()
                worst.append(difference / max(float(np.abs(state).max()), 1.0))
        twice = [2, *[1] * (len(rows) - 1)]  # two completions of the first prompt
        asked = [
            EncodedRequest(name=str(i), prompt=prompt, decoding=_GREEDY.model_copy(update={"n_samples": n}))
            for i, (prompt, n) in enumerate(zip(prompts, twice, strict=True))
        ]
        for row, made in zip(rows, complete(trial, asked), strict=True):
            for completion in made:
                reference = own_pass.log_probs(self._model, row.inputs, completion.token_ids, facts.completion_type)
                worst.append(np.abs(np.array(completion.token_log_probs) - reference).max())
        return float(np.max(worst))  # NaN stays NaN

    def _of_choices(self, facts: Facts) -> float:
        token_ids, rows, kind = self._rows[0].completion, self._rows, facts.completion_type
        choices = (tuple(token_ids[:2]), (token_ids[0], token_ids[2], token_ids[3]), (token_ids[1],))
        ours = score(self._opened.with_facts(facts), [row.prompt for row in rows], choices)
        reference = [[own_pass.log_probs(self._model, row.inputs, ids, kind).sum() for ids in choices] for row in rows]
        return float(np.abs(ours - np.array(reference)).max())

    def _agrees(self, name: str, experiment: Callable[[], float]) -> bool:
        """Note the difference that an experiment finds; return whether it is no more than is allowed."""
        try:
            difference = self._differences[name] = experiment()
        except Exception as error:  # whatever a model does with inputs that it does not expect
            self._differences[name] = f"{type(error).__name__}: {' '.join(str(error).split())[:100]}"
            return False
        return difference <= self._tolerance  # NaN is no agreement

    def _refusal(self, what: str, expected: str) -> ArtifactError:
        tried = [f"; {way}: {gap if isinstance(gap, str) else f'{gap:.1e}'}" for way, gap in self._differences.items()]
        return ArtifactError(f"{self._where}: {what}{''.join(tried)}. Expected {expected}. Choose another model.")


def _difference(logits: Any, other: Any) -> float:
    return float((logits.double().log_softmax(dim=-1) - other.double().log_softmax(dim=-1)).abs().max())


def _picture(seed: int, size: Sequence[int]) -> Any:
    from PIL import Image

    return Image.fromarray(np.random.default_rng(seed).integers(0, 255, (*size, 3)).astype(np.uint8))
