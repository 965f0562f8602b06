"""Each sentence of a report is a claim; a line of a list, too.

A sentence ends at `.`, `!` or `?`, with closing quotes and brackets behind it, before white space or the end of the
text, and at every line break. It does not end at a point

- of an abbreviation that is mostly followed by more of the sentence (`_ABBREVIATIONS`), such as "approx." or "Dr.", and
  of "no." before a number ("Effusion? No." ends),
- of a single letter ("E. coli"), or of a number that begins a line ("1. No effusion."), which is a mark of a list.

The claim is the sentence without white space at its ends and without a mark of a list, which is `-`, `*`, `•` or a
number with a point or a bracket. What has neither a letter nor a digit is no claim. Text alone decides, so that the
same completion has the same claims everywhere.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from dualread.grading.spans.base import Report, Span

_ABBREVIATIONS = {"approx", "ca", "cf", "dr", "e.g", "fig", "i.e", "incl", "max", "min", "mr", "mrs", "prof", "vs"}
_END = re.compile(r"[.!?]+[\"'”’)\]]*(?=\s|$)|\n+")
_MARK = re.compile(r"\s*(?:[-*•–]\s+|\(?[0-9]{1,2}[.)]\s+)?")
_WORD_BEFORE = re.compile(r"[^\s(\[\"“]*$")


def spans(reports: Sequence[Report], settings: Any, source: Any) -> list[list[Span]]:
    """See `base`; there are no settings, and no table is read."""
    return [list(_sentences(report.text, report.start, report.end)) for report in reports]


def _sentences(text: str, start: int, end: int) -> Iterator[Span]:
    part, begin = text[start:end], 0
    for match in (*_END.finditer(part), None):
        stop = len(part) if match is None else match.end()
        if match is not None and _goes_on(part[begin : match.start()], match[0], part[stop:]):
            continue
        sentence = part[begin:stop]
        first = begin + _MARK.match(sentence).end()  # type: ignore[union-attr]  # matches every text
        last = begin + len(sentence.rstrip())
        if any(character.isalnum() for character in part[first:last]):
            yield start + first, start + last
        begin = stop


def _goes_on(before: str, points: str, behind: str) -> bool:
    """Return whether a sentence goes on behind `points`: `before` is what it has so far, `behind` all that follows."""
    if points != ".":
        return False
    word = _WORD_BEFORE.search(before)[0].lower()  # type: ignore[index]  # matches every text
    is_mark = word.isdecimal() and not before[: -len(word)].strip()
    is_number = word == "no" and behind.lstrip()[:1].isdecimal()
    return word in _ABBREVIATIONS or (len(word) == 1 and word.isalpha()) or is_mark or is_number
