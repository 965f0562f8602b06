import pytest

from dualread.artifacts.schemas.metrics import METRICS
from dualread.artifacts.tables import from_rows, read_table, write_table
from dualread.errors import ArtifactError
from dualread.evaluation.aggregates import KEYS
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
    line, found = collect(tmp_path, tables, {"ood": ["a", "b"], "ood_ccg": []})
    assert line.startswith("read 2 tables with 3 estimates, added")
    assert find(found, "ood6", "auroc", method="psr")["estimate"] == 0.5
    assert find(found, "ood6", "auroc", method="per")["reason"] == "b: missing"
    assert found.select(KEYS).rows() == sorted(found.select(KEYS).rows())


def test_the_names_of_inputs_change_no_byte(tmp_path):
    rows = [[row("a", "auroc", 0.4)], [row("b", "auroc", 0.6)]]
    for folder, names in (("one", "xy"), ("other", "yx")):
        (tmp_path / folder).mkdir()
        collect(tmp_path / folder, dict(zip(names, rows, strict=True)), {"ood": [], "ood_ccg": []})
    one, other = (tmp_path / folder / "out" / "metrics.parquet" for folder in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()


def test_the_same_run_twice_is_refused(tmp_path):
    tables = {"x": [row("a", "auroc", 0.4)], "y": [row("a", "auroc", 0.4)]}
    with pytest.raises(ArtifactError, match=r"2 rows share their keys, first: study s, backbone tiny"):
        collect(tmp_path, tables, {"ood": [], "ood_ccg": []})


def test_no_tables(tmp_path):
    assert len(collect(tmp_path, {}, {"ood": [], "ood_ccg": []})[1]) == 0
