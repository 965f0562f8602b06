"""Compare what a reader was fitted on with what it is used on now, and name every difference."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dualread.declared.recorded import Requirements
from dualread.errors import ArtifactError, ConfigError
from dualread.models import prompts
from dualread.models.adapters import is_adapter
from dualread.models.backbones.tokenizer import CALLED, without_calls
from dualread.models.replay.example import read_of_example
from dualread.models.replay.forward import middle_layer
from dualread.models.replay.positions import RULES
from dualread.readers.base import FittedReader
from dualread.readers.requirements import states_of
from dualread.store.digest import sha256_file

# Files of a checkpoint that a model or its tokenizer may be read from; others, such as README.md, change nothing.
_READ = (".json", ".jinja", ".safetensors", ".model", ".txt")


def checkpoint_folder(checkpoint: Path) -> Path:
    """Return the folder with the weights: `checkpoint` itself, or its subfolder of this name if it is an actor's.

    It may be that of an adapter, without the weights of its base.

    Raises:
        ArtifactError: There is no such folder, or no model in it.
    """
    for folder in (checkpoint / "checkpoint", checkpoint):
        if (folder / "config.json").is_file() or is_adapter(folder):
            return folder
    raise ArtifactError(
        f"{checkpoint}: no config.json here. Expected the folder of a checkpoint, of an actor such as"
        " results/<study>/actors/<backbone>/<actor>/<seed>, or a repository of the hub as owner/name@revision."
    )


def check_is_own(required: Requirements, where: str) -> None:
    """Check that the reader's actor is a checkpoint.

    Raises:
        ConfigError: Its answers were given by a service, so that nothing here can ask it the next question.
    """
    if not required.checkpoint:
        raise ConfigError(
            f"{where}: was fitted on given answers, and there is no checkpoint that could answer. Expected a reader of"
            " an actor with a checkpoint; `dualread evaluate` judges given answers."
        )


def checkpoint_digests(folder: Path) -> dict[str, str]:
    """Return the sha256 of each file of a checkpoint by name; files that no model is read from are left out.

    Of the tokenizer's files, it is that of what is read: an actor of a study is a copy without what they keep of calls.
    """
    files = sorted(path for path in folder.iterdir() if path.suffix in _READ and path.is_file())
    return {path.name: _digest(path) for path in files}


def _digest(file: Path) -> str:
    if file.name in CALLED:
        return hashlib.sha256(without_calls(file.name, file.read_bytes())).hexdigest()
    return sha256_file(file)


def other_checkpoint(required: Mapping[str, str], found: Mapping[str, str]) -> Iterator[str]:
    """Yield one sentence for each file of a checkpoint that is not as it was when the reader was fitted."""
    for name in sorted(required.keys() | {name for name in found if Path(name).suffix in _READ}):
        if name not in found:
            yield f"{name} is missing"
        elif name not in required:
            yield f"{name} is new"
        elif required[name] != found[name]:
            yield f"{name} has sha256 {found[name][:12]}, expected {required[name][:12]}"


def other_prompts(requirements: Requirements) -> Iterator[str]:
    """Yield one sentence for each prompt whose text is no longer the one with which the reader was fitted.

    Raises:
        ConfigError: The library has no prompt of this name.
    """
    asked = {prompt.name: prompt for prompt in (requirements.prompt, *(view.prompt for view in requirements.views))}
    for prompt in asked.values():
        try:
            sha256 = prompts.template_sha256(prompt.name)
        except ValueError as error:
            raise ConfigError(str(error)) from error
        if sha256 != prompt.sha256:
            yield f"the prompt {prompt.name!r} has sha256 {sha256[:12]}, expected {prompt.sha256[:12]}"


def other_states(reader: FittedReader, config: Any) -> Iterator[str]:
    """Yield one sentence for each way in which states are read now and were not when the reader was fitted.

    Args:
        reader: A fitted reader.
        config: The configuration of the model's text part.
    """
    method, features = reader.provenance.get("method"), reader.provenance.get("features")
    if (states := states_of(reader, where=f"{method}")) is None:
        return
    if not isinstance(features, list):
        raise ArtifactError(f"{method}: its features are {features!r:.100}. Expected a list of names. Fit it again.")
    n_layers = config.num_hidden_layers
    now = {"final_layer": n_layers, "middle_layer": middle_layer(n_layers), "positions": RULES}
    for name, value in now.items():
        if (fitted := getattr(states, name)) != value:
            yield f"{name} is {value!r}, expected {fitted!r}"
    for name, values in read_of_example().items():
        if name in features and values != (fitted := (states.example or {}).get(name)):
            yield f"{name} of the replay's example is {values}, expected {fitted}"
