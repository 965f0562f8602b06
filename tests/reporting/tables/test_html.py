import re
from html import escape

import pytest

from dualread.reporting.tables._html import html_table
from dualread.reporting.tables._latex import (
    Beside,
    Float,
    Gap,
    Heading,
    Over,
    Raised,
    TableRow,
    TwoLines,
    Words,
    spanning,
)
from tests.reporting.tables import cases, grid
from tests.reporting.tables.cases import CASES
from tests.reporting.tables.reading import printed
from tests.reporting.tables.test_compile import ODD, tables


def table(*body, head=(), columns="lc", caption=""):
    return html_table(Float(name="x", wide=False, columns=columns, head=head, body=body, caption=caption))


def test_a_whole_table():
    head, body = [TableRow(["", r"AUROC$\uparrow$"])], TableRow(["PSR", r"$\mathbf{.952}_{\pm.004}$"])
    assert table(body, head=head, caption=r"Of $n=72$ answers, 5\%.") == "\n".join(
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


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (r"$.952_{\pm.004}$", "<td>.952<sub>±.004</sub></td>"),
        (
            r"$\mathbf{.75}_{\pm.1}{}^{\dagger\mathrm{sd}}$",
            '<td class="underpowered"><b>.75</b><sub>±.1</sub><sup>†sd</sup></td>',
        ),
        (r"$-.013$", "<td>−.013</td>"),
        (r"$+.130\,(<.001)$", "<td>+.130&thinsp;(&lt;.001)</td>"),
        (r"$.500$~$[.400, .600]$", "<td>.500&nbsp;[.400,&thinsp;.600]</td>"),
        (r"$1\!\times\!10^{-6}$", "<td>1×10<sup>−6</sup></td>"),
        (r"$t+2\rho$", "<td><i>t</i>+2ρ</td>"),
        (r"$t+\tau$", "<td><i>t</i>+τ</td>"),
        (r"$|\mathcal{E}|$", "<td>|ℰ|</td>"),
        (r"$\Delta$AUROC$\downarrow$", "<td>ΔAUROC↓</td>"),
        (r"$\mathrm{coef}=0$", "<td>coef=0</td>"),
        (r"$\{17, 29\}$", "<td>{17,&thinsp;29}</td>"),
        (r"$\beta=(0.9,0.95)$, $\kappa=0.1$, $\le20$", "<td>β=(0.9,&thinsp;0.95), κ=0.1, ≤20</td>"),
        (r"$B=10{,}000$", "<td><i>B</i>=10,000</td>"),
        (r"$\surd$ or $\times$", "<td>✓ or ×</td>"),
        ("---", '<td class="undefined">—</td>'),
        ("''", "<td>”</td>"),
        ("$256$--$128$", "<td>256–128</td>"),
        (r"incl.\ vision", "<td>incl. vision</td>"),
        (r"\texttt{0123abc}", "<td><code>0123abc</code></td>"),
        (r"\emph{a \textbf{b}}", "<td><em>a <b>b</b></em></td>"),
        (r"\quad fit", "<td>&emsp;fit</td>"),
        (r"a\_b \& c\# \$5 \{x\} 5\%", "<td>a_b &amp; c# $5 {x} 5%</td>"),
        (r"\textless{}b\textgreater{} \textasciitilde{}\textasciicircum{}", "<td>&lt;b&gt; ~^</td>"),
    ],
)
def test_a_cell(text, html):
    found = table(TableRow(["x", text]))
    assert html in found
    assert "<code>\\" not in found


@pytest.mark.parametrize(
    ("entry", "html"),
    [
        (TwoLines(r"$.4$\,/\,$.5$", r"---\,/\,---"), "<td>.4&thinsp;/&thinsp;.5<br>—&thinsp;/&thinsp;—</td>"),
        (Raised("PSR"), "<td>PSR</td>"),
        (Words("Hidden <state>", 1), "<td>Hidden &lt;state&gt;</td>"),
    ],
)
def test_a_cell_with_a_form(entry, html):
    assert html in table(TableRow(["x", entry]))


