"""The paper's numbers beside a study's: cells.txt has the rows of a comparison for studies that differ in one place."""

from pathlib import Path

import polars as pl
import pytest

from dualread.reporting.comparison import VERDICTS, compare, verdict
from dualread.reporting.tables.published import PaperPlace, Printed, published_cells
from tests import golden
from tests.reporting.comparison.study import STUDY, replaced, tables
from tests.specs import changed

PLACE = list(PaperPlace._fields)


@pytest.fixture(scope="module")
def ours():
    return tables()


def test_the_papers_own_numbers_are_all_as_printed(ours):
    found = compare(ours, STUDY)
    assert found.select(PLACE).rows() == [tuple(place) for place in published_cells()]
    assert len(set(found.select(PLACE).rows())) == len(found) == 1291
    assert found["verdict"].unique().to_list() == ["as printed"]
    assert found["difference"].abs().max() < 1e-12
    assert found["ours_std"].null_count() == found["published_std"].null_count()
    assert (found["ours_std"] - found["published_std"]).abs().max() < 1e-12


QWEN = {"backbone": "qwen3-vl-2b"}
DCPO = {**QWEN, "dataset": "slake", "method": "dcpo", "metric": "auroc"}  # .789 with SD .007
DELTA = {**QWEN, "dataset": "slake", "method": "dualread-rlcr"}
SUPPORT = {**QWEN, "metric": "unique_confidences"}
_ZERO = next(place for place, cell in published_cells().items() if cell.std == 0 and place.table == "calib")
ZERO = {name: getattr(_ZERO, name) for name in ("backbone", "dataset", "method", "metric")}
# The table, and what is other in it; the row of the comparison.
CASES = {
    **{f"AUROC {mean}": ("main", {**DCPO, "mean": mean}, DCPO) for mean in ("0.7893", "0.7821", "0.7775", "0.8100")},
    "a published deviation of zero": ("calib", {**ZERO, "mean": "0.9"}, ZERO),
    "an undefined cell": ("main", {**DCPO, "mean": None, "std": None, "reason": "seed 29: one class only"}, DCPO),
    # Ours is method minus baseline; the paper prints a gain in Brier, the other way round. A higher Brier is none.
    "a gain in Brier": ("paired", {}, {**DELTA, "metric": "delta_brier"}),
    "a gain in AUROC": ("paired", {}, {**DELTA, "metric": "delta_auroc"}),
    "no gain on validation": ("paired", {}, {"dataset": "slake_val", "metric": "delta_brier"}),
    "a loss in Brier": (
        "paired",
        {**QWEN, "dataset": "slake", "method": "dualread", "metric": "brier", "mean": "0.067"},
        {**DELTA, "metric": "delta_brier"},
    ),
    # The paper prints one cell for two methods, or for an unnamed OOD: what differs most is compared, .033 / .012 away.
    "one of two methods": (
        "channel",
        {**SUPPORT, "method": "bicr", "mean": "1050.0"},
        {**SUPPORT, "method": "bicr_and_dualread"},
    ),
    "one of two is undefined": (
        "channel",
        {**SUPPORT, "method": "dualread", "mean": None, "reason": "no valid confidence"},
        {**SUPPORT, "method": "bicr_and_dualread"},
    ),
    "one of two data sets": (
        "paired",
        {**QWEN, "dataset": "ood6", "metric": "auroc", "mean": "0.053"},
        {**QWEN, "dataset": "ood_unspecified", "metric": "delta_auroc"},
    ),
    # All three roles of the split, and neither the 4819 questions of its role fit nor the 50 of the others.
    "a split in several roles": ("data", {}, {"dataset": "slake_train", "metric": "questions"}),
}


def rows_of(found):
    """One line per row, without the place of its cell."""
    return "\n".join(
        " · ".join(f"{name} {of:.10g}" if isinstance(of, float) else f"{name} {of}" for name, of in row.items())
        for row in found.drop(PLACE).iter_rows(named=True)
    )


def test_the_rows_of_other_studies(ours):
    found = {}
    for name, (table, change, key) in CASES.items():
        compared = compare(replaced(ours, table, **change) if change else ours, STUDY)
        rows = compared.filter(table={"data": "dataset_audit"}.get(table, table), **key)
        assert len(rows) == 1
        found[name] = rows_of(rows)
        # The others stay.
        assert len(compared.filter(pl.col("verdict") != "as printed")) == (rows["verdict"][0] != "as printed")
    golden.check(Path(__file__).with_name("cells.txt"), found)


def test_a_difference_that_rounding_explains_is_not_beyond_the_deviation():
    # .500 may be .4995 to .5005, and .000 up to .0005: 1 SD reaches to .001 away, 2 SD to .0015.
    away = {0.5005: "as printed", 0.5009: "within 1 SD", 0.5014: "within 2 SD", 0.5016: "beyond 2 SD"}
    assert {x: verdict(Printed(0.5, 0.0), x, 3) for x in away} == away
    # 109.7 and 3.1 with one decimal: 1 SD reaches .05 + 3.15 away, 2 SD .05 + 6.30.
    away = {109.75: "as printed", 112.89: "within 1 SD", 116.04: "within 2 SD", 116.06: "beyond 2 SD"}
    assert {x: verdict(Printed(109.7, 3.1), x, 1) for x in away} == away
    # Both ways to round a tie
    assert verdict(Printed(0.012, 0.01), 0.0125, 3) == verdict(Printed(0.013, 0.01), 0.0125, 3) == "as printed"
    # One run has no deviation, and a count must be the same.
    assert verdict(Printed(0.443, None), 0.4434, 3) == "as printed"
    assert verdict(Printed(0.443, None), 0.4436, 3) == verdict(Printed(1061.0, None), 1060.0, 0) == "no published SD"
    assert set(VERDICTS) >= {"as printed", "no published SD"}


def test_a_missing_backbone_and_a_missing_method_are_not_in_the_study(ours):
    half = ours["ood_acc"].filter((pl.col("method") != "rlcr") & (pl.col("backbone") == "qwen3-vl-2b"))
    found = compare({"ood_acc": half}, changed(STUDY, backbones=["qwen3-vl-2b"])).filter(table="ood_acc")
    assert len(found) == 264
    assert found.filter(**QWEN, verdict="as printed").height == 120  # 10 methods, 3 sets, 4 metrics
    assert set(found.filter(backbone="medgemma-1.5-4b")["reason"]) == {"no backbone medgemma-1.5-4b"}
    row = found.filter(**QWEN, method="rlcr", dataset="path_vqa", metric="brier").row(0, named=True)
    assert (row["verdict"], row["reason"]) == ("not in this study", "no rlcr on path_vqa in a table ood_acc")


def test_a_mean_over_other_data_sets_is_another_quantity(ours):
    found = compare(ours, changed(STUDY, ood=["vqa_rad"])).filter(verdict="not in this study")
    # 88 means in calib; 24 + 20 of accuracy and AUROC in main. What paired calls OOD is on VQA-RAD, too.
    assert dict(found["table"].value_counts().iter_rows()) == {"calib": 88, "main": 2 * (11 + 5)}
    assert found["reason"][0].endswith("rexvqa, vqa_med_2019, the study's over vqa_rad")
