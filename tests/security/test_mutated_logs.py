"""Logs that look real, with bytes, lines and values changed at random: evaluated, or refused in one sentence.

The originals were written by the harnesses themselves (tests/data/logs/made), and in the form of VLMEvalKit.
"""

import contextlib
import json
import random
import zipfile
from pathlib import Path

import pytest

import dualread
from dualread.errors import DualReadError
from tests.drawn import examples

MADE = Path(__file__).parents[1] / "data/logs/made"
_N = examples(80)
_VALUES = (
    *("null", "true", "-1", "0", "1", "1e400", "-1e400", "NaN", "Infinity", "0.5", '""', '"A"', '"95%"', "[]", "{}"),
    *(
        '"\\ud800"',
        '"\\u0000"',
        '"<confidence>"',
        '"<answer>1</answer><confidence>1</confidence>"',
        "1" * 400,
        "[[[]]]",
    ),
    *('["1", "True"]', '"[1, 2"', '{"a": {"b": [null]}}', '"' + "x" * 3000 + '"', '"data:image/png;base64,!!"'),
)
_BYTES = (
    b"\xff",
    b"\x00",
    b"\n",
    b"\r",
    b'"',
    b"{",
    b"[" * 2000,
    b"}",
    b",",
    b"\t",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b"%",
)


def rows_of_vlmevalkit() -> bytes:
    head = "index\tquestion\tA\tB\tanswer\tprediction\thit"
    rows = [
        f"{k}\tWhich?\tleft\tright\tA\t<answer>A. left</answer><confidence>{k}0</confidence>\t1" for k in range(1, 6)
    ]
    return "\n".join([head, *rows]).encode()


LOGS = {
    "lm-eval": ("a.jsonl", (MADE / "samples_organs.jsonl").read_bytes(), "acc"),
    "lm_eval": ("a.jsonl", (MADE / "samples_sums.jsonl").read_bytes(), "exact_match,last"),
    "lmms-eval": ("a.jsonl", (MADE / "20261124_samples_lesions.jsonl").read_bytes(), "exact"),
    "vlmevalkit": ("a.tsv", rows_of_vlmevalkit(), "hit"),
}


def with_other_bytes(content: bytes, draw: random.Random) -> bytes:
    """Replace, insert, repeat or cut stretches of bytes."""
    for _ in range(draw.randint(1, 3)):
        start = draw.randrange(len(content) + 1)
        end = min(len(content), start + draw.choice((0, 1, 5, 50)))
        middle = draw.choice((*_BYTES, b"", content[start:end] * 2))
        content = content[:start] + middle + content[end:]
    return content[: draw.randrange(len(content))] if content and draw.random() < 0.1 else content


def with_another_value(content: bytes, draw: random.Random) -> bytes:
    """Replace one value of one line of JSON, or one cell, by another that may be none."""
    lines = content.decode().split("\n")
    at = draw.choice([k for k, line in enumerate(lines) if line.strip()])
    if not lines[at].startswith("{"):
        cells = lines[at].split("\t")
        cells[draw.randrange(len(cells))] = draw.choice(_VALUES).strip('"')
        lines[at] = "\t".join(cells)
    else:
        values = [json.dumps(value, ensure_ascii=False) for value in _inside(json.loads(lines[at]))]
        lines[at] = lines[at].replace(draw.choice(values), draw.choice(_VALUES), 1)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _inside(value: object) -> list[object]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(inner for item in items for inner in _inside(item))]


def evaluated_or_refused(path: Path, harness: str, score: str) -> None:
    """Evaluate a log. Any other error than ours is one of the program."""
    for judged_by, scale in ((score, None), ("graded", 100)):
        try:
            found = dualread.evaluate(path, log_format=harness, replicates=0, score=judged_by, stated_scale=scale)
        except DualReadError as error:
            assert str(error)  # noqa: PT017
        else:
            for part in found.parts:
                for method in part.methods.values():
                    assert method.answers["confidence"].is_between(0, 1).all()


@pytest.mark.parametrize("harness", LOGS)
@pytest.mark.parametrize("change", [with_other_bytes, with_another_value])
def test_a_changed_log_is_evaluated_or_refused(tmp_path, harness, change):
    name, content, score = LOGS[harness]
    draw = random.Random(f"{harness} {change.__name__}")
    for _ in range(_N):
        (tmp_path / name).write_bytes(change(content, draw))
        evaluated_or_refused(tmp_path / name, harness, score)


def test_a_changed_archive_is_evaluated_or_refused(tmp_path):
    content, draw = (MADE / "lesions.eval").read_bytes(), random.Random("archive")
    for _ in range(_N):
        (tmp_path / "a.eval").write_bytes(with_other_bytes(content, draw))
        evaluated_or_refused(tmp_path / "a.eval", "inspect", "pattern")


def test_an_archive_with_changed_samples_is_evaluated_or_refused(tmp_path):
    pytest.importorskip("zstandard")
    from dualread.data.logs import inspect

    path, draw, members = MADE / "lesions.eval", random.Random("samples"), {}
    with zipfile.ZipFile(path) as file, path.open("rb") as stream:
        for member in file.infolist():
            if member.filename == "header.json" or member.filename.startswith("samples/"):
                whole = json.loads(inspect._content(stream, member))
                members[member.filename] = json.dumps(inspect._needed(whole) or whole)
    for _ in range(_N):
        name = draw.choice(list(members))
        changed = members | {name: with_another_value(members[name].encode(), draw).decode("utf-8", "surrogatepass")}
        with zipfile.ZipFile(tmp_path / "a.eval", "w") as file, contextlib.suppress(UnicodeEncodeError):
            for one, text in changed.items():
                file.writestr(one, text)
        evaluated_or_refused(tmp_path / "a.eval", "inspect", "pattern")
