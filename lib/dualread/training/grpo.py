"""GRPO: group-relative policy optimization with TRL's trainer (paper, section A); used for RLVR and RLCR."""

from typing import Any

from dualread.training.job import Job
from dualread.training.settings import TrainingSettings
from dualread.training.trainer import Algorithm, run


class Settings(TrainingSettings):
    """How an actor is trained."""


def train(job: Job) -> list[dict[str, Any]]:
    """Train an actor from `job.checkpoint`, save it to `job.out`, and return its log."""
    return run(job, Algorithm())
