"""Look at a table of questions: its columns, rows, splits and images, as the loader `table` reads them.

Which columns are which is guessed only to be said: an option has to confirm it.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dualread.data.datasets.base import Row
from dualread.data.datasets.gold_columns import gold_way, with_texts, without_booleans
from dualread.data.datasets.source_rows import (
    NUMBERED,
    SPLITS,
    SourceRow,
    find_tables,
    read_table,
    unfolded,
    usual_tables,
)
from dualread.data.datasets.table import COLUMNS, Settings, formed, loaded
from dualread.data.given_images import locate, unreadable
from dualread.data.questions.audit import refuse_broken
from dualread.data.questions.markup import Markup
from dualread.data.questions.pictures import leads_out
from dualread.data.tables.files import is_table
from dualread.errors import ConfigError, DataError, in_a_line, refuse
from dualread.grading.canonical import canonical, question_key

_NEEDED = ("question", "reference_answers", "image")
# What columns are often called.
_OFTEN = {
    "question": ("query", "prompt", "frage", "question_text", "text"),
    "reference_answers": ("answer", "answers", "reference", "reference_answer", "gold", "label", "target", "antwort"),
    "image": (
        *("images", "image_path", "image_file", "img", "img_name"),
        *("filename", "file_name", "file", "picture", "path", "bild"),
    ),
}
_OFTEN_IDS = ("question_id", "qid", "index", "uid", "sample_id", "questionid")
_SHOWN = 5


def columns_read(lines: Sequence[SourceRow], columns: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Return the setting `columns` of the loader `table`, and sentences on the columns that are read, and those not.

    `columns` is {name of a column that the loader reads: its name in the table}, as the user says. Of a needed column
    that is missing, the error says which one it could be.
    """
    names = list(dict.fromkeys(name for line in lines for name in line.record))
    numbered = [name for name in (*names, *columns) if NUMBERED.fullmatch(name)]  # in place of `image`
    known = (*COLUMNS, *numbered)
    needed = [name for name in _NEEDED if name != "image" or not numbered]
    missing = [name for name in needed if name not in columns and name not in names]
    if missing:
        spelled = {column.lower(): column for column in names if column not in columns.values()}
        guesses: dict[str, str] = {}
        for name in missing:
            often = [column for column in _OFTEN[name] if column in spelled]
            if likely := often or get_close_matches(name, spelled, n=1, cutoff=0.7):
                guesses[name] = spelled[likely[0]]
        meant = " ".join(f"{name}={guesses.get(name, 'YOURS')}" for name in missing)
        advice = "If this is meant, add" if len(guesses) == len(missing) else "Add"
        stated = "".join(f" {name}={column}" for name, column in columns.items())
        raise ConfigError(
            f"{lines[0].file if lines else 'the table'}: no column {', '.join(missing)}. Found: {', '.join(names)}."
            f" {advice}: --columns{stated} {meant}"
        )
    renamed = [f"{name} is {column!r}" for name, column in columns.items()]
    used = [name for name in names if name in known and name not in columns and name not in columns.values()]
    unused = [name for name in names if name not in used and name not in columns.values()]
    sentences = [f"columns: {', '.join([*used, *renamed])}"]
    if unused:
        sentences.append(f"columns that are not read: {', '.join(unused)}")
    if "id" not in (*used, *columns) and (ids := [name for name in unused if name.lower() in _OFTEN_IDS]):
        sentences.append(f"ids are digests of the rows; --columns id={ids[0]} takes those of the table")
    ignores = any(name not in known for name in names)  # which the setting says as well
    return {"columns": dict(columns)} if columns or ignores else {}, sentences


@dataclass(frozen=True, kw_only=True)
class UserQuestions:
    """Questions that the loader `table` can read."""

    folder: Path
    bits: int | None  # how many bits of its 16-bit gray images count; None if nobody said it
    hub: tuple[str, str] | None  # the repository of the hub and its commit, if they come from there
    settings: Mapping[str, Any]  # of the loader
    has_donors: bool  # whether a test question recurs with another image and another answer
    has_modality: bool  # whether every row has a modality
    rows: Mapping[str, Sequence[Row]]
    lines: Sequence[str]  # what was found, for people

    def refuse_tokens(self, tokens: Collection[str]) -> None:
        """Refuse questions and options that contain control tokens of the model; up to ten rows are listed."""
        markup = Markup(tokens)
        refuse(
            problem
            for split, rows in self.rows.items()
            for row in rows
            if (problem := markup.problem(f"{split}: row {row.source_row}", (row.question, *row.options))) is not None
        )


