"""A model that a service runs: its name is all that is known of it."""

import re
from pathlib import Path

from dualread.commands.new.model import Model


def look(name: str, folder: str) -> Model:
    """Return a model whose answers are given.

    Args:
        name: The name by which the service knows it.
        folder: Where requests are written and responses are read; it need not exist.
    """
    n_files = len(list(Path(folder, "responses").glob("*.jsonl")))
    there = f"{n_files} files of responses are there" if n_files else "no responses are there yet"
    label = name.rpartition("/")[2] or name
    return Model(
        name=re.sub(r"[^a-z0-9._-]+", "-", label.lower()).strip("-._") or "model",
        label=label,
        entry={"source": {"service": name}},
        any_size=True,
        lines=[f"{name}: a service answers; {folder}: {there}"],
        answers=folder,
    )
