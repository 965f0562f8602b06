"""What a reader's file says about the actor that it needs (`schema.recorded.Requirements`).

Stage fit_readers records it in the provenance of every reader, under `NAME`, so that one file says all that it depends
on. How the states were read (`schema.recorded.States`) is beside it under `STATES`.
"""

from collections.abc import Collection
from pathlib import Path
from typing import TypeVar

from dualread import plugins
from dualread.artifacts.tensors import read_header
from dualread.errors import ArtifactError, ConfigError
from dualread.limits import UntrustedNameError, check_plugin
from dualread.readers.base import FittedReader
from dualread.schema.answers import name_and_settings
from dualread.schema.base import Section
from dualread.schema.data import plugin_and_settings
from dualread.schema.recorded import RequiredView, Requirements, ShardStates, States

NAME, STATES = "scoring", "replay"

T = TypeVar("T", bound=Section)


def requirements_of(reader: FittedReader, *, where: str) -> Requirements:
    """Return what `reader` depends on besides its weights; `where` is the file that errors name.

    Raises:
        ArtifactError: The reader does not say it, because it was fitted by an earlier version of the library; or it
            says something that no study may say.
    """
    requirements = _scoring(reader, where)
    try:
        plugins.file_of("contracts", requirements.contract)
    except ConfigError as error:
        raise ArtifactError(f"{where}: {NAME}.contract: {error}") from error
    partitions = reader.provenance.get("partitions")
    if isinstance(partitions, dict) and not any(
        isinstance(part, dict) and part.get("n") for part in partitions.values()
    ):
        return requirements.model_copy(update={"images": ()})  # it was fitted on nothing
    return requirements


def check_plugins(reader: FittedReader, packages: Collection[str], *, where: str, place: str = "") -> None:
    """Check which plugins a reader's file names for its actor; those of scoring are imported when a question is asked.

    Raises:
        UntrustedNameError: It, or a parent at the `place` in its file, names a plugin of a package that is not among
            `packages` (`limits.check_plugin`).
        ArtifactError: It says something that no study may say.
    """
    if NAME in reader.provenance:
        requirements, inside = _scoring(reader, where), f"{where}: {place}provenance.{NAME}"
        check_plugin("contracts", requirements.contract, packages, f"{inside}.contract")
        for name in (requirements.prompt.name, *(view.prompt.name for view in requirements.views)):
            package = name.partition(".")[0]
            if plugins.is_foreign(name) and not {name, package} & set(packages):
                raise UntrustedNameError(
                    f"{inside}: the prompt {name!r:.200} is in another package, and no file can name one. Expected one"
                    f" of our prompts. If you know that package, name it yourself: --plugins {package:.200}."
                )
        for view in requirements.views:
            check_plugin("images", name_and_settings(view.image)[0], packages, f"{inside}.views.{view.name}.image")
            if view.measure is not None:
                check_plugin("measures", view.measure.name, packages, f"{inside}.views.{view.name}.measure")
        if requirements.spans is not None:
            check_plugin("spans", plugin_and_settings(requirements.spans)[0], packages, f"{inside}.spans")
    for role, parent in reader.parents.items():
        check_plugins(parent, packages, where=where, place=f"{place}parents.{role}.")


def all_requirements(reader: FittedReader, *, where: str) -> list[Requirements]:
    """Return what `reader`, and then the readers on which it builds, depend on (`requirements_of`)."""
    of_parents = (needs for parent in reader.parents.values() for needs in all_requirements(parent, where=where))
    return [requirements_of(reader, where=where), *of_parents]


def views_read(reader: FittedReader, *, where: str) -> tuple[RequiredView, ...]:
    """Return the views that `reader`, and the readers on which it builds, read when they score; each once."""
    views = {view.name: view for needs in all_requirements(reader, where=where) for view in needs.views}
    return tuple(views.values())


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


def _scoring(reader: FittedReader, where: str) -> Requirements:
    return _recorded(reader, NAME, Requirements, f"{where}: the reader does not say how its actor has to be asked")


def _recorded(reader: FittedReader, name: str, kind: type[T], problem: str) -> T:
    try:
        return kind.from_spec(reader.provenance[name], name)
    except (ConfigError, ValueError, TypeError, KeyError, RecursionError) as error:  # NaN, or nothing
        why = str(error) if isinstance(error, ConfigError) else f"{error!r} in its provenance."
        raise ArtifactError(
            f"{problem}: {why:.1000} Expected a reader whose provenance has {name!r}, as this version fits them. Fit it"
            " again."
        ) from error
