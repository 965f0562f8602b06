"""What a reader's file may say about how its actor is opened and asked: the types and bounds of every value.

A study's values are checked when the study is read; a reader's file may come from anybody. Texts that reach other
packages are those that a study may have, and numbers have upper bounds, because memory and time follow them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from dualread.errors import ArtifactError, ConfigError
from dualread.specs.generation import Image
from dualread.store.typed import typed

MOST_PIXELS, MOST_TOKENS, MOST_SAMPLES, MOST_INTEGER = 2**24, 2**17, 1000, 10_000

_Word = Annotated[str, Field(max_length=1000)]
_Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")]
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Pixels = Annotated[int, Field(ge=1, le=MOST_PIXELS)]
_Tokens = Annotated[int, Field(ge=1, le=MOST_TOKENS)]
_Integer = Annotated[int, Field(ge=0, le=MOST_INTEGER)]


@dataclass(frozen=True, kw_only=True)
class Quantization:
    """See `study.sections.backbones.Quantization`."""

    module: Literal["models.quantized"]
    bits: Literal[4, 8]


@dataclass(frozen=True, kw_only=True)
class Model:
    """See `study.sections.backbones.Opening`."""

    dtype: Literal["float32", "bfloat16"]
    attention: Literal["sdpa", "eager", "flash_attention_2"]
    max_prompt_tokens: _Tokens
    min_pixels: _Pixels | None = None
    max_pixels: _Pixels | None = None
    quantization: Quantization | None = None
    chat_template: Annotated[dict[_Word, bool | int | _Word], Field(max_length=100)] | None = None
    forbidden_tokens: Annotated[list[_Word], Field(max_length=1000)] | None = None


@dataclass(frozen=True, kw_only=True)
class Facts:
    """See `models.backbones.facts.Facts`."""

    completion_type: Literal[0, 1]
    shared: Literal["image prefix", "prompt", "nothing"]
    images_once: bool
    tree: bool


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A prompt of the library, and the digest of its text."""

    name: _Name
    sha256: _Sha256


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """See `study.sections.answers.Decoding`."""

    temperature: Annotated[float, Field(ge=0, le=100)]
    top_p: Annotated[float, Field(gt=0, le=1)]
    n_samples: Annotated[int, Field(ge=1, le=MOST_SAMPLES)]
    max_completion_tokens: _Tokens


@dataclass(frozen=True, kw_only=True)
class Choices:
    """See `study.sections.answers.Choices`."""

    words: Annotated[list[_Word], Field(max_length=100)] | None = None
    integers: Annotated[list[_Integer], Field(min_length=2, max_length=2)] | None = None


@dataclass(frozen=True, kw_only=True)
class View:
    """See `readers.requirements.View`."""

    name: _Name
    image: Image
    prompt: Prompt
    decoding: Decoding | None = None
    choices: Choices | None = None
    forced: bool = False


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """See `readers.requirements.Requirements`; an actor without a checkpoint is not opened."""

    facts: Facts | dict[str, Any]
    checkpoint: dict[_Word, _Sha256]
    prompt: Prompt
    decoding: Decoding
    contract: Literal["single", "dual"]
    views: Annotated[list[View], Field(max_length=100)]
    model: Model | None = None


def check(said: Mapping[str, Any], where: str) -> None:
    """Refuse a reader whose file says something that no study may say about how its actor is opened and asked.

    Args:
        said: What the file says, see `Scoring`.
        where: The file that errors name.

    Raises:
        ArtifactError: A value is missing, unknown, of another type, or out of its bounds.
    """
    rest = dict(said)
    if not said.get("checkpoint"):  # answers that a service gave
        rest.pop("model", None)
    elif not isinstance(said.get("model"), Mapping):
        raise ArtifactError(f"{where}: scoring.model is {said.get('model')!r:.100}. Expected a mapping. Fit it again.")
    else:
        _typed(Facts, said.get("facts"), where)
    _typed(Scoring, rest, where)


def check_pooling(kappa: object, where: str) -> float:
    """Return kappa, the attention to image tokens above which they are pooled, if it is a number from 0 to 1.

    Raises:
        ArtifactError: It is something else.
    """
    if isinstance(kappa, bool) or not isinstance(kappa, int | float) or not 0 <= kappa <= 1:
        raise ArtifactError(f"{where}: replay.kappa is {kappa!r:.100}. Expected a number from 0 to 1. Fit it again.")
    return float(kappa)


def _typed(kind: type, said: Any, where: str) -> None:
    try:
        typed(kind, said, "scoring")
    except (ConfigError, ValueError, TypeError, RecursionError) as error:  # NaN, or no mapping
        why = str(error) if isinstance(error, ConfigError) else f"it is no JSON ({error})."
        raise ArtifactError(f"{where}: the reader's file says something wrong: {why:.1000} Fit it again.") from error
