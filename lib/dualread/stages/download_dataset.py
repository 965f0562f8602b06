"""Stage download_dataset: a repository on the Hugging Face hub -> the files that a study needs, archives unpacked.

If there is nothing to download because the files belong into a folder, the job fails and says what to do. No inputs.
This is the only stage that needs a network.
"""

import errno
import lzma
import os
import shutil
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dualread import limits, plugins
from dualread.errors import DataError, refuse
from dualread.schema.data import DownloadDatasetSpec, DownloadFiles

# The zip module raises all of these for damaged, encrypted and unknown members.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, RuntimeError, ValueError, OverflowError),
)


def compute(spec: DownloadDatasetSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write the matching files unchanged; each zip archive is replaced by its members, in the folder of the archive."""
    terms = plugins.declared("datasets", spec.loader, "TERMS")
    if (source := spec.source) is None:
        raise DataError(
            f"{os.path.abspath(spec.folder or '')}: there was no such folder when this run began. Expected the official"
            f" files of {spec.loader}. {terms} Put them there, or give the data set's `source` another folder, or"
            " `hub` and `revision`; then run the same command again."
        )
    _download(source, terms, out)
    archives = sorted(out.rglob("*.zip"))
    n_members = sum(unpack(archive) for archive in archives)
    n_files = sum(path.is_file() for path in out.rglob("*"))
    if not n_files:
        raise DataError(f"{source.hub} at {source.revision}: no file matches {list(source.files)}. {terms} Check both.")
    return (
        f"read {source.hub} at {source.revision[:12]}, unpacked {n_members} members of {len(archives)} archives, "
        f"wrote {n_files} files"
    )


def _download(source: DownloadFiles, terms: str, out: Path) -> None:
    # Imported here, because a result from the store needs neither the package nor its settings.
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    try:
        snapshot_download(
            source.hub, repo_type="dataset", revision=source.revision, local_dir=out, allow_patterns=list(source.files)
        )
    except (HfHubHTTPError, LocalEntryNotFoundError) as error:
        where = f"{source.hub} at {source.revision[:12]}: {type(error).__name__} ({' '.join(str(error).split())})"
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else None
        # A gated repository is reported as not found to those without access.
        if isinstance(error, RepositoryNotFoundError) or status in (401, 403):
            raise DataError(
                f"{where}. {terms} Ask for access on https://huggingface.co/datasets/{source.hub} and give your token"
                " by `hf auth login` or in HF_TOKEN; or put the official files into a folder, and name it in the data"
                " set's `source`."
            ) from error
        raise DataError(f"{where}. Check the network, the id and the revision; then run the same command.") from error
    shutil.rmtree(out / ".cache", ignore_errors=True)  # the downloader's notes, with time stamps


def unpack(archive: Path) -> int:
    """Unpack `archive` into its own folder, delete it, and return the number of files unpacked.

    Files that only a Mac reads (`__MACOSX/`, `.DS_Store`) are left out.
    """
    try:
        with zipfile.ZipFile(archive) as content:
            members = [
                member
                for member in content.infolist()
                if not member.is_dir()
                and not member.filename.startswith("__MACOSX/")
                and member.filename.rpartition("/")[2] != ".DS_Store"
            ]
            refuse(f"{archive.name}: {problem} Do not trust it." for problem in _problems(archive, members))
            for member in members:
                content.extract(member, archive.parent)
    except _DAMAGE as error:
        raise DataError(f"{archive.name}: damaged, or encrypted ({error}). Run again to download it anew.") from error
    except OSError as error:
        # A wrong offset makes the module seek before the first byte (EINVAL), and bz2 gives no number. Any other number
        # is an error of the machine.
        if error.errno not in (None, errno.EINVAL):
            raise
        raise DataError(f"{archive.name}: damaged ({error}). Run again to download it anew.") from error
    archive.unlink()
    return len(members)


def _problems(archive: Path, members: Sequence[zipfile.ZipInfo]) -> Iterator[str]:
    folder, seen, folders = archive.parent.resolve(), set(), set()
    for member in members:
        target = (folder / member.filename).resolve()
        kind = stat.S_IFMT(member.external_attr >> 16)  # 0 where the archive was not made on Unix
        if not target.is_relative_to(folder):
            yield f"member {member.filename!r} leaves the folder."
        elif any(len(part.encode(errors="replace")) > limits.NAME_BYTES for part in target.parts):
            yield f"member {member.filename[:40]!r}... has a name of more than {limits.NAME_BYTES} bytes."
        elif kind not in (0, stat.S_IFREG):
            yield f"member {member.filename!r} is a link or a device, expected a file."
        elif target in seen or target in folders or seen & set(target.parents) or target.exists():
            yield f"member {member.filename!r} would overwrite another file."
        seen.add(target)
        folders.update(target.parents)
    # The module never unpacks more of a member than its declared size.
    declared, packed = sum(member.file_size for member in members), archive.stat().st_size
    if declared > limits.EXPANSION * packed:
        yield f"{packed} bytes would become {declared}, more than {limits.EXPANSION} times as much."
