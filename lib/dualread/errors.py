"""The errors that users see. A message says where, what is wrong, the value, what was expected, and what to do."""

import re
from collections.abc import Iterable
from difflib import get_close_matches

# What moves a terminal's cursor, starts its commands, turns the direction of writing, or cannot be written at all.
_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]|\r(?!\n)"
)


def printable(text: object) -> str:
    """Return a text that may hold other people's words as it may be printed: control characters are escaped.

    They are written as in JSON, so that a line of JSON stays one. Line ends and tabs are kept.
    """
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", str(text))


class DualReadError(Exception):
    """Base class of all expected errors; the command line prints the message without a traceback."""


class ConfigError(DualReadError):
    """A configuration entry is unknown, missing or out of range."""


class DataError(DualReadError):
    """A row or a file of a data set is invalid; the message names the file and the row."""


class ArtifactError(DualReadError):
    """A stored artifact is missing, damaged, or lacks columns of its schema."""


class ReplayDisagreementError(DualReadError):
    """A replay does not reproduce the log-probabilities of the original generation."""


class TrainingError(DualReadError):
    """A training does not do what it was told, or learns nothing: other log-probabilities, completions, rewards."""


class ReaderError(DualReadError):
    """A reader, perhaps a user's plugin, returned invalid scores or probabilities."""


class UndefinedScoreError(ReaderError):
    """A reader has no finite score of an answer, or no probability; the message is the reason."""


class UnfittedError(ReaderError):
    """A reader cannot be fitted on these answers; the message is the reason. It ends this method, not the study."""


class UndefinedMetricError(DualReadError, ValueError):
    """A metric is undefined on this input (for instance AUROC with only one class); the message is the reason."""


_LISTED = 10  # problems that one error lists


def refuse(problems: Iterable[str]) -> None:
    """Raise one DataError that lists the first ten of `problems`; do nothing if there are none.

    Broken rows are reported together, so that a person can repair a data set in one go.
    """
    sentences = list(problems)
    if sentences:
        rest = [f"... and {len(sentences) - _LISTED} more"] if len(sentences) > _LISTED else []
        raise DataError("\n".join([*sentences[:_LISTED], *rest]))


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return " Did you mean 'x'?" with the name in `known` that is spelled most like `name`, or "" if none is similar.

    The result is meant to follow the list of known names. Case is ignored; the beginning of a name counts as similar.
    """
    text, spelled = str(name).lower(), {str(entry).lower(): entry for entry in known}
    # A two-digit number with one wrong digit (16 for 17) is similar; a two-letter name with one wrong letter is not.
    nearest = get_close_matches(text, spelled, n=1, cutoff=0.5 if isinstance(name, int) else 0.6)
    nearest += [name for name in spelled if len(text) > 2 and name.startswith(text)]
    return f" Did you mean {spelled[nearest[0]]!r}?" if nearest else ""


def in_a_line(error: Exception) -> str:
    """Return the type of another package's error and the first line of its text, for a message of our own."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
