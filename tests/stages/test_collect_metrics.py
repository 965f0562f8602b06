import polars as pl
import pytest

from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.errors import ArtifactError
from dualread.evaluation.aggregates import KEYS
from dualread.schema.columns import COSTS, METRICS
from dualread.schema.metrics import CollectMetricsSpec
from dualread.stages import collect_metrics
from tests.evaluation.test_aggregates import find, row


def collect(root, tables, **ood):
    """Collect tables of metrics, and of costs where the name says so."""
    inputs = {}
    for name, rows in tables.items():
        schema = COSTS if name.startswith("costs/") else METRICS
        inputs[name] = root / name
        inputs[name].mkdir(parents=True)
        write_table(inputs[name] / f"{schema.name}.parquet", from_rows(rows, schema), schema)
    (out := root / "out").mkdir()
    line = collect_metrics.compute(CollectMetricsSpec(**{"ood": (), "ood_ccg": (), **ood}), inputs, out)
    return line, read_table(out / "metrics.parquet", METRICS)


def test_all_estimates_sorted_with_their_means(tmp_path):
    tables = {"z": [row("a", "auroc", 0.4)], "y": [row("b", "auroc", 0.6), row("a", "auroc", 0.5, method="per")]}
    line, found = collect(tmp_path, tables, ood=("a", "b"))
    assert line.startswith("read 2 tables with 3 estimates, added")
    assert find(found, "ood6", "auroc", method="psr")["estimate"] == 0.5
    assert find(found, "ood6", "auroc", method="per")["reason"] == "b: missing"
    assert found.select(KEYS).rows() == sorted(found.select(KEYS).rows())


def test_the_names_of_inputs_change_no_byte(tmp_path):
    rows = [[row("a", "auroc", 0.4)], [row("b", "auroc", 0.6)]]
    for folder, names in (("one", "xy"), ("other", "yx")):
        collect(tmp_path / folder, dict(zip(names, rows, strict=True)))
    one, other = (tmp_path / folder / "out" / "metrics.parquet" for folder in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_the_same_run_twice_is_refused(tmp_path):
    tables = {"x": [row("a", "auroc", 0.4)], "y": [row("a", "auroc", 0.4)]}
    with pytest.raises(ArtifactError, match=r"2 rows share their keys, first: study s, backbone tiny"):
        collect(tmp_path, tables)


COST = {"backbone": "tiny", "actor": "rlvr", "seed": 17, "dataset": "slake", "split": "test", "method": "psr",
        "answers": 10, "completions": 1.0, "prompt_passes": 2.0, "prompt_only_passes": 1.0, "replay_passes": 0.0,
        "read_tokens": 20.5, "generated_tokens": 3.25}  # fmt: skip


def test_costs_are_metrics_of_their_run(tmp_path):
    metrics = [row("slake", "accuracy", 0.5), row("slake", "auroc", 0.6)]
    line, found = collect(tmp_path, {"metrics": metrics, "costs/0": [COST]}, ood=("slake",))
    assert line.startswith("read 2 tables with 8 estimates")
    read = find(found, "slake", "cost_read_tokens")
    assert (read["estimate"], read["study"], read["method"], read["n"], read["n_clusters"]) == (20.5, "s", "psr", 10, 5)
    assert (read["low"], read["high"], read["reason"]) == (None, None, None)
    assert found.filter((pl.col("dataset") == "ood6") & pl.col("metric").str.starts_with("cost_")).is_empty()


@pytest.mark.parametrize(
    ("n", "costs", "message"),
    [
        (9, [COST], r"tiny/rlvr/17/slake/test/psr are of 10 answers, its accuracy is of 9\."),
        (10, [{**COST, "method": "per"}], r"/per are of 10 answers, its accuracy is of none\."),
        (10, [COST, COST], r"12 rows share their keys, .*metric cost_"),
    ],
)
def test_costs_of_other_answers_than_the_metrics_are_refused(tmp_path, n, costs, message):
    tables = {"metrics": [row("slake", "accuracy", 0.5, n=n)], **{f"costs/{k}": [of] for k, of in enumerate(costs)}}
    with pytest.raises(ArtifactError, match=message):
        collect(tmp_path, tables)
