"""Whatever a table holds, it is evaluated with all its rows, or refused with a sentence; numbers are scikit-learn's."""

import csv
import gzip
import io
import json
import random

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score

import dualread
from dualread.errors import DualReadError
from dualread.evaluation.metrics import hce

SEEDS = 3
HOSTILE = (
    *("", " ", "nan", "NaN", "None", "null", "0", "1", "1.0", "true", "False", "yes", "No", ".9", "0.9", "-1", "1e400"),
    *("85%", "0,9", "inf", "-inf", "A", "(b)", "C. liver", "liver", "left, right", "a|b", "a / b", "a#b", "['a', 'b']"),
    *(
        *('["a", "b"]', "[a, b]", "('a',)", "[" * 50, '"', '\\"', "'", ";", "\t", "\n", "\r\n", "=1+1", "@x"),
        *("\x1b[31m", "é"),
    ),
    *(
        *("007", "7", "7.0", "1.23E+17", "12345678901234567890", "yes/no", "number", "open", "closed"),
        *("$\\frac{", "\ufeff"),
    ),
    *("\u200b", "<b>", "{}", '{"a": 1}', "x" * 300),
)
NAMES = (
    *("confidence", "correct", "answer", "reference_answer", "image_id", "question", "answer_type", "method"),
    *("sample_id", "dataset", "split", "question_id", "", "note", "confidence", "Confidence", "A"),
)
TAME = {
    "confidence": lambda draw: draw.choice(["0.9", ".25", "1", "0", str(draw.random())]),
    "correct": lambda draw: draw.choice("01"),
    "sample_id": lambda draw: str(draw.getrandbits(60)),
    "answer": lambda draw: draw.choice(["yes", "no", "liver", "2", "left, right"]),
    "reference_answer": lambda draw: draw.choice(["yes", "no", "liver#hepatic", "2", "['left']"]),
    "answer_type": lambda draw: draw.choice(["open", "CLOSED", "yes/no", "other"]),
}


def drawn_table(draw):
    names = ["confidence", "correct", *draw.sample(NAMES[2:-3], draw.randint(0, 5))]
    if draw.random() < 0.2:
        names = draw.sample(NAMES, draw.randint(1, 8))
    tame = {name: draw.random() < 0.9 for name in names}
    wild = [draw.choice(HOSTILE) for _ in range(3)]  # few, so that a column may be of one form

    def value(name):
        if tame[name] and name in TAME:
            return TAME[name](draw)
        return draw.choice(wild if draw.random() < 0.7 else HOSTILE)

    return names, [[value(name) for name in names] for _ in range(draw.choice([0, 1, 2, 5, 30]))]


def as_file(draw, names, rows, folder, damaged=0.1):
    """Return the path of a file that holds the table."""
    kind = draw.choice([".csv", ".tsv", ".json", ".jsonl", ".csv.gz"])
    if "json" in kind:
        records = [dict(zip(names, row, strict=True)) for row in rows]
        text = json.dumps(records) if kind == ".json" else "\n".join(map(json.dumps, records))
    else:
        written = io.StringIO()
        escape = {"doublequote": False, "escapechar": "\\"} if draw.random() < 0.1 else {}
        quoting = draw.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
        separator = "\t" if kind == ".tsv" else draw.choice(",;")
        csv.writer(written, delimiter=separator, quoting=quoting, **escape).writerows([names, *rows])
        text = written.getvalue()
    content = text.encode(draw.choice(["utf-8", "utf-8-sig", "utf-16"]), errors="replace")
    if draw.random() < damaged:
        place = draw.randrange(len(content) + 1)
        content = content[:place] + draw.randbytes(3) + content[place + draw.randrange(3) :]
    path = folder / f"any{kind}"
    path.write_bytes(gzip.compress(content) if kind.endswith("gz") else content)
    return path


def as_frame(draw, names, rows):
    """Return the table in memory, in one of the usual forms."""
    columns = list(zip(*rows, strict=True)) or [()] * len(names)
    kind = draw.choice(["pandas", "polars", "mapping", "records", "guessed", "nullable"])
    if kind == "records":
        return [dict(zip(names, row, strict=True)) for row in rows]
    if kind == "mapping":
        return dict(zip(names, columns, strict=True))
    if kind == "polars":
        return pl.DataFrame(dict(zip(names, columns, strict=True)))
    frame = pd.DataFrame([list(row) for row in rows], columns=names)
    if kind == "pandas" or frame.columns.has_duplicates:
        return frame
    frame = frame.apply(lambda column: pd.to_numeric(column, errors="coerce") if draw.random() < 0.5 else column)
    return frame.convert_dtypes() if kind == "nullable" else frame


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_table_is_evaluated_or_refused(tmp_path, seed):
    draw = random.Random(seed)
    n_evaluated, refused = 0, []
    for _ in range(75):
        names, rows = drawn_table(draw)
        table = as_file(draw, names, rows, tmp_path) if draw.random() < 0.6 else as_frame(draw, names, rows)
        # Mostly a column that the table has; another one is refused.
        columns = {"answer": "A"} if draw.random() < (0.5 if "A" in names else 0.1) else {}
        try:
            found = dualread.evaluate(table, replicates=draw.choice([0, 39]), columns=columns)
        except DualReadError as error:
            refused.append(str(error))
            continue
        n_evaluated += 1
        n = sum(len(joined.answers) for cells in found.parts for joined in cells.methods.values())
        blank = sum(not any(cell.strip("\ufeff \t\r\n\xa0") for cell in row) for row in rows)
        assert n + sum(found.left_out.values()) == len(rows) - blank
    assert all(": " in said for said in refused)  # where, and what
    assert n_evaluated >= 10  # so that the test tests something