def test_a_cell_over_several_columns():
    head = [spanning(1, [("SLAKE", 2)]), TableRow(["a", "b", "c"])]
    head, rows, _ = grid.read(table(TableRow(["x", "$1$", "$2$"]), head=head, columns="lcc"))
    assert head[0][1] == {"tag": "th", "scope": "colgroup", "spans": (2, 1), "text": "SLAKE"}
    assert [row.keys() for row in (*head, *rows)] == [{0, 1}, {0, 1, 2}, {0, 1, 2}]


def test_a_label_beside_several_rows_takes_the_empty_places_below_it():
    body = (
        *(TableRow([Beside("a", 2), "$1$"]), TableRow(["", "$2$"]), TableRow(["b", "$3$"])),
        *(Gap.RULE, TableRow([Words("c d", 2), "$4$"]), Gap.SPACE, TableRow(["", "$5$"])),
    )
    found = table(*body)
    _, rows, _ = grid.read(found)
    texts = [[row[k]["text"] for k in sorted(row)] for row in rows]
    assert texts == [["a", "1"], ["2"], ["b", "3"], ["c d", "4"], ["5"]]
    assert rows[0][0]["spans"] == (1, 2)
    assert '<th scope="rowgroup" rowspan="2" class="left">c<br>d</th>' in found


def test_a_heading_opens_a_block_and_space_stands_above_a_group():
    lines = table(Heading("<Tiny>", 2), TableRow(["a", "$1$"]), Gap.SPACE, TableRow(["b", "$2$"])).splitlines()
    assert '<tr><th scope="rowgroup" colspan="2" class="left"><em>&lt;Tiny&gt;</em></th></tr>' in lines
    assert '<tr class="apart"><th scope="row" class="left">b</th><td>2</td></tr>' in lines


def test_a_rule_separates_two_bodies():
    assert table(TableRow(["a", "$1$"]), Gap.RULE, TableRow(["b", "$2$"])).count("<tbody>") == 2


def test_a_table_may_begin_with_a_heading_and_have_no_head():
    head, rows, _ = grid.read(table(Heading("One", 2), Gap.RULE, TableRow(["a", "text"]), columns="lp"))
    assert (head, len(rows)) == ([], 2)


def test_columns_keep_their_side():
    lines = table(TableRow(["x", "y", "z"]), columns="lrl").splitlines()
    assert lines[-3] == '<tr><th scope="row" class="left">x</th><td class="right">y</td><td class="left">z</td></tr>'
    assert '<td colspan="2">both</td>' in table(TableRow(["x", Over("both", 2)]), columns="lrr")  # centered


def test_an_unknown_command_is_shown():
    assert "<code>\\textcolor</code>red5 &lt; 6" in table(TableRow(["x", r"\textcolor{red}{5 < 6}"]))


def test_markup_in_a_label_is_text():
    assert "&lt;script&gt;" in table(TableRow(["<script>", "1"]))


def test_every_table_has_one_html_table_per_float_and_no_unknown_command():
    for name, found in tables().items():
        assert found.html.count("<table>") == found.tex.count(r"\begin{tabular*}"), name
        assert [part[:7] for part in found.html.split("\n\n")] == ["<table>"] * len(found.floats), name
        assert "<code>\\" not in found.html, name


def test_what_people_call_things_is_printed_as_they_wrote_it():
    assert escape(ODD, quote=False) in tables()["main (odd)"].html


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.source])
def test_every_printed_number_of_the_paper_is_in_its_row_and_column(name):
    tex = cases.paper(name).tex
    _, rows, _ = grid.read(cases.paper(name).html)
    lines = tex.splitlines()
    body = [line for line in lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")] if line.endswith(r"\\")]
    assert len(rows) == len(body)
    n = 0
    for line, row in zip(body, rows, strict=True):
        if line.startswith(r"\multicolumn"):
            continue
        for column, cell in enumerate(re.split(" & ", line.removesuffix(r" \\"))):
            if expected := printed(cell):
                assert grid.numbers(row[column]["text"]) == expected, (line, column)
                n += len(expected)
    assert n == sum(len(printed(line)) for line in body)
    assert n > 10
