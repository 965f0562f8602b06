import pytest

from dualread.reporting.comparison import VERDICTS, compare, page
from tests.reporting.comparison.study import STUDY, replaced, tables

DCPO = {"backbone": "qwen3-vl-2b", "dataset": "slake", "method": "dcpo", "metric": "auroc"}


@pytest.fixture(scope="module")
def lines():
    changed = replaced(tables(), "main", **DCPO, mean="0.81")
    changed.pop("calib")
    return page(compare(changed, STUDY), "mine").splitlines()


def section(lines, heading):
    """The lines of a section up to the next heading."""
    start = lines.index(heading) + 1
    return lines[start : next((k for k in range(start, len(lines)) if lines[k].startswith("#")), len(lines))]


def test_it_opens_with_counts_that_add_up(lines):
    assert lines[0] == "# Study mine compared with the paper"
    assert all(any(line.startswith(f"- **{name}**: ") for line in lines) for name in VERDICTS)
    rows = [line.strip("| ").split(" | ") for line in section(lines, "## Summary") if line.startswith("| ")]
    assert rows[0] == ["table", "cells", *VERDICTS]
    counts = {name: [int(text) for text in row] for name, *row in rows[1:]}
    assert counts["main"] == [152, 151, 0, 0, 1, 0, 0, 0]
    assert counts["calib"] == [440, 0, 0, 0, 0, 0, 0, 440]
    assert counts["all"] == [1291, 850, 0, 0, 1, 0, 0, 440]  # 1291 - 440 - 1
    assert all(of[0] == sum(of[1:]) for of in counts.values())


def test_then_every_cell_by_table_and_backbone(lines):
    cells = lines[lines.index("## Cell by cell") :]
    assert sum(line.startswith("| ") and not line.startswith("| data set ") for line in cells) == 1291
    main = section(lines, "### main, qwen3-vl-2b")
    expected = "| slake | all | dcpo | auroc | 0.789 ± 0.007 | 0.810 ± 0.007 | +0.021 | +3.0 | beyond 2 SD |  |"
    assert expected in main
    assert "| slake | all | base | auroc | 0.579 | 0.579 | +0.000 |  | as printed |  |" in main
    missing = (
        "| rexvqa | all | base | brier | 0.426 |  |  |  | not in this study | no base on rexvqa in a table calib |"
    )
    assert missing in section(lines, "### calib, qwen3-vl-2b")
    audit = section(lines, "### dataset_audit")
    assert "| slake_train | all |  | questions | 4919 | 4919 | +0 |  | as printed |  |" in audit


def test_every_row_of_a_table_has_its_columns(lines):
    width = None
    for line in lines:
        if not line.startswith("|"):
            width = None
        else:
            width = width or line.count("|")
            assert line.count("|") == width, line
