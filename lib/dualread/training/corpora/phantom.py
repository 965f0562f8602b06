"""Phantom images drawn for pretraining alone: they are in no split of any data set, and never written to disk."""

from pathlib import Path
from typing import Annotated, Literal

from PIL import Image
from pydantic import Field

from dualread.schema.base import Positive, Section
from dualread.seeding import generator
from dualread.training.corpora import Corpus, Item, Subject
from dualread.training.phantoms import reports
from dualread.training.phantoms.questions import SceneQuestion, ask, findings
from dualread.training.phantoms.scene import Scene, draw, sample_scene


class Settings(Section):
    """How many images are drawn."""

    n_images: Positive
    """Images to train on."""
    held_out: Positive
    """Images for the report on formats."""
    size: Annotated[int, Field(ge=16)]
    """Height and width of an image, in pixels."""
    task: Literal["questions", "report"] = "questions"
    """What is asked about an image: the questions of `phantoms.questions`, or a report of it."""


def open_corpus(settings: Settings, manifest: Path | None, seed: int) -> Corpus:
    """Draw `settings.n_images` training images and `settings.held_out` held-out ones, each by a seed of its own."""
    del manifest
    size = settings.size

    def subject(part: str, index: int) -> Subject:
        rng = generator("phantom pool", seed, part, index)
        scene = sample_scene(rng)
        view = Image.fromarray(draw(scene, rng, size=size))
        if settings.task == "report":
            return Subject(views=[view], items=[_report(scene, seed, part, index)])
        words = findings(scene)
        items = [
            Item(
                question=q.question,
                answer=q.answer,
                wrong_answers=q.wrong_answers,
                options=q.options,
                findings=words,
                evidence=q.evidence,
                difficulty=_difficulty(q, scene),
            )
            for q in ask(scene)
        ]
        return Subject(views=[view], items=items)

    return Corpus(
        training=[subject("training", i) for i in range(settings.n_images)],
        held_out=[subject("held out", i) for i in range(settings.held_out)],
    )


def _report(scene: Scene, *names: str | int) -> Item:
    """Return the report on a scene, and that on another one, which is wrong. The reasoning is empty."""
    other = sample_scene(generator("another phantom", *names))
    return Item(
        question=reports.INSTRUCTION,
        answer=" ".join(reports.sentences(scene, *names)),
        wrong_answers=(" ".join(reports.sentences(other, *names)),),
        options=(),
        findings="",
        evidence="",
        difficulty=0.9 if scene.haze else 0.5,
    )


def _difficulty(question: SceneQuestion, scene: Scene) -> float:
    """Return the assumed difficulty: questions about lesions are hard, small or faint ones and hazy images hardest."""
    if scene.haze:
        return 0.9
    if question.content_family in ("modality", "plane", "organ", "knowledge"):
        return 0.1
    return 0.9 if scene.lesion_count and (scene.lesion_size == "small" or scene.contrast < 1) else 0.6