@pytest.mark.parametrize("seed", range(6))
def test_numbers_are_those_of_scikit_learn(tmp_path, seed):
    generator = np.random.default_rng(seed)
    n = int(generator.integers(5, 300))
    kind = [np.float64, np.float32, np.float16][seed % 3]
    confidence = generator.random(n).round([1, 2, 9][seed // 2])
    correct = generator.random(n) < 0.6
    correct[:2] = True, False
    short = np.array([float(str(value)) for value in confidence.astype(kind)])  # .9 is .9 in any precision
    frame = pd.DataFrame({"confidence": confidence.astype(kind), "correct": correct, "note": 'a "b", \\"'})
    frame.to_csv(tmp_path / "a.csv", index=bool(seed % 2), sep=",;\t"[seed % 3])
    forms = {"pandas": frame, "csv": tmp_path / "a.csv"}
    if kind is np.float64:
        frame.to_json(tmp_path / "a.json", orient="records" if seed % 2 else "columns", double_precision=15)
        forms["json"] = tmp_path / "a.json"
    for name, table in forms.items():
        found = dualread.evaluate(table, replicates=0).metrics.filter(subset="all")
        values = dict(found.select("metric", "estimate").rows())
        assert found["n"][0] == n, name
        assert values["accuracy"] == pytest.approx(correct.mean(), abs=1e-12), name
        assert values["auroc"] == pytest.approx(roc_auc_score(correct, short), abs=1e-12), name
        assert values["brier"] == pytest.approx(brier_score_loss(correct, short), abs=1e-12), name
        assert values["hce90"] == hce(short, correct) == np.mean((short >= 0.9) & ~correct), name


def drawn_pairs(draw):
    """Return answers about a few images, pairs of them, and the Natural CCG-AUC of these pairs; None without one."""
    n = draw.choice([2, 5, 30])
    methods = ["a", "b"][: draw.randint(1, 2)]
    right = {(m, k): draw.random() < 0.8 for m in methods for k in range(n)}
    sure = {(m, k, of): draw.choice([0, 0.25, 0.5, 1, draw.random()]) for m in methods for k in range(n) for of in "xy"}
    answers, pairs, wins = [], [], {m: [] for m in methods}
    for m, k in right:
        one, other = sure[m, k, "x"], sure[m, k, "y"]
        wrong = draw.random() < 0.7
        key = {"method": m, "sample_id": f"q{k}"}
        answers.append({**key, "image_id": f"i{k}", "confidence": one, "correct": int(right[m, k])})
        donor = {"donor_image_id": f"i{(k + 1) % n}", "donor_confidence": other, "donor_correct": int(not wrong)}
        pairs.append({**key, **donor})
        if right[m, k] and wrong:
            wins[m].append(1.0 if one > other else 0.5 if one == other else 0.0)
    return answers, pairs, {m: sum(of) / len(of) if of else None for m, of in wins.items()}


def written_anyhow(draw, rows, folder, name):
    (folder / name).mkdir(exist_ok=True)
    names = list(dict.fromkeys(column for row in rows for column in row))
    draw.shuffle(names)
    cells = [["" if row.get(column) is None else str(row[column]) for column in names] for row in rows]
    return as_file(draw, names, cells, folder / name, damaged=0.0 if name == "answers" else 0.05)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_pairs_are_evaluated_as_a_whole_or_refused(tmp_path, seed):
    draw = random.Random(seed)
    n_evaluated, refused = 0, []
    for _ in range(40):
        answers, pairs, expected = drawn_pairs(draw)
        is_tame = draw.random() < 0.3
        for _ in range(0 if is_tame else draw.randint(1, 3)):
            names = ("donor_answer", "donor_reference_answer", "dataset", "split", "note", "Method")
            column = draw.choice([*pairs[0], *names])
            value = draw.choice(HOSTILE)
            for row in pairs if draw.random() < 0.5 else draw.sample(pairs, 1):
                row[column] = value
        draw.shuffle(pairs)
        tables = [written_anyhow(draw, rows, tmp_path, name) for rows, name in ((answers, "answers"), (pairs, "pairs"))]
        try:
            found = dualread.evaluate(*tables, replicates=0)
        except DualReadError as error:
            refused.append(str(error))
            continue
        n_evaluated += 1
        every = [joined.pairs for cells in found.parts for joined in cells.methods.values()]
        n = sum(len(of) for of in every if not isinstance(of, str))
        blank = sum(not any(str(value).strip("\ufeff \t\r\n\xa0") for value in row.values()) for row in pairs)
        assert n + sum(found.left_out.values()) == len(pairs) - blank
        if is_tame:
            of = found.metrics.filter(metric="natural_ccg_auc", subset="all")
            assert dict(of.select("method", "estimate").rows()) == pytest.approx(expected, nan_ok=True)
    assert all(": " in said for said in refused)
    assert n_evaluated >= 10
