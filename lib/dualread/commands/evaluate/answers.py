"""Step 2: convert a table of answers, and one of donor pairs, to rows of the form that the workflow evaluates."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from dualread.commands.evaluate.given import ANSWER_TYPES, Given, some
from dualread.commands.evaluate.grades import graded
from dualread.commands.evaluate.texts import plain_ids
from dualread.grading.canonical import question_key

IMAGE = "image_id"
_KEY = ["method", "sample_id"]
_PLACE = ["question_key", "image_id"]


def answers_of(given: Given, cluster: str | None) -> pl.DataFrame:
    """Return one row per method and question, as a graded table and predictions together have them.

    Args:
        given: The answers to one data set.
        cluster: The column that becomes `image_id`; None if every row is a cluster by itself.

    Raises:
        DataError: A column or a value is missing or wrong.
    """
    columns = {
        "method": given.identity("method") if given.has("method") else [_name(given.path)] * len(given.rows),
        "confidence": given.number("confidence"),
        **graded(given),
        "answer_type": given.one_of("answer_type", ("open", "closed"), ANSWER_TYPES)
        if given.has("answer_type")
        else "",
    }
    if given.has("question"):
        columns["question_key"] = [question_key(text) for text in given.text("question")]
    if cluster is not None:
        columns["image_id"] = given.identity(cluster)
    if given.has("sample_id"):
        answers = pl.DataFrame({"sample_id": given.identity("sample_id"), **columns, "row": given.rows})
        _refuse_twice(given, answers)
    else:  # number the sorted rows, so that the order of the file does not matter
        answers = pl.DataFrame({**columns, "row": given.rows}).sort([name for name in columns if name != "golds"])
        answers = answers.with_columns(sample_id=pl.int_range(pl.len()).over("method").cast(pl.String).str.zfill(12))
    own = {name: "sample_id" for name in ("question_key", "image_id") if name not in answers.columns}
    return answers.with_columns(imputed=pl.lit(False), **{name: pl.col(column) for name, column in own.items()})


def donors_of(given: Given, answers: pl.DataFrame, source: Given, cluster: str) -> pl.DataFrame:
    """Return one row per method and donor pair.

    Args:
        given: The pairs of one data set.
        answers: From `answers_of`, for the same data set.
        source: The table of answers, for messages.
        cluster: The column whose values are resampled.

    Raises:
        DataError: A column or a value is missing or wrong, a pair has no answer, or the donor's image is that of the
            question or has the same gold answer.
    """
    for column in ("sample_id", f"donor_{cluster}", "donor_confidence"):
        given.need(column, "which a table of pairs needs (dualread evaluate --help)")
    methods = sorted(set(answers["method"]))
    if len(methods) > 1:
        given.need("method", f"which is needed because {source.path} has {len(methods)} methods")
    donors = pl.DataFrame(
        {
            "method": given.identity("method") if given.has("method") else methods * len(given.rows),
            "sample_id": given.identity("sample_id"),
            "donor_image_id": given.identity(f"donor_{cluster}"),
            "confidence": given.number("donor_confidence"),
            **graded(given, "donor_"),
            "row": given.rows,
        }
    )
    _refuse_twice(given, donors)
    for column, known in (("sample_id", answers["sample_id"]), (f"donor_{cluster}", answers["image_id"])):
        _refuse_written_otherwise(
            given, column, donors["donor_image_id" if known.name == "image_id" else column], known
        )
    if not (unknown := donors.join(answers, on=_KEY, how="anti").sort("row")).is_empty():
        row = unknown.row(0, named=True)
        ids = sorted(answers.filter(method=row["method"])["sample_id"])
        raise given.error(
            f"{len(unknown)} of {len(donors)} pairs have no answer in {source.path}, the first in row {row['row']}:"
            f" sample_id {row['sample_id']!r}, method {row['method']!r}. Known"
            + (f" sample_ids of this method: {some(ids)}." if ids else f" methods: {', '.join(methods)}.")
            + " Add the answers or drop the pairs."
        )
    sources = answers.select(*_KEY, source_image_id="image_id")
    donors = donors.join(sources, on=_KEY, how="left", validate="1:1")
    # If patients are resampled, a pair may consist of two images of one patient, but never of one image.
    if cluster == IMAGE and (own := donors.filter(pl.col("source_image_id") == pl.col("donor_image_id"))["row"]).len():
        raise given.error(f"row {own.min()}: the donor's image is that of the question; expected another image.")
    _refuse_same_gold(given, donors, answers)
    return donors


def _refuse_written_otherwise(given: Given, column: str, ids: pl.Series, known: pl.Series) -> None:
    """Refuse ids that are those of the answers but for zeros, case or spaces: 7 here and 007 there.

    Args:
        given: The table of pairs, for messages.
        column: Its column.
        ids: The ids in it.
        known: The ids of the answers.

    Raises:
        DataError: There is such an id, which would belong to nothing.
    """
    others = ids.filter(~ids.is_in(known.implode())).unique().sort()
    named = pl.DataFrame({"id": others, "plain": plain_ids(others)})
    alike = named.join(pl.DataFrame({"plain": plain_ids(known), "known": known}), on="plain", maintain_order="left")
    if not alike.is_empty():
        one, other = alike.select("id", "known").row(0)
        raise given.error(
            f"{given.column(column)} is {one!r} where the answers have {other!r}. These count as two. Write the ids"
            " of both tables in the same way, as text."
        )


def written_twice(given: Given, columns: Sequence[str]) -> str | None:
    """Return a sentence about names in one column that differ only in zeros, case or spaces; None if there are none.

    Args:
        given: A table.
        columns: The columns to look at; those that it lacks are skipped.
    """
    found = []
    for column in filter(given.has, columns):
        ids = given.identity(column).unique(maintain_order=True)
        named = pl.DataFrame({"id": ids, "plain": plain_ids(ids)})
        twice = named.filter(pl.col("plain").is_duplicated())
        if not twice.is_empty():
            first = twice.filter(plain=twice["plain"][0])["id"].to_list()
            found.append(f"{given.column(column)}: {some(list(map(repr, first)))}")
    if not found:
        return None
    return (
        f"warning: {given.path}: names that differ only in zeros, case or spaces count as different"
        f" ({'; '.join(found)}). If they are one, write them in the same way."
    )


def _refuse_twice(given: Given, frame: pl.DataFrame) -> None:
    if not (twice := frame.filter(frame.select(_KEY).is_duplicated()).sort("row")).is_empty():
        row = twice.row(0, named=True)
        rows = twice.filter(method=row["method"], sample_id=row["sample_id"])["row"].to_list()
        raise given.error(
            f"sample_id {row['sample_id']!r} is in rows {', '.join(map(str, rows[:5]))}; expected one row per method."
            " If several methods answer the question, name them in a column 'method'."
        )


def _name(path: Path | str) -> str:
    return path.stem if isinstance(path, Path) else path


def _refuse_same_gold(given: Given, donors: pl.DataFrame, answers: pl.DataFrame) -> None:
    """Refuse pairs whose two gold answers are equal, or have to be because one answer is right on both images.

    The donor's gold answer is that of the table of pairs, or else that of the same question about the donor's image in
    the table of answers. Gold answers are equal if they have a canonical form in common, as for the workflow's own
    donors. Where neither is known, nothing is refused.

    Args:
        given: The table of pairs, for messages.
        donors: Its rows, with the columns of `graded` and donor_image_id.
        answers: All answers, with the columns of `graded`.

    Raises:
        DataError: There is such a pair; the message names the first.
    """
    own = [name for name in ("golds", "question_key", "canonical_answer", "correct") if name in answers.columns]
    pairs = donors.join(answers.select(*_KEY, *own), on=_KEY, how="left", suffix="_source", maintain_order="left")
    if "golds" in own:
        if "golds" not in donors.columns:
            pairs = _with_golds(pairs.rename({"golds": "golds_source"}), answers)
        same = pl.col("golds").list.set_intersection("golds_source").list.len() > 0
        _refuse(given, pairs.filter(same), "the gold answer on the donor's image is that of the question", "golds")
    if "canonical_answer" in own and "canonical_answer" in donors.columns:
        same = pl.col("correct") & pl.col("correct_source")
        same &= pl.col("canonical_answer") == pl.col("canonical_answer_source")
        _refuse(given, pairs.filter(same), "one answer is marked as right on both images", "canonical_answer")


def _with_golds(pairs: pl.DataFrame, answers: pl.DataFrame) -> pl.DataFrame:
    """Add the gold answers of the same question about the donor's image; null where the answers do not tell them."""
    known = pl.DataFrame(schema={**dict.fromkeys(_PLACE, pl.String), "golds": pl.List(pl.String)})
    if "question_key" in pairs.columns:
        known = answers.select(*_PLACE, "golds").unique().unique(_PLACE, keep="none")
    else:
        pairs = pairs.with_columns(question_key=pl.lit(None, dtype=pl.String))
    return pairs.join(known, left_on=["question_key", "donor_image_id"], right_on=_PLACE, how="left")


def _refuse(given: Given, wrong: pl.DataFrame, problem: str, shown: str) -> None:
    if wrong.is_empty():
        return
    row = wrong.sort("row").row(0, named=True)
    value = row[shown] if isinstance(row[shown], str) else " | ".join(row[shown])
    raise given.error(
        f"{len(wrong)} of {len(given.rows)} pairs are no counterfactual, the first in row {row['row']}, sample_id"
        f" {row['sample_id']!r}: {problem} ({value!r}). CCG-AUC needs an image on which the same question has another"
        " gold answer. Drop these pairs."
    )
