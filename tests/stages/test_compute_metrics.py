import numpy as np
import polars as pl
import pytest

from dualread.artifacts.tables import empty_table, read_table, write_table
from dualread.artifacts.tensors import read_header, read_tensors
from dualread.errors import ArtifactError
from dualread.evaluation.answer_metrics import FURTHER_METRICS, STORED
from dualread.evaluation.join import NOT_FORCED
from dualread.evaluation.pair_metrics import COMPARABLE
from dualread.evaluation.samples import PAIR_IMAGES
from dualread.evaluation.statistics.jackknife import pair_shifts
from dualread.evaluation.statistics.t_intervals import logit_interval
from dualread.schema.columns import CLAIMS, GRADED, METRICS, all_schemas
from dualread.schema.metrics import Bootstrap, ComputeMetricsSpec, Metrics
from dualread.stages import compute_metrics
from tests.evaluation.cells import RUN, cell, control_cell
from tests.specs import changed

SPEC = ComputeMetricsSpec(
    **RUN,
    study="embedded",
    splits={"slake": ("test",)},
    metrics=Metrics(bootstrap=Bootstrap(replicates=100), target_risk_percent=[10]),
    thresholds_from="slake/test",
)


def save(folder, frame, schema):
    folder.mkdir(parents=True)
    write_table(folder / f"{schema}.parquet", frame, all_schemas()[schema])
    return folder


def inputs_of(root, change=lambda frame: frame, cell=cell):
    questions, donors, grades, predictions = cell()
    inputs = {
        "predictions": save(root / "predictions", change(pl.concat(predictions.values())), "predictions"),
        "manifest/slake/test": save(root / "manifest", questions, "manifest"),
        "pairs/slake/test": save(root / "pairs", donors, "pairs"),
    }
    for condition, frame in grades.items():
        inputs[f"graded/slake/test/{condition}"] = save(root / condition, frame, "graded")
    return inputs


def compute(root, spec=SPEC, **changes):
    out = root / "out"
    out.mkdir()
    line = compute_metrics.compute(spec, inputs_of(root, **changes), out)
    return line, read_table(out / "metrics.parquet", METRICS)


def test_the_output_follows_the_schema(tmp_path):
    line, metrics = compute(tmp_path)
    assert "; read 40 answers and 32 donor pairs, wrote 182 estimates" in line
    assert metrics.select(*RUN, "study", "dataset", "split").unique().rows() == [
        ("tiny", "rlvr", 17, "psr", "embedded", "slake", "test")
    ]
    assert metrics.filter(pl.col("estimate").is_null() != pl.col("reason").is_not_null()).is_empty()
    assert not metrics.select("subset", "metric").is_duplicated().any()
    family = metrics.filter(pl.col("subset").str.starts_with("family:"))  # a subset of its own
    names = ("accuracy", "auroc", "ece15", "brier", "ece15_noise_floor")
    assert family.select("subset", "metric", "n").rows() == [("family:organ", metric, 10) for metric in names]


def claims_cell():
    """Reports of one claim each that are read on their own images alone."""
    questions, donors, grades, predictions = cell()
    frames = (questions, grades["original"], predictions["original"])
    asked, graded, predicted = (frame.with_columns(pl.col("sample_id") + "#0") for frame in frames)
    return asked, donors.clear(), {"original": graded}, {"original": predicted}


def test_claims_that_are_read_on_no_donors_image_have_this_reason(tmp_path):
    inputs = inputs_of(tmp_path, cell=claims_cell)
    inputs["questions/slake/test"] = inputs["manifest/slake/test"]
    write_table(inputs["graded/slake/test/original"] / "claims.parquet", empty_table(CLAIMS), CLAIMS)
    (tmp_path / "out").mkdir()
    compute_metrics.compute(SPEC, inputs, tmp_path / "out")
    found = read_table(tmp_path / "out/metrics.parquet", METRICS).filter(subset="all")
    reasons = dict(found.select("metric", "reason").iter_rows())
    assert reasons["fixed_prefix_ccg_auc"] == reasons["supported_on_both_ccg_auc"] == NOT_FORCED


def all_right():
    questions, donors, grades, predictions = cell()
    right = {name: frame.with_columns(correct=pl.lit(True)) for name, frame in grades.items()}
    return questions, donors, right, predictions


