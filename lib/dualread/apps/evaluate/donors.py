"""The donor pairs of a table: each joins an answer, and is about another image with another gold answer."""

from dataclasses import replace

import polars as pl

from dualread.apps.evaluate.graded import graded_columns
from dualread.data.tables.checks import CheckedTable
from dualread.data.tables.contract import plain_ids

IMAGE, KEY = "image_id", ["method", "sample_id"]


def with_clusters(pairs: CheckedTable, answers: CheckedTable, cluster: str) -> CheckedTable:
    """Return the pairs with the cluster of each donor's image; an image without an answer is one by itself."""
    image, donor = f"donor_{IMAGE}", f"donor_{cluster}"
    names = [name for name in ("dataset", "split") if answers.has(name) and pairs.has(name)]
    if not (answers.has(IMAGE) and pairs.has(image)):
        return pairs
    known = answers.frame.select(*names, pl.col(IMAGE).alias(image), pl.col(cluster).alias(donor)).unique()
    if len(twice := known.filter(pl.struct(*names, image).is_duplicated()).sort(image, donor)):
        raise answers.error(
            f"the image {twice[image][0]!r} is in {cluster} {twice[donor][0]!r} and {twice[donor][1]!r}; expected one."
        )
    frame = pairs.frame.join(known, on=[*names, image], how="left", validate="m:1", maintain_order="left")
    return replace(pairs, frame=frame.with_columns(pl.col(donor).fill_null(pl.col(image))))


def donor_rows(pairs: CheckedTable, answers: pl.DataFrame, table: CheckedTable, cluster: str) -> pl.DataFrame:
    """Return one row per method and donor pair."""
    methods = sorted(set(answers["method"]))
    if len(methods) > 1:
        pairs.need("method", f"because {table.source} has {len(methods)} methods")
    donors = pairs.frame.select(
        pl.col("method") if pairs.has("method") else pl.lit(methods[0]).alias("method"),
        "sample_id",
        "row",
        *graded_columns(pairs, "donor_"),
        donor_cluster_id=f"donor_{cluster}",
        is_score="is_score",
        confidence="donor_confidence",
    )
    refuse_twice(pairs, donors)
    _refuse_spelled_otherwise(pairs, "sample_id", donors["sample_id"], answers["sample_id"])
    _refuse_spelled_otherwise(pairs, "method", donors["method"], answers["method"])
    if len(unknown := donors.join(answers, on=KEY, how="anti").sort("row")):
        row, method, question = unknown.select("row", "method", "sample_id").row(0)
        raise pairs.error(
            f"{len(unknown)} of {len(donors)} pairs have no answer in {table.source}, the first in row {row}: sample_id"
            f" {question!r}, method {method!r}. Add the answers or drop the pairs."
        )
    donors = donors.join(answers.select(*KEY, source_cluster_id="cluster_id"), on=KEY, how="left", validate="1:1")
    plain = with_spelling(with_spelling(donors, "source_cluster_id", "source"), "donor_cluster_id", "donor").sort("row")
    source, donor = pl.col("source"), pl.col("donor")
    same = plain.filter((source == donor) | source.str.ends_with("/" + donor) | donor.str.ends_with("/" + source))
    if cluster == IMAGE and len(same):  # two images of one patient may be a pair, but never one image
        raise pairs.error(
            f"row {same['row'][0]}: the donor's image {same['donor_cluster_id'][0]!r} is that of the question"
            f" ({same['source_cluster_id'][0]!r}); expected another image. It is so in {len(same)} rows."
        )
    _refuse_spelled_otherwise(pairs, f"donor_{cluster}", donors["donor_cluster_id"], answers["cluster_id"])
    _refuse_same_gold(pairs, donors, answers, are_images=cluster == IMAGE)
    return donors


def refuse_twice(table: CheckedTable, frame: pl.DataFrame) -> None:
    """Refuse a question that a method answers in two rows."""
    twice = frame.filter(frame.select(KEY).is_duplicated()).sort("row")
    if len(twice):
        first = twice.row(0, named=True)
        rows = twice.filter(method=first["method"], sample_id=first["sample_id"])["row"].to_list()
        raise table.error(
            f"sample_id {first['sample_id']!r} is in rows {', '.join(map(str, rows[:5]))}; expected one row per method."
            " If several methods answer the question, name them in a column 'method'."
        )


def _refuse_spelled_otherwise(pairs: CheckedTable, column: str, ids: pl.Series, known: pl.Series) -> None:
    """Refuse ids that are those of the answers but for their spelling: 7 here and 007 there would be two."""
    others, names = pl.DataFrame({"id": ids.unique()}), pl.DataFrame({"known": known.unique()})
    others = others.join(names, left_on="id", right_on="known", how="anti")
    alike = with_spelling(others, "id").join(with_spelling(names, "known"), on="plain").sort("id", "known")
    if len(alike):
        raise pairs.error(
            f"{pairs.column(column)} is {alike['id'][0]!r} where the answers have {alike['known'][0]!r}. These count as"
            " two. Write the ids of both tables in the same way, as text."
        )


def _refuse_same_gold(pairs: CheckedTable, donors: pl.DataFrame, answers: pl.DataFrame, *, are_images: bool) -> None:
    """Refuse pairs whose gold answers are equal, or must be because one answer is marked as right on both images."""
    # The donor's gold answer is that of the pairs, or else that of the same question about its image in the answers;
    # another image of the same patient may have another.
    columns = [name for name in ("golds", "question_key", "canonical_answer", "correct") if name in answers.columns]
    rows = donors.join(answers.select(*KEY, *columns), on=KEY, how="left", suffix="_source", maintain_order="left")
    problems = []
    if "golds" in columns and (are_images or "golds" in donors.columns):
        if "golds" not in donors.columns:
            place = ["question_key", "cluster_id"]
            known = answers.select(*place, "golds").unique().unique(place, keep="none")
            rows = rows.rename({"golds": "golds_source"})
            rows = rows.join(known, left_on=["question_key", "donor_cluster_id"], right_on=place, how="left")
        same = pl.col("golds").list.set_intersection("golds_source").list.len() > 0
        problems.append((rows.filter(same), "the gold answer on the donor's image is that of the question"))
    if "canonical_answer" in columns and "canonical_answer" in donors.columns:
        equal = pl.col("canonical_answer") == pl.col("canonical_answer_source")
        same = pl.col("correct") & pl.col("correct_source") & equal
        problems.append((rows.filter(same), "one answer is marked as right on both images"))
    for wrong, problem in problems:
        if len(wrong):
            row, question = wrong.sort("row").select("row", "sample_id").row(0)
            raise pairs.error(
                f"{len(wrong)} of {len(rows)} pairs are no counterfactual, the first in row {row}, sample_id"
                f" {question!r}: {problem}. CCG-AUC needs an image on which the same question has another gold answer."
                " Drop these pairs."
            )


def with_spelling(frame: pl.DataFrame, column: str, name: str = "plain") -> pl.DataFrame:
    """Return the rows with a column of ids in which what tables change does not count (`plain_ids`)."""
    return frame.with_columns(plain_ids(pl.col(column)).alias(name))
