"""Reads the files of a checkpoint folder: its configuration, and the names and shapes of its weights.

Common substitutes for a complete model are refused with a specific message before a model is built: adapters, other
architectures, quantized weights, incomplete downloads, Git LFS pointers.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dualread import limits
from dualread.errors import ArtifactError, in_a_line

AGAIN = "Download or save the checkpoint again, or choose another model."

_INDEX = "model.safetensors.index.json"
_GIT_LFS = b"version https://git-lfs.github.com/spec/"
_MERGE = "In a study, name it as `adapter: {folder: ...}` with its `base`; `dualread score` takes its base as --base."
_SHOWN = 5
_LAYERS = ("layer", "layers", "depth", "blocks")
_SIZES = ("_size", "_dim", "_heads", "_experts", "_length")
_IMPLEMENTATIONS = ("attn_implementation", "experts_implementation", "kernel", "use_kernels")
_FLOATS = ("F64", "F32", "BF16", "F16")
_POSITIONS = "I64"  # older checkpoints hold the numbers 0, 1, 2, ... of positions, which transformers ignores


def read_config(checkpoint: Path) -> Any:
    """Return the configuration in config.json, if it is of a whole model that answers about images."""
    if (checkpoint / "adapter_config.json").exists():
        raise ArtifactError(
            f"{checkpoint}: a LoRA or other PEFT adapter (adapter_config.json). Expected a whole model. {_MERGE}"
        )
    for path in sorted(path for path in checkpoint.iterdir() if path.is_file()):
        with path.open("rb") as stream:
            if stream.read(len(_GIT_LFS)) == _GIT_LFS:
                raise ArtifactError(
                    f"{path}: a Git LFS pointer. Expected the file itself. Run `git lfs pull` in the repository."
                )
    file = checkpoint / "config.json"
    entries = read_json(file)
    if entries.get("quantization_config") is not None:
        raise ArtifactError(
            f"{file}: quantized weights (quantization_config). Expected float32, bfloat16 or float16. Use the original "
            "model, or save this one again after `model.dequantize()`."
        )
    try:
        _check_entries(file, entries)
    except RecursionError as error:
        raise ArtifactError(f"{file}: nested too deeply. {AGAIN}") from error
    config_class = _config_class(file, entries)
    try:
        config = config_class.from_dict(entries)
    except Exception as error:  # transformers raises many kinds of errors for wrong values
        raise ArtifactError(f"{file}: {type(error).__name__}: {error}. Correct the value.") from error
    for part, of_part in config_class.sub_configs.items():
        # Read from `config` and not from the file, because transformers also accepts older names of the parts.
        model_type, expected = (getattr(section, "model_type", None) for section in (getattr(config, part), of_part))
        if model_type and expected and model_type != expected:  # a part that a model lacks, such as its sounds, is None
            raise ArtifactError(f"{file}: {part}.model_type is {model_type!r}, expected {expected!r}. {AGAIN}")
    return config


def _check_entries(file: Path, entries: Mapping[str, Any], inside: str = "") -> None:
    """Refuse what transformers would follow without a limit: numbers of layers, and kernels to be downloaded."""
    for name, value in entries.items():
        where = f"{inside}{name}"
        if isinstance(value, Mapping):
            _check_entries(file, value, f"{where}.")
        elif isinstance(value, int):
            is_size = name.startswith("num_") or name.endswith(_SIZES)
            most = limits.CONFIG_SIZE if is_size else limits.CONFIG_NUMBER
            most = limits.CONFIG_LAYERS if name.endswith(_LAYERS) else most
            if abs(value) > most:
                raise ArtifactError(f"{file}: {where} is {value!r:.20}, expected at most {most}. {AGAIN}")
        elif isinstance(value, str) and "/" in value and name.strip("_").startswith(_IMPLEMENTATIONS):
            raise ArtifactError(
                f"{file}: {where} is {value!r}, code that would be downloaded. Expected the settings to say how"
                " attention is computed. Remove the entry."
            )


def _config_class(file: Path, entries: Mapping[str, Any]) -> Any:
    """Return transformers' class of the configuration, if it has a model of this kind that reads images and text."""
    from transformers import CONFIG_MAPPING, MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING

    model_type: Any = entries.get("model_type")
    if model_type not in CONFIG_MAPPING or CONFIG_MAPPING[model_type] not in MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING:
        raise ArtifactError(
            f"{file}: model_type is {model_type!r}. Expected a model that transformers opens with"
            " AutoModelForImageTextToText. Choose another model, or a version of transformers that knows this one."
        )
    return CONFIG_MAPPING[model_type]


