import polars as pl
import pytest

from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.errors import ArtifactError
from dualread.evaluation.aggregates import KEYS
from dualread.schema.columns import COSTS, METRICS
from dualread.schema.metrics import CollectMetricsSpec
from dualread.stages import collect_metrics
from tests.evaluation.test_aggregates import find, row


def collect(root, tables, spec):
    inputs = {}
    for name, rows in tables.items():
        inputs[name] = root / name
        inputs[name].mkdir()
        write_table(inputs[name] / "metrics.parquet", from_rows(rows, METRICS), METRICS)
    out = root / "out"
    out.mkdir()
    line = collect_metrics.compute(spec, inputs, out)
    return line, read_table(out / "metrics.parquet", METRICS)


def test_all_estimates_sorted_with_their_means(tmp_path):
    tables = {"z": [row("a", "auroc", 0.4)], "y": [row("b", "auroc", 0.6), row("a", "auroc", 0.5, method="per")]}
    line, found = collect(tmp_path, tables, CollectMetricsSpec(ood=("a", "b"), ood_ccg=()))
    assert line.startswith("read 2 tables with 3 estimates, added")
    assert find(found, "ood6", "auroc", method="psr")["estimate"] == 0.5
    assert find(found, "ood6", "auroc", method="per")["reason"] == "b: missing"
    assert found.select(KEYS).rows() == sorted(found.select(KEYS).rows())


def test_the_names_of_inputs_change_no_byte(tmp_path):
    rows = [[row("a", "auroc", 0.4)], [row("b", "auroc", 0.6)]]
    for folder, names in (("one", "xy"), ("other", "yx")):
        (tmp_path / folder).mkdir()
        collect(tmp_path / folder, dict(zip(names, rows, strict=True)), CollectMetricsSpec(ood=(), ood_ccg=()))
    one, other = (tmp_path / folder / "out" / "metrics.parquet" for folder in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_the_same_run_twice_is_refused(tmp_path):
    tables = {"x": [row("a", "auroc", 0.4)], "y": [row("a", "auroc", 0.4)]}
    with pytest.raises(ArtifactError, match=r"2 rows share their keys, first: study s, backbone tiny"):
        collect(tmp_path, tables, CollectMetricsSpec(ood=(), ood_ccg=()))


COST = {"backbone": "tiny", "actor": "rlvr", "seed": 17, "dataset": "slake", "split": "test", "method": "psr",
        "answers": 10, "completions": 1.0, "prompt_passes": 2.0, "prompt_only_passes": 1.0, "replay_passes": 0.0,
        "read_tokens": 20.5, "generated_tokens": 3.25}  # fmt: skip


def with_costs(root, *costs, metrics):
    inputs = {}
    for name, rows in {"metrics": metrics, **{f"costs/{k}": [cost] for k, cost in enumerate(costs)}}.items():
        schema = METRICS if name == "metrics" else COSTS
        inputs[name] = root / name
        inputs[name].mkdir(parents=True)
        write_table(inputs[name] / f"{schema.name}.parquet", from_rows(rows, schema), schema)
    (root / "out").mkdir()
    line = collect_metrics.compute(CollectMetricsSpec(ood=("slake",), ood_ccg=()), inputs, root / "out")
    return line, read_table(root / "out" / "metrics.parquet", METRICS)


def test_costs_are_metrics_of_their_run(tmp_path):
    line, found = with_costs(tmp_path, COST, metrics=[row("slake", "accuracy", 0.5), row("slake", "auroc", 0.6)])
    assert line.startswith("read 2 tables with 8 estimates")
    read = find(found, "slake", "cost_read_tokens")
    assert (read["estimate"], read["study"], read["method"], read["n"], read["n_clusters"]) == (20.5, "s", "psr", 10, 5)
    assert (read["low"], read["high"], read["reason"]) == (None, None, None)
    assert found.filter((pl.col("dataset") == "ood6") & pl.col("metric").str.starts_with("cost_")).is_empty()


def test_costs_of_other_answers_than_the_metrics_are_refused(tmp_path):
    metrics = [row("slake", "accuracy", 0.5, n=9)]
    with pytest.raises(ArtifactError, match=r"tiny/rlvr/17/slake/test/psr are of 10 answers, its accuracy is of 9\."):
        with_costs(tmp_path / "a", COST, metrics=metrics)
    with pytest.raises(ArtifactError, match=r"/per are of 10 answers, its accuracy is of none\."):
        with_costs(tmp_path / "b", {**COST, "method": "per"}, metrics=metrics)
    with pytest.raises(ArtifactError, match=r"12 rows share their keys, .*metric cost_"):
        with_costs(tmp_path / "c", COST, COST, metrics=[row("slake", "accuracy", 0.5)])
