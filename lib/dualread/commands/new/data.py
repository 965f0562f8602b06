"""Look at a table of questions: its columns, rows, splits and images, as the loader `table` reads them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.commands.new.columns import about, chosen
from dualread.data.datasets.base import Row
from dualread.data.datasets.own_tables import FORMATS, SPLITS, Line, find_tables, read_table
from dualread.data.foreign_tables.read import read_records
from dualread.errors import ConfigError, DataError, in_a_line
from dualread.grading.canonical import canonical, question_key

_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class Found:
    """Questions that the loader `table` can read.

    Attributes:
        folder: Their folder.
        hub: The repository of the hub and its commit, if they come from there.
        settings: The loader's settings.
        has_donors: Whether a test question recurs with another image and another answer.
        has_modality: Whether every row has a modality.
        lines: What was found, for people.
    """

    folder: Path
    hub: tuple[str, str] | None
    settings: Mapping[str, Any]
    has_donors: bool
    has_modality: bool
    lines: Sequence[str]


def look(
    place: str,
    *,
    columns: Mapping[str, str],
    files: Mapping[str, str],
    shares: Mapping[str, float],
    download: Path | None,
) -> Found:
    """Return what the table holds.

    Raises:
        ConfigError: An option is missing that says which columns, files or splits are meant.
        DataError: There is no table, a row is broken or repeats another, or an image is in two splits.
    """
    hub = None
    if place.startswith("hf://"):
        path, hub = _downloaded(place, download)
    elif download is None:
        path = Path(place)
    else:
        raise ConfigError(f"--download: {place} is not on the hub (hf://owner/name). Leave the option out.")
    folder, settings, lines = _tables(path, files)
    tables = {split: find_tables(folder, split, settings.get("files")) for split in SPLITS}
    read = {file: read_table(file) for found, _ in tables.values() for file in found}
    every = [line for one in read.values() for line in one]
    settings |= chosen(every, columns)
    of_all = all(everything for _, everything in tables.values())
    settings |= _shares(folder, of_all, every, shares, settings)
    for file, one in read.items():
        lines.append(f"{file}: {len(one)} rows ({read_records(file).form})")
    lines += about(every, settings.get("columns", {}))
    load_rows = plugins.load("datasets", "table").load_rows
    rows = {split: load_rows(folder, split, settings).rows for split in SPLITS}
    _refuse_repeated(folder, rows)
    _refuse_shared(folder, rows)
    lines += [_about(split, of_split) for split, of_split in rows.items()]
    lines += _about_images(rows)
    has_donors = _recurs(rows["test"])
    lines.append(
        "test questions recur with another image and another answer: there will be CCG-AUC"
        if has_donors
        else "no test question recurs with another image and another answer: there will be no CCG-AUC"
    )
    return Found(
        folder=folder,
        hub=hub,
        settings=settings,
        has_donors=has_donors,
        has_modality=all(row.modality for of_split in rows.values() for row in of_split),
        lines=lines,
    )


def _downloaded(place: str, folder: Path | None) -> tuple[Path, tuple[str, str]]:
    """Copy a data set of the hub into a folder; return the folder, and the repository with its commit."""
    if folder is None:
        raise ConfigError(f"--data {place}: say where to copy it to: --download FOLDER.")
    name, _, revision = place.removeprefix("hf://").partition("@")
    from huggingface_hub import HfApi, snapshot_download

    try:
        commit = HfApi().dataset_info(name, revision=revision or None).sha
        snapshot_download(name, repo_type="dataset", revision=commit, local_dir=folder)
    except Exception as error:  # the hub raises errors of several packages
        raise DataError(
            f"{place}: cannot be downloaded from the hub ({in_a_line(error)}). Check the name, the revision and the"
            " connection."
        ) from error
    return folder, (name, str(commit))


def _tables(path: Path, files: Mapping[str, str]) -> tuple[Path, dict[str, Any], list[str]]:
    """Return the folder, the setting `files` if the tables have other names than usual, and what is said about it."""
    if path.is_file():
        if files:
            raise ConfigError(f"--files: {path} is a table itself. Give its folder as --data, or leave --files out.")
        return path.parent, {"files": {"rows": path.name}}, []
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder. Expected a table, or a folder with tables.")
    if files:
        return path, {"files": dict(files)}, []
    usual = [name for stem in (*SPLITS, "rows") for name in (f"{stem}{suffix}" for suffix in FORMATS)]
    if any((path / name).is_file() for name in usual):
        return path, {}, []
    there = sorted(one.relative_to(path).as_posix() for one in path.rglob("*") if one.suffix in FORMATS)
    listed = ", ".join(there[:_SHOWN]) + (", ..." if len(there) > _SHOWN else "")
    raise ConfigError(
        f"{path}: no table is named train, validation, test or rows. Found: {listed or 'no table'}. Say which is which:"
        " --files train=PATTERN validation=PATTERN test=PATTERN, or --files rows=PATTERN for one that holds all."
    )


def _shares(
    folder: Path, of_all: bool, lines: Sequence[Line], shares: Mapping[str, float], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the setting `shares`; refuse a table of all splits that says nothing about them."""
    own = settings.get("columns", {}).get("split", "split")
    named = any(line.record.get(own) is not None for line in lines)
    if not of_all or named:
        if shares:
            why = "a column says the split of each row" if named else "each split has its own table"
            raise ConfigError(f"--shares: {why}. Leave the option out.")
        return {}
    if set(shares) != set(SPLITS) or any(not 0 < share < 1 for share in shares.values()):
        raise ConfigError(
            f"{folder}: one table holds all questions and no column `split` says which are for training. Add --shares"
            " train=.6 validation=.2 test=.2, which draws the splits by image; or name such a column: --columns"
            " split=YOURS."
        )
    if round(sum(shares.values()), 9) != 1:
        raise ConfigError(f"--shares: they add up to {sum(shares.values()):g}, expected 1.")
    return {"shares": dict(shares)}


