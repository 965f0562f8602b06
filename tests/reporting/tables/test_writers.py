"""Entries as text for the CSV file, as LaTeX and as HTML; and the lines of a whole table."""

import re
from html import escape

import pytest
from hypothesis import given

from dualread.reporting.tables._html import html_table
from dualread.reporting.tables._latex import latex_table, text
from dualread.reporting.tables.entries import (
    DASH,
    DITTO,
    INDENT,
    Beside,
    Code,
    Float,
    Gap,
    Heading,
    Interval,
    Joined,
    Number,
    Over,
    PValues,
    Raised,
    TableRow,
    TwoLines,
    plain,
)
from tests.drawn import few, texts
from tests.reporting.tables.test_compile import ODD, tables

_COMMAND = re.compile(
    r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}|\\[&%$#_{},]"
    r"|\$(?:[^$\\]|\\[A-Za-z]+)*\$|(?<!\\)~"
)
WEAK = Number(".75", ".1", is_bold=True, short="sd")
ENTRIES = [
    (Number(".952", ".004"), ".952±.004", r"$.952_{\pm.004}$", "<td>.952<sub>±.004</sub></td>"),
    (
        *(WEAK, ".75±.1†sd", r"$\mathbf{.75}_{\pm.1}{}^{\dagger\mathrm{sd}}$"),
        '<td class="underpowered"><b>.75</b><sub>±.1</sub><sup>†sd</sup></td>',
    ),
    (Number(".1", by_chance=True), ".1°", r"$.1{}^{\circ}$", "<td>.1<sup>°</sup></td>"),
    (Number("-.013"), "-.013", "$-.013$", "<td>−.013</td>"),
    (Interval("-.100", "+.097"), "[-.100, +.097]", "$[-.100, +.097]$", "<td>[−.100,&thinsp;+.097]</td>"),
    (PValues(["≤.002", "<.001"]), "(≤.002; <.001)", r"$(\le .002;\,<.001)$", "<td>(≤.002;&thinsp;&lt;.001)</td>"),
    (TwoLines(Number("1"), "b"), "1 b", r"\shortstack{$1$\\[-2pt]b}", "<td>1<br>b</td>"),
    (Joined([Number("1"), "–", Number("2"), "%"]), "1–2%", r"$1$--$2$\%", "<td>1–2%</td>"),
    (
        Joined(["a", "\N{NO-BREAK SPACE}", "b\N{THIN SPACE}/"]),
        "a b\N{THIN SPACE}/",
        r"a~b\,/",
        "<td>a&nbsp;b&thinsp;/</td>",
    ),
    (Code("0a_b"), "0a_b", r"\texttt{0a\_b}", "<td><code>0a_b</code></td>"),
    (f"{INDENT}fit", f"{INDENT}fit", r"\quad fit", "<td>&emsp;fit</td>"),
    (DASH, "---", "---", '<td class="undefined">—</td>'),
    (DITTO, "”", "''", "<td>”</td>"),
    ("Acc.ʳᵉᵃˡ↑", "Acc.ʳᵉᵃˡ↑", r"Acc.$^{\mathrm{real}}\uparrow$", "<td>Acc.<sup>real</sup>↑</td>"),
    ("CE²↓", "CE²↓", r"CE$^2\downarrow$", "<td>CE<sup>2</sup>↓</td>"),
    ("2𝑡+ρ, 𝑛=10,000.", "2𝑡+ρ, 𝑛=10,000.", r"$2t+\rho$, $n=10{,}000$.", "<td>2<i>t</i>+ρ, <i>n</i>=10,000.</td>"),
    ("lr 1.2×10⁻⁶", "lr 1.2×10⁻⁶", r"lr $1.2\times10^{-6}$", "<td>lr 1.2×10<sup>−6</sup></td>"),
    ("ECE-15↓/|ℰ|", "ECE-15↓/|ℰ|", r"ECE-15$\downarrow$/$|\mathcal{E}|$", "<td>ECE-15↓/|ℰ|</td>"),
    ("Δ𝑡 < 5%", "Δ𝑡 < 5%", r"$\Delta t$ \textless{} 5\%", "<td>Δ<i>t</i> &lt; 5%</td>"),
]


@pytest.mark.parametrize(("entry", "csv", "latex", "html"), ENTRIES)
def test_an_entry(entry, csv, latex, html):
    assert plain(entry) == csv
    assert lines_of(TableRow(["x", entry])) == [rf"x & {latex} \\"]
    assert html in table(TableRow(["x", entry]))


@few
@given(texts)
def test_any_text_in_latex_is_plain_and_can_be_written(words):
    shown = text(words)
    shown.encode()  # as every table is written
    assert not re.search(r"[\\&%$#_{}~^<>]", _COMMAND.sub("", shown))
    assert not [character for character in shown if ord(character) < 32 or 127 <= ord(character) < 160]


