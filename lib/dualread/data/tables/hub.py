"""Read data sets of the Hugging Face hub as tables.

An address is hf://owner/name[@revision][/config/split or /file]. After the name stands either a file of the repository,
or where its tables lie: `<config>/<split>` stands for the files <config>/<split>-*.parquet, <config>/<split>/*.parquet,
and the same with .csv and .jsonl. Without anything, the repository has to have exactly one table. The branch
`refs/convert/parquet`, which the hub makes of most data sets, has <config>/<split>/0000.parquet.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dualread.data.tables.files import SUFFIXES, RawTable, Wanted, read_file
from dualread.errors import ConfigError, DataError, in_a_line

_TABLES = tuple(end for suffix in SUFFIXES for end in (suffix, f"{suffix}.gz"))
_ADDRESS = re.compile(
    r"hf://(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>refs/(?:convert|pr)/[\w.-]+|[\w.-]+))?(?:/(?P<place>.+))?"
)


def is_address(table: Any) -> bool:
    """Whether `table` is the address of a data set of the hub."""
    return isinstance(table, str) and table.startswith("hf://")


def read_address(address: str, wanted: Wanted = lambda column: True) -> RawTable:
    """Download the tables that `address` names, and read them as one; `wanted` is as in `read_file`."""
    tables = [read_file(path, wanted) for path in _download(address, lambda file: file.endswith(_TABLES))]
    try:
        frame = pl.concat(table.frame for table in tables)
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"{address}: its {len(tables)} files have different columns ({error}). Name one file."
        ) from error
    return replace(tables[0], source=address, frame=frame, rows=pl.int_range(1, len(frame) + 1, eager=True))


def local_file(address: str) -> Path:
    """Download the one file that `address` names, such as a log, and return its place on this machine."""
    paths = _download(address, lambda file: True)
    if len(paths) != 1:
        raise ConfigError(f"{address}: {len(paths)} files; a log is one file. Name it: hf://owner/name/FILE.")
    return paths[0]


def _download(address: str, wanted: Any) -> list[Path]:
    if (match := _ADDRESS.fullmatch(address)) is None:
        raise ConfigError(f"{address}: expected hf://owner/name, hf://owner/name@revision/config/split or .../FILE.")
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ModuleNotFoundError as error:  # of its extras, `logs` is the small one
        raise DataError(f"{address}: huggingface-hub is not installed. Run: pip install 'dualread[logs]'.") from error
    name, revision, place = match["name"], match["revision"], match["place"]
    try:
        files = HfApi().list_repo_files(name, repo_type="dataset", revision=revision)
        chosen = _chosen(address, place, [file for file in files if wanted(file)])
        return [Path(hf_hub_download(name, file, repo_type="dataset", revision=revision)) for file in chosen]
    except ConfigError:
        raise
    except Exception as error:  # the hub raises errors of several packages
        raise DataError(
            f"{address}: cannot be downloaded from the hub ({in_a_line(error)}). Check the name, the revision and the"
            " connection; a data set with restricted access needs `hf auth login`."
        ) from error


def _chosen(address: str, place: str | None, files: Sequence[str]) -> list[str]:
    """Return the file of this name, or those of this config and split, or the only one."""
    if place is None:
        matching, is_clear = list(files), len(files) == 1
    else:
        start, _, split = place.rpartition("/")
        of_split = re.compile(rf"(?:{re.escape(start)}/)?{re.escape(split)}(?:[-.][^/]*|/[^/]+)")
        matching = [place] if place in files else sorted(file for file in files if of_split.fullmatch(file))
        is_clear = len(matching) > 0
    if is_clear:
        return matching
    listed = ", ".join((matching or files)[:5]) or "none"
    what = f"nothing is named {place!r}" if place is not None else f"{len(matching)} files could be meant"
    raise ConfigError(f"{address}: {what}. Add /FILE or /CONFIG/SPLIT. Files: {listed}.")
