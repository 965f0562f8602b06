"""Log-probabilities of named choices, out of the one view of a reader."""

from collections.abc import Sequence

import numpy as np

from dualread.errors import ConfigError
from dualread.readers.base import Answers


def choice_log_probs(answers: Answers, names: Sequence[str]) -> np.ndarray:
    """Return the log-probabilities in nats of the choices `names`, float64 [n, number of names].

    A row of NaN belongs to an answer that the view did not ask about, because it is not valid.

    Raises:
        ConfigError: There is not exactly one view, it has no choices, or one of `names` is not among them.
    """
    view = answers.only_view()
    found = view.choices()
    if not found:  # not one answer was valid
        return np.full((len(answers), len(names)), np.nan)
    if missing := [name for name in names if name not in found]:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise ConfigError(
            f"views.{view.name}: lacks {len(missing)} of the {len(names)} choices that this reader needs: {shown}. "
            "Add them to the view."
        )
    return np.stack([found[name].astype(np.float64) for name in names], axis=1)
