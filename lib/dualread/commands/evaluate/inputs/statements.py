"""The confidence that a reply states without tags: in a line (`Confidence: 85%`), in JSON, or as "85% sure".

A statement counts where it can be read in one way only. Of several statements, all have to say the same: which of two
numbers is meant, the first thought or the last one, nobody can tell.
"""

import json
import re
from dataclasses import dataclass

_LONGEST = 200  # characters behind a label
_LONGEST_JSON = 100_000
_FENCE = re.compile(r"^```[a-z]*\n|\n```$")
_WHOSE = r"(?:(?:my|the|final|overall|stated|answer)[ \t]+){0,3}"
_KIND = r"(?:[ \t]+(?:score|level|rating|estimate|percentage|in[ \t]+(?:my|the|this)[ \t]+answer)){0,2}"
_MARKS = r"[\"'*_`]*"
_BEFORE_NUMBER = r"(?=[\s\"'*_`~(]*[.,]?[0-9])"
_LABEL = (
    rf"{_MARKS}{_WHOSE}(?:(?:confidence|certainty){_KIND}"
    rf"|probability(?:[ \t]+of[ \t]+being[ \t]+correct)?{_KIND}(?={_MARKS}[ \t]*[:=]{_BEFORE_NUMBER}))"
)
_STATEMENT = re.compile(
    # a line, also of Markdown or JSON; the scale may stand behind the label: (0-100)
    rf"^[ \t>*_#\-•{{]*{_LABEL}(?:[ \t]*\([^()\n]{{1,40}}\))?{_MARKS}"
    rf"(?:[ \t]*[:=\uff1a]{_MARKS}(?:[ \t]*\n(?=[ \t]*[.,]?[0-9]))?"
    rf"|[ \t]+(?:is|[-\u2013\u2014]){_BEFORE_NUMBER}|[ \t](?=[0-9.,]+ ?%))"
    rf"(?P<line>[^\n]{{1,{_LONGEST}}})$"
    # behind other words, where something separates it from them: (confidence: .9)
    rf"|[,;.(\[|{{][ \t]*{_LABEL}{_MARKS}[ \t]*[:=](?P<part>[^\n;)\]|}}]{{1,{_LONGEST}}})"
    r"|(?P<sure>(?:\b(?:not|never|over|under|(?:less|more)[ \t]+than|at[ \t]+(?:least|most))[ \t]+|[<>~≤≥])?"
    r"\b[0-9]{1,3}(?:[.,][0-9]{1,9})?[ \t]*(?:%|percent)[ \t]+(?:sure|confident|certain))\b",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBER = (
    r"(?:[0-9]{1,9}(?:[.,][0-9]{1,20})?|[.,][0-9]{1,20})(?:\s*(?:%|per ?cent\b)|\s*(?:/|out of)\s*[0-9]{1,3}(?:\.0)?)?"
)
_VALUE = re.compile(
    rf"[\s\"'*_`(]*(?:~|≈|about\s|approximately\s|around\s)?\s*(?P<number>{_NUMBER})(?![0-9])"
    r"(?:\s+(?:sure|confident|certain|confidence))?[\"'*_`)]*(?:\s*(?:$|[({,;.\u2013\u2014}\]-])[^0-9]*)?",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"^[ \t>*_#-]*(?:final[ \t]+answer|answer|guess)[*_]*[ \t]*[:=][ \t*_]*(?P<text>[^\n]*\S)[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, kw_only=True)
class Statements:
    """What a reply without tags states.

    Attributes:
        confidence: The text of its confidence, such as "85%"; of statements that differ, all of them, which is no
            number; None if it states none.
        answer: The reply without its statements. If one line of it begins with "Answer:", what follows there.
    """

    confidence: str | None
    answer: str


def statements_in(reply: str) -> Statements:
    """Return the confidence that a reply states, and its answer."""
    if (named := _in_json(reply)) is not None:
        return named
    found = list(_STATEMENT.finditer(reply))
    if not found:
        return Statements(confidence=None, answer=reply)
    values = dict.fromkeys(_value(one["line"] or one["part"] or one["sure"]) for one in found)
    kept, end = [], 0
    for one in found:
        kept.append(reply[end : one.start()])
        end = one.end()
    answer = "".join([*kept, reply[end:]]).strip()
    named = _ANSWER.findall(answer)
    return Statements(confidence=" and ".join(values), answer=named[0] if len(named) == 1 else answer)


def _in_json(reply: str) -> Statements | None:
    """Return what a reply that is one JSON object has under "answer" and "confidence"; None if it has not both."""
    text = _FENCE.sub("", reply.strip()).strip()
    try:
        found = json.loads(text) if text.startswith("{") and len(text) <= _LONGEST_JSON else None
    except (ValueError, RecursionError):
        return None
    named = {} if not isinstance(found, dict) else {key.lower(): value for key, value in found.items()}
    answer, confidence = named.get("answer"), named.get("confidence")
    if not isinstance(answer, str | int | float) or not isinstance(confidence, str | int | float):
        return None
    return Statements(confidence=_value(str(confidence)), answer=str(answer))


def _value(text: str) -> str:
    """Return the number with its unit in what follows a label; all of it if there is more than one number, or none."""
    found = _VALUE.fullmatch(text.strip())
    return text.strip(" \t\"'*_`.,") if found is None else found["number"]
