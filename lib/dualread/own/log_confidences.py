"""The confidences that a log of another harness holds: computed from what it records, or stated in its completions.

What is computed has one function per kind. Each takes a sample and the score that judges it, and returns a number in
[0, 1], or None where this sample gives none. They are raw: nothing is fitted, unlike the methods of the same names in a
study.

What is stated stands in the tags of the paper's contract (a whole number from 0 to 100, which `dualread.grading.parse`
reads), in a line (`Confidence: 85%`), in JSON, or as "85% sure". Other people also ask for numbers from 0 to 1 or from
0 to 10, with decimals or with a percent sign. The scale of the numbers without one is a fact about the whole log: it is
found once, from all of them, and where two scales fit, it is asked for. Without tags, a statement counts where it can
be read in one way only. Of several statements, all have to say the same: which of two numbers is meant, the first
thought or the last one, nobody can tell.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path

from dualread.data.logs.base import LoggedSample, Score
from dualread.errors import ConfigError
from dualread.grading.canonical import canonical
from dualread.grading.contracts.single import parse
from dualread.grading.options import name_of, option_of
from dualread.grading.parse import answer_span, block_span
from dualread.grading.spans import tokens_within
from dualread.grading.typography import untyped

SCALES = (1, 10, 100)
_NUMBER = re.compile(
    r"[*_]*(?P<number>[0-9]{1,9}(?:[.,][0-9]{1,20})?|[.,][0-9]{1,20})\s*"
    r"(?P<unit>%|percent|per cent|(?:/|out of)\s*(?P<scale>[1-9][0-9]{0,2})(?:\.0)?)?\.?[*_]*",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?confidence>")
_THOUGHT = re.compile(r"</think(?:ing)?>")
_SHOWN = 5  # texts that a sentence names
_LONGEST = 30  # characters of each


def spoken_from(completion: str) -> int:
    """Return where the reply begins in a completion, in characters: behind its reasoning, if that is marked as such."""
    return max((found.end() for found in _THOUGHT.finditer(completion)), default=0)


def stated_text(sample: LoggedSample, score: Score | None) -> str | None:
    """Return the text of the confidence that the first completion states; None if it states none.

    This is what stands in its only `<confidence>` block; without any such tag, what `statements` finds. Reasoning in
    `<think>` does not count. None if the score judges something else than the first completion.
    """
    if not sample.completions or (score is not None and not score.of_first):
        return None
    reply = sample.completions[0][spoken_from(sample.completions[0]) :]
    if not _TAG.search(reply):
        return statements_in(reply).confidence
    block, answer = block_span(reply, "confidence"), block_span(reply, "answer")
    if block is None or (answer is not None and (answer[0] < block[0] < answer[1] or block[0] < answer[0] < block[1])):
        return None
    return reply[block[0] : block[1]].strip()


@dataclass(frozen=True, kw_only=True)
class Stated:
    """How the stated confidences of one log are read.

    Attributes:
        scale: What stands for certainty in a number without a unit: 1, 10 or 100; None if no number needs it.
        note: A sentence about it; None if the log states nothing.
    """

    scale: int | None
    note: str | None

    def confidence(self, text: str | None) -> float | None:
        """Return the confidence in [0, 1] that a text states; None if it states none on this scale."""
        if (found := None if text is None else _read(text)) is None:
            return None
        number, own = found
        if number == 0:
            return 0.0
        scale = own or self.scale
        return None if scale is None or number > scale else float(number / scale)


def stated_of(path: Path, texts: Iterable[str | None], asked: int | None) -> Stated:
    """Find the scale on which a log states its confidences.

    Args:
        path: The log, for messages.
        texts: What stands in the confidence block of each question; None where there is none.
        asked: The scale that the user names; None to find it.

    Raises:
        ConfigError: `asked` is no scale, or is None and several scales fit, or numbers contradict each other.
    """
    if asked is not None and asked not in SCALES:
        raise ConfigError(f"--stated-scale {asked}: expected {', '.join(map(str, SCALES[:-1]))} or {SCALES[-1]}.")
    counts = Counter(text for text in texts if text is not None)
    if not counts:
        return Stated(scale=None, note=None)
    read = {text: found for text in counts if (found := _read(text)) is not None}
    plain = {text: number for text, (number, own) in read.items() if own is None}
    scale = asked if asked is not None else _scale(path, plain)
    stated = Stated(scale=scale, note=None)
    unread = [text for text in counts if stated.confidence(text) is None]
    return Stated(scale=scale, note=_note(scale, asked, plain, read, unread, counts))


def _read(text: str) -> tuple[Decimal, int | None] | None:
    """Return a number and what stands for certainty beside it ("95%": 100; "8/10": 10), None where nothing says it."""
    if len(text) > 4 * _LONGEST or (found := _NUMBER.fullmatch(untyped(text).strip())) is None:
        return None
    scale = int(found["scale"]) if found["scale"] else 100 if found["unit"] else None
    number = Decimal(found["number"].replace(",", "."))
    return None if number > (scale or max(SCALES)) else (number, scale)


def _scale(path: Path, plain: Mapping[str, Decimal]) -> int | None:
    """Return the only scale that fits numbers without a unit; None if there are none, or only zeros."""
    largest = max(plain.values(), default=Decimal(0))
    parts = [text for text, number in plain.items() if 0 < number < 1]
    if largest == 0:
        return None
    if largest <= 1 and parts:
        return 1
    if largest > 10 and not parts:
        return 100
    what, fitting = "may be on several scales", [scale for scale in SCALES if largest <= scale]
    if largest > 1 and parts:
        what, fitting = "are on several scales", [1, *fitting]
    others = [text for text, number in plain.items() if not 0 < number < 1]
    raise ConfigError(
        f"{path}: its stated confidences {what}: {_shown([*parts[:2], *others])}."
        f" Say what stands for certainty: --stated-scale {', '.join(map(str, fitting[:-1]))} or {fitting[-1]}. What is"
        " above it is left out."
    )


def _note(
    scale: int | None,
    asked: int | None,
    plain: Mapping[str, Decimal],
    read: Mapping[str, object],
    unread: Sequence[str],
    counts: Mapping[str, int],
) -> str:
    said = []
    if scale is not None and plain:
        why = "as --stated-scale says" if asked is not None else f"for example {_shown(plain)}"
        said.append(f"stated confidences are read on the scale 0 to {scale} ({why})")
    if own := [text for text in read if text not in plain]:
        said.append(
            f"those with a unit by that unit ({_shown(own)})"
            if said
            else f"stated confidences are read by their unit ({_shown(own)})"
        )
    if unread:
        said.append(f"{sum(counts[text] for text in unread)} cannot be read: {_shown(unread)}")
    return "; ".join(said) or "all stated confidences are 0"


def _shown(texts: Iterable[str]) -> str:
    """Return a few of these texts."""
    ordered = list(texts)
    short = [repr(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...") for text in ordered[:_SHOWN]]
    return ", ".join(short) + (", ..." if len(ordered) > _SHOWN else "")


_LONGEST_LINE = 200  # characters behind a label
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
    rf"(?P<line>[^\n]{{1,{_LONGEST_LINE}}})$"
    # behind other words, where something separates it from them: (confidence: .9)
    rf"|[,;.(\[|{{][ \t]*{_LABEL}{_MARKS}[ \t]*[:=](?P<part>[^\n;)\]|}}]{{1,{_LONGEST_LINE}}})"
    r"|(?P<sure>(?:\b(?:not|never|over|under|(?:less|more)[ \t]+than|at[ \t]+(?:least|most))[ \t]+|[<>~≤≥])?"
    r"\b[0-9]{1,3}(?:[.,][0-9]{1,9})?[ \t]*(?:%|percent)[ \t]+(?:sure|confident|certain))\b",
    re.IGNORECASE | re.MULTILINE,
)
_STATED_NUMBER = (
    r"(?:[0-9]{1,9}(?:[.,][0-9]{1,20})?|[.,][0-9]{1,20})(?:\s*(?:%|per ?cent\b)|\s*(?:/|out of)\s*[0-9]{1,3}(?:\.0)?)?"
)
_VALUE = re.compile(
    rf"[\s\"'*_`(]*(?:~|≈|about\s|approximately\s|around\s)?\s*(?P<number>{_STATED_NUMBER})(?![0-9])"
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


_CONTRACT = re.compile(r"</?(?:answer|confidence)>")
_ROUNDING = 1e-6  # by which a log-probability may exceed 0


def answer_of(completion: str) -> str | None:
    """Return the answer in a completion: its `<answer>` block, or all of it if it has no tag of the paper's contract.

    Reasoning that `</think>` ends does not count, nor does what states a confidence in other words (`statements`). None
    if there is such a tag and no valid answer.
    """
    reply = completion[spoken_from(completion) :]
    return parse(reply).answer if _CONTRACT.search(reply) else statements_in(reply).answer


def answer_to(sample: LoggedSample, completion: str) -> str | None:
    """Return the answer in a completion (`answer_of`); where it names one of the question's options, that option."""
    answer = answer_of(completion)
    if answer is None or not sample.options:
        return answer
    place = option_of(answer, sample.options, letters_first=True)
    return answer if place is None else name_of(sample.options, place)


