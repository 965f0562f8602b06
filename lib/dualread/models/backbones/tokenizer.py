"""Loads the tokenizer of any checkpoint so that it reads a text as a whole, without padding, and always alike.

The files of a tokenizer also keep how it was last called: to cut texts at so many tokens, to pad them to as many, to
drop merges at random. transformers and other programs do so again, without a word. None of it belongs to the model.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualread.errors import ArtifactError
from dualread.models.backbones._checkpoint_files import AGAIN, readable
from dualread.store.digest import replace_text

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CALLED = FILE, CONFIG = "tokenizer.json", "tokenizer_config.json"
# What tokenizer_config.json keeps of a call, and what tokenizer.json keeps of it, at the top and of its model.
_OF_A_CALL = ("max_length", "truncation", "truncation_strategy", "stride", "padding", "pad_to_multiple_of")
_CUTS, _RANDOM = ("truncation", "padding"), ("dropout", "alpha", "nbest_size")


def load_tokenizer(checkpoint: Path) -> "PreTrainedTokenizerBase":
    """Load the tokenizer of `checkpoint`, which pads on the left where it is asked to, and never cuts."""
    from transformers import AutoTokenizer

    if not (checkpoint / CONFIG).is_file():  # without it, transformers invents special tokens
        raise ArtifactError(f"{checkpoint}: no file {CONFIG}. Expected the model's own tokenizer. {AGAIN}")
    with readable(f"{checkpoint}: the tokenizer cannot be read", "one of transformers"):
        tokenizer: Any = AutoTokenizer.from_pretrained(checkpoint, padding_side="left", trust_remote_code=False)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token  # trl does the same
        if (backend := getattr(tokenizer, "backend_tokenizer", None)) is not None:
            _read_all(backend)
        return tokenizer


def _read_all(backend: Any) -> None:
    """Let a tokenizer of the package tokenizers read whole texts, always alike."""
    backend.no_truncation()
    backend.no_padding()
    for name in _RANDOM:
        if getattr(backend.model, name, None) is not None:
            setattr(backend.model, name, None)


def ids_alone(tokenizer: "PreTrainedTokenizerBase", text: str) -> list[int] | None:
    """Return the ids that the package tokenizers alone gives a text, without what transformers adds or cuts.

    None for a tokenizer of another package.
    """
    from tokenizers import Tokenizer

    if (backend := getattr(tokenizer, "backend_tokenizer", None)) is None:
        return None
    alone = Tokenizer.from_str(backend.to_str())
    _read_all(alone)
    return alone.encode(text, add_special_tokens=False).ids


def without_calls(name: str, content: bytes) -> bytes:
    """Return the content of the file `name` of a checkpoint without what it keeps of calls; most stay as they are."""
    if name not in CALLED:
        return content
    try:
        entries = json.loads(content)
        model = entries.get("model") if name == FILE else None
    except (ValueError, RecursionError, AttributeError):  # whoever opens the checkpoint says what is wrong
        return content
    if name == CONFIG:
        kept = [key for key in _OF_A_CALL if key in entries]
        for key in kept:
            del entries[key]
    else:
        of_model = model if isinstance(model, dict) else {}
        kept = [(part, key) for part, keys in ((entries, _CUTS), (of_model, _RANDOM)) for key in keys if part.get(key)]
        for part, key in kept:
            part[key] = None
    return json.dumps(entries, ensure_ascii=False, indent=2).encode() if kept else content


def forget_calls(checkpoint: Path) -> None:
    """Remove from a copy of a checkpoint what its tokenizer keeps of calls, so that no program cuts prompts there."""
    for name in CALLED:
        file = checkpoint / name
        if file.is_file() and (content := file.read_bytes()) != (cleaned := without_calls(file.name, content)):
            replace_text(file, cleaned.decode())
