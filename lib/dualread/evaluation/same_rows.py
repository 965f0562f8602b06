"""What joined tables must have in common, and the messages about rows that do not fit."""

import polars as pl

from dualread.errors import ArtifactError


def refuse_rows(where: str, sample_ids: pl.Series, wrong: pl.Series, what: str) -> None:
    """Refuse a table of which some rows are `wrong`; `what` says how."""
    if wrong.any():
        raise ArtifactError(f"{where}: {what}: {some(sample_ids.filter(wrong).to_list())}. Generate this shard again.")


def check_same_questions(
    where: str, first: pl.DataFrame, first_name: str, second: pl.DataFrame, second_name: str
) -> None:
    """Check that two sorted tables have one row for each of the same questions."""
    for frame, name in ((first, first_name), (second, second_name)):
        if (frame["sample_id"][1:] == frame["sample_id"][:-1]).any():
            twice = frame.filter(pl.col("sample_id").is_duplicated())["sample_id"].unique().to_list()
            raise ArtifactError(
                f"{where}: {name} hold more than one row of: {some(twice)}. Expected one row per question."
            )
    if not first["sample_id"].equals(second["sample_id"]):
        pair = ((first, second), (second, first))
        only = [table.join(other, on="sample_id", how="anti")["sample_id"].to_list() for table, other in pair]
        raise ArtifactError(
            f"{where}: {first_name} and {second_name} must hold the same questions. Only in {first_name}:"
            f" {some(only[0])}; only in {second_name}: {some(only[1])}. Run the stage that lacks them again."
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
