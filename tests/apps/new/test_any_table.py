"""Whatever a table of questions holds, `dualread new` reads all of its rows or refuses it in a sentence."""

import csv
import gzip
import json
import random

import polars as pl
import pytest

from dualread.apps.new.data import look
from dualread.data.datasets import table
from dualread.data.datasets.base import load
from dualread.data.questions.audit import refuse_broken
from dualread.errors import DualReadError
from dualread.grading.canonical import canonical

SPLITS = ("train", "validation", "test")
ORGANS = ["liver", "lung", "heart", "kidney", "spleen", "colon", "brain", "skin", "bone", "eye", "ear"]
ODD = [
    *(None, "", " ", 0, 1, 2.0, 2.5, -3, True, False, "True", "no", "007", "7", "A", "(b)", "C."),
    *("<image>", "x" * 3000, [], ["a"], [1], [None], {}, {"A": "liver", "B": "lung"}, "['liver', 'lung']"),
    *("[broken", "a#b", "\x1b[31m", "\ud83d", float("nan"), float("inf"), 10**30, "2.0", "images/a.png"),
    *("/etc/passwd", "https://a.b/c.png", "..", "\u200b", "é"),
    *([{"from": "human", "value": "<image>\nWhich?"}, {"from": "gpt", "value": "liver"}], [{"role": "user"}], [["a"]]),
    *({"bytes": None, "path": "a.png"}, {"path": 3}, "iVBORw0KGgo=", "data:image/png;base64,AAAA", "CLOSED", "val"),
]
COLUMNS = ["id", "answer_type", "options", "image_id", "donor_id", "modality", "location", "conversations", "note", ""]


def _row(k, rng, kind):
    options = rng.sample(ORGANS, rng.choice([2, 3, 4, 5, 10]))
    place = rng.randrange(len(options))
    gold = {"text": options[place], "letter": "ABCDEFGHIJ"[place], "first is 0": place, "first is 1": str(place + 1)}
    gold["open"] = rng.choice(ORGANS)
    row = {"question": f"Which is {k}?", "reference_answers": gold[kind], "image": f"i/{k}.png", "split": SPLITS[k % 3]}
    return row | ({} if kind == "open" else {"options": options}), options[place] if kind != "open" else gold["open"]


def _write(folder, rows, rng):
    """Write the rows in one of the formats; False where the format cannot hold them."""
    form = rng.choice(["jsonl", "JSON", "ndjson.gz", "parquet", "csv", "TSV"])
    file = folder / f"rows.{form}"
    if form.lower() in ("csv", "tsv"):
        columns = list(dict.fromkeys(name for row in rows for name in row))
        with file.open("w", newline="", encoding="utf-8", errors="replace") as stream:
            writer = csv.writer(stream, delimiter="\t" if form == "TSV" else ",")
            writer.writerow(columns)
            for row in rows:
                cells = [row.get(name) for name in columns]
                writer.writerow("#".join(map(str, one)) if isinstance(one, list) else one for one in cells)
        return True
    if form == "parquet":
        try:
            pl.DataFrame(rows, strict=False, infer_schema_length=None).write_parquet(file)
        except Exception:  # polars has no type for some mixtures
            return False
        return True
    lines = [json.dumps(row) for row in rows]
    text = "[" + ",\n".join(lines) + "]" if form == "JSON" else "\n".join(lines) + "\n"
    file.write_bytes(gzip.compress(text.encode()) if form.endswith("gz") else text.encode())
    return True


def _attempt(folder, rng, kind, n_odd):
    """Look at a random table; return the golds that were read, and those that were meant; None if it is refused."""
    pairs = [_row(k, rng, kind) for k in range(rng.choice([3, 12, 30]))]
    rows, golds = [row for row, _ in pairs], [gold for _, gold in pairs]
    for _ in range(n_odd):
        name = rng.choice([*rows[0], *COLUMNS])
        for row in rng.choice([rows, rows[:1], rng.sample(rows, 2)]):
            row[name] = rng.choice(ODD)
    for old in folder.iterdir():
        old.unlink()
    if not _write(folder, rows, rng):
        return None
    meant = {"gold": rng.choice([None, "letter"]) if n_odd else None, "booleans": rng.choice([None, "yes/no"])}
    meant["alternatives"] = "#"  # as `_write` has lists in a .csv
    try:
        found = look(str(folder), columns={}, files={}, shares={}, download=None, bits=None, meant=meant)
        loaded = [load(table, found.folder, split, found.settings) for split in SPLITS]
        for one in loaded:
            refuse_broken(one, {})
    except DualReadError:
        return None
    assert all(line.isprintable() for line in found.lines)
    read = [row for one in loaded for row in one.rows]
    assert len(read) == len(rows)  # no row is lost, or read twice
    looked = [row.reference_answers for of in found.rows.values() for row in of]
    assert [row.reference_answers for row in read] == looked
    for row in read:
        assert not row.options or set(map(canonical, row.options)) & set(map(canonical, row.reference_answers))
    by_number = sorted(read, key=lambda row: row.source_row)
    return [row.reference_answers for row in by_number], golds


@pytest.mark.parametrize("seed", range(8))
def test_a_whole_table_keeps_its_gold_answers_in_any_form(tmp_path, seed):
    rng = random.Random(seed)
    for kind in ("text", "letter", "first is 0", "first is 1", "open"):
        found = _attempt(tmp_path, rng, kind, n_odd=0)
        # Numbers have to be asked for where neither the first nor the last option is ever meant.
        if found is not None:
            assert found[0] == [(gold,) for gold in found[1]]
        else:
            assert kind.startswith("first")


@pytest.mark.parametrize("seed", range(20))
def test_an_odd_table_is_read_as_a_whole_or_refused_in_a_sentence(tmp_path, seed):
    rng = random.Random(1000 + seed)
    for _ in range(3):
        _attempt(tmp_path, rng, rng.choice(["text", "letter", "first is 0", "open"]), n_odd=rng.randint(1, 4))
