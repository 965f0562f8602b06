"""A record that is continued, also after a server that was killed while it wrote."""

import json
import os
import resource
import signal

import pytest

from dualread.apps.serve.outcome import Record
from dualread.errors import DataError

ROWS = [
    {"sample_id": f"q{i}", "image_id": "é" * 9, "time": "", "method": "dualread", "answer": "\n", "confidence": 0.5}
    for i in range(3)
]


def added(file, *rows):
    record = Record(file)
    for row in rows:
        record.add(row)
    record.close()


def test_a_line_that_was_cut_off_is_removed_and_the_others_stay(tmp_path, capsys):
    file = tmp_path / "answers.jsonl"
    added(file, *ROWS[:2])
    whole = file.read_bytes()
    for cut in (1, 20, len(whole) // 2 - 1):  # the line's end alone, some of it, all but its first character
        file.write_bytes(whole[:-cut])
        added(file, ROWS[2])
        assert [json.loads(line) for line in file.read_text().splitlines()] == [ROWS[0], ROWS[2]]
        assert "the last line was cut off, and is removed" in capsys.readouterr().err
    file.write_bytes(whole)
    added(file, ROWS[2])
    assert [json.loads(line) for line in file.read_text().splitlines()] == ROWS
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r", "\n", "\ud800"]
)
def test_a_record_is_read_whatever_an_id_holds(tmp_path, end):
    file, row = tmp_path / "answers.jsonl", {**ROWS[0], "sample_id": f"case{end}7"}
    added(file, row, ROWS[1])
    assert [json.loads(line) for line in file.read_text().splitlines()] == [row, ROWS[1]]


def test_a_file_of_somebody_else_stays_as_it_is(tmp_path):
    file = tmp_path / "thesis.txt"
    file.write_text("one\ntwo")
    with pytest.raises(DataError, match="is no record of answers"):
        Record(file)
    assert file.read_text() == "one\ntwo"


def test_a_record_may_be_read_by_another_process_as_it_comes(tmp_path):
    pipe = tmp_path / "answers"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    added(pipe, ROWS[0])
    assert json.loads(os.read(reading, 1000)) == ROWS[0]
    os.close(reading)


def test_answers_go_on_where_the_disk_is_full_and_no_half_line_stays(tmp_path, capsys):
    record = Record(tmp_path / "answers.jsonl")
    record.add(ROWS[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "answers.jsonl").stat().st_size + 20, hard))
    try:
        record.add(ROWS[1])  # 20 bytes of it would fit
        record.add(ROWS[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    record.add(ROWS[2])
    record.close()
    rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert rows == [ROWS[0], ROWS[2]]
    assert capsys.readouterr().err.count("an answer is not recorded") == 2
