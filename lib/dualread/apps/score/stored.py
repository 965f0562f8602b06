"""A few questions whose answers, states and confidences travel with a bundle, so that another engine can be checked.

The images are drawn, because a bundle may be shared and its study's images may not. What an answer is worth does not
matter: the same model has to read the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Annotated

import numpy as np
from PIL import Image, ImageDraw
from pydantic import Field

from dualread import limits
from dualread.apps.score.answering import OpenActor
from dualread.apps.score.bundle import STORED, write_shared
from dualread.apps.score.loading import LoadedScorer
from dualread.apps.score.readings import scores_of
from dualread.apps.score.results import Question, shown
from dualread.artifacts.tensors import TensorFile
from dualread.errors import ArtifactError, ConfigError
from dualread.models.replay.forward import TENSORS
from dualread.schema.base import Section

_QUESTIONS = ("Is there a lesion?", "Which organ is shown?", "What is unusual here?", "Is this image normal?")
_SIDE = 96


_Confidence = Annotated[float, Field(ge=0, le=1)]


class _Answer(Section):
    """What an actor said to one of the questions, and what the reader said about it, or about each of its claims."""

    question: Annotated[str, Field(max_length=limits.STORED_CHARACTERS)]
    token_ids: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, max_length=limits.STORED_TOKENS)]
    confidence: _Confidence | Annotated[list[_Confidence], Field(max_length=limits.STORED_TOKENS)]


class _Answers(Section):
    answers: Annotated[list[_Answer], Field(min_length=1, max_length=limits.STORED_ANSWERS)]


@dataclass(frozen=True, kw_only=True)
class StoredAnswer:
    """A question, its images, the completion, the states that readers may read, and the confidence of that time.

    States [n, D] and confidences are those of n claims of a report, or of an answer, which is one.
    """

    images: Sequence[Image.Image]
    question: str
    token_ids: Sequence[int]
    states: dict[str, np.ndarray]
    confidences: Sequence[float]


def write(folder: Path, loaded: LoadedScorer[OpenActor]) -> None:
    """Ask the questions, and write what is answered into the bundle in `folder`."""
    required = loaded.needs.requirements
    n_images = min(map(len, required.images or [[""]]))
    images = [[_drawn(k + 100 * i) for i in range(n_images)] for k in range(len(_QUESTIONS))]
    asked = [
        shown(Question(image=pictures, question=question), pictures, loaded.actor.encoder, required)
        for pictures, question in zip(images, _QUESTIONS, strict=True)
    ]
    answered = loaded.actor.answer(asked)
    confidences = scores_of(loaded.readers.confidence_reader, answered).confidence.tolist()
    if answered.claims is not None:
        of_rows = iter(confidences)
        confidences = [[next(of_rows) for _ in claims] for claims in answered.claims]
    answers = [
        {"question": question, "token_ids": list(completion.token_ids), "confidence": confidence}
        for question, completion, confidence in zip(_QUESTIONS, answered.completions, confidences, strict=True)
    ]
    tensors = {name: answered.answers.features(name) for name in (TENSORS if loaded.needs.features else ())}
    tensors["images"] = np.stack([np.asarray(picture) for pictures in images for picture in pictures])
    write_shared(folder / STORED, tensors, {"answers": answers})


def read(file: TensorFile) -> list[StoredAnswer]:
    """Return what `write` wrote; an ArtifactError says that the file holds something else."""
    try:
        answers, tensors = _Answers.from_spec(file.header, STORED).answers, dict(file.tensors)
        images = tensors.pop("images")
        n_images, rest = divmod(len(images), len(answers))
        confidences = [c if isinstance(c := answer.confidence, list) else [c] for answer in answers]
        ends = list(accumulate(map(len, confidences), initial=0))
        lengths = {len(values) for values in tensors.values()} | {ends[-1]}
        if len(lengths) > 1 or rest or not n_images or images.dtype != np.uint8:
            raise ValueError("its tensors and its answers differ in number")
        return [
            StoredAnswer(
                images=[Image.fromarray(image) for image in images[k * n_images : (k + 1) * n_images]],
                question=answer.question,
                token_ids=answer.token_ids,
                states={name: values[ends[k] : ends[k + 1]] for name, values in tensors.items()},
                confidences=confidences[k],
            )
            for k, answer in enumerate(answers)
        ]
    except (ConfigError, ValueError, TypeError, KeyError) as error:
        raise ArtifactError(f"{file.path}: cannot be read ({error}). Export the bundle again.") from error


def _drawn(seed: int) -> Image.Image:
    """Return a picture of no patient: a body, and something in it that is lighter."""
    rng = np.random.default_rng(seed)
    noise = rng.integers(0, 60, (_SIDE, _SIDE)).astype(np.uint8)
    picture = Image.fromarray(noise)
    pen = ImageDraw.Draw(picture)
    pen.ellipse((10, 16, 86, 80), fill=int(rng.integers(90, 130)))
    x, y, r = (int(v) for v in rng.integers((25, 30, 5), (65, 60, 14)))
    pen.ellipse((x - r, y - r, x + r, y + r), fill=int(rng.integers(180, 255)))
    return picture.convert("RGB")
