"""What a confidence channel can say: how often it gives a value at all, and how many values it gives.

Over the answers on the original images. Support (unique values, endpoints) is that of valid values, without the 0.5
that stands in for the others (paper, "Confidence-support audit"); all other metrics keep those rows.
"""

import numpy as np
import polars as pl

from dualread.errors import UndefinedMetricError
from dualread.evaluation._columns import Metric


def imputed_share(frame: pl.DataFrame) -> float:
    """Return the share of rows without a valid confidence, in [0, 1].

    Raises:
        UndefinedMetricError: There are no rows.
    """
    if frame.is_empty():
        raise UndefinedMetricError("no rows")
    return int(frame["imputed"].sum()) / len(frame)


def unique_confidences(frame: pl.DataFrame) -> float:
    """Return how many different valid confidences there are.

    Raises:
        UndefinedMetricError: No row has a valid confidence.
    """
    return float(len(np.unique(_valid(frame))))


def endpoint_share(frame: pl.DataFrame) -> float:
    """Return the share of valid confidences that are exactly 0 or 1, in [0, 1].

    Raises:
        UndefinedMetricError: No row has a valid confidence.
    """
    valid = _valid(frame)
    return int(np.count_nonzero((valid == 0.0) | (valid == 1.0))) / len(valid)


def _valid(frame: pl.DataFrame) -> np.ndarray:
    valid = frame.filter(~pl.col("imputed"))["confidence"].to_numpy()
    if len(valid) == 0:
        raise UndefinedMetricError(f"no valid confidence among {len(frame)} rows")
    return valid


CHANNEL_METRICS: dict[str, Metric] = {
    "imputed_share": imputed_share,
    "endpoint_share": endpoint_share,
    "unique_confidences": unique_confidences,
}
# A mean of counts over data sets says nothing.
COUNTS = ("unique_confidences",)
