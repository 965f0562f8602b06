"""planned.json: what the last run of a study makes in each place, so that no job of an earlier run writes there.

Jobs can outlive the run that started them: Snakemake was killed, or lost its connection to a cluster. Meanwhile
settings or code may have been edited, and the next run makes, or already has, something else in their place.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.store.code import SOURCES_NAME, library, stage_roots
from dualread.store.digest import MANIFEST_NAME
from dualread.store.files import read_json, replace_text
from dualread.store.job import Entry
from dualread.store.key import Action
from dualread.store.manifest import read_manifest
from dualread.store.store import Store

PLANNED_NAME = "planned.json"  # in the results folder of a study: {output: recipe}


def recipes(jobs: Mapping[str, tuple[str, Entry]], store: Store) -> dict[str, str]:
    """Return the recipe (`Action.recipe`) of each artifact, by directory.

    Args:
        jobs: Stage and entry of the job that makes an artifact, by the artifact's directory.
        store: The study's store.
    """
    index, found = library(store.root / SOURCES_NAME), {}
    for output, (stage, entry) in jobs.items():
        code = index.digest(stage_roots(stage, entry.spec))
        found[output] = Action(stage=stage, code=code, spec=entry.spec, inputs={}, packages={}).recipe
    return found


def write_planned(folder: Path, recipes: Mapping[str, str]) -> float:
    """Note the `recipes` of a run that begins; those of other targets are kept.

    Return the time of that, by the clock of the file system.
    """
    path = folder / PLANNED_NAME
    replace_text(path, json.dumps({**_read(folder), **recipes}).replace(", ", ",\n") + "\n")
    return path.stat().st_mtime


def check_planned(output: Path, action: Action) -> None:
    """Check that no later run makes something else in the place of `output`, which is results/<study>/...

    Raises:
        ArtifactError: A later run does.
    """
    if _read(Path(*output.parts[:2])).get(str(output), action.recipe) != action.recipe:
        raise ArtifactError(
            f"{output}: a later run makes something else here, because settings or code were edited since this job was"
            f" planned. The result is kept in the store ({action.key[:8]}) and is not shown."
        )


@contextlib.contextmanager
def shown(output: Path, action: Action) -> Iterator[None]:
    """Check with `check_planned` before and after a block that fills `output`; take it back if a run began meanwhile.

    Raises:
        ArtifactError: A later run makes something else.
    """
    check_planned(output, action)
    yield
    try:
        check_planned(output, action)
    except ArtifactError:
        manifest = output / MANIFEST_NAME
        with contextlib.suppress(OSError, ArtifactError):
            if read_manifest(manifest).key == action.key:
                manifest.unlink()
        raise


def _read(folder: Path) -> dict[str, str]:
    try:
        found = read_json(folder / PLANNED_NAME)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
