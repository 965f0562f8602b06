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
    for column in KEY:
        _refuse_spelled_otherwise(pairs, column, donors[column], answers[column])
    sources = answers.select(*KEY, source_cluster_id="cluster_id")
    donors = donors.join(sources, on=KEY, how="left", validate="1:1", maintain_order="left")
    expected = f"expected questions and methods with an answer in {table.source}. Add the answers or drop these pairs"
    pairs.refuse("sample_id", donors["source_cluster_id"].is_null(), donors["sample_id"], expected)
    if cluster == IMAGE:  # two images of one patient may be a pair, but never one image
        source, donor = (plain_ids(pl.col(f"{side}_cluster_id")) for side in ("source", "donor"))
        same = (source == donor) | source.str.ends_with("/" + donor) | donor.str.ends_with("/" + source)
        wrong = donors.select(same.alias("same"))["same"]
        pairs.refuse(f"donor_{IMAGE}", wrong, donors["donor_cluster_id"], "expected another image than the question's")
    _refuse_spelled_otherwise(pairs, f"donor_{cluster}", donors["donor_cluster_id"], answers["cluster_id"])
    _refuse_same_gold(pairs, donors, answers, are_images=cluster == IMAGE)
    return donors


def refuse_twice(table: CheckedTable, frame: pl.DataFrame) -> None:
    """Refuse a question that a method answers in two rows."""
    expected = "expected one row per method. If several methods answer the question, name them in a column 'method'"
    table.refuse("sample_id", frame.select(KEY).is_duplicated(), frame["sample_id"], expected)


def _refuse_spelled_otherwise(pairs: CheckedTable, column: str, ids: pl.Series, known: pl.Series) -> None:
    """Refuse ids that are those of the answers but for their spelling: 7 here and 007 there would be two."""
    known = known.unique().sort()
    plain, plain_known = plain_ids(ids), plain_ids(known)
    wrong = ~ids.is_in(known.implode()) & plain.is_in(plain_known.implode())
    if wrong.any():
        meant = known.filter(plain_known == plain.filter(wrong)[0])[0]
        pairs.refuse(column, wrong, ids, f"expected the ids of the answers, such as {meant!r}, written in the same way")


def _refuse_same_gold(pairs: CheckedTable, donors: pl.DataFrame, answers: pl.DataFrame, *, are_images: bool) -> None:
    """Refuse pairs whose gold answers are equal, or must be because one answer is marked as right on both images."""
    # The donor's gold answer is that of the pairs, or else that of the same question about its image in the answers;
    # another image of the same patient may have another.
    columns = [name for name in ("golds", "question_key", "canonical_answer", "correct") if name in answers.columns]
    rows = donors.join(answers.select(*KEY, *columns), on=KEY, how="left", suffix="_source", maintain_order="left")
    equal = pl.col("canonical_answer") == pl.col("canonical_answer_source")
    problems = {"one answer is marked as right on both images": pl.col("correct") & pl.col("correct_source") & equal}
    if "golds" in columns and (are_images or "golds" in donors.columns):
        if "golds" not in donors.columns:
            place = ["question_key", "cluster_id"]
            known = answers.select(*place, "golds").unique().unique(place, keep="none")
            how = {"left_on": ["question_key", "donor_cluster_id"], "right_on": place, "maintain_order": "left"}
            rows = rows.rename({"golds": "golds_source"}).join(known, how="left", **how)
        both = pl.col("golds").list.set_intersection("golds_source")
        problems = {"the gold answer on the donor's image is that of the question": both.list.len() > 0, **problems}
    for problem, same in problems.items():
        wrong = rows.select(same.fill_null(False).alias("same"))["same"]
        expected = f"expected an image on which the question has another gold answer, but {problem}. Drop these pairs"
        pairs.refuse("sample_id", wrong, rows["sample_id"], expected)