@contextlib.contextmanager
def readable(what: str, expected: str) -> Iterator[None]:
    """Name what cannot be read, and what was expected: packages raise errors of many kinds about wrong files."""
    try:
        yield
    except Exception as error:
        if isinstance(error, ImportError):
            expected = "a model that needs no other packages than those of envs/"
        raise ArtifactError(f"{what} ({in_a_line(error)}). Expected {expected}. {AGAIN}") from error


def weight_files(checkpoint: Path) -> list[Path]:
    """Return the files that hold the weights: model.safetensors, or the files that the index lists.

    Raises:
        ArtifactError: There are no such files; the index is invalid, lists a missing file, or names another file for a
            tensor than the one that holds it; there is both a model.safetensors and an index that does not list it; or
            tensors are integers or 8-bit numbers.
    """
    single, index = checkpoint / "model.safetensors", checkpoint / _INDEX
    if single.exists() and not single.is_file():
        raise ArtifactError(f"{single}: a pipe, device or folder, expected a file. {AGAIN}")
    if not index.exists():
        if single.exists():
            _check_tensors([single])
            return [single]
        raise ArtifactError(
            f"{checkpoint}: no file {single.name} or {_INDEX}. Expected a checkpoint in safetensors format. Save "
            "the model with `save_pretrained`."
        )
    entries = read_json(index)
    if not isinstance(entries.get("metadata"), Mapping):  # transformers reads it
        raise ArtifactError(f'{index}: no metadata. Expected a mapping. Add `"metadata": {{}}`.')
    weight_map = entries.get("weight_map")
    named = isinstance(weight_map, Mapping) and all(isinstance(name, str) for name in weight_map.values())
    if not weight_map or not named:
        raise ArtifactError(
            f"{index}: no valid weight_map. Expected a mapping from the name of each tensor to its file. {AGAIN}"
        )
    files = [checkpoint / name for name in sorted(set(weight_map.values()))]
    if missing := [file.name for file in files if not file.is_file()]:
        n_tensors = sum(name in missing for name in weight_map.values())
        raise ArtifactError(
            f"{index}: {len(missing)} of its {len(files)} files are not there: {shortened(missing)}. Expected them to"
            f" hold {n_tensors} of the {len(weight_map)} tensors. {AGAIN}"
        )
    if single.exists() and single not in files:
        # It depends on the program which of the two it reads.
        raise ArtifactError(
            f"{checkpoint}: {single.name}, and {_INDEX} that names other files. Expected only one of them. Remove the "
            "one that is out of date."
        )
    _check_tensors(files, weight_map)
    return files


def opened(files: list[Path], framework: str = "pt") -> Iterator[Any]:
    """Yield each file, opened with `safetensors.safe_open`: names and shapes are available, and no weights are read."""
    from safetensors import SafetensorError, safe_open

    for file in files:
        try:
            with safe_open(file, framework=framework) as tensors:
                yield tensors
        except SafetensorError as error:
            size = file.stat().st_size
            raise ArtifactError(
                f"{file}: damaged or cut off at {size} bytes ({error}). Expected a safetensors file. {AGAIN}"
            ) from error
        except OSError as error:  # a folder, or a link whose target was removed
            raise ArtifactError(f"{file}: cannot be read ({error}). Expected a safetensors file. {AGAIN}") from error


def _check_tensors(files: list[Path], weight_map: Mapping[str, str] | None = None) -> None:
    """Refuse quantized tensors, and those in another file than the index says: programs differ in which they read."""
    for file, tensors in zip(files, opened(files), strict=True):
        kinds = {name: tensors.get_slice(name).get_dtype() for name in list(tensors.keys())}
        if weight_map and (elsewhere := [name for name in kinds if weight_map.get(name) != file.name]):
            raise ArtifactError(
                f"{file}: holds {len(elsewhere)} tensors that are not its own: {shortened(elsewhere)}. Expected those"
                f" that {_INDEX} names for it; of the first it says {weight_map.get(elsewhere[0])!r}. {AGAIN}"
            )
        if wrong := [f"{name} ({kind})" for name, kind in kinds.items() if kind not in (*_FLOATS, _POSITIONS)]:
            raise ArtifactError(
                f"{file}: {len(wrong)} tensors are quantized: {shortened(wrong)}. Expected one of {', '.join(_FLOATS)}."
                " Use the original model, or save this one again after `model.dequantize()`."
            )


def shortened(names: list[str]) -> str:
    """Return the first few names and the number of the others, as text for a message."""
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*names[:_SHOWN], *more])


def read_json(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise ArtifactError(f"{file.parent}: no file {file.name}. Expected a checkpoint in safetensors format. {AGAIN}")
    try:
        entries = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{file}: not valid JSON ({error}). Expected a JSON object. {AGAIN}") from error
    if not isinstance(entries, dict):
        raise ArtifactError(f"{file}: holds a {type(entries).__name__}, expected a JSON object. {AGAIN}")
    return entries
