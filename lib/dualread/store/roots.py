"""Results folders that show entries of a store: each registers itself, so that gc in one checkout knows of the others.

results/store/roots/<digest>.json   {"folder": ..., "host": ..., "inode": ...}
"""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.store.digest import digest_of
from dualread.store.files import read_json, replace_text
from dualread.store.store import HOST, Store

_ANYWHERE = "any host"


@dataclass(frozen=True, kw_only=True)
class Root:
    """A registered folder.

    Attributes:
        file: The registration.
        folder: The results folder.
        host: The machine that registered it; "any host" for the folder that the store itself lies in.
        inode: The folder's, by which another machine knows whether its folder of this name is the same one.
    """

    file: Path
    folder: Path
    host: str
    inode: int

    @property
    def name(self) -> str:
        """What people call it: host:/folder."""
        return f"{self.host}:{self.folder}"

    def is_there(self) -> bool:
        """Whether the folder still exists.

        Raises:
            ArtifactError: Nobody can tell from here.
        """
        is_here = self.host in (HOST, _ANYWHERE)
        try:
            found = self.folder.stat()
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError as error:
            raise ArtifactError(f"{self.name}: cannot be read ({error.strerror}). {self._advice()}") from error
        if is_here or (found is not None and found.st_ino == self.inode):
            return found is not None
        raise ArtifactError(
            f"{self.name}: this results folder uses the store, and it cannot be seen from {HOST}, so that what it needs"
            f" would be taken for unreached. {self._advice()}"
        )

    def _advice(self) -> str:
        return f"If it is gone, add --forget {self.name}; if not, also --keep with copies of its results.lock files."


def register(results: Path, store: Store) -> None:
    """Note in `store` that the folder `results` shows entries of it; nothing happens where that cannot be written."""
    folder, root = results.resolve(), store.root.resolve()
    row = {"folder": str(folder), "host": HOST}
    if folder in root.parents:  # wherever both are moved or copied to, they see each other
        row = {"folder": os.path.relpath(folder, root), "host": _ANYWHERE}
    file = store.root / "roots" / f"{digest_of(row)[:16]}.json"
    with contextlib.suppress(OSError):  # a store that others may only read
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**row, "inode": folder.stat().st_ino}) + "\n"
        if not file.is_file() or file.read_text() != text:
            replace_text(file, text)


def registered(store: Store) -> list[Root]:
    """Return every registered folder, sorted by name.

    Raises:
        ArtifactError: A registration cannot be read.
    """
    found = []
    for file in store.root.glob("roots/*.json"):
        try:
            row = read_json(file)
            folder = Path(os.path.normpath(store.root.resolve() / row["folder"]))
            found.append(Root(file=file, folder=folder, host=row["host"], inode=row["inode"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtifactError(
                f"{file}: cannot be read ({error!r}), so that nobody knows which results folder uses the store. Delete"
                " the file and start the workflow again in every checkout that uses the store."
            ) from error
    return sorted(found, key=lambda root: root.name)
