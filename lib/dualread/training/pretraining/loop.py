"""The training loop of a tiny backbone: Muon and AdamW with a cosine schedule, a few questions per image in each step.

Muon updates the weight matrices, and AdamW everything else at half the learning rate. The tiny models of the embedded
study learn as much in 180 such steps as in 300 of AdamW alone.
"""

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from dualread.grading.canonical import is_correct
from dualread.grading.contracts import dual, single
from dualread.models.actor import Request, SeededDecoding
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import EncodedPrompt, Encoder
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.progress import track
from dualread.schema.backbones import Pretraining
from dualread.seeding import generator
from dualread.training.corpora import Corpus, Subject
from dualread.training.pretraining.exercises import EXERCISES, Exercise

_TOKENIZER_SUBJECTS = 1000  # more of them repeat the same words
_MOMENTUM = 0.8  # of Muon. With its usual .95, the tiny models need about 50 steps more to learn as much
# Of prompts that ask to answer.
_PARSE = {"shared": single.parse, "option_visible": single.parse, "vl_calibration": dual.parse}
_WIDEST = 1.25  # rows of one pass differ in length by at most this factor, because all are padded to the longest


def tokenizer_texts(corpus: Corpus, seed: int) -> list[str]:
    """Return the texts that the tokenizer is trained on: questions, and completions in both output formats.

    They are whole completions, so that a word behind a tag is no token of its own and is spelled with shorter ones. The
    model therefore learns to read letters, without which it fails at data sets that spell options otherwise ("None.").
    """
    rng = generator("pretraining corpus", seed)
    texts = []
    for subject in corpus.training[:_TOKENIZER_SUBJECTS]:
        texts.extend(item.question for item in subject.items)
        for item in subject.items:
            texts.append(EXERCISES["shared"](item, rng).completion)
        texts.extend(EXERCISES["vl_calibration"](item, rng).completion for item in subject.items[:1])
    return texts


def pretrain(model: Any, encoder: Encoder, corpus: Corpus, settings: Pretraining, seed: int) -> list[dict[str, Any]]:
    """Train `model` in place and return its log; afterwards it is in evaluation mode.

    The order of the images, and everything that is drawn, depend on `seed`. The log has one row (step, name, value) per
    step and quantity.
    """
    rng = generator("pretraining", seed)
    subjects = [s for s in corpus.training if s.items]
    optimizers = _optimizers(model, settings)
    log: list[dict[str, Any]] = []
    order: list[int] = []
    model.train()
    for step in track(range(settings.steps), total=settings.steps, label="pretraining"):
        # Linear warm-up, then a cosine decay to 1/20.
        cosine = 0.5 * (1 + math.cos(math.pi * step / settings.steps))
        rate = min(1.0, (step + 1) / settings.warmup_steps) * (0.05 + 0.95 * cosine)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * rate
        chosen = []
        for _ in range(settings.images_per_step):
            order = order or list(rng.permutation(len(subjects)))
            chosen.append(order.pop())
        prompts, targets = _draw(encoder, subjects, chosen, settings, rng)
        loss = _backward(model, encoder, prompts, targets)
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm)
        for optimizer in optimizers:
            optimizer.step()
        model.zero_grad(set_to_none=True)
        log.append({"step": step, "name": "loss", "value": loss})
        log.append({"step": step, "name": "gradient_norm", "value": norm.item()})
    model.eval()
    return log


def report(
    opened: Opened, corpus: Corpus, *, step: int, questions: int, max_completion_tokens: int, seed: int
) -> list[dict[str, Any]]:
    """Ask `questions` questions about held-out images with every prompt, and return rows of the train log for `step`.

    `valid/<prompt>` is the share of completions in valid form, and `exact_match/<prompt>` the share of right answers,
    both in [0, 1].
    """
    engine = TransformersEngine(opened, questions)
    greedy = SeededDecoding(
        temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=max_completion_tokens, seed=seed
    )
    rows = []
    for name in EXERCISES:
        rng = generator("pretraining report", seed, name)
        requests, items = [], []
        for i in range(questions):
            number = i % len(corpus.held_out)
            subject = corpus.held_out[number]
            item = subject.items[int(rng.integers(len(subject.items)))]
            made = EXERCISES[name](item, rng)
            view = subject.views[0]
            requests.append(Request(text=made.prompt, images=[view], image_name=str(number), row=f"held out {i}"))
            items.append(item)
        texts = [completion.text for [completion] in engine.answer(requests, greedy)]
        valid = [_has_valid_form(name, text) for text in texts]
        rows.append({"step": step, "name": f"valid/{name}", "value": float(np.mean(valid))})
        if parse := _PARSE.get(name):
            right = [is_correct(parse(t).answer, [i.answer]) for t, i in zip(texts, items, strict=True)]
            rows.append({"step": step, "name": f"exact_match/{name}", "value": float(np.mean(right))})
    return rows


def _has_valid_form(name: str, text: str) -> bool:
    if name == "p_true":
        return text.strip() in ("Yes", "No")
    if parse := _PARSE.get(name):
        return parse(text).status == "valid"
    return re.fullmatch(r"\s*\d{1,3}\s*", text) is not None and int(text) <= 100


