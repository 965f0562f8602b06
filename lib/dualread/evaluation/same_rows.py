"""What joined tables must have in common, and the messages about rows that do not fit."""

import polars as pl

from dualread.errors import ArtifactError


def refuse_rows(where: str, sample_ids: pl.Series, wrong: pl.Series, what: str) -> None:
    """Refuse a table of which some rows are `wrong`; `what` says how."""
    if wrong.any():
        raise ArtifactError(f"{where}: {what}: {some(sample_ids.filter(wrong).to_list())}. Generate this shard again.")


def check_same_questions(where: str, left: pl.DataFrame, left_name: str, right: pl.DataFrame, right_name: str) -> None:
    """Check that two sorted tables have one row for each of the same questions."""
    for frame, name in ((left, left_name), (right, right_name)):
        if (frame["sample_id"][1:] == frame["sample_id"][:-1]).any():
            twice = frame.filter(pl.col("sample_id").is_duplicated())["sample_id"].unique().to_list()
            raise ArtifactError(
                f"{where}: {name} hold more than one row of: {some(twice)}. Expected one row per question."
            )
    if not left["sample_id"].equals(right["sample_id"]):
        pair = ((left, right), (right, left))
        only = [one.join(other, on="sample_id", how="anti")["sample_id"].to_list() for one, other in pair]
        raise ArtifactError(
            f"{where}: {left_name} and {right_name} must hold the same questions. Only in {left_name}:"
            f" {some(only[0])}; only in {right_name}: {some(only[1])}. Run the stage that lacks them again."
        )


def some(ids: list[str]) -> str:
    """Return the first five ids, and how many there are."""
    ordered = sorted(ids)
    return (
        ", ".join(ordered[:5]) + (f", ... ({len(ordered)} in all)" if len(ordered) > 5 else "") if ordered else "none"
    )


def beside(first: pl.DataFrame, *others: pl.DataFrame) -> pl.DataFrame:
    """Return the columns of sorted tables of the same questions; a join by sample_id takes twenty times as long."""
    return pl.concat([first, *others], how="horizontal")
