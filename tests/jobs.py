"""Jobs that train a tiny actor on a few questions."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dualread.models import prompts
from dualread.models.conditions import Asked
from dualread.schema.recorded import Facts
from dualread.training.job import Job
from tests.tiny import MODEL, image


def by_length(verdicts: Any, **_: Any) -> list[float]:
    """Return rewards that differ within every group, so that gradients are not zero."""
    return [float(len(verdict.completion)) for verdict in verdicts]


def job(
    folder: Path,
    checkpoint: Path,
    questions: Sequence[str],
    *,
    size: tuple[int, int] = (32, 32),
    prompt: str = "shared",
    before: tuple[prompts.Turn, ...] = (),
    **changes: Any,
) -> Job:
    """A job of up to three questions, each about a picture in `folder`; `changes` are fields of `Job`."""
    asked = []
    for i, text in enumerate(questions):
        image(i).resize(size).save(folder / f"{i}.png")
        words = prompts.render(prompt, question=text)
        asked.append(Asked(sample_id=str(i), text=words, image_files=[f"{i}.png"], image_id=str(i), before=before))
    fields = {"facts": Facts(), "backbone_settings": MODEL, "seed": 1, "out": folder / "actor"}
    fields |= {"checkpoint": checkpoint, "questions": asked, "images": folder, "scratch": folder / "scratch"}
    return Job(references=[["yes"], ["large"], ["left"]][: len(asked)], **fields | changes)
