"""From the tables of one run that a study exports, `dualread evaluate` computes the study's own numbers."""

import polars as pl
import pytest

import dualread
from dualread.artifacts.tables import read_table
from dualread.artifacts.tensors import read_tensors
from dualread.evaluation.answer_metrics import FURTHER_METRICS
from dualread.schema.columns import METRICS
from dualread.schema.metrics import Bootstrap, ComputeMetricsSpec, ExportAnswersSpec, Metrics
from dualread.stages import compute_metrics, export_answers
from tests.evaluation.cells import cell

SHARDS = [("slake", "test"), ("slake", "validation"), ("vqa_rad", "test")]
SPLITS = {"slake": ("test", "validation"), "vqa_rad": ("test",)}
RUN = {"backbone": "tiny", "actor": "rlvr", "seed": 17}
METHODS = ("per", "psr")
REPLICATES = 40


def write(frame, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(folder / f"{name}.parquet")
    return folder


def spec(**more):
    told = {"study": "mine", **RUN, "methods": METHODS, "splits": SPLITS, "replicates": REPLICATES, **more}
    return ExportAnswersSpec(**told)


@pytest.fixture
def inputs(tmp_path):
    """The artifacts of one run of two methods."""
    found, predictions = {}, []
    for dataset, split in SHARDS:
        questions, donors, grades, predicted = cell(dataset, split)
        place = f"{dataset}/{split}"
        found[f"manifest/{place}"] = write(questions, tmp_path / "manifests" / place, "manifest")
        found[f"pairs/{place}"] = write(donors, tmp_path / "pairs" / place, "pairs")
        for condition, frame in grades.items():
            name = f"graded/{place}/{condition}"
            found[name] = write(frame, tmp_path / name, "graded")
        factor = 0.9 if split == "validation" else 1.0  # other answers than those of the test split
        predictions += [frame.with_columns(pl.col("confidence") * factor) for frame in predicted.values()]
    for k, method in enumerate(METHODS):
        mine = pl.concat(predictions).with_columns(
            method=pl.lit(method), confidence=(pl.col("confidence") + 0.1 * k).clip(0, 1)
        )
        found[f"predictions/tiny/rlvr/17/{method}"] = write(mine, tmp_path / "predictions" / method, "predictions")
    return found


def lending(inputs):
    """Let every fourth image be of one body: a donor is then of the body of its source."""
    for name, path in inputs.items():
        if name.startswith("manifest/"):
            image = pl.col("image_id").str.tail(2).cast(pl.Int64) % 4
            bodies = pl.read_parquet(path / "manifest.parquet").with_columns(cluster_id=pl.format("body {}", image))
            bodies.write_parquet(path / "manifest.parquet")


@pytest.fixture
def tables(inputs, tmp_path):
    """What the stage writes of them."""
    out = tmp_path / "answers"
    out.mkdir()
    export_answers.compute(spec(), inputs, out)
    return out


def told(method, **more):
    metrics = Metrics(bootstrap=Bootstrap(replicates=REPLICATES), target_risk_percent=[30])
    where = {"splits": SPLITS, "thresholds_from": "slake/validation"}
    return ComputeMetricsSpec(**RUN, study="mine", method=method, metrics=metrics, **where, **more)


def of_method(inputs, method):
    """The inputs of a stage that reads the predictions of one method."""
    others = {name: path for name, path in inputs.items() if not name.startswith("predictions/")}
    return {**others, "predictions": inputs[f"predictions/tiny/rlvr/17/{method}"]}


def own_rows_of(inputs, out, method, **more):
    """The study's own metrics of the test splits, by method, data set, subset and metric."""
    out.mkdir(parents=True, exist_ok=True)
    compute_metrics.compute(told(method, **more), of_method(inputs, method), out)
    rows = read_table(out / "metrics.parquet", METRICS).filter(split="test").iter_rows(named=True)
    return {(method, row["dataset"], row["subset"], row["metric"]): row for row in rows}


@pytest.fixture
def own_rows(inputs, tmp_path):
    return {key: row for of in METHODS for key, row in own_rows_of(inputs, tmp_path / "metrics" / of, of).items()}


def test_the_numbers_are_the_studys_own_to_the_last_bit(tables, own_rows):
    found = dualread.evaluate(tables / "answers.parquet", tables / "pairs.parquet")
    assert (found.replicates, found.unused) == (REPLICATES, [])
    names = ("estimate", "low", "high", "n", "n_clusters", "reason")
    of_study = ~pl.col("metric").str.replace("_undefined_replicates", "").is_in(
        list(FURTHER_METRICS)
    )  # it asks for none
    rows = found.metrics.filter(of_study).to_dicts()
    assert {(row["method"], row["dataset"]) for row in rows} == {(m, d) for m in METHODS for d in SPLITS}
    assert {"auroc", "natural_ccg_auc", "strict_ccg_auc"} <= {row["metric"] for row in rows}
    for row in rows:
        expected = own_rows[row["method"], row["dataset"], row["subset"], row["metric"]]
        assert {name: row[name] for name in names} == {name: expected[name] for name in names}


@pytest.fixture
def lent(inputs):
    lending(inputs)


def test_donors_of_the_same_cluster_are_said_to_be(lent, tables, own_rows):
    """Where one image of several is exchanged; `dualread evaluate` would refuse them as donors of other patients."""
    assert set(pl.read_parquet(tables / "pairs.parquet")["donor_cluster_id"]) == {
        f"donor of body {k}" for k in range(4)
    }
    found = dualread.evaluate(tables / "answers.parquet", tables / "pairs.parquet").metrics.filter(metric="vrs")
    assert found["low"].is_not_null().all()
    for row in found.to_dicts():
        expected = own_rows[row["method"], row["dataset"], row["subset"], row["metric"]]
        assert [row[name] for name in ("estimate", "low", "high")] == [
            expected[name] for name in ("estimate", "low", "high")
        ]


def test_thresholds_are_those_of_the_study(tables, own_rows):
    found = dualread.evaluate(
        tables / "answers.parquet", calibration=tables / "validation.parquet", target_risk=0.3, replicates=0
    ).thresholds
    assert found is not None
    for row in found.iter_rows(named=True):
        prefix = {"empirical": "", "certified": "certified_"}[row["rule"]]
        for column, metric in {"threshold": "threshold", "coverage": "coverage", "risk": "kept_risk"}.items():
            expected = own_rows[row["method"], row["dataset"], "all", f"{prefix}{metric}_at_risk_30"]["estimate"]
            assert row[column] == expected


def test_scores_keep_the_metrics_that_need_no_probability(inputs, tmp_path):
    """The study computes them from ranks of all scores, `evaluate` from the scores of the test answers."""
    folder = inputs["predictions/tiny/rlvr/17/psr"]
    frame = pl.read_parquet(folder / "predictions.parquet").with_columns(score=10 * pl.col("confidence") - 3)
    ranks = frame["score"].rank("dense") / (frame["score"].n_unique() + 1)  # as the stage score_answers writes them
    write(frame.with_columns(confidence=ranks), folder, "predictions")
    (out := tmp_path / "scores").mkdir()
    export_answers.compute(spec(uncalibrated=("psr",)), inputs, out)
    answers = pl.read_parquet(out / "answers.parquet")
    assert answers.filter(method="psr")["confidence"].null_count() == len(answers) / 2
    assert answers.filter(method="per")["score"].null_count() == len(answers) / 2
    found = dualread.evaluate(out / "answers.parquet", out / "pairs.parquet").metrics.filter(method="psr")
    rows = own_rows_of(inputs, out, "psr", uncalibrated=True)
    for row in found.filter(
        ~pl.col("metric").str.replace("_undefined_replicates", "").is_in(list(FURTHER_METRICS))
    ).to_dicts():
        mine = rows["psr", row["dataset"], row["subset"], row["metric"]]
        for name in ("estimate", "low", "high", "reason"):
            assert mine[name] == pytest.approx(row[name]) if isinstance(row[name], float) else mine[name] == row[name]
    ranked = {key[3]: row["estimate"] for key, row in rows.items() if key[1:3] == ("slake", "all")}
    assert None not in [ranked[name] for name in ("auroc", "aurc", "natural_ccg_auc", "accuracy")]
    assert {ranked[name] for name in ("ece15", "ece15_noise_floor", "brier", "hce90", "threshold_at_risk_30")} == {None}
    stored = read_tensors(out / "replicates.safetensors")
    assert {"slake/test/auroc"} <= stored.keys()
    assert not [name for name in stored if name.endswith(("brier", "squared_calibration_error"))]


@pytest.mark.parametrize("n", [1, 2])
def test_methods_without_confidences_are_left_out(inputs, tmp_path, n):
    """Without any, the table has no rows: an artifact needs a file, which says by its columns what there would be."""
    for method in METHODS[:n]:
        place = inputs[f"predictions/tiny/rlvr/17/{method}"] / "predictions.parquet"
        pl.read_parquet(place).clear().write_parquet(place, metadata={"dualread.reason": "none was fitted"})
    out = tmp_path / "out"
    out.mkdir()
    said = export_answers.compute(spec(), inputs, out)
    assert said.endswith(f"; without confidences: {', '.join(METHODS[:n])}")
    found = pl.read_parquet(out / "answers.parquet")
    assert set(found["method"]) == set(METHODS[n:])
    assert {"method", "answer", "correct", "confidence"} <= set(found.columns)
    assert (out / "pairs.parquet").exists() == (n == 1)


def test_confidences_that_are_float32_stay_what_they_are(inputs, tmp_path):
    """0.8999999761581421 is .9 in other tables: it had been float32 there. A study's metrics know no .9 here."""
    for method in METHODS:
        folder = inputs[f"predictions/tiny/rlvr/17/{method}"]
        frame = pl.read_parquet(folder / "predictions.parquet")
        write(frame.with_columns(pl.lit(0.8999999761581421).alias("confidence")), folder, "predictions")
    export_answers.compute(spec(), inputs, tmp_path)
    found = dualread.evaluate(tmp_path / "answers.parquet", tmp_path / "pairs.parquet", replicates=0)
    for cells in found.parts:
        for joined in cells.methods.values():
            assert set(joined.answers["confidence"]) == {0.8999999761581421}
            assert set(joined.pairs["confidence_donor"]) == {0.8999999761581421}


def test_groups_of_a_study_are_those_of_its_questions(inputs, tables, tmp_path):
    out = tmp_path / "with_groups"
    out.mkdir()
    export_answers.compute(spec(subgroups=("answer_type", "content_family")), inputs, out)
    answers = pl.read_parquet(out / "answers.parquet")
    assert answers.drop("content_family").equals(pl.read_parquet(tables / "answers.parquet"))
    found = dualread.evaluate(out / "answers.parquet", by=["content_family", "answer_type"], datasets=["slake"])
    families = found.groups.metrics.filter(by="content_family", metric="accuracy", method="psr")
    assert families.select("group", "n").rows() == [("organ", 10), (None, 30)]  # every fourth of 40 questions has one
    [whole] = found.metrics.filter(metric="accuracy", method="psr", subset="open")["estimate"]
    [part] = found.groups.metrics.filter(by="answer_type", metric="accuracy", method="psr", group="open")["estimate"]
    assert whole == part
