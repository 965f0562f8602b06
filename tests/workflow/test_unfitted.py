"""A study in which one method cannot be fitted: dashes with the reason, and everything else as before."""

import polars as pl
import pytest

from tests.workflow.checkout import Checkout
from tests.workflow.faults import MICRO, STUDY, TABLES, copy, run

pytestmark = pytest.mark.rest

FITTED, DIVERGES = "psr: {settings: {max_epochs: 3,", "psr: {settings: {learning_rate: 1.0e+38, max_epochs: 3,"
REASON = "partition 'stop': the loss is no finite number"


def metrics(checkout: Checkout) -> dict[str, pl.DataFrame]:
    files = (checkout.folder / MICRO / "metrics").glob("*/*/*/*/metrics.parquet")
    return {path.parent.name: pl.read_parquet(path).filter(metric="auroc", subset="all") for path in files}


def table(checkout: Checkout) -> pl.DataFrame:
    return pl.read_csv(checkout.folder / "tables/main.csv", infer_schema=False)


def test_a_method_that_cannot_be_fitted_ends_alone(micro, tmp_path):
    checkout = copy(micro, tmp_path / "checkout")
    before, printed = metrics(checkout), table(checkout)
    assert before["psr"]["estimate"].null_count() == 0
    checkout.edit(STUDY, FITTED, DIVERGES)
    done = run(checkout)
    assert done.returncode == 0, done.text
    found = metrics(checkout)
    assert set(found) == set(before) == {"rlvr", "psr", "p_state", "per", "dualread"}
    for method in ("rlvr", "p_state", "per"):
        assert found[method].equals(before[method]), method
    for method in ("psr", "dualread"):  # which has psr as a part
        assert found[method]["estimate"].null_count() == len(found[method]) > 0
        assert all(REASON in reason for reason in found[method]["reason"])
    dashes = table(checkout).filter(dataset="slake", method="dualread")
    others = pl.col("method") != "dualread"
    now, then = (one.filter(others).drop("bold") for one in (table(checkout), printed))  # another one may be the best
    assert now.equals(then)
    assert set(dashes["printed"]) == {"---"}
    assert all(f"no reader: pre (psr): {REASON}" in reason for reason in dashes["reason"])
    assert all((checkout.folder / name).exists() for name in TABLES)
    assert run(checkout).did_nothing()
