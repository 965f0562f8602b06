"""Stage draw_phantom: a phantom hospital in a data set's official on-disk format.

No inputs. Where the writer says how the data set names its images, truth.parquet tells how hazy each one is. It is no
official file: no loader reads it, and no model and no reader sees it; the evaluation does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from dualread import plugins
from dualread.artifacts.tables import from_rows, write_table
from dualread.errors import ConfigError, did_you_mean
from dualread.schema.base import Wire
from dualread.schema.columns import TRUTH
from dualread.schema.data import DrawPhantomSpec
from dualread.training.phantoms.scene import MODALITIES, REGIONS, Style
from dualread.training.writers.base import Hospital, cases


def compute(spec: DrawPhantomSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write the official files."""
    writer = plugins.load_module(spec.writer.module)
    hospital = _hospital(spec, writer)
    n_files = 0
    for n_files, (name, content) in enumerate(writer.official_files(hospital), start=1):  # noqa: B007
        file = out / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    if hasattr(writer, "IMAGE_NAME"):
        rows = [
            {"image_id": writer.IMAGE_NAME.format(case.image_id), "haze": case.scene.haze} for case in cases(hospital)
        ]
        write_table(out / "truth.parquet", from_rows(rows, TRUTH), TRUTH)
    counts = ", ".join(f"{n} {split}" for split, n in hospital.images.items())
    return f"read nothing, wrote {n_files} files: {counts} images of {hospital.size} x {hospital.size} pixels"


def _hospital(spec: DrawPhantomSpec, writer: ModuleType) -> Hospital:
    """Build the hospital; a setting outside its range is refused here, before anything is drawn."""
    where, phantom = f"phantoms.{spec.name}", spec.phantom
    if absent := sorted(set(phantom.images) - set(writer.SPLITS)):
        raise ConfigError(f"{where}.images: the format has no {absent}. Its splits: {', '.join(writer.SPLITS)}.")
    sizes = {name: value for name in ("size", "questions_per_image") if (value := getattr(phantom, name)) is not None}
    style = _style(f"{where}.style", phantom.style or {})
    hospital = Hospital(name=spec.name, seed=phantom.seed, images=phantom.images, style=style, **sizes)
    if not 1 <= hospital.questions_per_image <= writer.MOST_QUESTIONS:
        value = hospital.questions_per_image
        raise ConfigError(f"{where}.questions_per_image: {value!r}, expected 1 to {writer.MOST_QUESTIONS}.")
    return hospital


def _style(where: str, settings: Wire) -> Style:
    _check_known(where, settings, [field.name for field in fields(Style)])
    for key, known in (("modalities", MODALITIES), ("regions", REGIONS)):
        _check_known(f"{where}.{key}", settings.get(key, {}), known)
    changes: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in settings.items()}
    return Style(**changes)


def _check_known(where: str, settings: Wire, known: Sequence[str]) -> None:
    if unknown := sorted(set(settings) - set(known)):
        meant = did_you_mean(unknown[0], known)
        raise ConfigError(f"{where}.{unknown[0]}: no such setting. Known: {', '.join(known)}.{meant}")
