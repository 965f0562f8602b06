"""Entries of the store: look one up, or compute one in a scratch directory and publish it with one atomic rename.

results/store/<key[:2]>/<key>/  files, MANIFEST.json, RECORD.json (read-only)
results/store/tmp/              scratch directories: <key>.<host>.<pid>.<random>
results/store/damaged/          entries whose files no longer matched their manifest

An entry then appears below results/ (`dualread.store.results`), where its MANIFEST.json is what Snakemake's job makes.
"""

import contextlib
import errno
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dualread.digests import MANIFEST_NAME
from dualread.errors import ArtifactError
from dualread.progress import say
from dualread.store.digest import read_mapping
from dualread.store.disk import explained, hard_link, make_folder, open_folder, settle
from dualread.store.key import Action
from dualread.store.manifest import RECORD_NAME, Manifest, file_table, read_manifest
from dualread.store.record import HOST, is_alive, note_difference


class Store:
    """A content-addressed store in one folder; several processes, hosts and checkouts may share it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def entry(self, key: str) -> Path:
        """Return the directory of the entry `key`, whether or not it exists."""
        return self.root / key[:2] / key

    def manifest(self, key: str) -> Manifest:
        """Return the manifest of the entry `key`."""
        directory = self.entry(key)
        manifest = read_manifest(directory / MANIFEST_NAME)
        if manifest.key != key:
            raise ArtifactError(f"{directory}: holds the entry {manifest.key[:8]} instead of {key[:8]}.")
        return manifest

    def find(self, key: str) -> Manifest | None:
        """Return the manifest of the entry `key`; None if the store has no readable one."""
        with contextlib.suppress(ArtifactError):
            return self.manifest(key)
        return None

    def lookup(self, key: str) -> Manifest | None:
        """Return the manifest of the entry `key`, or None if the store lacks it.

        File sizes are checked, contents are not: a hit has to be fast, and jobs verify the contents of their inputs. A
        damaged entry is reported and moved to `damaged/`, and then counts as missing.
        """
        directory = self.entry(key)
        if not os.path.lexists(directory):
            return None
        try:
            manifest = self.manifest(key)
            problems = list(manifest.wrong_sizes(directory))
        except ArtifactError as error:
            problems, manifest = [str(error)], None
        if not problems:
            return manifest
        self.quarantine(key, problems)
        return None

    def record(self, key: str) -> dict[str, Any]:
        """Return the RECORD.json of an entry (seconds, host, module digests, ...), or {} if it cannot be read."""
        return read_mapping(self.entry(key) / RECORD_NAME)

    def stored_keys(self, start: str = "") -> Iterator[str]:
        """Yield the keys of all entries that begin with `start`, sorted."""
        for folder in _names(self.root):
            if len(folder) == 2 and folder.startswith(start[:2]):
                keys = (name for name in _names(self.root / folder) if len(name) == 64 and name.startswith(folder))
                yield from (key for key in keys if key.startswith(start))

    @contextlib.contextmanager
    def scratch(self, key: str) -> Iterator[Path]:
        """Provide an empty directory on the store's file system in which to compute `key`; remove it afterwards."""
        try:
            make_folder(self.root / "tmp", self.root)
            directory = Path(tempfile.mkdtemp(prefix=f"{key}.{HOST}.{os.getpid()}.", dir=self.root / "tmp"))
            open_folder(directory, self.root)
        except OSError as error:
            raise explained(error, self.root) from error
        try:
            yield directory
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def publish(
        self, scratch: Path, action: Action, *, input_keys: Mapping[str, str], record: Mapping[str, Any]
    ) -> Manifest:
        """Turn a scratch directory into the entry of `action` and return its manifest."""
        manifest = Manifest(action=action, files=file_table(scratch), input_keys=dict(input_keys))
        try:
            (scratch / RECORD_NAME).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
        except OSError as error:
            raise explained(error, self.root) from error
        return self.adopt(scratch, manifest)

    def adopt(self, scratch: Path, manifest: Manifest) -> Manifest:
        """Turn a scratch directory that holds the files of `manifest`, and perhaps a RECORD.json, into its entry.

        If two processes do so for one key, the first result is kept. The second is compared with it; differences are
        reported and recorded in `differences.jsonl`.
        """
        try:
            (scratch / MANIFEST_NAME).write_bytes(manifest.to_bytes())
            settle(scratch, self.root)
            make_folder(self.entry(manifest.key).parent, self.root)
        except OSError as error:
            raise explained(error, self.root) from error
        try:
            scratch.rename(self.entry(manifest.key))
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise explained(error, self.root) from error
            theirs = self.manifest(manifest.key)
            if theirs.digest != manifest.digest:
                note_difference(self.root, theirs, manifest)
            return theirs
        return manifest

    def take(self, manifest: Manifest, source: Path, *, link: bool = False) -> str | None:
        """Make an entry of the files of `manifest` in the folder `source`; return what is wrong with them, if anything.

        They are copied and compared or, with `link`, linked where that is possible; then there is no RECORD.json.
        """
        record = [RECORD_NAME] if not link and (source / RECORD_NAME).is_file() else []
        with self.scratch(manifest.key) as scratch:
            for name in (*manifest.files, *record):
                (scratch / name).parent.mkdir(parents=True, exist_ok=True)
                try:
                    if not (link and hard_link(source / name, scratch / name)):
                        shutil.copyfile(source / name, scratch / name)
                except OSError as error:
                    if error.filename == str(source / name) and error.filename2 is None:
                        return f"{error.filename}: cannot be read ({error.strerror})"
                    raise explained(error, self.root) from error
            if not link and (problem := next(manifest.wrong_bytes(scratch), None)):
                return problem.replace(str(scratch), str(source), 1)
            self.adopt(scratch, replace(manifest, place=None))
        return None

    def quarantine(self, key: str, problems: list[str]) -> None:
        """Report what is wrong with the entry `key` and move it to `damaged/`, so that it is recomputed."""
        entry, target = self.entry(key), self.root / "damaged" / f"{key}.{time.time_ns()}"
        for problem in problems:
            say(f"warning: damaged entry in the store: {problem}")
        try:
            make_folder(target.parent, self.root)
            try:
                entry.rename(target)
            except PermissionError:  # a closed folder of somebody else gets another name, but no other place
                target = entry.with_name(f"{key}.damaged.{time.time_ns()}")
                entry.rename(target)
        except FileNotFoundError:
            return  # another process has moved it
        except OSError as error:
            raise explained(error, self.root) from error
        say(f"warning: moved the entry to {target}; it will be recomputed when it is needed")

    def remove_stale(self) -> None:
        """Remove the scratch directories of processes of this host that have ended."""
        for directory in self.root.glob(f"tmp/*.{HOST}.*"):
            pid = directory.name.split(".")[2]
            if pid.isdecimal() and not is_alive(int(pid)):
                shutil.rmtree(directory, ignore_errors=True)


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
