"""A table of a user is read alike, or refused alike, by `evaluate`, by the loader `table`, by `new` and by `score`."""

import csv
import gzip
import io
import json

import polars as pl
import pytest

from dualread.apps.evaluate.tables import LogOptions, read_tables
from dualread.apps.new.data import look
from dualread.apps.score.lines import read_rows
from dualread.data.datasets import table
from dualread.data.datasets.base import load
from dualread.data.tables.contract import TableOptions
from dualread.errors import DataError

COLUMNS = ("id", "split", "image", "question", "reference_answers", "confidence")
ROWS = [
    ["q1", "train", "a.png", "Is there a lesion?", "yes", "0.9"],
    ["q2", "validation", "b.png", 'Größe, "of" it; all?', "the liver", "0.25"],
    ["q3", "test", "c.png", "Two\nlines?", "2", "1"],
    ["q4", "test", "c.png", "A \\ and a tab\tin it?", "no", "0"],
]


def delimited(rows, *, separator=",", columns=COLUMNS, end="\n", first="", **form):
    written = io.StringIO()
    writer = csv.writer(written, delimiter=separator, lineterminator=end, **form)
    writer.writerows([columns, *rows])
    return first + written.getvalue()


def objects(rows, columns=COLUMNS):
    return [dict(zip(columns, row, strict=True)) for row in rows]


def lines(rows, columns=COLUMNS):
    return "\n".join(map(json.dumps, objects(rows, columns)))


def parquet(**columns):
    written = io.BytesIO()
    given = {name: [row[k] for row in ROWS] for k, name in enumerate(COLUMNS)} | columns
    pl.DataFrame(given).write_parquet(written)
    return written.getvalue()


def with_(**changes):
    """The rows with other values in some columns."""
    return [
        [changes[name][k] if name in changes else value for name, value in zip(COLUMNS, row, strict=True)]
        for k, row in enumerate(ROWS)
    ]


QUOTED = {"quoting": csv.QUOTE_ALL}
ESCAPED = {"quoting": csv.QUOTE_ALL, "doublequote": False, "escapechar": "\\"}
# Files that hold these rows, whatever wrote them.
READ = {
    "plain.csv": delimited(ROWS),
    "windows.csv": delimited(ROWS, separator=";", end="\r\n").encode("cp1252"),
    "excel.tsv": delimited(ROWS, separator="\t", end="\r\n").encode("utf-16"),
    "mark.csv": delimited(ROWS).encode("utf-8-sig"),
    "packed.csv.gz": gzip.compress(delimited(ROWS).encode()),
    "quoted.csv": delimited(ROWS, **QUOTED),
    "spaces.csv": delimited(ROWS, columns=[f" {name} " for name in COLUMNS]),
    "blank.csv": "\n\n" + delimited(ROWS).replace("0.9\n", "0.9\n\n,,,,,\n"),
    "wide.csv": delimited([[*row, "", ""] for row in ROWS], columns=[*COLUMNS, "", ""]),
    "lines.jsonl": lines(ROWS),
    "lines.ndjson.gz": gzip.compress(lines(ROWS).encode()),
    "spaces.jsonl": lines(ROWS, [f" {name}" for name in COLUMNS]),
    "lines.json": lines(ROWS),
    "list.json": json.dumps(objects(ROWS), indent=1),
    "columns.json": json.dumps({name: [row[k] for row in ROWS] for k, name in enumerate(COLUMNS)}),
    "pandas.json": json.dumps({name: {i: row[k] for i, row in enumerate(ROWS)} for k, name in enumerate(COLUMNS)}),
    "mark.json.gz": gzip.compress(("\ufeff" + json.dumps(objects(ROWS))).encode()),
    "table.parquet": parquet(),
    "packed.parquet.gz": gzip.compress(parquet()),
    "lists.parquet": parquet(reference_answers=[[row[4]] for row in ROWS]),
}
# Files whose ids or gold answers say something else: {file: (content, ids, gold answers)}.
OTHERS = {
    "zeros.csv": (delimited(with_(id=["007", "7", "07", "1"])), ["007", "7", "07", "1"], None),
    "floats.csv": (delimited(with_(id=["7.0", "8.0", "9.0", "10.0"])), ["7.0", "8.0", "9.0", "10.0"], None),
    "whole.jsonl": (lines(with_(id=[7, 8, 9, 10])), ["7", "8", "9", "10"], None),
    "several.csv": (
        delimited(with_(reference_answers=["a#b", "c", "2", "no"])),
        None,
        [["a#b"], ["c"], ["2"], ["no"]],
    ),
    "brackets.csv": (
        delimited(with_(reference_answers=["[sic]", "(2)", "{3}", "a]"])),
        None,
        [["[sic]"], ["(2)"], ["{3}"], ["a]"]],
    ),
}
REFUSED = {
    "cut.csv": delimited(with_(id=["1.23E+17", "1.23E+17", "2.5E+17", "3"])),
    "cut.jsonl": lines(with_(id=["1.23E+17", "1.23E+17", "2.5E+17", "3"])),
    "cut.parquet": parquet(id=[1.23e17, 1.23e17, 2.5e17, 3.0]),
    "names.csv": delimited(ROWS, columns=["id", "id", *COLUMNS[2:]]),
    "names.jsonl": lines(ROWS, ["id", " id", *COLUMNS[2:]]),
    "names.parquet": parquet(**{" id": ["a"] * 4}),
    "keys.jsonl": '{"id": 1, "id": 2}\n',
    "ragged.csv": delimited([*ROWS, ["q5", "test", "c.png"]]),
    "ragged.json": json.dumps({"id": ["a"], "question": ["b", "c"]}),
    "lists.csv": delimited(with_(reference_answers=['["yes", "no"]', "c", "2", "no"])),
    "escaped.csv": delimited(with_(question=['a "b" c'] * 4), **ESCAPED),
    "two_ways.csv": "\n".join([",".join(COLUMNS), *(f"{name},test,c.png,Why?,no,.5" for name in ('"', "x", '"')), ""]),
    "encoding.csv": delimited(ROWS).encode() + b"\x81\xff,,,,,\n",
    "nul.csv": delimited(ROWS).encode("utf-16-le"),
    "empty.csv": "",
    "header.csv": ",".join(COLUMNS) + "\n",
    "blank.jsonl": "\n \n",
    "torn.csv.gz": gzip.compress(delimited(ROWS).encode())[:-20],
    "excel.csv": b"PK\3\4" + b"x" * 100,
    "parquet.csv": parquet(),
    "torn.parquet": parquet()[:-30],
    "text.parquet": delimited(ROWS),
    "number.json": "3",
    "deep.json": "[" * 3000,
    "torn.json": json.dumps(objects(ROWS))[:-9],
    "half.json": json.dumps(objects(with_(question=["\ud800", "a", "b", "c"]))),
    "table.xlsx": delimited(ROWS),
}
_ONLY_NAMED = {"id": "id"}  # other columns, such as the confidence, are then not read


