"""How often and in which order prompts are shown to an actor."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dualread.errors import ConfigError
from dualread.seeding import generator


def steps_of(settings: Mapping[str, Any], n_rows: int) -> int:
    """Return the number of optimizer steps.

    Raises:
        ConfigError: Not exactly one of `steps` and `passes` is given.
    """
    if ("steps" in settings) == ("passes" in settings):
        raise ConfigError(f"training.grpo: settings {sorted(settings)}: give either `steps` or `passes`, not both.")
    return settings.get("steps") or n_steps(n_rows, settings["passes"], settings["prompts_per_step"])


def n_steps(n_rows: int, passes: float, prompts_per_step: int) -> int:
    """Return the number of optimizer steps: 3 passes over 4919 rows at 128 a step are 117 (PROTOCOL 1)."""
    return math.ceil(passes * math.ceil(n_rows / prompts_per_step))


def training_order(n_rows: int, *, steps: int, prompts_per_step: int, seed: int) -> np.ndarray:
    """Return row numbers [steps * prompts_per_step], int64.

    A stream of permutations without a gap: the incomplete last chunk of a pass is filled from the next permutation
    instead of being dropped, and every row is seen once before any is seen again.
    """
    rng = generator("training order", seed)
    length = steps * prompts_per_step
    permutations = [rng.permutation(n_rows) for _ in range(math.ceil(length / n_rows))]
    return np.concatenate(permutations)[:length]
