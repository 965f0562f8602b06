"""What stage fit_readers records of how the actor is asked, so that the next image is asked about in this way."""

from collections.abc import Mapping
from pathlib import Path

from dualread import plugins
from dualread.artifacts.tables import read_table
from dualread.digests import MANIFEST_NAME
from dualread.models.prompts import template_sha256
from dualread.schema.answers import ChosenImage, Image, ImageChange, Measure, ShardSpec
from dualread.schema.base import ConfiguredPlugin
from dualread.schema.columns import MANIFEST
from dualread.schema.readers import ScoringSpec
from dualread.schema.recorded import PromptText, RequiredView, Requirements
from dualread.store.digest import read_json
from dualread.store.manifest import read_manifest


def requirements(scoring: ScoringSpec, inputs: Mapping[str, Path]) -> Requirements:
    """Return what scoring the next image needs besides the weights; `inputs` are the artifacts `actor` and `facts`."""
    files = read_manifest(inputs["actor"] / MANIFEST_NAME).files
    assert scoring.answer.decoding is not None, "an answer is a completion"
    return Requirements(
        model=dict(scoring.model),
        facts=read_json(inputs["facts"] / "facts.json")["facts"],
        contract=scoring.contract,
        images=_images(inputs),
        checkpoint={Path(name).name: file["sha256"] for name, file in files.items() if name.startswith("checkpoint/")},
        prompt=_prompt(scoring.answer),
        decoding=scoring.answer.decoding,
        views=tuple(
            RequiredView(
                name=view.name,
                image=_image(view.asked.image),
                draws=view.asked.draws,
                layers=view.asked.layers,
                measure=_measure(view.asked.measure),
                groups=view.groups,
                prompt=_prompt(view.asked),
                decoding=view.asked.decoding,
                choices=view.asked.choices,
                forced=view.asked.completions is not None,
            )
            for view in scoring.views
        ),
        spans=scoring.spans,
    )


def _images(inputs: Mapping[str, Path]) -> tuple[tuple[str, ...], ...] | None:
    """Return the roles of the images of the questions, see `Requirements.images`."""
    if "manifest" not in inputs:
        return None
    shown = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST, ("image_files", "image_roles"))
    known = {tuple(roles or ["-"] * len(files)) for files, roles in shown.iter_rows()}
    return None if known <= {("-",)} else tuple(sorted(known))


def _image(image: ChosenImage) -> Image:
    name = image.module.removeprefix(f"{plugins.package_of('images')}.")
    return ImageChange(name=name, settings=image.settings, role=image.role) if image.settings or image.role else name


def _measure(measure: ConfiguredPlugin | None) -> Measure | None:
    if measure is None:
        return None
    name = measure.module.removeprefix(f"{plugins.package_of('measures')}.")
    return Measure(name=name, settings=measure.settings)


def _prompt(asked: ShardSpec) -> PromptText:
    return PromptText(name=asked.prompt.name, sha256=template_sha256(asked.prompt.name))
