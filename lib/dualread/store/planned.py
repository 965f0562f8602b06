"""planned.json: what the last run of a study makes in each place, so that no job of an earlier run writes there.

Jobs can outlive the run that started them: Snakemake was killed, or lost its connection to a cluster. Meanwhile
settings or code may have been edited, and the next run makes, or already has, something else in their place.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.store.files import read_json, replace_text
from dualread.store.key import Action

PLANNED_NAME = "planned.json"  # in the results folder of a study: {output: recipe}


def write_planned(folder: Path, recipes: Mapping[str, str]) -> None:
    """Note the recipe (`Action.recipe`) of each artifact of a run that begins; those of other targets are kept."""
    replace_text(folder / PLANNED_NAME, json.dumps({**_read(folder), **recipes}, indent=0) + "\n")


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


def _read(folder: Path) -> dict[str, str]:
    try:
        found = read_json(folder / PLANNED_NAME)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
