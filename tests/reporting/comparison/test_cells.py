import polars as pl
import pytest

from dualread.reporting.comparison import VERDICTS, compare, verdict
from dualread.reporting.tables.published import PaperPlace, Printed, published_cells
from tests.reporting.comparison.study import STUDY, replaced, tables
from tests.specs import changed

PLACE = list(PaperPlace._fields)


@pytest.fixture(scope="module")
def ours():
    return tables()


def one(found, **key):
    rows = found.filter(**key)
    assert len(rows) == 1
    return rows.row(0, named=True)


def test_the_papers_own_numbers_are_all_as_printed(ours):
    found = compare(ours, STUDY)
    assert found.select(PLACE).rows() == [tuple(place) for place in published_cells()]
    assert len(set(found.select(PLACE).rows())) == len(found) == 1291
    assert found["verdict"].unique().to_list() == ["as printed"]
    assert found["difference"].abs().max() < 1e-12
    assert found["ours_std"].null_count() == found["published_std"].null_count()
    assert (found["ours_std"] - found["published_std"]).abs().max() < 1e-12


DCPO = {"backbone": "qwen3-vl-2b", "dataset": "slake", "method": "dcpo", "metric": "auroc"}  # .789 with SD .007


@pytest.mark.parametrize(
    ("mean", "difference", "in_stds", "expected"),
    [
        ("0.7893", 0.0003, 0.0003 / 0.007, "as printed"),
        ("0.7821", -0.0069, -0.0069 / 0.007, "within 1 SD"),
        ("0.8100", 0.021, 3.0, "beyond 2 SD"),
        ("0.7775", -0.0115, -0.0115 / 0.007, "within 2 SD"),
    ],
)
def test_a_shifted_cell_is_so_many_deviations_away_and_the_others_stay(ours, mean, difference, in_stds, expected):
    found = compare(replaced(ours, "main", **DCPO, mean=mean), STUDY)
    row = one(found, table="main", **DCPO)
    assert (row["published"], row["published_std"], row["n_seeds"]) == (0.789, 0.007, 3)
    assert row["difference"] == pytest.approx(difference, abs=1e-12)
    assert row["difference_in_published_stds"] == pytest.approx(in_stds, abs=1e-9)
    assert row["verdict"] == expected
    assert len(found.filter(pl.col("verdict") != "as printed")) == (expected != "as printed")


def test_a_difference_that_rounding_explains_is_not_beyond_the_deviation():
    # .500 may be .4995 to .5005, and .000 up to .0005: 1 SD reaches to .001 away, 2 SD to .0015.
    away = {0.5005: "as printed", 0.5009: "within 1 SD", 0.5014: "within 2 SD", 0.5016: "beyond 2 SD"}
    assert {x: verdict(Printed(0.5, 0.0), x, 3) for x in away} == away
    # 109.7 and 3.1 with one decimal: 1 SD reaches .05 + 3.15 away, 2 SD .05 + 6.30.
    away = {109.75: "as printed", 112.89: "within 1 SD", 116.04: "within 2 SD", 116.06: "beyond 2 SD"}
    assert {x: verdict(Printed(109.7, 3.1), x, 1) for x in away} == away
    # Both ways to round a tie
    assert verdict(Printed(0.012, 0.01), 0.0125, 3) == verdict(Printed(0.013, 0.01), 0.0125, 3) == "as printed"


def test_one_run_has_no_deviation_and_a_count_must_be_the_same():
    assert verdict(Printed(0.443, None), 0.4434, 3) == "as printed"
    assert verdict(Printed(0.443, None), 0.4436, 3) == "no published SD"
    assert verdict(Printed(1061.0, None), 1060.0, 0) == "no published SD"
    assert set(VERDICTS) >= {"as printed", "no published SD"}


def test_a_deviation_of_zero_counts_no_deviations(ours):
    zero = next(place for place, cell in published_cells().items() if cell.std == 0 and place.table == "calib")
    key = {name: getattr(zero, name) for name in ("backbone", "dataset", "method", "metric")}
    row = one(compare(replaced(ours, "calib", **key, mean="0.9"), STUDY), table="calib", **key)
    assert (row["verdict"], row["difference_in_published_stds"]) == ("beyond 2 SD", None)
    assert row["reason"] == "the published deviation is printed as zero"


