"""What a reader's file says about the actor that it needs (`schema.recorded.Requirements`).

Stage fit_readers records it in the provenance of every reader, under `NAME`, so that one file says all that it depends
on. How the states were read (`schema.recorded.States`) is beside it under `STATES`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from dualread import plugins
from dualread.artifacts.tensors import read_header
from dualread.errors import ArtifactError, ConfigError
from dualread.limits import check_plugin
from dualread.readers.base import FittedReader
from dualread.readers.declarations import declared
from dualread.schema.answers import name_and_settings
from dualread.schema.base import Section
from dualread.schema.data import plugin_and_settings
from dualread.schema.recorded import RequiredView, Requirements, ShardStates, States

NAME, STATES = "scoring", "replay"

T = TypeVar("T", bound=Section)


@dataclass(frozen=True, kw_only=True)
class ScoringReader(FittedReader):
    """A fitted reader, and what its file says that it needs to score: read once, and checked.

    Attributes:
        parents: The readers on which it builds, by role, and what they need.
        needs: What it depends on besides its weights, and then what each reader below it does.
        features: The names of the states that it reads, and those below it.
        states: How the states that it was fitted on were read; None if it reads none.
        is_calibrated: Whether it gives confidences, and not scores alone.
    """

    parents: Mapping[str, "ScoringReader"] = field(default_factory=dict)
    needs: tuple[Requirements, ...]
    features: frozenset[str]
    states: States | None
    is_calibrated: bool

    @classmethod
    def from_fitted(
        cls, reader: FittedReader, *, where: str, packages: Collection[str] = (), place: str = ""
    ) -> "ScoringReader":
        """Return `reader` with what it needs; plugins that it names are imported only when a question is asked.

        Args:
            reader: A reader that somebody else may have fitted.
            where: The file that errors name.
            packages: Other packages, or single modules of them, whose plugins the file may name.
            place: Where in the file the reader is; "" unless it is a parent.

        Raises:
            UntrustedNameError: It names a plugin of another package.
            ArtifactError: It does not say what it needs, because it was fitted by an earlier version of the library; or
                it says something that no study may say.
        """
        problem = f"{where}: the reader does not say how its actor has to be asked"
        requirements, states = _recorded(reader, NAME, Requirements, problem), states_of(reader, where=where)
        partitions, features = reader.provenance.get("partitions"), reader.provenance.get("features", [])
        if not isinstance(features, list) or not all(isinstance(name, str) for name in features):
            raise ArtifactError(f"{where}: its features are {features!r:.100}. Expected a list of names. Fit it again.")
        named, inside = _named_plugins(requirements), f"{where}: {place}provenance.{NAME}"
        is_calibrated = bool(reader.weights.notes) or not declared(reader.module, "SCORES_UNFITTED")
        for family, name, field_name in named:
            check_plugin(family, name, packages, f"{inside}.{field_name}")
            try:
                if family in plugins.FAMILIES:  # prompts are texts
                    plugins.file_of(family, name)
            except ConfigError as error:
                raise ArtifactError(f"{inside}.{field_name}: {error}") from error
        if isinstance(partitions, dict) and not any(
            isinstance(part, dict) and part.get("n") for part in partitions.values()
        ):
            requirements = requirements.model_copy(update={"images": ()})  # it was fitted on nothing
        parents = {
            role: cls.from_fitted(parent, where=where, packages=packages, place=f"{place}parents.{role}.")
            for role, parent in reader.parents.items()
        }
        return cls(
            **{**vars(reader), "parents": parents},
            needs=(requirements, *(needs for parent in parents.values() for needs in parent.needs)),
            features=frozenset(features),
            states=states,
            is_calibrated=is_calibrated,
        )

    @property
    def method(self) -> str:
        """The name of its method."""
        return str(self.provenance.get("method", self.module))

    @property
    def requirements(self) -> Requirements:
        """What it depends on besides its weights and the readers below it."""
        return self.needs[0]

    @property
    def choices_view(self) -> str | None:
        """The view of the probabilities of a question's choices that it reads; None if it reads none."""
        return next((view.name for view in self.views if view.choices is not None and view.choices.options), None)

    @property
    def views(self) -> tuple[RequiredView, ...]:
        """The views that it and the readers below it read when they score; each once."""
        return tuple({view.name: view for needs in self.needs for view in needs.views}.values())


def _named_plugins(requirements: Requirements) -> Sequence[tuple[str, str, str]]:
    """Return what a reader's file names for its actor: the family and the name of each plugin, and the field."""
    views, spans = requirements.views, requirements.spans
    return [
        ("contracts", requirements.contract, "contract"),
        *(("images", name_and_settings(view.image)[0], f"views.{view.name}.image") for view in views),
        *(("measures", view.measure.name, f"views.{view.name}.measure") for view in views if view.measure is not None),
        *([] if spans is None else [("spans", plugin_and_settings(spans)[0], "spans")]),
        ("prompts", requirements.prompt.name, "prompt.name"),
        *(("prompts", view.prompt.name, f"views.{view.name}.prompt.name") for view in views),
    ]


def states_of(reader: FittedReader, *, where: str) -> States | None:
    """Return how the states that `reader` was fitted on were read; None if it reads none."""
    if reader.provenance.get(STATES) is None:
        return None
    return _recorded(reader, STATES, States, f"{where}: the reader does not say how its states were read")


def states_of_shard(features: Path, where: str) -> ShardStates:
    """Return how the states of a shard, `features`, were read; an ArtifactError if the file does not say it."""
    try:
        return ShardStates.from_spec(read_header(features), "header")
    except ConfigError as error:
        raise ArtifactError(f"{where}: {features.name} does not say how its states were read: {error}") from error


def _recorded(reader: FittedReader, name: str, kind: type[T], problem: str) -> T:
    try:
        return kind.from_spec(reader.provenance[name], name)
    except (ConfigError, ValueError, TypeError, KeyError, RecursionError) as error:  # NaN, or nothing
        why = str(error) if isinstance(error, ConfigError) else f"{error!r} in its provenance."
        raise ArtifactError(
            f"{problem}: {why:.1000} Expected a reader whose provenance has {name!r}, as this version fits them. Fit it"
            " again."
        ) from error