def sequence_likelihood(sample: LoggedSample, score: Score | None) -> float | None:
    """Return the geometric mean of the token probabilities of the answer (DualRead, app:baseline_protocols).

    The tokens are those of the answer's characters within the completion. None if the tokens do not spell the
    completion, if there is no valid answer, or if a log-probability is no number of at most 0.
    """
    if sample.tokens is None or (completion := _judged(sample, score)) is None:
        return None
    start = b"".join(token for token, _ in sample.tokens).rfind(completion.encode())
    begin = spoken_from(completion)
    reply = completion[begin:]
    span = answer_span(reply) if _CONTRACT.search(reply) else (0, len(reply))
    if start < 0 or span is None:
        return None
    left, right = (start + len(completion[: begin + place].encode()) for place in span[:2])
    ends = list(accumulate((len(token) for token, _ in sample.tokens), initial=0))
    log_probs = [sample.tokens[k][1] for k in tokens_within(list(pairwise(ends)), left, right)]
    if not log_probs or not all(math.isfinite(one) and one <= _ROUNDING for one in log_probs):
        return None
    return math.exp(min(math.fsum(log_probs) / len(log_probs), 0.0))


def self_consistency(sample: LoggedSample, score: Score | None) -> float | None:
    """Return the share of the further draws whose answer is that of the first (DualRead, app:baseline_protocols).

    Answers are compared in canonical form, and an invalid one agrees with none. They are those in the completions'
    `<answer>` blocks, or else those that the score read, or else whole completions. None if there are no further draws,
    or if the score read an answer in the first draw and the log does not say which it reads in the others.
    """
    if (first := _judged(sample, score)) is None or len(sample.completions) == 1:
        return None
    answers = [answer_to(sample, completion) for completion in sample.completions]
    if score is not None and score.answer is not None and not _CONTRACT.search(first):
        if score.draws is not None:
            answers = [answer_to(sample, read) for read in (score.answer, *score.draws)]
        elif canonical(answer_to(sample, score.answer) or "") != canonical(answers[0] or ""):
            return None
    own, *others = [canonical(answer or "") for answer in answers]
    return 0.0 if own == "" else others.count(own) / len(others)


