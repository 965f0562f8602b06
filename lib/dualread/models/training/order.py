"""The number of training steps, and the order of the prompts."""

import math

import numpy as np

from dualread.errors import ConfigError
from dualread.seeding import generator
from dualread.specs.parts import Settings


def steps_of(settings: Settings, n_rows: int) -> int:
    """Return the number of optimizer steps of an actor by its settings `steps`, or `passes` and `prompts_per_step`.

    Raises:
        ConfigError: Not exactly one of `steps` and `passes` is given.
    """
    if ("steps" in settings) == ("passes" in settings):
        raise ConfigError(
            f"actor settings: {sorted(settings)}. Expected either `steps` or `passes`, not both. Add or remove one."
        )
    return settings.get("steps") or n_steps(n_rows, settings["passes"], settings["prompts_per_step"])


def n_steps(n_rows: int, passes: float, prompts_per_step: int) -> int:
    """Return the number of optimizer steps: 3 passes over 4919 rows at 128 a step are 117."""
    return math.ceil(passes * math.ceil(n_rows / prompts_per_step))


def training_order(n_rows: int, *, steps: int, prompts_per_step: int, seed: int) -> np.ndarray:
    """Return the numbers of the rows to train on, in order, int64 [steps * prompts_per_step].

    The order is a concatenation of random permutations of the rows. The last step of a pass is filled up from the next
    permutation instead of being dropped, and every row occurs n times before any row occurs n + 1 times.
    """
    rng = generator("training order", seed)
    length = steps * prompts_per_step
    permutations = [rng.permutation(n_rows) for _ in range(math.ceil(length / n_rows))]
    return np.concatenate(permutations)[:length]
