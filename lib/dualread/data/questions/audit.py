"""What is refused of a loader's rows, because it cannot be asked, and what is counted of those that are kept."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from dualread.data.datasets.base import AuditStep, Loaded, Row
from dualread.data.questions.markup import Markup
from dualread.data.questions.pictures import ImageFile
from dualread.errors import refuse
from dualread.grading.canonical import canonical
from dualread.schema.columns import FEWEST_OPTIONS, MOST_OPTIONS

HARD_TO_SEE = "pictures hard to see"
LINKED = "linked pictures"


def refuse_broken(loaded: Loaded, broken_images: Mapping[Path | bytes, str]) -> None:
    """Refuse a data set with rows that cannot be asked, which are never dropped silently; up to ten are listed.

    All rows of a split are looked at before any selection, so that broken rows are found whatever the seed;
    `broken_images` says why an image cannot be read. An empty reference answer is allowed where there are no options.
    """
    problems, first_rows, markup = [], {}, Markup()
    for row in loaded.rows:
        where = where_is(loaded, row)
        if not row.question.strip():
            problems.append(f"{where}: the question is empty. Correct the row.")
        if (sentence := markup.problem(where, (row.question, *row.options))) is not None:
            problems.append(sentence)
        if not row.reference_answers:
            problems.append(f"{where}: there is no reference answer. Correct the row.")
        elif row.options and not _canonical(row.reference_answers) & _canonical(row.options):
            problems.append(
                f"{where}: the gold answer is {' or '.join(map(repr, row.reference_answers))}, which is none of the"
                f" options: {'; '.join(row.options)}. Correct the row."
            )
        if row.options and not FEWEST_OPTIONS <= len(row.options) <= MOST_OPTIONS:
            problems.append(
                f"{where}: there are {len(row.options)} options, expected none, or {FEWEST_OPTIONS} to {MOST_OPTIONS}."
                " Correct the row."
            )
        broken = [broken_images[picture.source] for picture in row.images if picture.source in broken_images]
        problems += [f"{where}: {why}" for why in broken]
        earlier = first_rows.setdefault(row.official_id, row.source_row)
        if earlier != row.source_row:
            problems.append(
                f"{where}: row {earlier} has the same id, expected unique ids. Remove one of the rows or change its id."
            )
    refuse(problems)


def _canonical(texts: Sequence[str]) -> set[str]:
    """Return the texts as grading compares them, without those that cannot be right."""
    return set(map(canonical, texts)) - {""}


def where_is(loaded: Loaded, row: Row) -> str:
    """Return where a row is in the official file, for messages."""
    return f"{loaded.file}: row {row.source_row} (id {row.official_id})"


def audit_steps(
    rows: Sequence[Row],
    image_ids: Mapping[Path | bytes, str],
    manifest: pl.DataFrame,
    images: Mapping[Path | bytes, ImageFile],
) -> list[AuditStep]:
    """Return what the `manifest` of the selected `rows` counts: what is odd and kept, and the rows of each role."""
    empty = [row.official_id for row in rows if not any(reference.strip() for reference in row.reference_answers)]
    asked = zip(manifest["image_id"], rows, strict=True)
    unrepeated = {(image_id, r.question, r.reference_answers, r.options) for image_id, r in asked}
    all_shown = [picture for row in rows for picture in row.images]
    pictures = {image_ids[picture.source]: images[picture.source] for picture in all_shown}
    n_names, n_images = len({picture.name for picture in all_shown}), manifest["image_id"].n_unique()
    steps = [
        _kept(rows, "empty answers", f"{len(empty)} rows with an empty answer are kept{_listed(empty)}"),
        _kept(rows, "repetitions", f"{len(rows) - len(unrepeated)} rows repeat another row; they are kept"),
        _kept(rows, "identical images", f"{n_names} image names, {len(pictures)} distinct pictures"),
        _kept(rows, HARD_TO_SEE, hard_to_see({name: picture.doubts for name, picture in pictures.items()})),
    ]
    shown = Counter(note for picture in pictures.values() for note in picture.notes)
    if shown:
        listed = "; ".join(f"{n} pictures: {note}" for note, n in sorted(shown.items()))
        steps.append(_kept(rows, "how pictures are shown", listed))
    if linked := sorted(name for name, picture in pictures.items() if picture.linked):
        where = f"{len(linked)} of {len(pictures)} pictures are behind links out of the data set's folder"
        steps.append(_kept(rows, LINKED, where + _listed(linked)))
    by_role = manifest.group_by("role").agg(pl.len().alias("n"), pl.col("image_id").n_unique().alias("n_images"))
    for role, n, n_role_images in by_role.sort("role").iter_rows():
        share = f"{n_role_images} of {n_images} images; the other rows have other roles"
        steps.append(AuditStep(step=f"role {role}", kept=n, dropped=0, reason=share))
    return steps


def hard_to_see(doubts: Mapping[str, Sequence[str]]) -> str:
    """Return a sentence that counts and names the pictures with `doubts`, of which hardly anything is seen."""
    doubted = sorted(name for name, of_picture in doubts.items() if of_picture)
    why = Counter(doubt for of_picture in doubts.values() for doubt in of_picture)
    listed = "".join(f"; {n}: {doubt}" for doubt, n in sorted(why.items()))
    return f"{len(doubted)} of {len(doubts)} pictures are hard to see{listed}{_listed(doubted)}"


def _kept(rows: Sequence[Row], step: str, reason: str) -> AuditStep:
    return AuditStep(step=step, kept=len(rows), dropped=0, reason=reason)


def _listed(ids: Sequence[str]) -> str:
    if not ids:
        return ""
    return f": {', '.join(ids[:10])}" + (f" and {len(ids) - 10} more" if len(ids) > 10 else "")
