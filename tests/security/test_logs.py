"""Logs that mean harm: small files that unpack to very much, nested JSON, and numbers and texts that are none.

Each ends in one sentence, in bounded memory.
"""

import base64
import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import pytest

import dualread
from dualread.data.logs import _files, inspect
from dualread.errors import DataError, DualReadError
from dualread.grading.canonical import canonical, question_key
from dualread.grading.options import option_of
from tests.data.logs.archive import HEADER, archive, sample

HARNESSES = {"inspect": "a.json", "lm-eval": "a.jsonl", "lmms-eval": "a.jsonl", "vlmevalkit": "a.json"}
ONE_MB = 1_000_000


def refused(path: Path, harness: str) -> str:
    """The one sentence in which a log is refused."""
    with pytest.raises(DualReadError) as found:
        dualread.evaluate(path, log_format=harness, replicates=0)
    assert len(str(found.value).splitlines()) == 1
    return str(found.value)


def packed(path: Path, members: dict[str, bytes], *, mode: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", mode) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return path


def bomb(path: Path, n: int) -> Path:
    """An archive of Inspect with n samples of 10 MB of zeros each, packed to a thousandth."""
    zeros = json.dumps(sample("q", "yes", metadata={"zeros": "0" * 10 * ONE_MB})).encode()
    return packed(path, {f"samples/{k}_epoch_1.json": zeros for k in range(n)})


def test_an_archive_that_unpacks_to_very_much_is_refused(tmp_path):
    path = bomb(tmp_path / "a.eval", 20)  # 200 MB in 200 kB
    tracemalloc.start()
    said = refused(path, "inspect")
    assert tracemalloc.get_traced_memory()[1] < 150 * ONE_MB
    tracemalloc.stop()
    assert "unpacks to more bytes than a log or table of" in said


def test_an_archive_with_very_many_values_is_refused(tmp_path):
    many = json.dumps(sample("q", "yes", metadata={"many": "HERE"})).replace('"HERE"', f"[{'[],' * 3 * ONE_MB}[]]")
    path = packed(tmp_path / "a.eval", {"samples/q_epoch_1.json": many.encode()})
    tracemalloc.start()
    assert "unpacks to more values than a log or table of" in refused(path, "inspect")
    assert tracemalloc.get_traced_memory()[1] < 30 * ONE_MB
    tracemalloc.stop()


def test_a_log_with_very_many_columns_is_evaluated_without_them(tmp_path):
    text = "<answer>yes</answer><confidence>80</confidence>"
    samples = [sample(f"q{k}", text, metadata={f"{k}-{i}": i for i in range(3_000)}) for k in range(3)]
    found = dualread.evaluate(archive(tmp_path / "a.eval", samples), log_format="inspect", replicates=0)
    assert any("only the first 2,000 other columns of the log can be named; 7,000 more" in note for note in found.notes)


def test_an_archive_whose_directory_lies_about_its_size_is_refused(tmp_path):
    path = bomb(tmp_path / "a.eval", 1)
    content = bytearray(path.read_bytes())
    at = content.rindex(b"PK\1\2")  # the member's entry in the directory; the size is at its byte 24
    content[at + 24 : at + 28] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    tracemalloc.start()
    assert "is damaged" in refused(path, "inspect")
    assert tracemalloc.get_traced_memory()[1] < 10 * ONE_MB
    tracemalloc.stop()


def test_a_zstandard_member_that_lies_about_its_size_is_refused():
    zstandard = pytest.importorskip("zstandard")
    content = zstandard.ZstdCompressor().compress(bytes(100 * ONE_MB))
    member = zipfile.ZipInfo("samples/a.json")
    member.compress_type, member.compress_size, member.file_size = 93, len(content), 1000
    member.header_offset, member.CRC = 0, 0
    tracemalloc.start()
    with pytest.raises(ValueError, match="wrong checksum"):
        inspect._content(io.BytesIO(b"PK\3\4" + bytes(26) + content), member)
    assert tracemalloc.get_traced_memory()[1] < 20 * ONE_MB
    tracemalloc.stop()


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("depth", [900, 990, 100_000])
@pytest.mark.parametrize("inside", ["[]", '{"a":}'])
def test_deep_json_is_refused_or_read(tmp_path, harness, depth, inside):
    path = tmp_path / HARNESSES[harness]
    opening, closing = ("[", "]") if inside == "[]" else ('{"a":', "}")
    path.write_text(opening * depth + ("1" if opening != "[" else "") + closing * depth)
    refused(path, harness)


@pytest.mark.parametrize("depth", [100, 700, 900, 950, 990, 5000])
def test_a_sample_with_deep_metadata_is_refused_or_read(tmp_path, depth):
    deep = '{"a":' * depth + "1" + "}" * depth
    text = json.dumps(sample("q", "<answer>yes</answer><confidence>80</confidence>", metadata={"deep": "HERE"}))
    content = text.replace('"HERE"', deep).encode()
    path = packed(tmp_path / "a.eval", {"samples/q_epoch_1.json": content, "header.json": json.dumps(HEADER).encode()})
    try:
        dualread.evaluate(path, log_format="inspect", replicates=0)
    except DualReadError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017


@pytest.mark.parametrize("text", ["1e400", "-1e400", "NaN", "Infinity", "1" * 5000, '"\\ud800"', "-0.0", "1e-400"])
@pytest.mark.parametrize("key", ["value", "answer"])
def test_numbers_and_texts_that_are_none_are_refused_or_left_out(tmp_path, text, key):
    score = {"value": 1, "answer": "yes", key: "HERE"}
    completion = "<answer>yes</answer><confidence>80</confidence>"
    samples = [sample("q1", completion, scores={"s": score}), sample("q2", completion, scores={"s": {"value": 1}})]
    content = json.dumps({**HEADER, "samples": samples}).replace('"HERE"', text)
    (tmp_path / "a.json").write_text(content)
    try:
        found = dualread.evaluate(tmp_path / "a.json", log_format="inspect", replicates=0)
    except DualReadError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        assert len(found.parts[0].methods["stated"].answers) in (1, 2)


@pytest.mark.parametrize("harness", HARNESSES)
def test_text_that_is_not_in_utf8_is_refused(tmp_path, harness):
    (tmp_path / HARNESSES[harness]).write_bytes(b'{"doc_id": "\xe4"}\n')
    refused(tmp_path / HARNESSES[harness], harness)


def test_a_log_that_is_too_large_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "_LARGEST", 10)
    (tmp_path / "a.jsonl").write_text('{"doc_id": 1}\n')
    assert "a.jsonl: has 14 bytes, expected at most 10. Split the log." in refused(tmp_path / "a.jsonl", "lm-eval")


