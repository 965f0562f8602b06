"""What a source of confidences can express: how often it gives a valid value, and how many different values.

The metrics are computed on the answers on the original images. Unique values and endpoints are counted among valid
values only, without the imputed 0.5 (paper, "Confidence-support audit"); all other metrics keep imputed rows.
"""

import numpy as np

from dualread.errors import UndefinedMetricError
from dualread.evaluation.columns import Columns
from dualread.evaluation.metric import AnswerMetric


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


# The share of answers whose confidence is imputed, and the support of the others.
IMPUTED_SHARE = AnswerMetric(name="imputed_share", value=imputed_share)
ENDPOINT_SHARE = AnswerMetric(name="endpoint_share", head="Endpt.", value=endpoint_share)
UNIQUE_CONFIDENCES = AnswerMetric(
    name="unique_confidences", head="Unique", digits=0, is_count=True, value=unique_confidences
)
CHANNEL_METRICS = {metric.name: metric for metric in (IMPUTED_SHARE, ENDPOINT_SHARE, UNIQUE_CONFIDENCES)}
