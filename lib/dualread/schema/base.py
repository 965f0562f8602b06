"""What declarations have in common: their base class, kinds of values, and parts of the specs of several phases."""

import ast
import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WrapValidator,
    model_validator,
)

from dualread import plugins
from dualread.errors import ConfigError

NAME = "^[a-z0-9][a-z0-9._-]{0,99}$"
HUB = "^[^/]+/[^/]+$"
COMMIT = "^[0-9a-f]{40}$"
COST = r"^\$\d*t(\+\d*\\rho)?(\+\d*\\tau)?\$$"

# What each pattern asks for, in words, for error messages.
FORMS = {
    NAME: "lower-case letters, digits, `.`, `_` and `-`",
    HUB: "owner/name",
    COMMIT: "a commit, 40 hexadecimal digits, because branches and tags can move",
    COST: r"such as $t+2\rho$",
}

T = TypeVar("T")


class Section(BaseModel):
    """A declaration: every key is declared, every value has the declared type, and nothing is changed later.

    Values are not converted: the text "17" is no seed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)

    def to_spec(self) -> dict[str, Any]:
        """Return the plain mapping that jobs, keys and stored manifests hold; fields that are None are left out."""
        return self.model_dump(mode="json", exclude_none=True)

    @classmethod
    def from_spec(cls, wire: Mapping[str, Any], where: str) -> Self:
        """Return the declaration that `wire` wrote.

        Args:
            wire: What was written.
            where: What errors call it.

        Raises:
            ConfigError: A field is missing, unknown, of another type or out of its bounds. The message names the first.
        """
        try:
            return cls.model_validate_json(json.dumps(dict(wire)))
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
        place = ".".join(map(str, (where, *problem["loc"])))
        value = "" if problem["type"] == "missing" else f"{problem['input']!r:.200}: "
        complaint = f"{problem['msg'][0].lower()}{problem['msg'][1:]}"
        raise ConfigError(f"{place}: {value}{complaint}. Expected the fields of {cls.__module__}.{cls.__name__}.")


def _distinct(values: list[T]) -> list[T]:
    if repeated := [value for index, value in enumerate(values) if value in values[:index]]:
        raise ValueError(f"{repeated[0]!r} is listed twice. Remove one of them.")
    return values


def _as_given(value: Any, check: Callable[[Any], float]) -> float:
    number = check(value)
    return value if isinstance(value, int) else number


# A list in a file, and nobody changes it.
Listed = Annotated[tuple[T, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
Distinct = Annotated[list[T], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(_distinct)]
AtLeastOne = Annotated[Distinct[T], Field(min_length=1)]

Name = Annotated[str, Field(pattern=NAME)]  # also the name of a folder
Names = AtLeastOne[Name]
Positive = Annotated[int, Field(ge=1)]
# Memory and time follow these numbers, and a reader's file, which may come from anybody, says them, too.
Tokens = Annotated[int, Field(ge=1, le=2**17)]
Pixels = Annotated[int, Field(ge=1, le=2**24)]
MOST_IMAGES = 20  # of a question
TOGETHER = " + "  # between the names of images that are shown together
Word = Annotated[str, Field(max_length=1000)]
NotEmpty = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Above0 = Annotated[float, Field(gt=0)]
AtLeast0 = Annotated[float, Field(ge=0)]
Seeds = AtLeastOne[Positive]
Share = Annotated[float, Field(ge=0, le=1)]
BelowOne = Annotated[float, Field(ge=0, lt=1)]
AS_GIVEN = WrapValidator(_as_given)  # of a number: 3 stays 3, and does not become 3.0, because tables print it
Split = Literal["train", "validation", "test"]
Splits = AtLeastOne[Split]
Unit = Literal["cluster", "image"]  # of roles, donors and resampling
AnswerType = Literal["open", "closed"]
# Settings as a file says them, such as those of a plugin, which are checked against the declaration in its file.
Wire = Mapping[str, Any]


class NonEmpty(Section):
    """A section in which every key is optional, but not all of them together."""

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"is empty. Expected at least one of: {', '.join(type(self).model_fields)}.")
        return self


class OnHub(NonEmpty):
    """Where files come from: a repository on the Hugging Face hub at one commit, or what a subclass adds."""

    hub: Annotated[str, Field(pattern=HUB)] | None = None
    """A repository on the Hugging Face hub."""
    revision: Annotated[str, Field(pattern=COMMIT)] | None = None
    """The commit of that repository."""

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.hub is None) != (self.revision is None):
            raise ValueError("has only one of `hub` and `revision`. Give both or neither.")
        return self


class Place(OnHub):
    """Where files come from: a folder or the hub."""

    folder: str | None = None
    """A folder, relative to the repository. If it exists, it comes first."""


class Checkpoint(Place):
    """Where a checkpoint comes from: a folder or the hub, whole or as an adapter and its base."""

    adapter: Place | None = None
    """A LoRA adapter of peft, in place of a whole checkpoint."""
    base: Place | None = None
    """What the adapter was trained on; by default, the backbone."""

    @model_validator(mode="after")
    def _is_whole_or_adapter(self) -> Self:
        if (self.adapter is None) == (self.hub is None and self.folder is None) or (self.base and not self.adapter):
            raise ValueError(
                f"has {sorted(self.model_fields_set)}. Expected `hub` or `folder` of a whole checkpoint, or `adapter`,"
                " perhaps with its `base`."
            )
        return self


class Repository(Section):
    """A repository on the Hugging Face hub, for stages that download it."""

    hub: str
    revision: str


class Plugin(Section):
    """A plugin; the key of a result covers the code of every `module` in its spec."""

    module: str  # its module below `dualread`, such as "readers.psr"


class ConfiguredPlugin(Plugin):
    """A plugin with its settings."""

    settings: Wire


class Prompt(Section):
    """A prompt; the key of a result covers the text of every `file` in its spec."""

    name: str  # its name in the config
    file: str  # its file below `lib/dualread`
    hints: Plugin | None = None  # what finds a wrong answer to each question, for a prompt with a hint


class DatasetSplit(Section):
    """A split of a data set."""

    dataset: str
    split: str


class RunSpec(Section):
    """The answers of one actor, or what is made of them."""

    backbone: str
    actor: str
    seed: int


class ModelSpec(Section):
    """A stage that opens a model."""

    backbone: str  # the backbone's name in the config
    # The backbone's settings. Only where the model answers or answers are replayed, they may quantize it.
    model: Wire


class ActorSpec(ModelSpec):
    """A stage that opens an actor."""

    actor: str
    seed: int
    same_as: str | None = None  # the actor whose checkpoint is opened, if it is another one


class NoSpec(Section):
    """A stage whose result depends on its inputs alone."""


_LIGHT = ("collections.abc", "dualread.schema", "pydantic", "typing")


class NoSettings(Section):
    """The settings of a plugin that has none."""


@cache
def settings_class(family: str, name: str) -> type[Section]:
    """Return the class `Settings` of plugin `name`, or `NoSettings`; the plugin is not imported.

    It may need packages that are not installed here, or slow ones, and a study is checked before anything runs. So only
    the class statement is run, after those imports of the file that are light: from typing, pydantic, collections.abc,
    `dualread.schema`, and from the file `settings.py` of the family, which holds what its plugins share.

    Raises:
        ConfigError: There is no such plugin, or its class uses a name of the file that is not known before the plugin
            runs, or is no `Section`.
    """
    statement = plugins.class_statement(family, name, "Settings")
    if statement is None:
        return NoSettings
    file, light = plugins.file_of(family, name), (*_LIGHT, f"dualread.{plugins.package_of(family)}.settings")
    where = f"{file}: line {statement.lineno}"
    packages = tuple(f"{package}." for package in light)
    imports = [line for line in plugins.imports(family, name) if f"{line.module or ''}.".startswith(packages)]
    names: dict[str, Any] = {"__name__": plugins.absolute(plugins.module_of(family, name))}
    try:
        exec(compile(ast.Module([*imports, statement], []), str(file), "exec"), names)
    except (ImportError, NameError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{where}: the class Settings cannot be read without importing the plugin ({error}). Expected only names"
            f" that the file imports from {', '.join(light)}."
        ) from error
    section = names["Settings"]
    if not (isinstance(section, type) and issubclass(section, Section)):
        raise ConfigError(f"{where}: the class Settings is not derived from dualread.schema.base.Section.")
    return section
