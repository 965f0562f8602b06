"""Stage download_dataset: a data set's repository on the Hugging Face hub -> its files, zip archives unpacked.

Spec: hub (the repository's id), revision (a commit). No inputs. The only stage that needs a network.
"""

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread.errors import DataError


def compute(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    """Write the repository's files as they are, each zip archive replaced by its members, beside where it lay."""
    # Imported here, because a hit needs neither the package nor its settings.
    from huggingface_hub import snapshot_download

    snapshot_download(spec["hub"], repo_type="dataset", revision=spec["revision"], local_dir=out)
    shutil.rmtree(out / ".cache", ignore_errors=True)  # the downloader's own bookkeeping, with time stamps
    archives = sorted(out.rglob("*.zip"))
    n_members = sum(unpack(archive) for archive in archives)
    n_files = sum(path.is_file() for path in out.rglob("*"))
    return (
        f"read {spec['hub']} at {spec['revision'][:12]}, unpacked {n_members} members of {len(archives)} archives, "
        f"wrote {n_files} files"
    )


def unpack(archive: Path) -> int:
    """Unpack `archive` into its own folder, delete it, and return the number of files unpacked.

    Mac resource forks (`__MACOSX/`) are left out.

    Raises:
        DataError: The archive is damaged, or a member would land outside the folder; nothing is unpacked then.
    """
    folder = archive.parent.resolve()
    try:
        with zipfile.ZipFile(archive) as content:
            members = [m for m in content.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
            for member in members:
                if not (folder / member.filename).resolve().is_relative_to(folder):
                    raise DataError(f"{archive.name}: member {member.filename!r} leaves the folder. Do not trust it.")
            for member in members:
                content.extract(member, folder)
    except zipfile.BadZipFile as error:
        raise DataError(f"{archive.name}: damaged ({error}). Run again to download it anew.") from error
    archive.unlink()
    return len(members)
