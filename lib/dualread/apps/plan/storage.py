"""The disk space that a study needs, and what has to be downloaded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dualread import plugins
from dualread.models.replay.forward import VECTORS
from dualread.study.costs import is_tiny, parameters_of
from dualread.study.work import PlannedStudy, width_of

_FLOAT32, _BFLOAT16 = 4, 2  # bytes
_TINY = 7.0e6  # bytes of a tiny checkpoint
_MODEL_TERMS = "The model's own license; for some models you have to accept the terms on the hub with your account."


@dataclass(frozen=True, kw_only=True)
class Download:
    """Something that still has to be downloaded or put in place."""

    name: str  # the name of its entry in the config
    where: str  # the repository and commit, or the folder into which it has to be put by hand
    size: float | None  # approximate size in bytes; None if not known
    terms: str  # license, citation, and where to find the official files


def disk_of(study: PlannedStudy) -> dict[str, float]:
    """Return {kind of artifact: bytes}; answers, readers, confidences and metrics are a small part of these."""
    kinds = {"images": 0.0, "checkpoints": 0.0, "features": 0.0, "batches, kept for edits": 0.0}
    assumed, shards = study.costs["assumed"], study.shards
    for name, dataset in study.config["datasets"].items():
        unit = assumed["phantom_image_bytes" if "phantom" in dataset["source"] else "image_bytes"]
        kinds["images"] += sum(study.sizes.of(name, split).images for split in dataset["splits"]) * unit
    for name, backbone in study.opened.items():
        kinds["checkpoints"] += _checkpoint(name, backbone, _BFLOAT16) if study.needs_base else 0.0
        for actor, entry in study.config["actors"].items():
            n_seeds, trains_all = len(shards.seeds(name, actor)), False
            if actor in study.trained:
                trains_all = study.settings(name, actor).lora is None or backbone["settings"]["dtype"] == "float32"
            if "checkpoints" in entry or actor in study.trained:
                kinds["checkpoints"] += n_seeds * _checkpoint(name, backbone, _FLOAT32 if trains_all else _BFLOAT16)
            replayed = shards.replayed(actor) if actor in shards.answering and actor not in shards.given else []
            # States that a generation keeps stand beside its answers, too.
            twice = [shard for shard in replayed if shards.pass_reading(actor, shard)]
            n, n_more = (sum(study.answers([shard]) for shard in part) for part in (replayed, twice))
            size = n_seeds * len(VECTORS) * (width_of(backbone) if n else 0) * _FLOAT32
            kinds["features"] += (n + n_more) * size
            kinds["batches, kept for edits"] += n * size
    for name, backbone in study.opened.items():
        kept = [study.settings(name, actor) for actor in study.trained]
        if any(settings.save_every and settings.lora is None for settings in kept):
            # Two checkpoints of the weights and of Adam's two moments, from which a killed training resumes.
            kinds[f"also, while an actor of {name} trains"] = 2 * 3 * _checkpoint(name, backbone, _FLOAT32)
    return kinds


def downloads_of(study: PlannedStudy) -> Iterator[Download]:
    """Yield what has to be downloaded, or put into its folder, before the study can run."""
    for name, dataset in study.config["datasets"].items():
        if "phantom" not in dataset["source"] and _is_missing(study, dataset["source"]):
            gigabytes, terms = (plugins.declared("datasets", dataset["loader"], n) for n in ("DOWNLOAD_GB", "TERMS"))
            size = gigabytes * 1e9 if gigabytes else None
            yield Download(name=name, where=_where(dataset["source"]), size=size, terms=terms or "")
    for name, backbone in study.config["backbones"].items():
        if study.needs_base and "pretrain" not in backbone["source"]:
            yield from _models(study, name, name, backbone["source"])
    for actor in study.shards.answering:
        for name, sources in study.config["actors"][actor].get("checkpoints", {}).items():
            for seed, source in sources.items():
                yield from _models(study, f"{actor}, {name}, seed {seed}", name, source)


def _models(study: PlannedStudy, name: str, backbone: str, source: Mapping[str, Any]) -> Iterator[Download]:
    """Yield a checkpoint that is not in its folder; of an adapter, also its base."""
    model = source.get("base") if "adapter" in source else source
    size = _checkpoint(backbone, study.config["backbones"][backbone], _BFLOAT16)
    for place, n_bytes in ((source.get("adapter"), None), (model, size)):
        if place is not None and _is_missing(study, place, hub_is_missing=True):
            yield Download(name=name, where=_where(place), size=n_bytes, terms=_MODEL_TERMS)


def _is_missing(study: PlannedStudy, source: Mapping[str, Any], *, hub_is_missing: bool = False) -> bool:
    is_there = "folder" in source and (study.root / source["folder"]).is_dir()
    return not is_there or (hub_is_missing and "hub" in source)


def _where(source: Mapping[str, Any]) -> str:
    hub = f"{source['hub']} at {source['revision'][:12]}" if "hub" in source else None
    return hub or f"to be put into {source['folder']}"


def _checkpoint(name: str, backbone: Mapping[str, Any], weight_bytes: int) -> float:
    return _TINY if is_tiny(backbone) else parameters_of(name, backbone) * weight_bytes
