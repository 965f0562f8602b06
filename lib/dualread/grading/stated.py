"""Read the percentage in a free reply to a prompt that asks for an integer; `parse` reads the answer's own format."""

import re

__all__ = ["stated_percent"]

_STATED = re.compile(r"<confidence>\s*([0-9]{1,3})\s*</confidence>")
# One to three ASCII digits with no letter, digit, sign or decimal point next to them; "-" after a number is no sign.
_INTEGER = re.compile(r"(?:(?<![^\W_])(?<![.+\u2212-])(?<![0-9],)|(?<=[0-9%]-))([0-9]{1,3})(?![^\W_])(?![.,][0-9])")


def stated_percent(text: str) -> int | None:
    """Return the integer from 0 to 100 that a reply states as its percentage, or None; no text raises an error.

    The paper's rule (app:prompts): the number in a valid explicit `<confidence>NN</confidence>` block, otherwise the
    last integer in [0, 100]. The rule is followed to the letter: "70 out of 100" states 100.

    The paper leaves some cases open. These are the decisions:

    - Several valid blocks contradict each other, so the last integer counts. A block that holds anything but an integer
      in range is not valid.
    - An integer is one to three ASCII digits that stand alone: "95%" and "(95)" hold one; "T2", "90th", "10²" do not.
    - A number with a decimal point, or with a comma between digits, is not an integer, and neither are its parts: "0.8"
      and "95.0" state nothing. A full stop after a number is not a decimal point.
    - A sign directly before a number belongs to it: "-5" states nothing. In a range such as "80-90" it is a dash.
    """
    blocks = [value for value in map(int, _STATED.findall(text)) if value <= 100]
    integers = [value for value in map(int, _INTEGER.findall(text)) if value <= 100]
    stated = blocks if len(blocks) == 1 else integers
    return stated[-1] if stated else None
