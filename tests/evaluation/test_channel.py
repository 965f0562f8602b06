import polars as pl
import pytest

from dualread.evaluation import answer_metrics
from dualread.evaluation.columns import Columns


def rows(*values):
    schema = {"confidence": pl.Float64, "imputed": pl.Boolean}
    return Columns.of(pl.DataFrame(values, schema=schema, orient="row"))


# Of 5 rows one is imputed; the valid ones are 0, 1, 1 and .5: three values, three of four at an end.
ROWS = rows((0.0, False), (1.0, False), (0.5, True), (1.0, False), (0.5, False))


def test_by_hand():
    assert answer_metrics.imputed_share(ROWS) == 0.2
    assert answer_metrics.unique_confidences(ROWS) == 3.0
    assert answer_metrics.endpoint_share(ROWS) == 0.75
    assert answer_metrics.imputed_share(rows((0.5, True))) == 1.0
    # Shares 1/4, 1/2 and 1/4: 2 bits / 4 + 1 bit / 2 + 2 bits / 4.
    assert answer_metrics.confidence_entropy(ROWS) == 1.5
    assert answer_metrics.confidence_entropy(rows(*[(0.3, False)] * 7)) == 0.0


def test_an_imputed_half_is_no_value_of_the_channel():
    assert answer_metrics.unique_confidences(rows((0.5, True), (0.25, False))) == 1.0
    assert answer_metrics.endpoint_share(rows((0.5, True), (1.0, False))) == 1.0


def test_what_is_near_an_end_is_not_at_it():
    nearly = rows((1.0 - 2**-53, False), (5e-324, False), (1.0, False))
    assert answer_metrics.unique_confidences(nearly) == 3.0
    assert answer_metrics.endpoint_share(nearly) == pytest.approx(1 / 3)