def test_nothing_is_left_that_latex_reads_as_a_command():
    assert text(r"a_b & 5% of $x$ #1 {y} ~ ^ \z") == (
        r"a\_b \& 5\% of \$x\$ \#1 \{y\} \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )
    assert text("P(True)\n<ok>") == r"P(True) \textless{}ok\textgreater{}"


def table(*body, head=(), columns="lc", caption=""):
    return html_table(Float(name="x", wide=False, columns=columns, head=head, body=body, caption=caption))


def lines_of(*body, head=(), **optional):
    """The lines that LaTeX gets between the rules at the top and at the bottom."""
    parts = {"name": "t", "wide": False, "columns": "lc", "caption": "c", **optional}
    lines = latex_table(Float(head=head, body=body, **parts)).splitlines()
    return lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]


def test_a_whole_table():
    head, body = [TableRow(["", "AUROC↑"])], TableRow(["PSR", Number(".952", ".004", is_bold=True)])
    assert table(body, head=head, caption="Of 𝑛=72 answers, 5%.") == "\n".join(
        [
            "<table>",
            "<caption><span>Of <i>n</i>=72 answers, 5%.</span></caption>",
            "<thead>",
            '<tr><td class="left"></td><th scope="col">AUROC↑</th></tr>',
            "</thead>",
            "<tbody>",
            '<tr><th scope="row" class="left">PSR</th><td><b>.952</b><sub>±.004</sub></td></tr>',
            "</tbody>",
            "</table>",
        ]
    )


def test_rows_and_what_separates_them():
    body = (TableRow(["a", "b"]), Gap.RULE, TableRow(["c", "d"]), Gap.SPACE, Heading("e_<f>", 2))
    assert lines_of(*body, head=[TableRow(["g", "h"])]) == [
        *(r"g & h \\", r"\midrule", r"a & b \\", r"\midrule", r"c & d \\", r"\addlinespace[2pt]"),
        r"\multicolumn{2}{@{}l}{\emph{e\_\textless{}f\textgreater{}}} \\",
    ]
    assert lines_of(TableRow(["a", "b"])) == [r"a & b \\"]  # no head, and so no rule below it
    lines = table(*body, TableRow(["i", "1"])).splitlines()
    assert lines.count("<tbody>") == 2
    assert '<tr class="apart"><th scope="rowgroup" colspan="2" class="left"><em>e_&lt;f&gt;</em></th></tr>' in lines


def test_labels_beside_several_rows():
    assert lines_of(TableRow([Beside("x", 1), Beside("y", 3)])) == [r"x & \multirow{3}{*}{y} \\"]
    assert lines_of(TableRow([Raised("x"), "v"])) == [r"\raisebox{1.1ex}[0pt]{x} & v \\"]
    assert lines_of(TableRow([Beside("Hidden state", 1, by_word=True)])) == [r"Hidden state \\"]
    assert lines_of(TableRow([Beside("Hidden state", 2, by_word=True)])) == [
        r"\multirow{2}{*}{\shortstack[l]{Hidden\\state}} \\"
    ]
    body = (
        *(TableRow([Beside("a", 2), "1"]), TableRow(["", "2"]), TableRow(["b", "3"])),
        *(Gap.RULE, TableRow([Beside("c d", 2, by_word=True), "4"]), Gap.SPACE, TableRow(["", "5"])),
    )
    assert [line for line in table(*body).splitlines() if line.startswith("<tr")] == [
        '<tr><th scope="rowgroup" rowspan="2" class="left">a</th><td>1</td></tr>',
        "<tr><td>2</td></tr>",
        '<tr><th scope="row" class="left">b</th><td>3</td></tr>',
        '<tr><th scope="rowgroup" rowspan="2" class="left">c<br>d</th><td>4</td></tr>',
        '<tr class="apart"><td>5</td></tr>',
    ]


def test_titles_span_columns_and_have_rules_below():
    # two columns of labels, then 3 and 1 columns: 3 to 5, and 6
    row = TableRow(["", "", Over("A", 3), Over("B", 1)], ruled=True)
    assert lines_of(row) == [
        r" &  & \multicolumn{3}{c}{A} & \multicolumn{1}{c}{B} \\",
        r"\cmidrule(lr){3-5}\cmidrule(lr){6-6}",
    ]
    html = table(head=[row, TableRow(list("abcdef"))], columns="llcccc")
    assert '<th scope="colgroup" colspan="3">A</th><th scope="col">B</th></tr>' in html


def test_columns_keep_their_side():
    lines = table(TableRow(["x", "y", "z"]), columns="lrl").splitlines()
    assert lines[-3] == '<tr><th scope="row" class="left">x</th><td class="right">y</td><td class="left">z</td></tr>'
    assert '<td colspan="2">both</td>' in table(TableRow(["x", Over("both", 2)]), columns="lrr")  # centered


def test_every_table_has_one_html_table_per_float_and_labels_as_they_were_written():
    for name, found in tables().items():
        assert found.html.count("<table>") == found.tex.count(r"\begin{tabular*}"), name
        assert [part[:7] for part in found.html.split("\n\n")] == ["<table>"] * len(found.floats), name
        assert escape(ODD, quote=False) in found.html or "(odd)" not in name, name
