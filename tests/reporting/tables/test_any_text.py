"""Any text in LaTeX."""

import re

from hypothesis import given

from dualread.reporting.tables._latex import escape
from tests.drawn import few, texts

_COMMAND = re.compile(r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}|\\[&%$#_{}]")


@few
@given(texts)
def test_any_text_in_latex_is_plain_and_can_be_written(text):
    shown = escape(text)
    shown.encode()  # as every table is written
    assert not re.search(r"[\\&%$#_{}~^<>]", _COMMAND.sub("", shown))
    assert not [character for character in shown if ord(character) < 32 or 127 <= ord(character) < 160]
