"""Messages in one file per room: a word that is changed is a line of a diff there, and not an edit of many tests.

DUALREAD_GOLDEN=write pytest tests/apps/evaluate/test_messages.py      writes the file anew; read the diff
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from dualread.errors import DualReadError


def message_of(ask: Callable[[], object], *folders: Path) -> str:
    """Return the class and the message of the error that `ask` raises; folders that differ from run to run are `.`."""
    try:
        ask()
    except DualReadError as error:
        text = f"{type(error).__name__}: {error}"
    else:
        text = "no error"
    for folder in folders:
        text = text.replace(f"{folder}/", "").replace(str(folder), ".")
    return text.replace(sys.executable, "python")


def check(file: Path, found: Mapping[str, str]) -> None:
    """Compare messages, by the name of their case, with those of a file: a line with the name, then the message."""
    texts = {name: text.replace("\n", "\n    ") for name, text in found.items()}
    now = "".join(f"{name}\n    {text}\n" for name, text in texts.items())
    if os.environ.get("DUALREAD_GOLDEN") == "write":
        file.write_text(now, encoding="utf-8")
    assert now.splitlines() == file.read_text(encoding="utf-8").splitlines()
