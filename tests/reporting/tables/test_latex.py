"""Tables as LaTeX, and any text in it."""

import re

from hypothesis import given

from dualread.reporting.tables._latex import (
    Beside,
    Float,
    Gap,
    Heading,
    Raised,
    TableRow,
    TwoLines,
    Words,
    escape,
    latex_table,
    spanning,
)
from tests.drawn import few, texts

_COMMAND = re.compile(r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}|\\[&%$#_{}]")


@few
@given(texts)
def test_any_text_in_latex_is_plain_and_can_be_written(text):
    shown = escape(text)
    shown.encode()  # as every table is written
    assert not re.search(r"[\\&%$#_{}~^<>]", _COMMAND.sub("", shown))
    assert not [character for character in shown if ord(character) < 32 or 127 <= ord(character) < 160]


def test_escape_leaves_nothing_that_latex_reads_as_a_command():
    assert escape(r"a_b & 5% of $x$ #1 {y} ~ ^ \z") == (
        r"a\_b \& 5\% of \$x\$ \#1 \{y\} \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )
    assert escape("P(True)\n<ok>") == r"P(True) \textless{}ok\textgreater{}"


def lines_of(*body, head=(), **optional):
    """The lines that LaTeX gets between the rules at the top and at the bottom."""
    parts = {"name": "t", "wide": False, "columns": "lc", "caption": "c", **optional}
    lines = latex_table(Float(head=head, body=body, **parts)).splitlines()
    return lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]


def test_rows_and_what_separates_them():
    body = (TableRow(["a", "b"]), Gap.RULE, TableRow(["c", "d"]), Gap.SPACE, Heading("e_f", 2))
    assert lines_of(*body, head=[TableRow(["g", "h"])]) == [
        *(r"g & h \\", r"\midrule", r"a & b \\", r"\midrule", r"c & d \\", r"\addlinespace[2pt]"),
        r"\multicolumn{2}{@{}l}{\emph{e\_f}} \\",
    ]
    assert lines_of(TableRow(["a", "b"])) == [r"a & b \\"]  # no head, and so no rule below it


def test_cells_with_a_form():
    assert lines_of(TableRow([Beside("x", 1), Beside("y", 3)])) == [r"x & \multirow{3}{*}{y} \\"]
    assert lines_of(TableRow([Raised("x"), TwoLines("u", "v")])) == [
        r"\raisebox{1.1ex}[0pt]{x} & \shortstack{u\\[-2pt]v} \\"
    ]


def test_a_label_is_stacked_where_there_is_room():
    assert lines_of(TableRow([Words("Hidden state", 1)])) == [r"Hidden state \\"]
    assert lines_of(TableRow([Words("Hidden state", 2)])) == [r"\multirow{2}{*}{\shortstack[l]{Hidden\\state}} \\"]


def test_a_table_is_wide_only_where_asked():
    parts = {"name": "t", "columns": "lc", "head": [], "body": [], "caption": "c"}
    assert r"\begin{table*}" in latex_table(Float(wide=True, **parts))
    narrow = latex_table(Float(wide=False, **parts))
    assert r"\begin{table}" in narrow
    assert r"\columnwidth" in narrow
    assert "t.csv" in narrow


def test_titles_span_columns_and_have_rules_below():
    # two columns of labels, then 3 and 1 columns: 3 to 5, and 6
    assert lines_of(spanning(2, [("A", 3), ("B", 1)])) == [
        r" &  & \multicolumn{3}{c}{A} & \multicolumn{1}{c}{B} \\",
        r"\cmidrule(lr){3-5}\cmidrule(lr){6-6}",
    ]
