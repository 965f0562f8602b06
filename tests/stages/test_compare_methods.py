import numpy as np
import polars as pl
import pytest

from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.artifacts.tensors import write_tensors
from dualread.errors import ArtifactError
from dualread.schema.columns import CONTRASTS, METRICS
from dualread.schema.metrics import CompareMethodsSpec, ContrastSpec
from dualread.stages import compare_methods
from tests.evaluation.test_aggregates import row

CONTRAST = ContrastSpec(name="c", method="psr", baselines=("per",), datasets=("slake",), split="test")
SPEC = CompareMethodsSpec(study="s", ood=(), ood_ccg=(), contrasts=(CONTRAST,))
# Replicates of a metric, and its estimate.
RUNS = {"psr": ([0.6, 0.7, 0.8, 0.9], 0.75), "per": ([0.5, 0.7, 0.6, 0.6], 0.6)}


def inputs_of(root, methods=tuple(RUNS), order=1):
    folder = root / "all"
    folder.mkdir(parents=True)
    rows = [row("slake", "auroc", estimate, method=method) for method, (_, estimate) in RUNS.items()]
    rows += [row("slake", f"images_with_{kind}", 3.0, method=method) for method in RUNS for kind in ("right", "wrong")]
    write_table(folder / "metrics.parquet", from_rows(rows, METRICS), METRICS)
    inputs = {"metrics": folder}
    for method in methods[::order]:
        inputs[f"replicates/tiny/rlvr/17/{method}"] = root / method
        (root / method).mkdir()
        run = {"study": "s", "backbone": "tiny", "actor": "rlvr", "seed": 17, "method": method}
        values = np.array(RUNS[method][0])
        write_tensors(root / method / "replicates.safetensors", {"slake/test/auroc": values}, run)
    return inputs


def compute(root, **changes):
    (root / "out").mkdir(parents=True)
    line = compare_methods.compute(SPEC, inputs_of(root, **changes), root / "out")
    return line, read_table(root / "out" / "contrasts.parquet", CONTRASTS)


def test_values_and_differences_by_hand(tmp_path):
    line, found = compute(tmp_path)
    assert line == "read 2 runs, wrote 2 values and 1 differences"
    assert found["method"].to_list() == ["per", "psr", "psr"]
    difference = found.filter(contrast="c").row(0, named=True)
    # Differences .1, 0, .2, .3; one is <= 0, so p = 2 (1 + 1) / (4 + 1). Sorted 0 .1 .2 .3, the 2.5th percentile lies
    # at .025 * 3 = .075 of the way from 0 to .1, the 97.5th at 2.925, so .1 * .925 above .2.
    assert (difference["estimate"], difference["p"]) == (pytest.approx(0.15), 0.8)
    assert (difference["low"], difference["high"]) == (pytest.approx(0.0075), pytest.approx(0.2925))
    assert (difference["study"], difference["baseline"], difference["p_holm"]) == ("s", "per", 0.8)
    own = found.filter(pl.col("contrast").is_null(), method="psr").row(0, named=True)
    assert (own["estimate"], own["n_seeds"], own["p"], own["baseline"]) == (0.75, 1, None, None)
    assert (own["low"], own["high"]) == (pytest.approx(0.6075), pytest.approx(0.8925))


def test_a_run_without_replicates_is_named(tmp_path):
    with pytest.raises(ArtifactError, match="no replicates of tiny/17/psr"):
        compute(tmp_path, methods=("per",))


def test_a_study_without_replicates_has_estimates_alone(tmp_path, monkeypatch):
    for method in RUNS:
        monkeypatch.setitem(RUNS, method, ([], RUNS[method][1]))
    found = compute(tmp_path)[1].filter(contrast="c").row(0, named=True)
    assert found["estimate"] == pytest.approx(0.15)
    names = ("low", "high", "p", "p_holm", "reason")
    names += ("low_retrained", "high_retrained", "p_retrained", "p_holm_retrained")
    assert [found[name] for name in names] == [None] * len(names)
    assert found["n_undefined"] == 0