def _optimizers(model: Any, settings: Pretraining) -> list[Any]:
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, torch.nn.Embedding)}
    embeddings.add(id(model.get_output_embeddings().weight))
    matrices = [p for p in model.parameters() if p.ndim == 2 and id(p) not in embeddings]
    others = [p for p in model.parameters() if p.ndim != 2 or id(p) in embeddings]
    rate = settings.learning_rate
    by_muon = {"params": matrices, "initial_lr": rate, "weight_decay": settings.weight_decay, "momentum": _MOMENTUM}
    by_adamw = {"params": others, "initial_lr": rate / 2, "weight_decay": 0.0}
    return [Muon([by_muon], defaults={}), torch.optim.AdamW([by_adamw], betas=(0.9, 0.95), fused=True)]


class Muon(torch.optim.Optimizer):
    """An optimizer of matrices: each step follows the momentum of a matrix, made nearly orthogonal.

    Groups set `lr`, `momentum` (Nesterov's), and `weight_decay`. It is `torch.optim.Muon` in float32. Torch's own
    multiplies matrices in bfloat16, which takes 20 times as long on a CPU without AVX-512.

    References:
        Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024). Liu et al., "Muon is Scalable
        for LLM Training" (2025), for the scale of its updates, with which learning rates of AdamW fit Muon.
    """

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """Update the matrices that have a gradient; a layer that the model does not use has none."""
        for group in self.param_groups:
            rate, momentum = group["lr"], group["momentum"]
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if not state:
                    state["mean"] = torch.zeros_like(matrix)
                mean = state["mean"].lerp_(matrix.grad, 1 - momentum)
                direction = _orthogonal(matrix.grad.lerp(mean, momentum))
                matrix.mul_(1 - rate * group["weight_decay"])
                matrix.sub_(direction, alpha=0.2 * math.sqrt(max(matrix.shape)) * rate)


def _orthogonal(matrix: torch.Tensor) -> torch.Tensor:
    """Return a matrix with the singular vectors of `matrix` [M, N], and singular values of .68 to 1.21."""
    # It is Newton and Schulz's iteration with Jordan's coefficients. Values below .002 of the matrix's norm stay
    # smaller.
    tall = matrix.shape[0] > matrix.shape[1]
    wide = matrix.T if tall else matrix
    wide = wide / wide.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = wide @ wide.T
        wide = torch.addmm(wide, torch.addmm(gram, gram, gram, beta=-4.775, alpha=2.0315), wide, beta=3.4445)
    return wide.T if tall else wide


def _draw(
    encoder: Encoder,
    subjects: Sequence[Subject],
    chosen: Sequence[int],
    settings: Pretraining,
    rng: np.random.Generator,
) -> tuple[list[EncodedPrompt], list[tuple[list[int], list[float]]]]:
    names = list(settings.mixture)
    shares = np.array([settings.mixture[name] for name in names])
    prompts, targets = [], []
    for index in chosen:
        subject = subjects[index]
        view = int(rng.integers(len(subject.views)))
        n_items = len(subject.items)
        picked = rng.choice(n_items, settings.questions_per_image, replace=n_items < settings.questions_per_image)
        for i in picked:
            made = EXERCISES[names[rng.choice(len(names), p=shares)]](subject.items[i], rng)
            prompts.append(encoder.prompt(made.prompt, images=[subject.views[view]], row=f"{index}/{view}"))
            targets.append(_target(encoder.tokenizer, made))
    return prompts, targets


def _target(tokenizer: Any, made: Exercise) -> tuple[list[int], list[float]]:
    """Return the ids and loss weights of a completion."""
    # The completion is tokenized as a whole. A token that straddles several parts has the largest of their weights.
    encoded = tokenizer(made.completion, add_special_tokens=False, return_offsets_mapping=True)
    ends = np.cumsum([len(text) for text, _ in made.parts])
    weights = []
    for start, end in encoded["offset_mapping"]:
        first, last = np.searchsorted(ends, start, side="right"), np.searchsorted(ends, end - 1, side="right")
        weights.append(max(weight for _, weight in made.parts[first : last + 1]))
    return [*encoded["input_ids"], tokenizer.eos_token_id], [*weights, 1.0]


def _backward(
    model: Any, encoder: Encoder, prompts: list[EncodedPrompt], targets: list[tuple[list[int], list[float]]]
) -> float:
    """Add the gradient of the weighted mean cross-entropy over all completion tokens, and return that mean."""
    shown = parts.encode_images(model, prompts)
    rows = [prompt.followed_by(ids) for prompt, (ids, _) in zip(prompts, targets, strict=True)]
    losses = []
    for group in groups_of_similar_length([len(row.token_ids) for row in rows]):
        # Rows end in the same column, so that a long prompt with a short completion takes no more columns than needed.
        batch = encoder.batch([rows[i] for i in group])
        n_completion = max(len(targets[i][0]) for i in group)
        hidden = model.model(**batch, **shown(group)).last_hidden_state
        logits = parts.head(model)(hidden[:, -n_completion - 1 : -1])
        labels = batch["input_ids"][:, -n_completion:]
        weights = torch.zeros(labels.shape)
        for row, (_, token_weights) in enumerate(targets[i] for i in group):
            weights[row, -len(token_weights) :] = torch.tensor(token_weights)
        of_tokens = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
        losses.append((of_tokens * weights.flatten()).sum())
    loss = torch.stack(losses).sum() / sum(sum(token_weights) for _, token_weights in targets)
    loss.backward()
    return loss.item()


def groups_of_similar_length(lengths: Sequence[int]) -> list[list[int]]:
    """Return the rows of each pass, in the order of their lengths."""
    groups: list[list[int]] = []
    for row in sorted(range(len(lengths)), key=lambda i: (lengths[i], i)):
        if not groups or lengths[row] > _WIDEST * lengths[groups[-1][0]]:
            groups.append([])
        groups[-1].append(row)
    return groups
