"""What the specs of several phases share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Settings = Mapping[
    str, Any
]  # of one plugin, whose `SETTINGS` say which there are; they are checked before the workflow


@dataclass(frozen=True, kw_only=True)
class Plugin:
    """A plugin; the key of a result covers the code of every `module` in its spec.

    Attributes:
        module: Its module below `dualread`, such as "readers.psr".
    """

    module: str


@dataclass(frozen=True, kw_only=True)
class ConfiguredPlugin(Plugin):
    """A plugin with its settings."""

    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt; the key of a result covers the text of every `file` in its spec.

    Attributes:
        name: Its name in the config.
        file: Its file below `lib/dualread`.
    """

    name: str
    file: str


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository on the Hugging Face hub."""

    hub: str
    revision: str


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """A stage that opens a model.

    Attributes:
        backbone: The backbone's name in the config.
        model: The backbone's settings. Only where the model answers or answers are replayed, they may quantize it.
    """

    backbone: str
    model: Settings


@dataclass(frozen=True, kw_only=True)
class ActorSpec(ModelSpec):
    """A stage that opens an actor."""

    actor: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class Split:
    """A split of a data set."""

    dataset: str
    split: str


@dataclass(frozen=True, kw_only=True)
class NoSpec:
    """A stage whose result depends on its inputs alone."""
