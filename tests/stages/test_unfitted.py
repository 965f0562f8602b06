"""A method that cannot be fitted, from its labels to the tables: everything else is made."""

import numpy as np
import polars as pl
import pytest

from dualread.apps.score import ScorerChoice
from dualread.apps.score.loading import ChosenReaders
from dualread.artifacts.tables import empty_table, read_table, reason_of, write_table
from dualread.errors import ArtifactError
from dualread.readers.artifact import load_reader
from dualread.schema.columns import CONTRASTS, METRICS, PREDICTIONS
from dualread.schema.metrics import CollectMetricsSpec, CompareMethodsSpec, ContrastSpec
from dualread.schema.tables import Labeled
from dualread.stages import collect_metrics, compare_methods, compute_metrics, draw_figure, fit_readers
from tests.specs import changed
from tests.stages import shards, test_compute_metrics, test_draw_figure
from tests.stages.test_fit_readers import ROLES, fit_all, spec_of, training_inputs
from tests.stages.test_score_answers import run, scored_inputs

REASON = "no reader: partition 'calibration': 40 correct of 40 answers"


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Training answers of which all are right on the calibration partition, 40 of 200."""
    folder = tmp_path_factory.mktemp("train")
    given = training_inputs(folder)
    rows = shards.manifest_rows(200, split="train", roles=ROLES)
    correct = np.random.default_rng(0).random(200) < 0.6
    correct |= np.array([row["role"] == "calibration" for row in rows])
    return {**given, "graded": shards.write(folder / "right", "graded", shards.graded_rows(rows, correct))}


@pytest.fixture(scope="module")
def fitted(inputs, tmp_path_factory):
    return fit_all(tmp_path_factory.mktemp("readers"), inputs)


def test_the_file_of_a_reader_has_the_reason_and_others_are_fitted(fitted):
    found = {method: load_reader(folder / "reader.safetensors").unfitted for method, folder in fitted.items()}
    assert {method for method, reason in found.items() if reason is None} == {
        *("rlvr", "question_prior", "question_answer_prior")
    }
    assert found["psr"].startswith(REASON.removeprefix("no reader: "))
    assert found["per"] == f"state (p_state): {found['p_state']}"
    assert found["dualread"] == f"pre (psr): {found['psr']}"


def test_the_line_in_the_log_says_it(inputs, tmp_path):
    line = fit_readers.compute(spec_of("psr"), inputs, tmp_path)
    assert f"no reader for tiny/rlvr/17/psr, its values will be dashes: {REASON.removeprefix('no reader: ')}" in line


def test_its_predictions_are_none_with_the_reason(fitted, tmp_path):
    given = scored_inputs(tmp_path)
    predictions = run("dualread", fitted, given, tmp_path / "out")
    assert predictions.is_empty()
    assert reason_of(tmp_path / "out" / "predictions.parquet").startswith("no reader: pre (psr): partition 'cal")
    assert len(run("question_prior", fitted, given, tmp_path / "other")) == 60
    assert reason_of(tmp_path / "other" / "predictions.parquet") is None


def metrics_of(root, reason=None):
    root.mkdir()
    given = test_compute_metrics.inputs_of(root)
    spec = test_compute_metrics.SPEC
    spec = changed(spec, metrics=changed(spec.metrics, further=["auarc", "log_loss"]))
    if reason is not None:
        write_table(given["predictions"] / "predictions.parquet", empty_table(PREDICTIONS), PREDICTIONS, reason=reason)
        spec = changed(spec, method="other")
    (root / "out").mkdir()
    compute_metrics.compute(spec, given, root / "out")
    return root / "out"


def test_its_metrics_are_null_with_the_reason_and_are_compared_as_such(tmp_path):
    folders = {"psr": metrics_of(tmp_path / "one"), "other": metrics_of(tmp_path / "two", REASON)}
    known, found = (read_table(folder / "metrics.parquet", METRICS) for folder in folders.values())
    assert set(found.select("subset", "metric").iter_rows()) == set(known.select("subset", "metric").iter_rows())
    assert found["estimate"].null_count() == len(found)
    assert set(found["reason"]) == {REASON}
    sizes = ["subset", "metric", "n", "n_clusters"]
    answered = pl.col("metric").is_in(["accuracy", "auroc", "coverage_at_risk_10"])  # also of the content families
    assert found.filter(answered).select(sizes).sort(sizes).equals(known.filter(answered).select(sizes).sort(sizes))
    (all_of := tmp_path / "all").mkdir()
    collect_metrics.compute(CollectMetricsSpec(ood=("slake",), ood_ccg=("slake",)), folders, all_of)
    contrast = ContrastSpec(name="c", method="psr", baselines=("other",), datasets=("slake",), split="test")
    spec = CompareMethodsSpec(study="embedded", ood=("slake",), ood_ccg=("slake",), contrasts=(contrast,))
    given = {"metrics": all_of, **{f"replicates/tiny/rlvr/17/{name}": folder for name, folder in folders.items()}}
    (tmp_path / "contrasts").mkdir()
    compare_methods.compute(spec, given, tmp_path / "contrasts")
    rows = read_table(tmp_path / "contrasts" / "contrasts.parquet", CONTRASTS)
    own = rows.filter(pl.col("contrast").is_null(), dataset="slake", metric="auroc")
    assert dict(own.select("method", pl.col("estimate").is_null()).iter_rows()) == {"psr": False, "other": True}
    difference = rows.filter(contrast="c", metric="auroc").row(0, named=True)
    assert (difference["estimate"], difference["reason"]) == (None, f"other: seed 17: {REASON}")


def test_a_figure_leaves_it_out_and_says_so(tmp_path):
    given = test_draw_figure.confidences(tmp_path)
    nothing = empty_table(PREDICTIONS)
    (folder := tmp_path / "other").mkdir()
    write_table(folder / "predictions.parquet", nothing, PREDICTIONS, reason=REASON)
    methods = (Labeled(name="psr", label="PSR"), Labeled(name="other", label="Other"))
    spec = changed(test_draw_figure.RELIABILITY, layout=changed(test_draw_figure.RELIABILITY.layout, methods=methods))
    (out := tmp_path / "out").mkdir()
    line = draw_figure.compute(spec, {**given, "predictions/tiny/rlvr/17/other": folder}, out)
    assert line.endswith(f"; Other is not drawn, tiny/rlvr/17: {REASON}")
    assert pl.read_csv(out / "reliability.csv")["n"].sum() == 40  # the cell's questions, of PSR alone
    (alone := tmp_path / "alone").mkdir()
    draw_figure.compute(
        spec, {**given, **dict.fromkeys([f"predictions/tiny/rlvr/17/{m}" for m in ("psr", "other")], folder)}, alone
    )
    assert sorted(path.name for path in alone.iterdir()) == sorted(path.name for path in out.iterdir())


def test_the_next_image_is_refused_with_the_reason(fitted):
    with pytest.raises(ArtifactError, match="psr could not be fitted, so that it cannot score: partition 'calib"):
        ChosenReaders.load(ScorerChoice(reader=fitted["psr"]))