def by_evaluate(path):
    own = {"sample_id": "id", "image_id": "image", "reference_answer": "reference_answers"}
    options = TableOptions(columns=own)
    answers = read_tables(path, None, None, options, LogOptions(), {})["predictions"].frame
    return answers.select("sample_id", "question", "reference_answer").rows()


def by_loader(path):
    settings = {"files": {"rows": path.name}, "columns": _ONLY_NAMED}
    found = []
    for split in ("train", "validation", "test"):
        found += load(table, path.parent, split, settings).rows
    return [(row.official_id, row.question, list(row.reference_answers)) for row in found]


def by_new(path):
    found = look(str(path), columns=_ONLY_NAMED, files={}, shares={}, download=None, bits=None, meant={}).rows
    every = [row for rows in found.values() for row in rows]
    return [(row.official_id, row.question, list(row.reference_answers)) for row in every]


def by_score(path):
    """A line that holds no question keeps its place among the results, and says what other readers refuse."""
    rows = read_rows(path)
    if problems := [row.problem for row in rows if row.question is None]:
        raise DataError(f"{path}: {problems[0]}")
    return [(str(row.id), row.question.question, None) for row in rows]


READERS = (by_evaluate, by_loader, by_new, by_score)


def wrote(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", READ)
def test_the_same_rows_however_they_are_written(tmp_path, name, reader):
    found = reader(wrote(tmp_path, name, READ[name]))
    assert [one[:2] for one in found] == [(row[0], row[3]) for row in ROWS]
    if reader is not by_score:
        assert [one[2] for one in found] == [[row[4]] for row in ROWS]


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", OTHERS)
def test_ids_and_gold_answers_mean_the_same(tmp_path, name, reader):
    content, ids, golds = OTHERS[name]
    found = reader(wrote(tmp_path, name, content))
    assert [one[0] for one in found] == (ids or [row[0] for row in ROWS])
    if reader is not by_score:
        assert [one[2] for one in found] == (golds or [[row[4]] for row in ROWS])


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", REFUSED)
def test_what_could_be_read_wrongly_is_refused_by_name(tmp_path, name, reader):
    if name.startswith("lists") and reader is by_score:
        pytest.skip("score reads no gold answers")
    with pytest.raises(DataError, match=name.partition(".")[0]):
        reader(wrote(tmp_path, name, REFUSED[name]))
