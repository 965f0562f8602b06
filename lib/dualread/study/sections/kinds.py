"""What the sections of a config have in common: their base class, names, seeds, splits and other kinds of values."""

from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

NAME = "^[a-z0-9][a-z0-9._-]*$"
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
    """A part of a config: every key is declared, every value has the declared type, and nothing is changed later.

    Values are not converted: the text "17" is no seed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _distinct(values: list[T]) -> list[T]:
    if repeated := [value for index, value in enumerate(values) if value in values[:index]]:
        raise ValueError(f"{repeated[0]!r} is listed twice. Remove one of them.")
    return values


Distinct = Annotated[list[T], Field(json_schema_extra={"uniqueItems": True}), AfterValidator(_distinct)]
AtLeastOne = Annotated[Distinct[T], Field(min_length=1)]

Name = Annotated[str, Field(pattern=NAME)]  # also the name of a folder
Names = AtLeastOne[Name]
Positive = Annotated[int, Field(ge=1)]
Seeds = AtLeastOne[Positive]
Share = Annotated[float, Field(ge=0, le=1)]
Split = Literal["train", "validation", "test"]
Splits = AtLeastOne[Split]
AnswerType = Literal["open", "closed"]
# Plugins declare their settings (SETTINGS), and each is checked against its own declaration.
Settings = dict[str, Any]


class NonEmpty(Section):
    """A section in which every key is optional, but not all of them together."""

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not self.model_fields_set:
            raise ValueError(f"is empty. Expected at least one of: {', '.join(type(self).model_fields)}.")
        return self


class OnHub(NonEmpty):
    """Where files come from: a repository on the Hugging Face hub at one commit, or what a subclass adds."""

    hub: Annotated[str, Field(pattern=HUB)] | None = Field(None, description="A repository on the Hugging Face hub.")
    revision: Annotated[str, Field(pattern=COMMIT)] | None = Field(None, description="The commit of that repository.")

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.hub is None) != (self.revision is None):
            raise ValueError("has only one of `hub` and `revision`. Give both or neither.")
        return self


class Place(OnHub):
    """Where files come from: a folder or the hub."""

    folder: str | None = Field(None, description="A folder, relative to the repository. If it exists, it comes first.")


class Checkpoint(Place):
    """Where a checkpoint comes from: a folder or the hub, whole or as an adapter and its base."""

    adapter: Place | None = Field(None, description="A LoRA adapter of peft, in place of a whole checkpoint.")
    base: Place | None = Field(None, description="What the adapter was trained on; by default, the backbone.")

    @model_validator(mode="after")
    def _is_whole_or_adapter(self) -> Self:
        if (self.adapter is None) == (self.hub is None and self.folder is None) or (self.base and not self.adapter):
            raise ValueError(
                f"has {sorted(self.model_fields_set)}. Expected `hub` or `folder` of a whole checkpoint, or `adapter`,"
                " perhaps with its `base`."
            )
        return self
