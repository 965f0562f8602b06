"""No text of a study is a formula in the CSVs that people open in a spreadsheet (D8)."""

import polars as pl
import pytest

from dualread.artifacts.tables import for_spreadsheets
from dualread.grading.canonical import canonical, question_key

FORMULAS = [
    *("=1+1", '=HYPERLINK("http://x")', "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1", "\r=1", "-1+cmd|x"),
    *("+A1", "+1†sd+A1"),
]
OTHERS = [
    *("DualRead", "a=b", "a-x", "", None, "-.012", "+1.5", "-.02 [-.05, .01]", "-", "−.1 ± .2", "--", "3"),
    *("-1,234†", "+.250†sd", "-.05†d [-.1, .2]", "+.05°", "-.058 (≤.199)", "-.389 (<.001)"),
]


@pytest.mark.parametrize("text", [*FORMULAS, *OTHERS])
def test_a_formula_begins_with_an_apostrophe_and_all_else_stays(text):
    frame = pl.DataFrame({"method": [text], "value": [-0.5], "n": [3]}, schema_overrides={"method": pl.String})
    shown = f"'{text}" if text in FORMULAS else text
    assert for_spreadsheets(frame).equals(frame.with_columns(method=pl.lit(shown, pl.String)))
    assert for_spreadsheets(frame.clear()).equals(frame.clear())


@pytest.mark.parametrize("text", [*FORMULAS, "-5", ".5 cm", "a=b"])
def test_the_apostrophe_changes_neither_grades_nor_questions(text):
    written = for_spreadsheets(pl.DataFrame({"text": [text]}))["text"][0]
    assert canonical(written) == canonical(text)
    assert question_key(written) == question_key(text)