def test_an_undefined_cell_has_our_reason(ours):
    empty = {"mean": None, "std": None, "reason": "seed 29: one class only"}
    row = one(compare(replaced(ours, "main", **DCPO, **empty), STUDY), table="main", **DCPO)
    assert (row["verdict"], row["reason"]) == ("undefined here", "seed 29: one class only")
    assert (row["ours"], row["difference"], row["published"]) == (None, None, 0.789)


def test_a_missing_backbone_and_a_missing_method_are_not_in_the_study(ours):
    half = ours["ood_acc"].filter((pl.col("method") != "rlcr") & (pl.col("backbone") == "qwen3-vl-2b"))
    found = compare({"ood_acc": half}, changed(STUDY, backbones=["qwen3-vl-2b"])).filter(table="ood_acc")
    assert len(found) == 264
    assert found.filter(backbone="qwen3-vl-2b", verdict="as printed").height == 120  # 10 methods, 3 sets, 4 metrics
    assert set(found.filter(backbone="medgemma-1.5-4b")["reason"]) == {"no backbone medgemma-1.5-4b"}
    row = one(found, backbone="qwen3-vl-2b", method="rlcr", dataset="path_vqa", metric="brier")
    assert (row["verdict"], row["reason"]) == ("not in this study", "no rlcr on path_vqa in a table ood_acc")


def test_a_mean_over_other_data_sets_is_another_quantity(ours):
    found = compare(ours, changed(STUDY, ood=["vqa_rad"])).filter(verdict="not in this study")
    # 88 means in calib; 24 + 20 of accuracy and AUROC in main. What paired calls OOD is on VQA-RAD, too.
    assert dict(found["table"].value_counts().iter_rows()) == {"calib": 88, "main": 2 * (11 + 5)}
    assert found["reason"][0].endswith("rexvqa, vqa_med_2019, the study's over vqa_rad")


def test_the_sign_of_our_brier_differences_is_changed_where_the_paper_prints_gains(ours):
    key = {"table": "paired", "dataset": "slake", "method": "dualread-rlcr", "backbone": "qwen3-vl-2b"}
    row = one(compare(ours, STUDY), metric="delta_brier", **key)
    assert (row["published"], row["ours"]) == (0.067, 0.067)
    assert row["reason"] == "the paper prints a gain, so this is baseline minus method too"
    assert one(compare(ours, STUDY), metric="delta_auroc", **key)["reason"] is None
    validation = one(compare(ours, STUDY), dataset="slake_val", metric="delta_brier")
    assert (validation["ours"], validation["reason"]) == (-0.0157, None)
    raised = {"backbone": "qwen3-vl-2b", "dataset": "slake", "method": "dualread", "metric": "brier"}
    worse = compare(replaced(ours, "paired", **raised, mean="0.067"), STUDY)
    assert one(worse, metric="delta_brier", **key)["ours"] == -0.067  # a higher Brier is no gain


def test_of_several_cells_the_one_that_differs_most_is_compared(ours):
    key = {"backbone": "qwen3-vl-2b", "metric": "unique_confidences"}
    row = one(compare(replaced(ours, "channel", **key, method="bicr", mean="1050.0"), STUDY),
              method="bicr_and_dualread", **key)  # fmt: skip
    assert (row["ours"], row["difference"], row["verdict"]) == (1050.0, -11.0, "no published SD")
    assert row["reason"] == "one cell in the paper, several here: bicr on slake 1050, dualread on slake 1061"
    undefined = replaced(ours, "channel", **key, method="dualread", mean=None, reason="no valid confidence")
    row = one(compare(undefined, STUDY), method="bicr_and_dualread", **key)
    assert (row["verdict"], row["ours"]) == ("undefined here", None)
    # DualRead minus RLCR in AUROC, which the paper gives for an unnamed OOD: .020 with SD .012
    one_of_two = {"backbone": "qwen3-vl-2b", "dataset": "ood6", "metric": "auroc"}
    row = one(compare(replaced(ours, "paired", **one_of_two, mean="0.053"), STUDY),
              dataset="ood_unspecified", backbone="qwen3-vl-2b", metric="delta_auroc")  # fmt: skip
    assert row["difference_in_published_stds"] == pytest.approx(0.033 / 0.012)
    assert row["reason"].endswith("dualread on vqa_rad 0.020, dualread on ood6 0.053")


def test_a_role_of_a_split_is_not_the_split(ours):
    row = one(compare(ours, STUDY), dataset="slake_train", metric="questions")
    assert row["ours"] == 4919.0  # and neither the 4819 of its role fit nor the 50 of the others
