"""What is read from a completion without its gold answer."""

from typing import Any

from dualread.grading.canonical import canonical
from dualread.grading.parse import Parsed


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