def _refuse_repeated(folder: Path, rows: Mapping[str, Sequence[Row]]) -> None:
    for split, of_split in rows.items():
        counts = Counter(row.official_id for row in of_split)
        if repeated := [row for row in of_split if counts[row.official_id] > 1]:
            row = repeated[0]
            raise DataError(
                f"{folder}: {len(repeated)} rows of {split} repeat the id of another, such as {row.official_id!r}"
                f" ({row.question!r} about {row.image_name}). Without a column `id`, equal rows have equal ids. Remove"
                " the repetitions, or give every row an id of its own."
            )


def _refuse_shared(folder: Path, rows: Mapping[str, Sequence[Row]]) -> None:
    images = {split: {row.image_name for row in of_split} for split, of_split in rows.items()}
    counts = Counter(name for of_split in images.values() for name in of_split)
    if shared := sorted(name for name, count in counts.items() if count > 1):
        raise DataError(
            f"{folder}: {len(shared)} images are in several splits, such as {shared[0]}. Readers would be tested on"
            " images on which they were fitted. Put all questions about an image into one split, or draw the splits by"
            " --shares."
        )


def _about(split: str, rows: Sequence[Row]) -> str:
    closed = sum(row.answer_type == "closed" for row in rows)
    images = len({row.image_name for row in rows})
    return f"{split}: {len(rows)} questions ({len(rows) - closed} open, {closed} closed) about {images} images"


def _about_images(rows: Mapping[str, Sequence[Row]]) -> list[str]:
    files = {row.image for of_split in rows.values() for row in of_split if isinstance(row.image, Path)}
    missing = sorted(str(file) for file in files if not file.is_file())
    if not files:
        return ["images: in the table"]
    listed = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
    found = f"images: {len(files) - len(missing)} of {len(files)} files found"
    return [found + (f"; the study fails without the others: {listed}" if missing else "")]


def _recurs(rows: Sequence[Row]) -> bool:
    """Whether a question is asked about two images with different answers."""
    seen: dict[str, set[tuple[str, frozenset[str]]]] = {}
    for row in rows:
        golds = frozenset(canonical(answer) for answer in row.reference_answers)
        seen.setdefault(question_key(row.question), set()).add((row.image_name, golds))
    return any(
        one[0] != other[0] and not one[1] & other[1] for asked in seen.values() for one in asked for other in asked
    )
