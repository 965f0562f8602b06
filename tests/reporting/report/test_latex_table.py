import re
from html import escape

import pytest

from dualread.reporting.report.latex_table import convert
from tests.reporting.report import grid
from tests.reporting.tables import cases
from tests.reporting.tables.cases import CASES
from tests.reporting.tables.reading import printed
from tests.reporting.tables.test_compile import ODD, tables


def table(body, columns="lc", caption=""):
    return "\n".join(
        [
            r"\begin{table}[!t]",
            *([rf"\caption{{{caption}}}"] if caption else []),
            r"\label{tab:x}",
            r"\setlength{\tabcolsep}{0pt}",
            rf"\begin{{tabular*}}{{\columnwidth}}{{@{{\extracolsep{{\fill}}}}{columns}@{{}}}}",
            body,
            r"\end{tabular*}",
            r"\end{table}",
        ]
    )


def only(tex):
    (found,) = convert(tex)
    return found


def test_a_whole_table():
    body = r"\toprule & AUROC$\uparrow$ \\ \midrule PSR & $\mathbf{.952}_{\pm.004}$ \\ \bottomrule"
    assert only(table(body, caption=r"Of $n=72$ answers, 5\%.")).html == "\n".join(
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
    ("tex", "html"),
    [
        (r"$.952_{\pm.004}$", "<td>.952<sub>±.004</sub></td>"),
        (
            r"$\mathbf{.75}_{\pm.1}{}^{\dagger}$",
            '<td class="underpowered"><b>.75</b><sub>±.1</sub><sup>†</sup></td>',
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
        (r"\shortstack[l]{Hidden\\state}", "<td>Hidden<br>state</td>"),
        (r"\shortstack{$.4$\,/\,$.5$\\---\,/\,---}", "<td>.4&thinsp;/&thinsp;.5<br>—&thinsp;/&thinsp;—</td>"),
        ("a % not printed \\emph{\n", "<td>a</td>"),
    ],
)
def test_a_cell(tex, html):
    found = only(table(rf"\midrule x & {tex} \\ \bottomrule"))
    assert html in found.html
    assert found.unknown == ()


def test_a_cell_over_several_columns():
    body = (
        r"\toprule & \multicolumn{2}{c}{SLAKE} \\ \cmidrule(lr){2-3} a & b & c \\ \midrule x & $1$ & $2$ \\ \bottomrule"
    )
    head, rows, _ = grid.read(only(table(body, "l*{2}{c}")).html)
    assert head[0][1] == {"tag": "th", "scope": "colgroup", "spans": (2, 1), "text": "SLAKE"}
    assert [row.keys() for row in (*head, *rows)] == [{0, 1}, {0, 1, 2}, {0, 1, 2}]


def test_a_cell_over_several_rows_takes_the_empty_places_below_it_and_no_others():
    body = r"h & i \\ \midrule \multirow{3}{*}{a} & $1$ \\ & $2$ \\ b & $3$ \\ \midrule \multirow{2}{*}{c} & $4$ \\"
    found = only(table(body))
    _, rows, _ = grid.read(found.html)
    assert [[row[k]["text"] for k in sorted(row)] for row in rows] == [["a", "1"], ["2"], ["b", "3"], ["c", "4"]]
    assert rows[0][0]["spans"] == (1, 2)  # three were asked for; the third row has a label of its own
    assert rows[3][0]["spans"] == (1, 1)  # its section has one row
    assert '<th scope="rowgroup" rowspan="2" class="left">a</th>' in found.html


def test_a_heading_opens_a_block_and_space_stands_above_a_group():
    body = (
        r"h & i \\ \midrule \multicolumn{2}{@{}l}{\emph{Tiny}} \\ a & $1$ \\ \addlinespace[2pt] b & $2$ \\ \bottomrule"
    )
    lines = only(table(body)).html.splitlines()
    assert '<tr><th scope="rowgroup" colspan="2" class="left"><em>Tiny</em></th></tr>' in lines
    assert '<tr class="apart"><th scope="row" class="left">b</th><td>2</td></tr>' in lines


def test_a_table_may_begin_with_a_heading_and_have_no_head():
    body = r"\toprule \multicolumn{2}{@{}l}{One} \\ \midrule a & text \\ \bottomrule"
    head, rows, _ = grid.read(only(table(body, r"lp{0.67\textwidth}")).html)
    assert (head, len(rows)) == ([], 2)


def test_columns_keep_their_side():
    lines = only(table(r"a & b & c \\ \midrule x & y & \multicolumn{1}{l}{z} \\", "lrc")).html.splitlines()
    assert lines[-3] == '<tr><th scope="row" class="left">x</th><td class="right">y</td><td class="left">z</td></tr>'


def test_an_unknown_command_is_shown_and_named():
    found = only(table(r"h & i \\ \midrule x & \textcolor{red}{5 < 6} \\"))
    assert "<code>\\textcolor</code>red5 &lt; 6" in found.html
    assert found.unknown == (r"\textcolor",)


def test_markup_in_a_label_is_text():
    assert "&lt;script&gt;" in only(table(r"h & i \\ \midrule <script> & 1 \\")).html


def test_every_float_is_a_table_and_other_text_is_none():
    one = table(r"a & b \\ \midrule x & $1$ \\")
    assert len(convert(f"{one}\n\\clearpage\n{one}")) == 2
    assert convert("no table") == []
    with pytest.raises(ValueError, match="closes"):
        convert(one.replace("@{}}", "@{}"))


def test_no_command_of_our_tables_is_unknown():
    for name, tex in tables().items():
        parts = convert(tex)
        assert parts, name
        assert [part.unknown for part in parts] == [()] * len(parts), name


def test_what_people_call_things_is_printed_as_they_wrote_it():
    parts = convert(tables()["main (odd)"])
    assert escape(ODD, quote=False) in "".join(part.html for part in parts)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.source])
def test_every_printed_number_of_the_paper_is_in_its_row_and_column(name):
    tex = cases.paper(name).tex
    found = only(tex)
    assert found.unknown == ()
    _, rows, _ = grid.read(found.html)
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
