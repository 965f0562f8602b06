"""Numbers of less precision count as the decimals that their authors wrote."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from dualread.evaluation import metrics
from dualread.evaluation.decimals import as_float64, as_number, once_float32

HUNDREDTHS = np.arange(101) / 100
NARROW = {
    "float32": lambda values: np.asarray(values, np.float32),
    "float32 with the other order of bytes": lambda values: np.asarray(values, np.dtype(np.float32).newbyteorder()),
    "float16": lambda values: np.asarray(values, np.float16),
    "torch float32 with a gradient": lambda values: torch.tensor(values, dtype=torch.float32, requires_grad=True),
    "torch float16": lambda values: torch.tensor(values, dtype=torch.float16),
    "torch bfloat16": lambda values: torch.tensor(values, dtype=torch.bfloat16),
    "polars": lambda values: pl.Series(values, dtype=pl.Float32),
    "pandas": lambda values: pd.Series(values, dtype="float32"),
    "pandas nullable": lambda values: pd.Series(values, dtype="Float32"),
    "objects": lambda values: np.array([np.float32(value) for value in values], dtype=object),
    "a list of float32 and float": lambda values: [np.float32(values[0]), *map(float, values[1:])],
    "a list of tensors": lambda values: [torch.tensor(value) for value in values],
}


@pytest.mark.parametrize("narrow", NARROW.values(), ids=NARROW)
def test_hundredths_stay_hundredths(narrow):
    assert as_float64(narrow(HUNDREDTHS.tolist())).tolist() == HUNDREDTHS.tolist()


def test_any_float32_is_the_decimal_that_its_text_shows():
    bits = np.random.default_rng(0).integers(0, 2**32, 20_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = values[np.isfinite(values)]
    found = as_float64(values)
    assert found.tolist() == [float(str(value)) for value in values]  # numpy's shortest text
    assert (found.astype(np.float32) == values).all()


def test_neighbours_whose_decimals_differ_by_a_half_and_those_without_exact_powers():
    # 2**23 - .5 has the digits 8388607.5: with seven digits, both 8388607 and 8388608 are as near, and neither is it.
    values = np.float32([2**23 - 0.5, 2**24, 2**24 + 2, 1e13, 9.999999e-14, 1e-45, 3.4028235e38, -0.9])
    assert as_float64(values).tolist() == [8388607.5, 16777216, 16777218, 1e13, 9.999999e-14, 1e-45, 3.4028235e38, -0.9]


def test_options_for_printing_change_no_number():
    with np.printoptions(legacy="1.13", precision=3):
        assert as_float64(np.float32([1 / 3, 1e-20 / 3])).tolist() == [0.33333334, 3.3333333e-21]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_every_number_of_16_bits_rounds_back_and_keeps_its_place(dtype):
    values = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    values = values[values.isfinite()]
    found = as_float64(values)
    assert torch.equal(torch.tensor(found).to(dtype), values)
    order = np.argsort(values.double().numpy(), kind="stable")
    assert (np.diff(found[order]) > 0).sum() == len(found) - 2  # all but -0 and 0


def test_other_numbers_are_what_they_are():
    given = [Decimal("0.3"), Fraction(1, 4), True, 1, 0.1]
    assert as_float64(given).tolist() == [0.3, 0.25, 1.0, 1.0, 0.1]
    assert np.isnan(as_float64(np.float32([np.nan]))).all()
    assert as_float64(np.float32([[0.1, 0.2], [0.3, 0.4]])).tolist() == [[0.1, 0.2], [0.3, 0.4]]
    assert as_number(np.float32(0.9), name="threshold") == 0.9
    assert metrics.accuracy(pd.array([True, False], dtype="boolean")) == 0.5


@pytest.mark.parametrize("narrow", NARROW.values(), ids=NARROW)
def test_a_confidence_on_a_threshold_or_an_edge_is_on_it_in_every_precision(narrow):
    confidence, correct = [0.9, 0.2, 0.6, 0.9], [False, True, True, True]
    given, images = narrow(confidence), ["a", "b", "c", "d"]
    assert metrics.hce(given, correct) == 0.25  # one of four rows is wrong with .9
    assert metrics.bins(given).tolist() == [13, 3, 9, 13]  # .2 = 3/15 and .6 = 9/15 open their bins
    assert metrics.coverage(given, np.float32(0.9)) == 0.5
    assert metrics.kept_risk(given, correct, threshold=np.float32(0.9)) == 0.5
    assert metrics.threshold(given, correct, target_risk=np.float32(0.25)) == 0.2  # 1 of 4 is wrong
    assert metrics.natural_ccg_auc(given, confidence, [True] * 4, [False] * 4) == 0.5  # four ties
    for metric in (metrics.ece, metrics.brier, metrics.auroc, metrics.aurc, metrics.calibration_in_the_large):
        assert metric(given, correct) == metric(confidence, correct)
    assert metrics.squared_calibration_error(given, correct, images) == metrics.squared_calibration_error(
        confidence, correct, images
    )


def test_numbers_that_had_been_float32():
    assert once_float32(np.float32([0.9, -0.1, 0]).astype(float)).tolist() == [0.9, -0.1, 0]
    assert once_float32(np.array([0.543624997138977])).tolist() == [0.543625]  # 15 digits are enough
    for other in ([0.9, 0.1], [0.5, 0.25], [], [float(np.float32(0.9)), 0.9], [float(np.float32(0.9)), 1e300]):
        assert once_float32(np.array(other, dtype=float)) is None
    for n in (3, 7, 10, 64, 1000, 2048):  # shares of n draws
        assert once_float32(np.arange(n + 1) / n) is None
