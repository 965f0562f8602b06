"""What all tables of metrics have in common. Where a cell stands is read off the labels beside and above it.

The words of the tables are in words.txt.
"""

import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from dualread.plugins import known, load
from dualread.reporting.tables._latex import text as latex
from dualread.reporting.tables._sheet import Sheet
from dualread.reporting.tables.cells import METRICS_CSV
from dualread.reporting.tables.entries import TableRow
from dualread.reporting.tables.values import Key, summarize
from dualread.schema.tables import NULL_GROUP
from tests.golden import check
from tests.reporting.tables import cases
from tests.reporting.tables.cases import CASES
from tests.reporting.tables.layouts import PAPER_METHODS, layout, metrics
from tests.reporting.tables.synthetic import (
    DERIVED,
    OF_ACTOR,
    build,
    cells_of,
    rows_of,
)
from tests.study.embedded import EMBEDDED

SHEETS = {name: sheet for name in known("tables") if isinstance(sheet := load("tables", name).build, Sheet)}
OF_THE_PAPER = [name for name, case in CASES.items() if case.source]
LOW_IS_GOOD = ("ece15", "brier", "aurc", "hce90")
# Of these, no value is better than another, or all methods of an actor have the same.
NEVER_BOLD = re.compile(
    "accuracy|cost_|vrs|vbr|.*decisive_pairs|.*_images|paired_delta|retained|parse_rate|unique|endpoint|.*_at_risk|"
    "calibration_|answers_changed|confidence_entropy|shuffled_accuracy|mean_confidence|confidence_drop|reports|claims|"
    "supported_on_both"
)


def test_the_words_of_all_tables():
    """All lines of each table but its rows, each line once: caption, head, headings, separators; and one row."""
    found, apart = {}, (r"\multicolumn", r"\addlinespace", r"\midrule")
    for name in CASES:
        lines = build(name, rows_of(name)).tex.splitlines()[1:]
        n = lines.index(r"\midrule")
        row = next(line for line in lines[n:] if line.endswith(r"\\") and not line.startswith(apart))
        shown = [*lines[:n], *(line for line in lines[n:] if line.startswith(apart) or line is row)]
        found[name] = "\n".join(dict.fromkeys(shown))
    check(Path(__file__).with_name("words.txt"), found)


def test_every_sheet_has_the_name_of_its_file():
    names = {name: sheet.name for name, sheet in SHEETS.items()}
    assert names == {name: name for name in names}
    assert set(CASES) < set(names)


def test_the_tables_of_the_paper_come_first_and_in_its_order():
    assert [name for name in EMBEDDED["tables"] if name not in ("base_models", "branches")][:13] == [
        *("main", "cascade", "sc_tradeoff", "hparams", "data", "channel", "paired", "ood_acc", "calib"),
        *("reliability", "ccg_ood", "ccg", "ccg_denom"),
    ]


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_every_published_cell_is_read_back_in_its_place(name):
    values, found = cases.published_values(name), cases.read(name, cases.paper(name))
    measured = {key: text for key, text in found.items() if key not in values}
    assert {key: found[key] for key in values} == {key: cases.as_printed(key, value) for key, value in values.items()}
    # Nothing else is printed, but that the paper did not measure costs.
    assert set(measured.values()) <= {"---"}
    assert all(key.metric.startswith("cost_") for key in measured)
    assert "dagger" not in cases.paper(name).tex


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_the_file_has_each_printed_cell_with_all_its_digits(name):
    values, found = cases.published_values(name), cases.read(name, cases.paper(name))
    rows = {Key(*(row[of] for of in Key._fields[:5])): row for row in cases.paper(name).cells.iter_rows(named=True)}
    assert len(rows) == len(cases.paper(name).cells)
    assert {key: row["printed"] for key, row in rows.items()} == {key: found[key] for key in rows}
    assert all(
        (rows[key]["mean"], rows[key]["std"]) == (values[key].mean, values[key].std) for key in rows.keys() & values
    )
    # What is not in the file is an accuracy that stands beside several methods of its actor, and is there once.
    assert {(key.metric, key.method) for key in found.keys() - rows} == (
        {("accuracy", of) for of in ("p_true", "self_probing", "prompt_ensemble", "saplma", "bicr", "dualread")}
        if name == "main"
        else set()
    )


@pytest.mark.parametrize("name", CASES)
def test_bold_is_the_best_printed_value_of_each_backbone_and_column_but_for_nulls(name):
    table = cases.paper(name) if CASES[name].source else build(name, rows_of(name))
    nulls = {of.name for of in CASES[name].layout.methods if of.group == NULL_GROUP}
    cells = table.cells.filter(~pl.col("method").is_in(nulls), pl.col("printed") != "---")
    for of_column in cells.partition_by("backbone", "dataset", "subset", "metric"):
        metric = of_column["metric"][0]
        printed = [float(text.partition("±")[0]) for text in of_column["printed"]]
        best = None if NEVER_BOLD.match(metric) else min(printed) if metric in LOW_IS_GOOD else max(printed)
        assert of_column["bold"].to_list() == [value == best for value in printed], metric
    assert not table.cells.filter(pl.col("method").is_in(nulls))["bold"].any()
    assert cases.read_bold(name, table) == {
        Key(*key) for key in table.cells.filter("bold").select(Key._fields[:5]).iter_rows()
    }


@pytest.mark.parametrize("name", [name for name, sheet in SHEETS.items() if sheet.csv is METRICS_CSV])
def test_a_study_without_any_value_has_dashes_and_reasons(name):
    study = CASES[name].layout if name in CASES else layout(PAPER_METHODS)
    table = SHEETS[name](summarize(metrics(), seeds=study.seeds), study)
    assert set(table.cells["printed"]) <= {"---"}
    assert None not in set(table.cells["reason"])
    assert len(table.cells) == 0 or f"{latex(name)}.csv has the reason" in table.tex
    assert table.html.startswith("<table>")


def test_a_label_beside_no_rows_is_left_out():
    table = SHEETS["reliability"](summarize(metrics(), seeds={}), layout([]))
    assert len(table.cells) == 0
    assert [line for line in table.floats[0].body if isinstance(line, TableRow)] == []


@pytest.mark.parametrize("name", CASES)
def test_each_value_stands_in_its_place(name):
    rows = rows_of(name)
    values = summarize(metrics(*rows), seeds=CASES[name].layout.seeds)
    cells = {key: text for key, text in cells_of(name, rows).items() if key.metric not in DERIVED}
    different = [text for key, text in cells.items() if key.metric not in OF_ACTOR]
    assert len(set(different)) == len(different)
    rates = {key: values[key._replace(metric="imputed_share")] for key in cells if key.metric == "parse_rate"}
    expected = {key: replace(rates[key], mean=1 - rates[key].mean) if key in rates else values[key] for key in cells}
    assert cells == {key: cases.as_printed(key, value) for key, value in expected.items()}
