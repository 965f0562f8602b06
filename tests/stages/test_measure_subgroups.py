"""Groups of a study's answers: `dualread evaluate --by` computes the same numbers from the answers that it exports."""

import polars as pl
import pytest

import dualread
from dualread.artifacts.tables import read_table, write_table
from dualread.schema.columns import QUESTION_COLUMNS, SUBGROUPS
from dualread.schema.metrics import Bootstrap, MeasureSubgroupsSpec, Metrics
from dualread.stages import export_answers, measure_subgroups
from tests.stages.test_export_answers import METHODS, REPLICATES, RUN, inputs, of_method, spec  # noqa: F401  # a fixture

COLUMNS = ("content_family", "sex")
METRICS = Metrics(
    bootstrap=Bootstrap(replicates=REPLICATES), target_risk_percent=[30], further=["log_loss", "fpr_at_95_tpr"]
)
OF_EVALUATE = (
    "estimate",
    "low",
    "high",
    "simultaneous_low",
    "simultaneous_high",
    "n",
    "n_clusters",
    "reason",
    "p_holm",
)


@pytest.fixture
def with_sex(inputs):  # noqa: F811
    """The artifacts of a run whose slake questions have a column of the user's table: f for two of three."""
    for split in ("test", "validation"):
        folder = inputs[f"manifest/slake/{split}"]
        ids = pl.read_parquet(folder / "manifest.parquet")["sample_id"]
        values = [None if k % 7 == 0 else "fm"[k % 3 == 0] for k in range(len(ids))]
        frame = pl.DataFrame({"sample_id": ids, "column": "sex", "value": values})
        write_table(folder / "question_columns.parquet", frame, QUESTION_COLUMNS)
    return inputs


def measured(inputs, method, out):  # noqa: F811
    (folder := out / method).mkdir(parents=True)
    told = {**RUN, "method": method, "study": "mine", "subgroups": COLUMNS, "datasets": ("slake", "vqa_rad")}
    how = MeasureSubgroupsSpec(**told, metrics=METRICS, thresholds_from="slake")
    measure_subgroups.compute(how, of_method(inputs, method), folder)
    return read_table(folder / "subgroups.parquet", SUBGROUPS)


def test_the_numbers_are_those_of_evaluate_on_the_exported_answers(with_sex, tmp_path):
    (out := tmp_path / "answers").mkdir()
    export_answers.compute(spec(subgroups=COLUMNS), with_sex, out)
    given = {"by": list(COLUMNS), "datasets": ["slake"], "target_risk": 0.3, "calibration": out / "validation.parquet"}
    found = dualread.evaluate(out / "answers.parquet", out / "pairs.parquet", **given).groups
    for name in METHODS:
        rows = measured(with_sex, name, tmp_path).filter(dataset="slake")
        mine = {(row["by"], row["group"], row["metric"]): row for row in rows.iter_rows(named=True)}
        assert {by for by, *_ in mine} == set(COLUMNS)
        assert {group for by, group, _ in mine if by == "sex"} == {"f", "m", None}
        theirs = found.metrics.filter(method=name, dataset="slake")
        of_both = [row for row in theirs.iter_rows(named=True) if (row["by"], row["group"], row["metric"]) in mine]
        assert {"auroc", "natural_ccg_auc", "log_loss"} <= {row["metric"] for row in of_both}
        for row in of_both:
            own = mine[row["by"], row["group"], row["metric"]]
            assert {key: own[key] for key in OF_EVALUATE} == {key: row[key] for key in OF_EVALUATE}
        certified = found.thresholds.filter(method=name, rule="certified").iter_rows(named=True)
        for row in certified:  # delta is shared by two groups of sex, and is that of the one family
            own = [mine[row["by"], row["group"], f"certified_{kind}_at_risk_30"] for kind in ("threshold", "coverage")]
            assert [of["estimate"] for of in own] == [row["threshold"], row["coverage"]]
            assert (own[1]["low"], own[1]["high"]) == (row["coverage_low"], row["coverage_high"])


def test_a_data_set_without_the_column_has_no_rows_and_a_method_without_confidences_has_reasons(with_sex, tmp_path):
    assert set(measured(with_sex, "per", tmp_path).filter(dataset="vqa_rad")["by"]) == {"content_family"}
    place = with_sex["predictions/tiny/rlvr/17/psr"] / "predictions.parquet"
    pl.read_parquet(place).clear().write_parquet(place, metadata={"dualread.reason": "none was fitted"})
    rows = measured(with_sex, "psr", tmp_path)
    assert set(rows["reason"]) == {"none was fitted"}
    assert rows["estimate"].null_count() == len(rows) > 0
    assert {"f", "m", None} <= set(rows["group"])
