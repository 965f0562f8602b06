"""What intervals resample: the column of clusters in a table of answers, and the cluster of each donor."""

from dataclasses import replace

import polars as pl

from dualread.data.tables.checks import CheckedTable
from dualread.data.tables.contract import CLAIM, MISSING_WORDS, REPORT

IMAGE, CLUSTER = "image_id", "cluster_id"


def default_cluster(answers: CheckedTable) -> str | None:
    """Return the column that is resampled where none is named; clusters that are the images change no word.

    Claims of one report never count as independent.
    """
    if answers.has(IMAGE) and answers.has(CLUSTER) and (answers.frame[IMAGE] == answers.frame[CLUSTER]).all():
        return IMAGE
    names = (CLUSTER, IMAGE, REPORT) if answers.has(CLAIM) else (CLUSTER, IMAGE)
    return next(filter(answers.has, names), None)


def check_clusters(answers: CheckedTable, cluster: str) -> list[str]:
    """Refuse a word that may mean that a row has no cluster, and return a warning where clusters share an image."""
    if len(words := answers.frame.filter(pl.col(cluster).is_in(MISSING_WORDS))):
        raise answers.error(
            f"row {words['row'][0]}: {cluster} is {words[cluster][0]!r}, which may mean that there is none, in"
            f" {len(words)} of {len(answers.frame)} rows. Name it in every row, or leave the column out."
        )
    if not answers.has(IMAGE) or cluster == IMAGE:
        return []
    names = [name for name in ("dataset", "split", IMAGE) if answers.has(name)]
    shared = answers.frame.group_by(names).agg(pl.col(cluster).unique().sort()).filter(pl.col(cluster).list.len() > 1)
    if shared.is_empty():
        return []
    first = shared.sort(names).row(0, named=True)
    return [
        f"warning: {answers.source}: images with several values of {cluster}: {len(shared)}, such as {first[IMAGE]!r}"
        f" with {first[cluster][0]!r} and {first[cluster][1]!r}. Answers about one image depend on each other, so that"
        " the intervals may be too narrow."
    ]


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
