"""The page of a comparison: its sections in page.txt, and each cell of the paper once."""

import re
from pathlib import Path

from dualread.reporting.comparison import compare, page
from tests.golden import check
from tests.reporting.comparison.study import STUDY, replaced, tables

DCPO = {"backbone": "qwen3-vl-2b", "dataset": "slake", "method": "dcpo", "metric": "auroc"}


def test_the_page():
    changed = replaced(tables(), "main", **DCPO, mean="0.81")
    changed.pop("calib")
    text = page(compare(changed, STUDY), "mine")
    first, *parts = re.split("^#+ ", text, flags=re.MULTILINE)
    sections = {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}
    # Of calib, every cell is missing; 1291 - 440 - 1 others are as printed.
    shown = ("Study mine compared with the paper", "Summary", "main, qwen3-vl-2b", "dataset_audit")
    beginnings = {name: "\n".join(sections[name].splitlines()[:20]) for name in (*shown, "calib, qwen3-vl-2b")}
    check(Path(__file__).with_name("page.txt"), beginnings)
    assert first == ""
    cells = text[text.index("## Cell by cell") :].splitlines()
    assert sum(line.startswith("| ") and not line.startswith("| data set ") for line in cells) == 1291
    assert {line.count("|") for line in cells if line.startswith("|")} == {11}
