"""Models of meaning: whether one text follows from another, how similar texts are, and what a judge replies.

The first two compute in float32, in batches of texts of similar length, and read at most as many tokens as they have
positions. Without such a model in a folder, functions raise an ArtifactError.
"""

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualread.errors import ArtifactError, in_a_line
from dualread.progress import say, track

# What a class adds to the similarity of two texts, per direction (Nikitin et al. 2024, section 4).
CLASSES = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}
LONGEST_REPLY = 16  # tokens
_BATCH = 64


def entailments(folder: Path, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return what a classifier says of each (premise, hypothesis): the most probable of `CLASSES`."""
    tokenizer, model = _opened(folder, "AutoModelForSequenceClassification")
    labels = {index: str(label).lower() for index, label in model.config.id2label.items()}
    if sorted(labels.values()) != sorted(CLASSES):
        raise ArtifactError(
            f"{folder}: its classes are {', '.join(model.config.id2label.values())}. Expected a classifier with the"
            f" classes {', '.join(CLASSES)}. Give one that was trained on natural language inference."
        )
    classes: dict[int, str] = {}
    for rows, output, _ in _outputs(tokenizer, model, pairs):
        classes.update(zip(rows, map(labels.__getitem__, output.logits.argmax(dim=-1).tolist()), strict=True))
    return [classes[row] for row in range(len(pairs))]


def embeddings(folder: Path, texts: Sequence[str]) -> np.ndarray:
    """Return an encoder's mean of the last states of each text's tokens, float64 [n, D], of length 1."""
    tokenizer, model = _opened(folder, "AutoModel")
    vectors: dict[int, np.ndarray] = {}
    for rows, output, mask in _outputs(tokenizer, model, [(text,) for text in texts]):
        means = ((output.last_hidden_state.double() * mask).sum(dim=1) / mask.sum(dim=1)).cpu().numpy()
        vectors.update(zip(rows, means / np.linalg.norm(means, axis=1, keepdims=True), strict=True))
    return np.array([vectors[row] for row in range(len(texts))])


def greedy_replies(folder: Path, texts: Sequence[str]) -> list[str]:
    """Return what a chat model replies to each text: its most probable tokens, at most 16. Each is asked alone."""
    import torch
    from transformers import GenerationConfig

    tokenizer, model = _opened(folder, "AutoModelForCausalLM")
    if tokenizer.chat_template is None:
        raise ArtifactError(f"{folder}: its tokenizer has no chat template. Give a model that was trained for chats.")
    ends = model.generation_config.eos_token_id or tokenizer.eos_token_id
    plain = GenerationConfig(max_new_tokens=LONGEST_REPLY, eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)
    replies = []
    for text in track(texts, len(texts), "asking the judge (texts)"):
        turns = [{"role": "user", "content": text}]
        asked = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=True, return_tensors="pt")
        with torch.inference_mode():
            ids = model.generate(**asked.to(model.device), generation_config=plain)
        replies.append(tokenizer.decode(ids[0, asked["input_ids"].shape[1] :], skip_special_tokens=True))
    return replies


def _outputs(tokenizer: Any, model: Any, texts: Sequence[tuple[str, ...]]) -> Iterator[tuple[list[int], Any, Any]]:
    """Yield the rows of a batch, the model's output, and which positions are tokens [n, T, 1]."""
    import torch

    most = min(tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None) or 512)
    order = sorted(range(len(texts)), key=lambda row: sum(map(len, texts[row])))
    for start in track(range(0, len(order), _BATCH), -(-len(order) // _BATCH), "comparing (batches)"):
        rows = order[start : start + _BATCH]
        parts = [list(part) for part in zip(*(texts[row] for row in rows), strict=True)]
        if n_cut := sum(len(ids) > most for ids in tokenizer(*parts)["input_ids"]):
            say(f"warning: {n_cut} texts are longer than the {most} tokens that {type(model).__name__} reads, and cut")
        inputs = tokenizer(*parts, padding=True, truncation=True, max_length=most, return_tensors="pt").to(model.device)
        with torch.inference_mode():
            yield rows, model(**inputs), inputs["attention_mask"].unsqueeze(-1)


@functools.lru_cache(maxsize=1)  # a job has one model for all shards
def _opened(folder: Path, opened_by: str) -> tuple[Any, Any]:
    """Return the tokenizer and the model of a checkpoint; no weight that is used is missing."""
    import torch
    import transformers
    from transformers import AutoTokenizer

    kind: Any = getattr(transformers, opened_by)
    loading = {"dtype": torch.float32, "output_loading_info": True, "use_safetensors": True}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        model, report = kind.from_pretrained(folder, trust_remote_code=False, **loading)
    except (OSError, ValueError, ImportError, KeyError) as error:
        raise ArtifactError(
            f"{folder}: cannot be opened by {kind.__name__} ({in_a_line(error)}). Expected a checkpoint of"
            " transformers with its tokenizer, and weights as safetensors."
        ) from error
    if missing := sorted(name for name in report["missing_keys"] if opened_by != "AutoModel" or "pooler" not in name):
        raise ArtifactError(
            f"{folder}: lacks the weights {', '.join(missing[:5])} of {type(model).__name__}, which would be random."
            " Give a checkpoint that was trained for this."
        )
    return tokenizer, model.to("cuda" if torch.cuda.is_available() else "cpu").eval()
