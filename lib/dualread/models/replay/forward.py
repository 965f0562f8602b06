"""The teacher-forced pass: prompts and exact generated ids in, the paper's vectors and log-probabilities out.

`actor.read_states` makes batches, `replay_batch` reads one, and `vectors_of` takes the paper's vectors from states.
What prompts about one image share is read once per batch; the rest is read in passes of similar rows. A pass keeps the
states of the final layer and of one middle layer only, and vocabulary logits are computed for completion tokens only.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dualread.errors import ReplayDisagreementError
from dualread.models.actor import PassStates, ReadSpec, Request
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt, prompt_sha256
from dualread.models.prefixes import read_rows
from dualread.models.replay.positions import Positions
from dualread.models.replay.replayed import Replayed, entropies_of, log_probs_of, with_images

if TYPE_CHECKING:
    from torch import Tensor

VECTORS = ("h_pre", "h_close", "h_ans", "h_global", "h_evid", "h_mid")
TENSORS = (*VECTORS, "answer_log_prob")


def checked_prompt(actor: Opened, request: Request, generated_from: str | None) -> EncodedPrompt:
    """Return a prompt, whose `prompt_sha256` has to be `generated_from` if that is given; see `actor.read_states`."""
    prompt = request.encoded(actor.encoder)
    if generated_from is not None and prompt_sha256(prompt.token_ids) != generated_from:
        raise ReplayDisagreementError(
            f"{request.row}: the prompt's tokens differ from those of the generation. Check that the tokenizer, the"
            " image size and the prompt are the same in both."
        )
    return prompt


def replay_batch(
    opened: Opened,
    prompts: Sequence[EncodedPrompt],
    completions: Sequence[Sequence[int]],
    spec: ReadSpec,
    claims: Sequence[Sequence[tuple[int, int]]] | None = None,
) -> list[Replayed]:
    """Replay one batch of completions.

    Args:
        opened: The actor. Its ids that generation may not choose are ignored in `argmax_gap`.
        prompts: n encoded prompts.
        completions: The generated ids of each prompt, at least one.
        spec: What is read.
        claims: The claims of each completion that are read besides, see `Opened.locate_claims`; None for none.
    """
    import torch

    model = opened.model
    sequences = [[*prompt.token_ids, *completion] for prompt, completion in zip(prompts, completions, strict=True)]
    layers = layers_of(spec, model.config.get_text_config().num_hidden_layers)
    replayed: dict[int, Replayed] = {}
    with torch.inference_mode():
        for read in read_rows(opened, prompts, sequences, layers=sorted(set(layers.values()))):
            # The state before a token predicts it, so that of the last prompt token is needed as well.
            starts = [len(prompts[i].token_ids) - 1 - read.start for i in read.rows]
            ends = [len(sequences[i]) - read.start for i in read.rows]
            states = [
                PassStates(
                    n_prompt_tokens=len(prompts[i].token_ids),
                    final=read.states[k, start:end],
                    layers={layer: hidden[k, start : end - 1] for layer, hidden in read.layers.items()},
                    image=read.image_states[k],
                )
                for k, (i, start, end) in enumerate(zip(read.rows, starts, ends, strict=True))
            ]
            ids = [completions[i] for i in read.rows]
            # In float32: logits near 20 are .125 apart in bfloat16. Casting copies nothing where the model is float32.
            logits = parts.head(model, torch.float32)
            places = None if claims is None else [opened.locate_claims(completions[i], claims[i]) for i in read.rows]
            readings = reading_of(states, ids, spec, layers, logits, opened.locate, opened.encoder.forbidden, places)
            if spec.images:
                of_rows, token = zip(read.rows, readings, states, strict=True), opened.encoder.image_token_id
                readings = [with_images(reading, row.image, prompts[i], token) for i, reading, row in of_rows]
            replayed |= zip(read.rows, readings, strict=True)
    return [replayed[i] for i in range(len(prompts))]


def layers_of(spec: ReadSpec, n_layers: int) -> dict[str, int]:
    """Return the layers, 1-based, of which vectors are read besides the last one, by the name of the vector."""
    middle = {"h_mid": middle_layer(n_layers)} if spec.middle else {}
    return middle | {layer_vector(depth): layer_at(depth, n_layers) for depth in spec.depths}


def reading_of(
    rows: Sequence[PassStates],
    completions: Sequence[Sequence[int]],
    spec: ReadSpec,
    layers: Mapping[str, int],
    logits: Callable[[Any], Any],
    located: Callable[[Sequence[int]], Positions],
    forbidden: Sequence[int],
    claims: Sequence[Sequence[Positions]] | None = None,
) -> list[Replayed]:
    """Read the states of at least one row, whatever pass they come from, at the positions that `located` returns.

    `claims` are the positions of each row's claims, which are read besides; `layers` is of `layers_of`, `logits` the
    model's head (`actor.Collecting.read`), and `forbidden` holds the ids that generation may not choose.
    """
    import torch

    ids = torch.tensor([token for of_row in completions for token in of_row], device=rows[0].final.device)
    predicting = torch.cat([row.final[: len(of_row)] for row, of_row in zip(rows, completions, strict=True)])
    log_probs, gaps = log_probs_of(logits, predicting, ids, forbidden)
    split = np.cumsum([len(of_row) for of_row in completions])[:-1]
    entropy = np.split(entropies_of(logits, predicting), split) if spec.entropies else [None] * len(rows)
    replayed = []
    for row, completion, log_prob, gap, of_tokens, of_claims in zip(
        *(rows, completions, np.split(log_probs, split), np.split(gaps, split), entropy, claims or [()] * len(rows)),
        strict=True,
    ):
        whole, *parts = [_read_at(at, row, log_prob, spec, layers) for at in (located(completion), *of_claims)]
        shared = {
            "n_prompt_tokens": row.n_prompt_tokens,
            "n_image_tokens": len(row.image),
            "token_log_probs": log_prob,
            "token_entropies": of_tokens,
            "argmax_gap": gap,
        }
        replayed.append(Replayed(**whole, **shared, claims=tuple(Replayed(**part, **shared) for part in parts)))
    return replayed


def _read_at(
    at: Positions, row: PassStates, log_probs: np.ndarray, spec: ReadSpec, layers: Mapping[str, int]
) -> dict[str, Any]:
    """Return the fields of `Replayed` that are read at some positions of a row, whose tokens have these `log_probs`."""
    of_layers = {name: row.layers[layer] for name, layer in layers.items()}
    vectors = vectors_of(row.final, of_layers.pop("h_mid", None), row.image, at, spec.kappa)
    vectors |= {name: answer_state(states[list(at.answer)]) for name, states in of_layers.items()}
    arrays = {name: vector.float().cpu().numpy() for name, vector in vectors.items()}
    of_answer = log_probs[list(at.answer)].mean(keepdims=True).astype(np.float32)
    return {"vectors": {**arrays, "answer_log_prob": of_answer}, "positions": at}


def vectors_of(final: Any, middle: Any, image: Any, at: Positions, kappa: float) -> dict[str, Any]:
    """Return VECTORS of one row from its states [1 + C, D], its middle-layer states [C, D], and the image's [M, D].

    Without middle-layer states (None), there is no h_mid. Where completions think, there is h_think, the state at the
    end of thinking, besides: NaN if thinking never ends.
    """
    h_ans = answer_state(final[[1 + t for t in at.answer]])
    of_image = {"h_global": global_state(image), "h_evid": evidence_state(h_ans, image, kappa)} if len(image) else {}
    return {
        "h_pre": final[at.first],
        "h_close": final[1 + at.close],
        "h_ans": h_ans,
        **of_image,
        **({} if middle is None else {"h_mid": middle[at.last]}),
        **({} if at.think is None else {"h_think": final[1 + at.think] if at.think >= 0 else final[0] * math.nan}),
    }


def middle_layer(n_layers: int) -> int:
    """Return the 1-based layer at 0.625 of the depth, with halves rounded up: 18 of 28, 21 of 34.

    See docs/choices.md, "SAPLMA". Python's `round` rounds halves to even, which gives another layer at some depths.
    """
    return layer_at(0.625, n_layers)


def layer_at(depth: float, n_layers: int) -> int:
    """Return the 1-based layer at a depth from 0 to 1, with halves rounded up; 0 is what enters the first layer."""
    return math.floor(depth * n_layers + 0.5)


def layer_vector(depth: float) -> str:
    """Return the name of the mean of the answer tokens' states in the layer at a depth."""
    return f"h_ans_at_{depth:g}"


def answer_state(states: "Tensor") -> "Tensor":
    """Return h_ans, the mean of the answer tokens' states [|A|, D] -> [D] (equation 1)."""
    return states.float().mean(dim=0)


def global_state(image_states: "Tensor") -> "Tensor":
    """Return h_global, the mean of the image tokens' states [M, D] -> [D] (equation 2)."""
    return image_states.float().mean(dim=0)


def evidence_state(h_ans: "Tensor", image_states: "Tensor", kappa: float) -> "Tensor":
    """Return h_evid [D], the weighted mean of the image tokens' states [M, D] (equations 3 and 4).

    The weights are softmax(cos(h_ans, state) / kappa) over the image tokens. They are always defined: a state of zeros
    has cosine 0, because torch keeps the norms above an epsilon.
    """
    import torch

    image_states = image_states.float()
    cosine = torch.nn.functional.cosine_similarity(image_states, h_ans.float()[None, :], dim=-1)
    return torch.softmax(cosine / kappa, dim=0) @ image_states
