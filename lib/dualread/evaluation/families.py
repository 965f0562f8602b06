"""Metrics per content family of the questions, such as organ, position or abnormality, as the data set names them.

In the metrics table the subset is family:<name>. The metrics have no intervals and use the original images alone.
"""

from functools import partial

import polars as pl

from dualread.evaluation.answer_metrics import ANSWER_METRICS, NOISE_FLOOR
from dualread.evaluation.columns import Columns
from dualread.evaluation.estimates import measure, noise_floor
from dualread.evaluation.statistics.bootstrap import ImageDraws

PREFIX = "family:"
METRICS = ("accuracy", "auroc", "ece15", "brier")


def family_rows(answers: pl.DataFrame, manifest: pl.DataFrame, draws: ImageDraws) -> list[dict]:
    """Return one mapping per (family, metric) as `estimates.estimate` does; none if the manifest has no families.

    Args:
        answers: The joined answers of one (data set, split).
        manifest: Its manifest table.
        draws: Its images, for the noise floor of the ECE.
    """
    families = manifest.select("sample_id", "content_family").drop_nulls()
    if families.is_empty():
        return []
    joined = answers.join(families, on="sample_id", how="inner", validate="1:1").sort("content_family", "sample_id")
    metrics = {**{name: ANSWER_METRICS[name].value for name in METRICS}, NOISE_FLOOR: partial(noise_floor, draws=draws)}
    return [
        measure(PREFIX + frame["content_family"][0], name, metric, rows, n=len(frame), n_clusters=n_clusters)._asdict()
        for frame in joined.partition_by("content_family", maintain_order=True)
        for rows, n_clusters in [(Columns.of(frame), frame["image_id"].n_unique())]
        for name, metric in metrics.items()
    ]
