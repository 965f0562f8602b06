"""The results folders that use a store. Each is registered in the store, so that gc in one checkout knows the others.

The hard links of an entry do not tell who needs it (`dualread.store.gc` says when).

results/store/roots/<digest>.json   {"folder": ..., "host": ..., "inode": ...}
"""

import errno
import json
import os
from dataclasses import dataclass
from pathlib import Path

from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.digest import digest_of
from dualread.store.files import read_json, replace_text
from dualread.store.processes import HOST
from dualread.store.shared import described, make_folder, remedy
from dualread.store.store import Store

_ANYWHERE = "any host"


@dataclass(frozen=True, kw_only=True)
class Root:
    """A registered results folder.

    Attributes:
        file: The JSON file that registers it.
        folder: The results folder.
        host: The machine that registered it; "any host" for the folder in which the store itself lies.
        inode: The inode of the folder. Another machine uses it to tell whether its folder of the same path is the same.
    """

    file: Path
    folder: Path
    host: str
    inode: int

    @property
    def name(self) -> str:
        """The name for messages and --forget: host:/folder."""
        return f"{self.host}:{self.folder}"

    def is_there(self) -> bool:
        """Whether the folder still exists.

        Raises:
            ArtifactError: This cannot be determined from this machine.
        """
        is_here = self.host in (HOST, _ANYWHERE)
        try:
            found = self.folder.stat()
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError as error:
            reason = f"cannot be read ({error.strerror}). Ask its owner for access"
            raise ArtifactError(f"{self.name}: {reason}. {self._advice()}") from error
        if is_here or (found is not None and found.st_ino == self.inode):
            return found is not None
        raise ArtifactError(
            f"{self.name}: this results folder uses the store but cannot be seen from {HOST}, so it is not known what"
            f" it needs. {self._advice()}"
        )

    def _advice(self) -> str:
        return (
            f"If the folder is gone, add --forget {self.name}. If it still exists, also add --keep with copies of its"
            " results.lock files."
        )


def register(results: Path, store: Store) -> None:
    """Register the folder `results` in `store`, so that gc keeps what it needs.

    Raises:
        ArtifactError: The store cannot be written to by this user.
    """
    folder, root = results.resolve(), store.root.resolve()
    row = {"folder": str(folder), "host": HOST}
    if folder in root.parents:  # a relative path stays right when both are moved or copied together
        row = {"folder": os.path.relpath(folder, root), "host": _ANYWHERE}
    file = store.root / "roots" / f"{digest_of(row)[:16]}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**row, "inode": folder.stat().st_ino}) + "\n"
        if not file.is_file() or file.read_text() != text:
            make_folder(file.parent, store.root)
            replace_text(file, text)
    except OSError as error:
        unregistered = f"{store.root}: {folder} cannot be registered there ({error.strerror})"
        if error.errno in (errno.EACCES, errno.EPERM):
            raise ArtifactError(
                f"{unregistered}, so `dualread gc` of others would remove what it needs. {described(file.parent)}."
                f" {remedy(store.root)}"
            ) from error
        # A read-only or a full disk: nothing is computed, and what the store has is used.
        say(f"warning: {unregistered}; where the store can be written to, `dualread gc` does not know this folder")


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
                f"{file}: cannot be read ({error!r}), so it is not known which results folder it registers. Delete the"
                " file and start the workflow once in every checkout that uses the store."
            ) from error
    return sorted(found, key=lambda root: root.name)