def look(
    place: str,
    *,
    columns: Mapping[str, str],
    files: Mapping[str, str],
    shares: Mapping[str, float],
    download: Path | None,
    bits: int | None,
    meant: Mapping[str, str | None],
) -> UserQuestions:
    """Return what a table, a folder, or a data set of the hub holds.

    `columns` is {column of ours: its name in the table}, `files` {split, or rows: pattern of its tables}, `shares`
    {split: share of images}. A data set of the hub is copied into `download`; `bits` as in `UserQuestions`; `meant` are
    the settings gold, booleans and alternatives of the loader, None to find them. Raises ConfigError if an option is
    missing that says what is meant; DataError if there is no table, a row is broken or repeats another, or an image is
    in two splits.
    """
    path, hub = _downloaded(place, download)
    folder, settings = _tables(path, files)
    rows, lines = _read(folder, settings, columns=columns, shares=shares, meant=meant)
    _refuse_shared(folder, rows)
    lines += [line for split, of_split in rows.items() for line in _about(split, of_split)]
    lines += _about_images(folder, rows, bits)
    has_modality = all(row.modality for of_split in rows.values() for row in of_split)
    has_donors = _recurs(rows["test"], of_modality=has_modality)
    lines.append(
        "test questions recur with another image and another answer: there will be CCG-AUC"
        if has_donors
        else "no test question recurs with another image and another answer: there will be no CCG-AUC"
    )
    return UserQuestions(
        folder=folder,
        bits=bits,
        hub=hub,
        settings=settings,
        has_donors=has_donors,
        has_modality=has_modality,
        rows=rows,
        # Names of columns and files may hold anything; here each line is one line, also as a comment of the study.
        lines=["".join(char if char.isprintable() else " " for char in line) for line in lines],
    )


def _read(
    folder: Path,
    settings: dict[str, Any],
    *,
    columns: Mapping[str, str],
    shares: Mapping[str, float],
    meant: Mapping[str, str | None],
) -> tuple[dict[str, Sequence[Row]], list[str]]:
    """Return the rows of each split, and notes on how they were read; complete `settings`. Every table is read once."""
    tables = {split: find_tables(folder, split, settings.get("files")) for split in SPLITS}
    of_all = {tuple(files): every for files, every in tables.values()}
    read = {file: read_table(file) for files in of_all for file in files}
    notes = [f"{file}: {len(rows)} rows ({form})" for file, (rows, form) in read.items()]
    raw = {files: unfolded([line for file in files for line in read[file][0]]) for files in of_all}
    every = [line for lines in raw.values() for line in lines]
    named, sentences = columns_read(every, columns)
    settings |= named
    settings |= _shares(folder, all(of_all.values()), every, shares, settings)
    notes += sentences
    settings |= {name: value for name, value in meant.items() if value is not None}
    wanted = Settings.from_spec(settings, f"{folder}: settings")
    made = {files: formed(lines, wanted, of_all=of_all[files]) for files, lines in raw.items()}
    # How options are named is found from all splits together: the smallest may lack the first and the last option.
    booleans = settings.get("booleans")
    way = settings.get("gold") or gold_way(without_booleans([row for rows in made.values() for row in rows], booleans))
    settings |= {} if way is None else {"gold": way}  # a split alone might leave it open
    made = {files: with_texts(lines, way, booleans) for files, lines in made.items()}
    parts = {
        split: loaded(folder, files, made[tuple(files)], split, wanted, of_all=every)
        for split, (files, every) in tables.items()
    }
    _refuse_repeated(folder, {split: part.rows for split, part in parts.items()})
    for part in parts.values():
        refuse_broken(part, {})
    notes += [f"{split}: {step.reason}" for split, part in parts.items() for step in part.audit if step.step == "form"]
    return {split: part.rows for split, part in parts.items()}, notes


def _downloaded(place: str, folder: Path | None) -> tuple[Path, tuple[str, str] | None]:
    """Return where the data are: copied to `folder` where they are on the hub, then with repository and commit."""
    if not place.startswith("hf://"):
        if folder is not None:
            raise ConfigError(f"--download: {place} is not on the hub (hf://owner/name). Leave the option out.")
        return Path(place), None
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


def _tables(path: Path, files: Mapping[str, str]) -> tuple[Path, dict[str, Any]]:
    """Return the folder, and the setting `files` if the tables have other names than usual."""
    if path.is_file():
        if files:
            raise ConfigError(f"--files: {path} is a table itself. Give its folder as --data, or leave --files out.")
        return path.parent, {"files": {"rows": path.name}}
    if not path.is_dir():
        raise DataError(f"{path}: no such file or folder. Expected a table, or a folder with tables.")
    if files or usual_tables(path):
        return path, {"files": dict(files)} if files else {}
    there = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if is_table(file))
    listed = ", ".join(there[:_SHOWN]) + (", ..." if len(there) > _SHOWN else "")
    raise ConfigError(
        f"{path}: no table is named train, validation, test or rows. Found: {listed or 'no table'}. Say which is which:"
        " --files train=PATTERN validation=PATTERN test=PATTERN, or --files rows=PATTERN for one that holds all."
    )


