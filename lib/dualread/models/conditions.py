"""Conditions and views: which image and which prompt an actor gets. Generation and replay both build their inputs here.

Under a condition, an actor commits an answer. A view asks or shows the actor something more about that answer.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import polars as pl

from dualread.models import prompts
from dualread.models.actor import Request
from dualread.models.images.base import Change, changes_of, rows_shown, shown_images
from dualread.schema.base import ConfiguredPlugin, Plugin


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question as it is put to an actor.

    Attributes:
        sample_id: Id of the question in the manifest.
        text: Text of the last turn.
        image_files: Files of the images that are shown, in order, relative to the manifest artifact.
        image_id: Id of what is shown; unique within the manifest, but not across manifests.
        image_roles: The role of each image; empty if they have none.
        changes: What is done to these images before they are shown.
        draw: Which draw of these changes it is, from 0.
        before: The turns before the last one.
    """

    sample_id: str
    text: str
    image_files: Sequence[str]
    image_id: str
    image_roles: Sequence[str] = ()
    changes: tuple[Change, ...] = ()
    draw: int = 0
    before: tuple[prompts.Turn, ...] = ()

    @property
    def name(self) -> str:
        """A name of what is asked, unique within a shard: the sample_id, and the number of a later draw."""
        return self.sample_id if self.draw == 0 else f"{self.sample_id} draw {self.draw}"

    def request(self, manifest: Path) -> Request:
        """Return the prompt and what is shown of the images in the `manifest` artifact.

        Within a manifest, equal images have equal names. Images of other manifests may have the same name.
        """
        sources = [manifest / file for file in self.image_files]
        name, shown = shown_images(sources, self.contents, self.image_roles, self.changes, self.draw)
        name = name if self.changes else self.image_id
        return Request(text=self.text, images=shown, image_name=name, row=self.name, before=self.before)

    @property
    def contents(self) -> list[str]:
        """The digest of the bytes of each image's file."""
        return [PurePosixPath(file).stem for file in self.image_files]


def asked(
    manifest: pl.DataFrame,
    *,
    prompt: str,
    hints: Plugin | None = None,
    images: Sequence[ConfiguredPlugin] = (),
    draws: int = 1,
    pairs: pl.DataFrame | None = None,
    answers: Mapping[str, str] | None = None,
) -> Iterator[Asked]:
    """Yield the questions of a condition or view, sorted by sample_id and draw.

    Args:
        manifest: A manifest table.
        prompt: Name of the template.
        hints: What gives a prompt with `{HINT}` its wrong answers; specs name it, so that only these depend on grading.
        images: The image changes of the condition, and of the view; without any, questions have their own images.
        draws: How often each question is asked, each time with another draw of the changes.
        pairs: The pairs table of the same split; needed for donors.
        answers: The committed answer of each sample_id, for the prompt of a self-check; questions without one are left
            out.
    """
    rows, changes = rows_shown(manifest, images, pairs), changes_of(images)
    hinted = importlib.import_module(f"dualread.{hints.module}").misleading(rows) if hints else None
    if answers is not None:
        rows = rows.filter(pl.col("sample_id").is_in(list(answers)))
    rows = rows.select("sample_id", "question", "options", "image_files", "image_id", "image_roles").sort("sample_id")
    return (
        Asked(
            sample_id=row["sample_id"],
            text=last.text,
            image_files=row["image_files"],
            image_id=row["image_id"],
            image_roles=row["image_roles"],
            changes=changes,
            draw=draw,
            before=tuple(before),
        )
        for row in rows.iter_rows(named=True)
        for *before, last in [
            prompts.rendered_turns(
                prompt,
                question=question_field(row["question"], row["options"]),
                answer=None if answers is None else answers[row["sample_id"]],
                hint=None if hinted is None else hinted[row["sample_id"]],
            )
        ]
        for draw in range(draws)
    )


def question_field(question: str, options: list[str]) -> str:
    """Return what a prompt gets as its question: the question, with its options if it has any."""
    return prompts.option_field(question, options) if options else question
