"""Tables that mean harm (cases D.5, D.7 and D.8 where they concern `dualread evaluate`)."""

import gzip
import time

import polars as pl
import pytest

import dualread
from dualread import limits
from dualread.apps import main as program
from dualread.apps.evaluate.files import as_texts
from dualread.errors import DataError
from tests.drawn import attempt

FORMULAS = ["=cmd()", "+x", "@y", "-z"]


@pytest.mark.parametrize("name", ["wide.csv", "wide.tsv", "wide.jsonl", "wide.json", "wide.csv.gz"])
def test_200000_columns_end_in_a_sentence_at_once(tmp_path, name):
    names = [f"c{k}" for k in range(200_000)]
    if "json" in name:
        content = ("{" + ",".join(f'"{one}": 1' for one in names) + "}").encode()
        content = b"[" + content + b"]" if name == "wide.json" else content
    else:
        separator = "\t" if "tsv" in name else ","
        content = (separator.join(names) + "\n" + separator.join("1" for _ in names)).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    start = time.perf_counter()
    with pytest.raises(DataError, match=rf"{name}: has .*columns"):
        dualread.evaluate(tmp_path / name)
    assert time.perf_counter() - start < 20  # no end at d28fb8a


@pytest.mark.parametrize("name", ["deep.json", "deep.jsonl"])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_deep_json_is_a_sentence(tmp_path, capsys, name, text):
    (tmp_path / name).write_text(text)
    assert program.main(["evaluate", str(tmp_path / name)]) == 1
    assert "not JSON" in capsys.readouterr().err


def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path):
    packed = gzip.compress(b"confidence,correct\n" + b"1,1\n" * 20_000_000)  # 80 MB of 80 kB
    (tmp_path / "bomb.csv.gz").write_bytes(packed)
    with pytest.raises(DataError, match=r"bomb\.csv\.gz: holds more than 64,000,000 bytes when it is unpacked"):
        dualread.evaluate(tmp_path / "bomb.csv.gz")


def test_a_parquet_whose_equal_texts_take_no_room_is_refused_before_they_are_read(tmp_path, monkeypatch):
    table = {
        **{"confidence": [0.5] * 50, "answer": ["x" * 1000] * 50, "reference_answer": ["x"] * 50},
        **{"note": ["y" * 9000] * 50},
    }
    pl.DataFrame(table).write_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(limits, "COLUMN_BYTES", 49_999)
    with pytest.raises(DataError, match=r"a\.parquet: column 'answer' holds more than 49,999 bytes"):
        dualread.evaluate(tmp_path / "a.parquet")
    monkeypatch.setattr(limits, "COLUMN_BYTES", 50_000)  # the column that is not used does not count
    assert dualread.evaluate(tmp_path / "a.parquet", replicates=0).unused
    monkeypatch.setattr(limits, "TABLE_ROWS", 49)
    with pytest.raises(DataError, match=r"a\.parquet: has 4 columns and 50 rows, expected at most"):
        dualread.evaluate(tmp_path / "a.parquet")


@pytest.mark.parametrize(
    "number", ["0." + "9" * 100_000, "1" + "0" * 100_000, "1e999999999", "-" + "1" * 5_000, "1" * 4_300 + ".5"]
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_numbers_of_100000_digits_are_a_sentence_or_a_number(tmp_path, name, number):
    lines = [f'{{"confidence": {number}, "correct": 1}}', '{"confidence": 0.5, "correct": 0}']
    text = {
        "a.jsonl": "\n".join(lines),
        "a.json": f"[{','.join(lines)}]",
        "a.csv": f"confidence,correct\n{number},1\n.5,0",
    }
    (tmp_path / name).write_text(text[name])
    start = time.perf_counter()
    found, error = attempt(lambda: dualread.evaluate(tmp_path / name, replicates=0), DataError)
    assert (found is not None) == number.startswith("0.")
    assert error is None or len(str(error)) < 2_000
    assert time.perf_counter() - start < 10


def test_names_that_could_be_formulas_are_written_as_text(tmp_path):
    table = {"method": FORMULAS * 2, "confidence": [0.5, 0.4] * 4, "correct": [1] * 4 + [0] * 4}
    pl.DataFrame(table).write_csv(tmp_path / "a.csv")
    assert program.main(["evaluate", str(tmp_path / "a.csv"), "--replicates", "0", "--out", str(tmp_path / "o")]) == 0
    for file in (tmp_path / "o").glob("*.csv"):
        for row in pl.read_csv(file, infer_schema=False).select(pl.selectors.exclude(r"^(low|high|estimate)$")).rows():
            cells = [str(cell) for cell in row if cell is not None]
            assert not any(cell[:1] in "=+@" and cell for cell in cells)
    assert set(pl.read_csv(tmp_path / "o/metrics.csv", infer_schema=False)["method"]) == {f"'{one}" for one in FORMULAS}
    numbers = pl.DataFrame({"estimate": [-0.5], "name": ["a\tb\x1b"]})
    assert as_texts(numbers).rows() == [(-0.5, "a b ")]


def test_no_control_character_reaches_the_terminal(tmp_path, capsys):
    (tmp_path / "a.csv").write_text("method,confidence,correct\n\x1b[31mred\x07,0.5,1\n\x1b]0;title\x07,0.4,0\n")
    assert program.main(["evaluate", str(tmp_path / "a.csv"), "--replicates", "0", "--compare", "\x1b[31mred"]) == 1
    captured = capsys.readouterr()
    assert program.main(["evaluate", str(tmp_path / "a.csv"), "--replicates", "0"]) == 0
    said = captured.out + captured.err + capsys.readouterr().out
    assert "\x1b" not in said
    assert "\x07" not in said
    assert "\\x1b[31mred" in said


def test_dollar_signs_in_a_name_are_no_mathematics(tmp_path):
    (tmp_path / "a.csv").write_text("method,confidence,correct\n$\\frac{,0.5,1\na_b^c$$,0.4,0\n")
    assert program.main(["evaluate", str(tmp_path / "a.csv"), "--replicates", "0", "--out", str(tmp_path / "o")]) == 0


@pytest.mark.parametrize("answer", ["a" + "\u0301\u0323" * 300_000, "|".join("ab" * 100_000), "-" * 300_000 + "5"])
def test_long_cells_end_soon_and_messages_stay_short(tmp_path, capsys, answer):
    table = {"confidence": [0.5, 0.4], "answer": ["a", "liver"], "reference_answer": [answer, "liver"]}
    pl.DataFrame(table).write_csv(tmp_path / "a.csv")
    start = time.perf_counter()
    program.main(["evaluate", str(tmp_path / "a.csv"), "--replicates", "0"])
    assert time.perf_counter() - start < 30
    assert len(capsys.readouterr().err) < 2_000
