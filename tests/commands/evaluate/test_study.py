"""`dualread evaluate` on the folder of a study gives the study's own numbers, and so do the tables made from it."""

import polars as pl
import pytest

import dualread
from dualread.artifacts.tables import read_table
from dualread.commands import main as program
from dualread.commands.evaluate.inputs.study import read_study
from dualread.declared.columns import METRICS
from dualread.declared.metrics import Bootstrap, ComputeMetricsSpec, Metrics
from dualread.errors import ConfigError, DataError
from dualread.stages import compute_metrics
from tests.evaluation.cells import cell

SHARDS = [("slake", "test"), ("slake", "validation"), ("vqa_rad", "test")]
RUN = {"backbone": "tiny", "actor": "rlvr", "seed": 17}
METHODS = ("per", "psr")
REPLICATES = 40


def write(frame, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(folder / f"{name}.parquet")
    return folder


@pytest.fixture
def study(tmp_path):
    """A folder results/mine with one run of two methods, evaluated by the stage."""
    folder, inputs, predictions = tmp_path / "mine", {}, []
    for dataset, split in SHARDS:
        questions, donors, grades, predicted = cell(dataset, split)
        place = f"{dataset}/{split}"
        inputs[f"manifest/{place}"] = write(questions, folder / "manifests" / place, "manifest")
        inputs[f"pairs/{place}"] = write(donors, folder / "pairs" / place, "pairs")
        for condition, frame in grades.items():
            name = f"{place}/{condition}"
            inputs[f"graded/{name}"] = write(frame, folder / "graded/tiny/rlvr/17" / name, "graded")
        factor = 0.9 if split == "validation" else 1.0  # other answers than those of the test split
        predictions += [frame.with_columns(pl.col("confidence") * factor) for frame in predicted.values()]
    for k, method in enumerate(METHODS):
        mine = pl.concat(predictions).with_columns(
            method=pl.lit(method), confidence=(pl.col("confidence") + 0.1 * k).clip(0, 1)
        )
        out = folder / f"metrics/tiny/rlvr/17/{method}"
        out.mkdir(parents=True)
        spec = ComputeMetricsSpec(
            **RUN,
            study="mine",
            method=method,
            splits={"slake": ("test", "validation"), "vqa_rad": ("test",)},
            metrics=Metrics(bootstrap=Bootstrap(replicates=REPLICATES), target_risk_percent=[30]),
            thresholds_from="slake/validation",
        )
        place = write(mine, folder / f"predictions/tiny/rlvr/17/{method}", "predictions")
        compute_metrics.compute(spec, {**inputs, "predictions": place}, out)
    return folder


def own_rows(study, method):
    frame = read_table(study / f"metrics/tiny/rlvr/17/{method}/metrics.parquet", METRICS).filter(split="test")
    return {(row["dataset"], row["subset"], row["metric"]): row for row in frame.iter_rows(named=True)}


def test_the_numbers_are_the_studys_own_to_the_last_bit(study):
    tables = read_study(study, run=None)
    assert tables.replicates == REPLICATES
    found = dualread.evaluate(tables.answers, tables.pairs, replicates=tables.replicates).metrics
    names = ("estimate", "low", "high", "n", "n_clusters", "reason")
    for method in METHODS:
        own = own_rows(study, method)
        rows = found.filter(method=method).to_dicts()
        assert {row["dataset"] for row in rows} == {"slake", "vqa_rad"}
        assert {"auroc", "natural_ccg_auc", "strict_ccg_auc"} <= {row["metric"] for row in rows}
        for row in rows:
            expected = own[row["dataset"], row["subset"], row["metric"]]
            assert {name: row[name] for name in names} == {name: expected[name] for name in names}


def test_a_table_made_from_a_study_gives_them_too(study, tmp_path):
    tables = read_study(study, run="tiny/rlvr/17")
    tables.answers.write_csv(tmp_path / "predictions.csv")
    tables.pairs.write_csv(tmp_path / "pairs.csv")
    again = dualread.evaluate(tmp_path / "predictions.csv", tmp_path / "pairs.csv", replicates=REPLICATES)
    assert again.metrics.equals(dualread.evaluate(tables.answers, tables.pairs, replicates=REPLICATES).metrics)
    assert again.unused == []


def test_thresholds_are_those_of_the_study(study):
    tables = read_study(study, run=None)
    found = dualread.evaluate(
        tables.answers, tables.pairs, calibration=tables.calibration, target_risk=0.3, replicates=0
    ).thresholds
    for row in found.iter_rows(named=True):
        own = own_rows(study, row["method"])
        prefix = {"empirical": "", "certified": "certified_"}[row["rule"]]
        for column, metric in {"threshold": "threshold", "coverage": "coverage", "risk": "kept_risk"}.items():
            expected = own[row["dataset"], "all", f"{prefix}{metric}_at_risk_30"]["estimate"]
            assert row[column] == expected


def test_the_program_reads_a_study(study, capsys):
    command = ["evaluate", str(study), "--method", "psr", "--dataset", "vqa_rad", "--target-risk", ".3"]
    assert program.main(command) == 0
    printed = capsys.readouterr().out
    assert f"{study}, vqa_rad: 40 answers, 1 method\n95% intervals: {REPLICATES} resamples of image_id" in printed
    assert "slake" not in printed
    assert "target risk" in printed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"run": "tiny/rlvr/18"}, r"--run tiny/rlvr/18: not in the study\. Known: tiny/rlvr/17\. Did you mean"),
        ({"run": None, "methods": ["prs"]}, r"--method prs: not in the study\. Known: per, psr\."),
        ({"run": None, "datasets": ["vqa"]}, r"--dataset vqa: not in the study\. Known: slake, vqa_rad\."),
    ],
)
def test_what_the_study_does_not_have_is_refused(study, options, message):
    with pytest.raises(ConfigError, match=message):
        read_study(study, **options)


def test_one_of_several_runs_has_to_be_chosen(study):
    other = study / "predictions/tiny/rlvr/29/psr"
    other.mkdir(parents=True)
    (other / "predictions.parquet").write_bytes(
        (study / "predictions/tiny/rlvr/17/psr/predictions.parquet").read_bytes()
    )
    with pytest.raises(ConfigError, match=r"has 2 runs\. Choose one with --run: tiny/rlvr/17, tiny/rlvr/29"):
        read_study(study, run=None)


def test_a_folder_that_is_no_study_is_refused(tmp_path, capsys):
    with pytest.raises(DataError, match="no predictions in it; expected the folder of a finished study"):
        read_study(tmp_path, run=None)
    (tmp_path / "mine.csv").write_text("confidence,correct\n0.5,1\n")
    assert program.main(["evaluate", str(tmp_path / "mine.csv"), "--run", "a/b/1"]) == 1
    assert "--run: needs a study" in capsys.readouterr().err
