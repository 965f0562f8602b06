"""What is read from a completion without its gold answer."""

from typing import Any

from dualread.grading.canonical import canonical
from dualread.grading.parse import Parsed


def why_no_answer(answer: str | None, canonical_answer: str | None, parse_status: str = "") -> str | None:
    """Return why a completion is wrong whatever the reference answer is; None if there is an answer to be judged.

    No method has a confidence in an answer that does not exist, and it is never kept.

    Args:
        answer: The answer, as `graded_answer` returns it.
        canonical_answer: Its canonical form.
        parse_status: The status of the completion, where it is known.
    """
    if parse_status == "no_end_of_thinking":
        return "the thinking of the completion never ends"
    if answer is None:
        return "the completion has no valid answer block"
    return None if canonical_answer else "the answer is nothing but punctuation"


def graded_answer(parsed: Parsed) -> dict[str, Any]:
    """Return the answer, its canonical form (None if it is empty), the stated confidence, and the status of both.

    The keys are columns of the graded table.
    """
    return {
        "answer": parsed.answer,
        "canonical_answer": (canonical(parsed.answer) or None) if parsed.answer is not None else None,
        "verbalized_confidence": parsed.confidence,
        "parse_status": parsed.status,
    }
