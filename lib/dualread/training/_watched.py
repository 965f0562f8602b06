"""What somebody sees of a training while it runs: a tracker, and samples in the log. No result depends on either.

`machine.report_to` and `machine.samples_every` of a study reach its jobs as variables of their environment
(`dualread.study.run`): specs do not contain them, so that an actor is not trained again to be watched.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from dualread.errors import ConfigError

SAMPLES = 3  # completions of each sampled step


def tracking(run: str) -> dict[str, Any]:
    """Return the trainer's arguments for the trackers that the environment names; `run` is the run's name there.

    Raises:
        ConfigError: A tracker is not installed.
    """
    if not (trackers := [name for name in os.environ.get("DUALREAD_REPORT_TO", "").split(",") if name]):
        return {"report_to": "none"}
    from transformers.integrations.integration_utils import get_available_reporting_integrations

    installed = get_available_reporting_integrations()
    if missing := [name for name in trackers if name not in installed]:
        raise ConfigError(
            f"machine.report_to: {missing[0]!r} is not installed in the environment of this training, {sys.prefix}."
            f" Installed: {', '.join(installed) or 'none'}. Install it there with pip, or leave it out."
        )
    results = os.environ.get("DUALREAD_RESULTS", "results")
    os.environ.setdefault("TENSORBOARD_LOGGING_DIR", f"{results}/logs/tensorboard/{run}")
    project = os.path.basename(results)
    os.environ.setdefault("WANDB_PROJECT", project)
    return {"report_to": trackers, "run_name": run, "project": project}


def are_due(step: int) -> bool:
    """Return whether samples of a step, the number of earlier ones, are shown."""
    every = int(os.environ.get("DUALREAD_SAMPLES_EVERY", "0"))
    return every > 0 and step % every == 0


def samples(step: int, names: Sequence[str], texts: Sequence[str], rewards: Sequence[float]) -> Iterator[str]:
    """Yield a line per sample: completions that are evenly spread over those of a step.

    Args:
        step: The number of earlier steps.
        names: The sample_id of the question of each completion.
        texts: The completions.
        rewards: Their rewards.
    """
    n = len(texts)
    for i in sorted({k * (n - 1) // max(SAMPLES - 1, 1) for k in range(SAMPLES)}):
        text = " ".join(texts[i].split())
        yield f"step {step + 1}, question {names[i]}, reward {rewards[i]:.3g}: {text}"
