"""The errors that people see. Every message says where, what is wrong, the value, what was expected, what to do."""


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


class UndefinedMetricError(DualReadError, ValueError):
    """A metric has no value on this input (for instance AUROC with one class only); the message is the reason."""
