"""One scored question as text."""

from dualread.commands.text import aligned
from dualread.scoring.results import Reading, Scored

_NO_ANSWER = "none; the completion has no valid answer block"
_DECISIONS = {True: "keep", False: "do not keep", None: "undecided"}


def text(scored: Scored, method: str) -> str:
    """Return a few aligned lines: answer, confidences, decision, and what differs on the donor's image."""
    rows = [
        ["answer", scored.answer or _NO_ANSWER],
        ["confidence", _confidence(scored)],
        *(
            [name, f"{of.confidence:.4f}{_imputed(of.imputed)}"]
            for name, of in scored.methods.items()
            if name != method
        ),
        ["decision", f"{_DECISIONS[scored.decision.keep]}: {scored.decision.reason}"],
    ]
    if scored.donor is not None:
        rows += [
            ["on the donor's image", scored.donor.answer or _NO_ANSWER],
            ["  confidence", f"{_confidence(scored.donor)}"],
            ["  drop", f"{scored.drop:+.4f}"],
        ]
    rows += [["note", note] for note in scored.notes]
    return "\n".join(aligned(rows, numbers=()))


def _confidence(reading: Reading) -> str:
    parts = {"PSR {:.4f} before the answer": reading.psr, "PER {:.4f} after it": reading.per}
    shown = ", ".join(text.format(value) for text, value in parts.items() if value is not None)
    return f"{reading.confidence:.4f}" + (f"  {shown}" if shown else "")


def _imputed(imputed: bool) -> str:
    return "  imputed: the method has no value here" if imputed else ""