def choice_likelihood(sample: LoggedSample, score: Score | None) -> float | None:
    """Return the probability of the choice that the score judges, by a softmax over all choices."""
    if not sample.choices or score is None or score.choice is None or not all(map(math.isfinite, sample.choices)):
        return None
    largest = max(sample.choices)
    weights = [math.exp(one - largest) for one in sample.choices]
    return weights[score.choice] / math.fsum(weights)


def _judged(sample: LoggedSample, score: Score | None) -> str | None:
    """Return the first completion; None if there is none, or if the score judges something else."""
    return sample.completions[0] if sample.completions and (score is None or score.of_first) else None


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind of confidence.

    Attributes:
        held: Whether a sample holds what the confidence is computed from.
        of: Computes it, or returns None.
        why_none: Why `of` returned None.
    """

    held: Callable[[LoggedSample], bool]
    of: Callable[[LoggedSample, Score | None], float | None]
    why_none: str


def kinds_of(stated: Stated) -> Mapping[str, Kind]:
    """Return {the name that the column `method` gets: the kind}, for a log whose stated confidences are read so."""
    return {
        "sequence_likelihood": Kind(
            held=lambda sample: sample.tokens is not None,
            of=sequence_likelihood,
            why_none="the tokens do not spell a valid answer",
        ),
        "self_consistency": Kind(
            held=lambda sample: len(sample.completions) > 1,
            of=self_consistency,
            why_none="the answers of further draws are missing or cannot be told",
        ),
        "stated": Kind(
            held=lambda sample: stated_text(sample, None) is not None,
            of=lambda sample, score: stated.confidence(stated_text(sample, score)),
            why_none="no valid stated confidence",
        ),
        "choice_likelihood": Kind(
            held=lambda sample: bool(sample.choices),
            of=choice_likelihood,
            why_none="it cannot be told which choice the score judges",
        ),
    }