def test_the_line_in_the_log_has_the_main_results(tmp_path):
    line, metrics = compute(tmp_path)
    of = {row["metric"]: row for row in metrics.filter(pl.col("subset") == "all").iter_rows(named=True)}
    auroc, ccg = of["auroc"], of["natural_ccg_auc"]
    assert line.startswith(
        f"slake/test: AUROC {auroc['estimate']:.3f} [{auroc['low']:.3f}, {auroc['high']:.3f}], Brier"
    )
    assert f"Natural CCG-AUC {ccg['estimate']:.3f} [" in line
    (tmp_path / "right").mkdir()
    assert compute(tmp_path / "right", cell=all_right)[0].startswith("slake/test: AUROC undefined, Brier score 0.")


def test_control_conditions_are_values_where_they_exist_and_reasons_elsewhere(tmp_path):
    (tmp_path / "with").mkdir()
    found = compute(tmp_path / "with", cell=control_cell)[1].filter(subset="all")
    controls = pl.col("metric").str.contains("^(fixed_prefix|strict_same_answer|shuffled)")
    assert found.filter(controls & pl.col("estimate").is_null())["metric"].to_list() == []
    (tmp_path / "without").mkdir()
    missing = compute(tmp_path / "without")[1].filter(controls)
    assert missing["estimate"].null_count() == len(missing) == 3 * 16
    absent = ("donor_fixed_prefix", "shuffled_image")
    assert set(missing["reason"]) == {f"no answers under condition {name}" for name in absent}


def test_the_order_of_rows_changes_no_byte(tmp_path):
    for name, change in {"a": lambda frame: frame, "b": pl.DataFrame.reverse}.items():
        (tmp_path / name).mkdir()
        compute(tmp_path / name, change=change)
    for file in ("metrics.parquet", "replicates.safetensors"):
        one, other = (tmp_path / name / "out" / file for name in "ab")
        assert one.read_bytes() == other.read_bytes()


def test_the_replicates_and_the_pairs_behind_the_intervals_are_kept(tmp_path):
    _, metrics = compute(tmp_path)
    path = tmp_path / "out" / "replicates.safetensors"
    assert read_header(path) == {"study": "embedded", **RUN}
    kept, stored = read_tensors(path), [name for name in STORED if name not in FURTHER_METRICS]
    rows = {row["metric"]: row for row in metrics.filter(subset="all").iter_rows(named=True)}
    assert set(kept) == {f"slake/test/{metric}" for metric in (*stored, *COMPARABLE, PAIR_IMAGES)}
    for metric in stored:
        values = kept[f"slake/test/{metric}"]
        assert (values.dtype, values.shape) == (np.float64, (100,))
        ends = tuple(np.percentile(values[~np.isnan(values)], [2.5, 97.5]))
        assert (rows[metric]["low"], rows[metric]["high"]) == ends
    for metric in COMPARABLE:
        row, values = rows[metric], kept[f"slake/test/{metric}"]
        source, donor = kept[f"slake/test/{PAIR_IMAGES}"]
        assert np.nanmean(values) == row["estimate"]
        assert len(set(source[~np.isnan(values)])) == row["n_clusters"]
        variance = pair_shifts(values, source, donor).variance()
        assert (row["low"], row["high"]) == logit_interval(row["estimate"], variance)


def test_a_table_that_methods_share_is_read_again_after_it_changed(tmp_path):
    inputs, found = inputs_of(tmp_path), []
    path = inputs["graded/slake/test/original"] / "graded.parquet"
    for correct in (True, False):
        graded = pl.read_parquet(path).with_columns(correct=pl.lit(correct))
        write_table(path, graded, all_schemas()["graded"])
        compute_metrics.compute(SPEC, inputs, tmp_path)
        metrics = read_table(tmp_path / "metrics.parquet", METRICS)
        found.append(metrics.filter(subset="all", metric="accuracy")["estimate"].item())
    assert found == [1.0, 0.0]


def test_thresholds_are_chosen_on_answers_that_are_evaluated(tmp_path):
    found = compute(tmp_path)[1].filter(pl.col("metric").str.ends_with("_at_risk_10"))
    assert found.select("subset", "split", "n").unique().rows() == [("all", "test", 40)]
    (tmp_path / "other").mkdir()
    with pytest.raises(ArtifactError, match="thresholds_from: slake/validation is not evaluated"):
        compute(tmp_path / "other", spec=changed(SPEC, thresholds_from="slake/validation"))
    inputs = inputs_of(tmp_path / "fewer")
    del inputs["manifest/slake/test"]
    with pytest.raises(ArtifactError, match=r"no input 'manifest/slake/test'\. Given: graded/slake/test/donor"):
        compute_metrics.compute(SPEC, inputs, tmp_path)