def workbook(path: Path, sheet: str) -> Path:
    """A small .xlsx with this content of a sheet."""
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"index": [1], "prediction": ["a"], "answer": ["a"]}).to_excel(path, engine="xlsxwriter")
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    head, _, tail = members["xl/worksheets/sheet1.xml"].decode().partition("</sheetData>")
    members["xl/worksheets/sheet1.xml"] = f"{head}{sheet}</sheetData>{tail}".encode()
    return packed(path, members)


@pytest.mark.parametrize("place", ['r="XFD1048576"', "r='xfd1048576'"])
def test_a_workbook_with_a_cell_far_away_is_refused(tmp_path, place):
    path = workbook(tmp_path / "a.xlsx", f'<row r="1048576"><c {place} t="n"><v>1</v></c></row>')
    assert "reaches to row 1,048,576 and column 16,384, expected at most 20,000,000 cells" in refused(
        path, "vlmevalkit"
    )


def test_a_workbook_that_unpacks_to_very_much_is_refused(tmp_path):
    path = workbook(tmp_path / "a.xlsx", " " * 70 * ONE_MB)
    assert "unpacks to more bytes than a log or table of" in refused(path, "vlmevalkit")


def test_an_image_in_a_log_is_never_decoded(tmp_path):
    """Its identity is the digest of its bytes, whatever they are."""
    program = base64.b64encode(b"%!PS-Adobe-3.0 EPSF-3.0\n{} loop").decode()
    content = [{"type": "image", "image": f"data:image/png;base64,{program}"}, {"type": "text", "text": "?"}]
    one = sample("q", "<answer>yes</answer><confidence>80</confidence>", input=[{"role": "user", "content": content}])
    found = dualread.evaluate(archive(tmp_path / "a.eval", [one]), log_format="inspect", replicates=0)
    assert found.parts[0].cluster == "image_id"


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "a.pkl").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(DataError, match="runs the code that is in it, and is not read"):
        dualread.evaluate(tmp_path / "a.pkl", log_format="vlmevalkit", replicates=0)


@pytest.mark.parametrize("part", ["(and ", ",", "and,", "'", "the ", "-.", "\u200b", "5,5", "((", "s's "])
def test_a_long_answer_is_graded_in_time_that_grows_with_its_length(part):
    for text in (part * 100_000, f"{part * 100_000}x"):
        assert canonical(canonical(text)) == canonical(text) or part == "the "
        question_key(text)
        option_of(text, ["left", "right"])
