"""What a source of confidences can express: how often it gives a valid value, and how many different values.

The metrics are computed on the answers on the original images. Unique values and endpoints are counted among valid
values only, without the imputed 0.5 (paper, "Confidence-support audit"); all other metrics keep imputed rows.
"""

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import Columns, Metric


def imputed_share(rows: Columns) -> float:
    """Return the share of rows without a valid confidence, in [0, 1].

    Raises:
        UndefinedMetricError: There are no rows.
    """
    if len(rows) == 0:
        raise UndefinedMetricError("no rows")
    return int(np.count_nonzero(rows["imputed"])) / len(rows)


def unique_confidences(rows: Columns) -> float:
    """Return the number of different valid confidences.

    Raises:
        UndefinedMetricError: No row has a valid confidence.
    """
    return float(len(np.unique(_valid(rows))))


def endpoint_share(rows: Columns) -> float:
    """Return the share of valid confidences that are exactly 0 or 1, in [0, 1].

    Raises:
        UndefinedMetricError: No row has a valid confidence.
    """
    valid = _valid(rows)
    return int(np.count_nonzero((valid == 0.0) | (valid == 1.0))) / len(valid)


def _valid(rows: Columns) -> np.ndarray:
    valid = rows["confidence"][~rows["imputed"]]
    if len(valid) == 0:
        raise UndefinedMetricError(f"no valid confidence among {len(rows)} rows")
    return valid


CHANNEL_METRICS: dict[str, Metric] = {
    "imputed_share": imputed_share,
    "endpoint_share": endpoint_share,
    "unique_confidences": unique_confidences,
}
# These are counts, not rates.
COUNTS = ("unique_confidences",)