@pytest.mark.parametrize(("named_in", "unit"), [("test", "images"), ("validation", "patients")])
def test_a_reason_about_validation_answers_counts_what_is_resampled_of_these(tmp_path, named_in, unit):
    """One of the two splits names patients, in place of images."""
    inputs, tables = {}, []
    for split in ("test", "validation"):
        of_split = inputs_of(tmp_path / split, cell=lambda split=split: cell(split=split))
        tables.append(pl.read_parquet(of_split.pop("predictions") / "predictions.parquet"))
        inputs |= {name.replace("/test", f"/{split}"): path for name, path in of_split.items()}
    questions = inputs[f"manifest/slake/{named_in}"] / "manifest.parquet"
    patients = pl.format("patient {}", pl.col("image_id").str.tail(2).cast(pl.Int64) % 4)
    pl.read_parquet(questions).with_columns(cluster_id=patients, patient_id=patients).write_parquet(questions)
    inputs["predictions"] = save(tmp_path / "both", pl.concat(tables), "predictions")
    (out := tmp_path / "out").mkdir()
    metrics = changed(SPEC.metrics, target_risk_percent=[1])
    spec = changed(SPEC, metrics=metrics, splits={"slake": ("test", "validation")}, thresholds_from="slake/validation")
    compute_metrics.compute(spec, inputs, out)
    rows = read_table(out / "metrics.parquet", METRICS).filter(metric="certified_threshold_at_risk_01")
    n = {"images": 12, "patients": 4}[unit]
    assert [reason.partition("delta 0.1: ")[2] for reason in rows["reason"]] == [
        f"too few {unit} ({n}), even if all 40 answers were correct"
    ] * 2


def test_answers_are_compared_with_those_of_another_actor_where_a_study_names_one(tmp_path):
    inputs, out = inputs_of(tmp_path), tmp_path / "out"
    out.mkdir()
    grades = read_table(inputs["graded/slake/test/original"] / "graded.parquet", GRADED)
    other = grades.with_columns(
        canonical_answer=pl.when(pl.int_range(len(grades)) < 10).then(pl.lit("another")).otherwise("canonical_answer")
    )
    inputs["compared/slake/test/original"] = save(tmp_path / "other", other, "graded")
    compute_metrics.compute(SPEC, inputs, out)
    [row] = read_table(out / "metrics.parquet", METRICS).filter(metric="answers_changed").iter_rows(named=True)
    assert (row["subset"], row["estimate"], row["n"]) == ("all", 0.25, 40)  # 10 of 40
    inputs["compared/slake/test/original"] = save(tmp_path / "fewer", other.head(39), "graded")
    with pytest.raises(ArtifactError, match="must hold the same questions"):
        compute_metrics.compute(SPEC, inputs, out)


def test_a_study_may_name_further_metrics_and_is_the_same_without_them(tmp_path):
    assert "further" not in SPEC.to_spec()["metrics"]  # so that no key of such a study changes
    more = changed(SPEC, metrics=changed(SPEC.metrics, further=["e_aurc", "log_loss", "prediction_rejection_ratio"]))
    for name in ("plain", "more"):
        (tmp_path / name).mkdir()
    plain, further = (compute(tmp_path / name, spec)[1] for name, spec in (("plain", SPEC), ("more", more)))
    names = {"e_aurc", "log_loss", "prediction_rejection_ratio"}
    names |= {f"{name}_undefined_replicates" for name in ("e_aurc", "log_loss")}
    plain_kept, kept = (read_tensors(tmp_path / name / "out" / "replicates.safetensors") for name in ("plain", "more"))
    assert kept.keys() - plain_kept.keys() == {"slake/test/e_aurc", "slake/test/log_loss"}
    assert all(np.array_equal(kept[name], values, equal_nan=True) for name, values in plain_kept.items())
    assert set(further["metric"]) - set(plain["metric"]) == names
    assert further.filter(~pl.col("metric").is_in(list(names))).equals(plain)
    of = {row["metric"]: row["estimate"] for row in further.filter(subset="all").iter_rows(named=True)}
    assert 0 <= of["e_aurc"] <= of["aurc"]
    assert of["prediction_rejection_ratio"] <= 1
