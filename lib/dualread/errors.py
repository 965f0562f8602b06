"""The errors that people see. Every message says where, what is wrong, the value, what was expected, what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class DualReadError(Exception):
    """Base of all errors raised on purpose; the command line prints its message without a traceback."""


class ConfigError(DualReadError):
    """A configuration entry is unknown, missing or out of range."""


class DataError(DualReadError):
    """A row or a file of a data set is broken; the message names the file and the row."""


class ArtifactError(DualReadError):
    """A stored artifact is missing, damaged, or does not have the columns that its schema promises."""


class ReplayDisagreementError(DualReadError):
    """A replay does not reproduce the log-probabilities of the generation that it replays."""


class ReaderError(DualReadError):
    """A reader, perhaps somebody's plugin, gives what is no score or no probability."""


class UndefinedMetricError(DualReadError, ValueError):
    """A metric has no value on this input (for instance AUROC with one class only); the message is the reason."""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """Return " Did you mean 'x'?", where x is the one of `known` that is spelled most like `name`, or "" if none is.

    The result is put behind the list of the known names. Case is ignored; the beginning of a name is like the name.
    """
    text, spelled = str(name).lower(), {str(one).lower(): one for one in known}
    # Two digits are alike where one of them is wrong (16 for 17), two letters are not.
    nearest = get_close_matches(text, spelled, n=1, cutoff=0.5 if isinstance(name, int) else 0.6)
    nearest += [one for one in spelled if len(text) > 2 and one.startswith(text)]
    return f" Did you mean {spelled[nearest[0]]!r}?" if nearest else ""
