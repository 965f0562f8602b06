"""Control characters of others never reach a terminal, whoever prints them (D8)."""

import argparse
import json

import pytest

from dualread import progress
from dualread.apps import main as program
from dualread.apps.explain import schema
from dualread.errors import ConfigError, printable
from dualread.progress import say

# Escape, cursor, backspace, bell, C1, directions of writing, a byte order mark, half a character, a lone CR.
HOSTILE = [
    *("\x1b[2J", "\x1b]0;title\x07", "a\bb", "\x00", "\x7f", "\x9b31m", "\u202e", "\u2066", "\u200f"),
    *("\ufeff", "a\rb"),
]
HOSTILE += ["\ud800", "\udcff", "\u2028", "\x0c", "\x85"]


def is_clean(text):
    return all(one.isprintable() or one in "\n\t" for one in text.replace("\r\n", "\n"))


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_control_characters_are_escaped_as_in_json(text):
    shown = printable(f"before {text} behind")
    assert is_clean(shown)
    assert json.loads(f'"{shown}"') == f"before {text} behind"


@pytest.mark.parametrize("text", ["Ärzte, 肺, μm, 10², naïve", "two\nlines\tand a tab", "dos\r\n", "👩\u200d⚕️"])
def test_other_text_stays_as_it_is(text):
    assert printable(text) == text


@pytest.mark.parametrize("error", [ConfigError, lambda text: OSError(2, "No such file", text)], ids=["ours", "system"])
@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_no_verb_prints_any(monkeypatch, capsys, tmp_path, text, error):
    def run(options: argparse.Namespace) -> int:
        print(f"result: {text}")
        say(f"progress: {text}")
        raise error(f"error: {text}")

    monkeypatch.setattr(schema, "run", run)
    with (tmp_path / "log").open("w") as log:
        monkeypatch.setattr(progress._VOICE, "log", log)
        assert program.main(["schema", "predictions"]) == 1
    said = capsys.readouterr()
    for shown in (said.out, said.err, (tmp_path / "log").read_text()):
        assert is_clean(shown)
    assert "result: " in said.out
    assert "progress: " in said.err
    assert "error: " in said.err


def test_arguments_are_shown_without(capsys):
    with pytest.raises(SystemExit):
        program.main(["\x1b[2Jverb"])
    with pytest.raises(SystemExit):
        program.main(["schema", "predictions", "--\x1b[2J"])
    assert is_clean(capsys.readouterr().err)
