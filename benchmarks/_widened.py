"""A bundle whose model costs what a larger one costs, and says the same: the tiny one, padded with zeros.

A tiny model makes whatever runs beside it look expensive. Hidden states get zeros behind their own numbers, layers that
add nothing follow the others, and readers give these zeros no weight. So answers and confidences stay those of the tiny
model up to rounding, and can be compared with them.
"""

import json
import math
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from dualread.apps.score import ScorerChoice, stored
from dualread.apps.score.answering import OpenActor
from dualread.apps.score.bundle import STORED
from dualread.apps.score.loading import ChosenReaders, checkpoint_digests
from dualread.readers.artifact import load_reader, save_reader
from dualread.readers.base import FittedReader
from dualread.readers.requirements import NAME
from dualread.store.digest import sha256_file

_TEXT, _LAYER = "model.language_model.", "model.language_model.layers."
_OF_STATES = ("mean", "scale", "weight", "weight_0")  # a reader's arrays that have one number for each of a state
_HEAD = 32


def widened(bundle: Path, out: Path, *, hidden: int, layers: int, bfloat16: bool = False) -> Path:
    """Write the bundle of a Qwen3-VL to `out` with `layers` layers of width `hidden`, a multiple of 64; return it."""
    changed = {"dtype": "bfloat16"} if bfloat16 else {}
    shutil.copytree(bundle, out)
    checkpoint = out / "checkpoint"
    config = json.loads((checkpoint / "config.json").read_text())
    text, vision = config["text_config"], config["vision_config"]
    before, n_before = text["hidden_size"], text["num_hidden_layers"]
    heads = hidden // _HEAD
    text |= {"hidden_size": hidden, "num_hidden_layers": layers, "intermediate_size": 3 * hidden}
    text |= {"num_attention_heads": heads, "num_key_value_heads": heads // 2}
    vision["out_hidden_size"] = hidden
    tensors = {
        name: _padded(name, array, before, text) for name, array in load_file(checkpoint / "model.safetensors").items()
    }
    last = {name: of for name, of in tensors.items() if name.startswith(f"{_LAYER}{n_before - 1}.")}
    for k in range(n_before, layers):
        for name, array in last.items():
            adds = name.endswith(("o_proj.weight", "down_proj.weight"))
            tensors[name.replace(f".{n_before - 1}.", f".{k}.", 1)] = np.zeros_like(array) if adds else array.copy()
    save_file(tensors, checkpoint / "model.safetensors", {"format": "pt"})
    (checkpoint / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True))
    digests = checkpoint_digests(checkpoint)
    about = json.loads((out / "bundle.json").read_text())
    about["scoring"]["checkpoint"] = digests
    about["scoring"]["model"] |= changed
    for name in about["readers"]:
        file = out / "readers" / f"{name}.safetensors"
        made = _reader(load_reader(file), before, hidden, layers, digests, changed)
        file.unlink()
        save_reader(file, made)
        about["readers"][name] = sha256_file(file)
    (out / "bundle.json").write_text(json.dumps(about))
    (out / STORED).unlink()
    stored.write(out, ChosenReaders.load(ScorerChoice(reader=out)).with_actor(partial(OpenActor, batch_size=4)))
    return out


def _padded(name: str, array: np.ndarray, before: int, text: dict[str, Any]) -> np.ndarray:
    hidden = text["hidden_size"]
    if name.startswith(_TEXT):
        sizes = {
            "q_proj": (text["num_attention_heads"] * _HEAD, hidden),
            "k_proj": (text["num_key_value_heads"] * _HEAD, hidden),
            "v_proj": (text["num_key_value_heads"] * _HEAD, hidden),
            "o_proj": (hidden, text["num_attention_heads"] * _HEAD),
            "gate_proj": (text["intermediate_size"], hidden),
            "up_proj": (text["intermediate_size"], hidden),
            "down_proj": (hidden, text["intermediate_size"]),
            "embed_tokens": (array.shape[0], hidden),
        }
        if (part := name.split(".")[-2]) in sizes:
            return _with_zeros(array, sizes[part])
        if array.shape == (before,):  # a norm, whose mean square is over `hidden` numbers now
            return _with_zeros(array * math.sqrt(before / hidden), (hidden,)).astype(array.dtype)
    elif "merger" in name and ".linear_fc2." in name:
        return _with_zeros(array, (hidden, *array.shape[1:]))
    return array


def _with_zeros(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    made = np.zeros(shape, array.dtype)
    made[tuple(slice(n) for n in array.shape)] = array
    return made


def _reader(
    reader: FittedReader, before: int, hidden: int, layers: int, digests: dict[str, str], changed: dict[str, str]
) -> FittedReader:
    def padded(name: str, array: np.ndarray) -> np.ndarray:
        if name not in _OF_STATES:
            return array
        blocks = array.reshape(*array.shape[:-1], -1, before)  # several states, one behind the other
        made = np.full((*blocks.shape[:-1], hidden), float(name == "scale"), array.dtype)
        made[..., :before] = blocks
        return made.reshape(*array.shape[:-1], -1)

    provenance = dict(reader.provenance)
    required = provenance[NAME]
    provenance[NAME] = {**required, "checkpoint": digests, "model": {**required["model"], **changed}}
    if provenance.get("replay"):
        middle = _middle(layers)
        provenance["replay"] = {**provenance["replay"], "final_layer": layers, "middle_layer": middle}
    return replace(
        reader,
        weights=replace(reader.weights, tensors={k: padded(k, v) for k, v in reader.weights.tensors.items()}),
        parents={role: _reader(of, before, hidden, layers, digests, changed) for role, of in reader.parents.items()},
        provenance=provenance,
    )


def _middle(layers: int) -> int:
    from dualread.models.replay.forward import middle_layer

    return middle_layer(layers)
