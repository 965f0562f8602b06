"""Stage draw_phantom: nothing -> a phantom hospital in SLAKE's official on-disk format.

Spec: name, seed, images {train, validation, test: number}, and optionally size, questions_per_image and style (the
fields of `dualread.phantoms.scene.Style`). No inputs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError
from dualread.phantoms.questions import N_QUESTIONS
from dualread.phantoms.scene import MODALITIES, REGIONS, Style
from dualread.phantoms.slake_files import Hospital, official_files


def compute(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    """Write train.json, validate.json, test.json and imgs/xmlabN/source.jpg."""
    hospital = _hospital(spec)
    n_files = 0
    for n_files, (name, content) in enumerate(official_files(hospital), start=1):  # noqa: B007
        file = out / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    counts = ", ".join(f"{n} {split}" for split, n in hospital.images.items())
    return f"read nothing, wrote {n_files} files: {counts} images of {hospital.size} x {hospital.size} pixels"


def _hospital(spec: Mapping[str, Any]) -> Hospital:
    """Build the hospital; everything outside its range is refused here, before anything is drawn."""
    name = spec.get("name")
    where = f"phantoms.{name}"
    _check_known(where, spec, [field.name for field in fields(Hospital)])
    if missing := [key for key in ("name", "seed", "images") if key not in spec]:
        raise ConfigError(f"{where}.{missing[0]}: is missing. Expected name, seed and images.")
    images = spec["images"]
    if set(images) != {"train", "validation", "test"} or any(type(n) is not int or n < 1 for n in images.values()):
        raise ConfigError(
            f"{where}.images: {dict(images)!r}, expected a positive number for train, validation and test."
        )
    hospital = Hospital(**{**spec, "style": _style(f"{where}.style", spec.get("style", {}))})
    if not 1 <= hospital.questions_per_image <= N_QUESTIONS:
        value = hospital.questions_per_image
        raise ConfigError(f"{where}.questions_per_image: {value!r}, expected 1 to {N_QUESTIONS}.")
    if hospital.size < 16:
        raise ConfigError(f"{where}.size: {hospital.size!r} pixels, expected at least 16.")
    return hospital


def _style(where: str, settings: Mapping[str, Any]) -> Style:
    _check_known(where, settings, [field.name for field in fields(Style)])
    for key, known in (("modalities", MODALITIES), ("regions", REGIONS)):
        _check_known(f"{where}.{key}", settings.get(key, {}), known)
    changes: dict[str, Any] = {key: tuple(v) if isinstance(v, list) else v for key, v in settings.items()}
    return Style(**changes)


def _check_known(where: str, settings: Mapping[str, Any], known: Sequence[str]) -> None:
    if unknown := sorted(set(settings) - set(known)):
        raise ConfigError(f"{where}.{unknown[0]}: no such setting. Known: {', '.join(known)}.")
