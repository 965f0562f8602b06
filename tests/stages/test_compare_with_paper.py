import polars as pl

from dualread.schema.metrics import CompareWithPaperSpec
from dualread.stages import compare_with_paper
from tests.reporting.comparison.study import STUDY, tables

SPEC = CompareWithPaperSpec(
    study="mine",
    backbones=tuple(STUDY.backbones),
    actors=STUDY.actors,
    ood=tuple(STUDY.members["ood6"]),
    ood_ccg=tuple(STUDY.members["ood_ccg"]),
)


def write(root):
    inputs = {}
    for name, cells in tables().items():
        inputs[name] = root / "given" / name
        inputs[name].mkdir(parents=True)
        cells.write_csv(inputs[name] / f"{name}.csv")
    return inputs


def test_a_row_a_published_cell_and_a_page(tmp_path):
    inputs, out = write(tmp_path), tmp_path / "out"
    out.mkdir()
    assert compare_with_paper.compute(SPEC, inputs, out) == "read 12 tables, compared 1291 cells: 1291 as printed"
    assert sorted(path.name for path in out.iterdir()) == ["paper_comparison.csv", "paper_comparison.md"]
    found = pl.read_csv(out / "paper_comparison.csv")
    assert {"published", "ours", "difference_in_published_stds", "verdict", "reason"} <= set(found.columns)
    assert len(found) == 1291
    (tmp_path / "other").mkdir()
    compare_with_paper.compute(SPEC, dict(reversed(inputs.items())), tmp_path / "other")  # another order of inputs
    for path in out.iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()
    assert (out / "paper_comparison.md").read_text().startswith("# Study mine compared with the paper\n")