def _shares(
    folder: Path, of_all: bool, lines: Sequence[SourceRow], shares: Mapping[str, float], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the setting `shares`; refuse a table of all splits that says nothing about them."""
    split_column = settings.get("columns", {}).get("split", "split")
    named = any(line.record.get(split_column) is not None for line in lines)
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
            such = f"{repeated[0].official_id!r} ({repeated[0].question!r} about {repeated[0].image_name})"
            raise DataError(
                f"{folder}: {len(repeated)} rows of {split} repeat the id of another, such as {such}. Where no column"
                " says the id, equal rows have equal ids. Remove the repetitions, or give every row an id of its own."
            )


def _refuse_shared(folder: Path, rows: Mapping[str, Sequence[Row]]) -> None:
    images = {split: {image.name for row in of_split for image in row.images} for split, of_split in rows.items()}
    counts = Counter(name for of_split in images.values() for name in of_split)
    if shared := sorted(name for name, count in counts.items() if count > 1):
        raise DataError(
            f"{folder}: {len(shared)} images are in several splits, such as {shared[0]}. Readers would be tested on"
            " images on which they were fitted. Put all questions about an image into one split, or draw the splits by"
            " --shares."
        )


def _about(split: str, rows: Sequence[Row]) -> Iterator[str]:
    closed = sum(row.answer_type == "closed" for row in rows)
    images = len({image.name for row in rows for image in row.images})
    yield f"{split}: {len(rows)} questions ({len(rows) - closed} open, {closed} closed) about {images} images"
    if (several := Counter(len(row.images) for row in rows)).keys() - {1}:
        yield f"{split}: {', '.join(f'{n} questions with {k}' for k, n in sorted(several.items()))} images"
    if options := Counter(len(row.options) for row in rows if row.options):
        counts = ", ".join(f"{n} with {k}" for k, n in sorted(options.items()))
        yield f"{split}: {options.total()} questions with options ({counts})"
    if empty := sum(not any(answer.strip() for answer in row.reference_answers) for row in rows):
        yield f"{split}: {empty} questions have an empty gold answer, which no answer matches"
    plain = [row.reference_answers[0] for row in rows if not row.options]
    letters = [gold for gold in plain if re.fullmatch(r"\W*[A-J]\W*", gold)]
    if len(letters) > len(rows) / 2:
        yield (
            f"{split}: {len(letters)} gold answers are single letters, and there are no options: if the questions"
            " contain them, the model has to answer with the letter alone; a column `options` would show their texts"
        )
    if set(plain) == {"0", "1"}:
        yield (
            f"{split}: {len(plain)} gold answers are 0 or 1, and nothing else: if they mean no and yes, write that, or"
            " answers of yes and no count as wrong"
        )


def _about_images(folder: Path, rows: Mapping[str, Sequence[Row]], bits: int | None) -> list[str]:
    images = dict.fromkeys(image.source for of_split in rows.values() for row in of_split for image in row.images)
    files = [image for image in images if isinstance(image, Path)]
    absent = {file for file in files if not locate(file)[0].is_file()}
    missing = sorted(map(str, absent))
    there = [image for image in images if image not in absent]
    odd = [f"images that cannot be read, or show little: {problem}" for problem in unreadable(there, bits=bits)]
    if linked := [image for image in there if leads_out(image, folder)]:
        odd.append(
            f"images: {len(linked):,} are behind links out of {folder}, such as {linked[0]}; they are read, but"
            " `dualread ask` sends them only with --linked"
        )
    if not files:
        return ["images: in the table", *odd]
    listed = ", ".join(missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
    count = f"images: {len(files) - len(missing)} of {len(files)} files found"
    return [count + (f"; the study fails without the others: {listed}" if missing else ""), *odd]


def _recurs(rows: Sequence[Row], *, of_modality: bool) -> bool:
    """Whether a question is asked about two images (of one modality) with different answers."""
    asked: dict[tuple[str, str | None], set[frozenset[str | tuple[str]]]] = {}
    for row in rows:
        if golds := {canonical(answer) for answer in row.reference_answers} - {""}:
            same = (question_key(row.question), row.modality if of_modality else None)
            asked.setdefault(same, set()).add(frozenset({*((image.name,) for image in row.images), *golds}))
    return any(_two_are_disjoint(list(keys)) for keys in asked.values())


def _two_are_disjoint(sets: Sequence[frozenset[Any]]) -> bool:
    """Return whether two of the sets have nothing in common."""
    # Of each set, those with its most frequent element are counted, and only those with another one are looked at.
    holders: dict[Any, list[int]] = {}
    for i, members in enumerate(sets):
        for element in members:
            holders.setdefault(element, []).append(i)
    for members in sets:
        frequent, *rest = sorted(members, key=lambda element: -len(holders[element]))
        also = {j for element in rest for j in holders[element] if frequent not in sets[j]}
        if len(holders[frequent]) + len(also) < len(sets):
            return True
    return False
