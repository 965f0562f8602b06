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
    assert found.columns == [
        *(
            "table",
            "backbone",
            "dataset",
            "subset",
            "method",
            "metric",
            "published",
            "published_std",
            "ours",
            "ours_std",
        ),
        *("n_seeds", "difference", "difference_in_published_stds", "verdict", "reason"),
    ]
    assert len(found) == 1291
    assert (out / "paper_comparison.md").read_text().startswith("# Study mine compared with the paper\n")


def test_a_second_run_and_another_order_of_inputs_write_the_same_bytes(tmp_path):
    inputs = write(tmp_path)
    for name, given in (("one", inputs), ("other", dict(reversed(inputs.items())))):
        (tmp_path / name).mkdir()
        compare_with_paper.compute(SPEC, given, tmp_path / name)
    for kind in ("csv", "md"):
        one, other = (tmp_path / name / f"paper_comparison.{kind}" for name in ("one", "other"))
        assert one.read_bytes() == other.read_bytes()
