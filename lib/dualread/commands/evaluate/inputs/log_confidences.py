"""The confidences that a log of another harness holds without saying so: one function per kind.

Each takes a sample and the score that judges it, and returns a number in [0, 1], or None where this sample gives none.
They are raw: nothing is fitted, unlike the methods of the same names in a study.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, pairwise

from dualread.commands.evaluate.inputs.stated import Stated, spoken_from, stated_text
from dualread.commands.evaluate.inputs.statements import statements_in
from dualread.data.logs.base import Sample, Score
from dualread.grading.canonical import canonical
from dualread.grading.options import name_of, option_of
from dualread.grading.parse import answer_span, parse
from dualread.grading.spans import tokens_within

_CONTRACT = re.compile(r"</?(?:answer|confidence)>")
_ROUNDING = 1e-6  # by which a log-probability may exceed 0


def answer_of(completion: str) -> str | None:
    """Return the answer in a completion: its `<answer>` block, or all of it if it has no tag of the paper's contract.

    Reasoning that `</think>` ends does not count, nor does what states a confidence in other words (`statements`). None
    if there is such a tag and no valid answer.
    """
    reply = completion[spoken_from(completion) :]
    return parse(reply).answer if _CONTRACT.search(reply) else statements_in(reply).answer


def answer_to(sample: Sample, completion: str) -> str | None:
    """Return the answer in a completion (`answer_of`); where it names one of the question's options, that option."""
    answer = answer_of(completion)
    if answer is None or not sample.options:
        return answer
    place = option_of(answer, sample.options, letters_first=True)
    return answer if place is None else name_of(sample.options, place)


def sequence_likelihood(sample: Sample, score: Score | None) -> float | None:
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


def self_consistency(sample: Sample, score: Score | None) -> float | None:
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


def choice_likelihood(sample: Sample, score: Score | None) -> float | None:
    """Return the probability of the choice that the score judges, by a softmax over all choices."""
    if not sample.choices or score is None or score.choice is None or not all(map(math.isfinite, sample.choices)):
        return None
    largest = max(sample.choices)
    weights = [math.exp(one - largest) for one in sample.choices]
    return weights[score.choice] / math.fsum(weights)


def _judged(sample: Sample, score: Score | None) -> str | None:
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

    held: Callable[[Sample], bool]
    of: Callable[[Sample, Score | None], float | None]
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
