"""Results of batches that jobs have computed; a later job reads them where it would compute an equal batch.

results/store/batches/<name[:2]>/<name>.<sha256 of the file>.safetensors

The name is a digest of all that the computation of a batch reads: the job's action, but instead of the inputs that are
read row by row, such as the table of questions, the content of the batch's rows in their order. RECORD.json of an entry
names its batches for `dualread gc` and `dualread verify`. To remove them costs time, and never a result.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dualread.digests import digest_of
from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.digest import sha256_file
from dualread.store.disk import make_folder, settle
from dualread.store.key import Action
from dualread.store.store import Store

RECORDED = _FOLDER = "batches"  # the names of an entry's batches in its RECORD.json, and the folder of the files


@dataclass(kw_only=True)
class Batches:
    """The batches of one entry while its job computes it."""

    store: Store
    action: Action
    confirm: Callable[[], None]  # raises an ArtifactError if a package or an input was replaced since the job began
    by_row: frozenset[str] = frozenset()
    names: list[str] = field(default_factory=list)  # of those that were computed or read
    n_read: int = 0

    def name(self, content: Any) -> str:
        """Return the name of a batch with this content, which JSON can express."""
        inputs = {name: digest for name, digest in self.action.inputs.items() if name not in self.by_row}
        return digest_of({"job": {**self.action.fields(), "inputs": inputs}, "content": content})

    def find(self, name: str) -> Path | None:
        """Return the intact file of a batch, if there is one; damaged ones are reported and removed."""
        for file in batch_files(self.store, name):
            with contextlib.suppress(OSError):
                if not is_damaged(file):
                    with contextlib.suppress(PermissionError):  # of another user
                        os.utime(file)  # gc keeps what was in use within the last hour
                    return file
                say(f"warning: {file}: damaged, so this batch is computed again")
                file.unlink()
        return None

    def keep(self, name: str, write: Callable[[Path], None]) -> None:
        """Let `write` write the file of a batch, which then appears as a whole; a full disk is no reason to stop."""
        with contextlib.suppress(OSError, ArtifactError), self.store.scratch("batch") as folder:
            self.confirm()
            write(file := folder / "batch")
            settle(folder, self.store.root)
            make_folder(target := self.store.root / _FOLDER / name[:2], self.store.root)
            file.rename(target / f"{name}.{sha256_file(file)}.safetensors")

    def summary(self) -> str:
        """Return what a job's line says of its batches; "" where it computed all of them."""
        return f"; {self.n_read} of {len(self.names)} batches were there" if self.n_read else ""


@contextlib.contextmanager
def offered(store: Store, action: Action, confirm: Callable[[], None]) -> Iterator[Batches]:
    """Make the batches of the entry of `action` available inside the block, to a stage that calls `read_by_row`."""
    token = _CURRENT.set(work := Batches(store=store, action=action, confirm=confirm))
    try:
        yield work
    finally:
        _CURRENT.reset(token)


def read_by_row(*inputs: str) -> None:
    """Say which inputs of this job its batches read by nothing but their own rows. Without that, no batch is kept."""
    if (work := _CURRENT.get()) is not None:
        work.by_row = frozenset(inputs)


def current() -> Batches | None:
    """Return the batches of the entry that is computed; None outside of a job, and where a stage keeps none."""
    work = _CURRENT.get()
    return work if work is not None and work.by_row else None


def batch_files(store: Store, name: str = "") -> list[Path]:
    """Return the files of a batch, or of all batches, sorted."""
    return sorted((store.root / _FOLDER).glob(f"{name[:2] or '??'}/{name}*"))


def is_damaged(file: Path) -> bool:
    """Return whether a file has other bytes than its name says."""
    return file.name.split(".")[1:2] != [sha256_file(file)]


_CURRENT: ContextVar[Batches | None] = ContextVar("batches of an entry", default=None)
