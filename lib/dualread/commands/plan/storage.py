"""The disk space that a study needs, and what has to be downloaded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dualread import plugins
from dualread.commands.plan.peaks import BYTES, adapter_parameters
from dualread.commands.plan.work import PlannedStudy, width_of
from dualread.evaluation.answer_metrics import STORED
from dualread.models.replay.forward import VECTORS
from dualread.models.training.settings import Lora, settings_on
from dualread.study.asked import shard_spec

_FLOAT32, _BFLOAT16, _FLOAT64 = 4, 2, 8  # bytes
_ADAM = 2  # moments per weight in a training checkpoint
_MODEL_TERMS = "The model's own license; for some models you have to accept the terms on the hub with your account."


@dataclass(frozen=True, kw_only=True)
class Download:
    """Something that still has to be downloaded or put in place.

    Attributes:
        name: The name of its entry in the config.
        where: The repository and commit, or the folder into which it has to be put by hand.
        size: Approximate size in bytes; None if not known.
        terms: License, citation, and where to find the official files.
    """

    name: str
    where: str
    size: float | None
    terms: str


def disk_of(study: PlannedStudy) -> dict[str, float]:
    """Return {kind of artifact: bytes}; readers, confidences and metrics are too small to count."""
    kinds: dict[str, float] = dict.fromkeys(("images", "checkpoints", "features", "generations", "replicates"), 0.0)
    for name, dataset in study.config["datasets"].items():
        unit = study.costs["text"]["phantom_image_bytes" if "phantom" in dataset["source"] else "image_bytes"]
        kinds["images"] += sum(study.sizes.of(name, split).images for split in dataset["splits"]) * unit
    for name, backbone in study.config["backbones"].items():
        is_opened = name in study.models
        kinds["checkpoints"] += _checkpoint(study, backbone, _BFLOAT16) if study.needs_base and is_opened else 0.0
        for actor, entry in study.config["actors"].items():
            n_seeds = len(study.shards.seeds(name, actor))
            if "checkpoints" in entry or actor in study.trained:
                weight = _FLOAT32 if actor in study.trained else _BFLOAT16
                if actor in study.trained and _lora(backbone, entry) is not None:
                    weight = BYTES[backbone["settings"]["dtype"]]
                kinds["checkpoints"] += n_seeds * _checkpoint(study, backbone, weight)
            if actor in study.shards.answering:
                replayed = [] if actor in study.shards.given else study.shards.replayed(actor)
                kept = [shard for shard in replayed if study.shards.pass_reading(actor, shard)]
                for kind, shards in (("features", replayed), ("generations", kept)):
                    n_vectors = study.answers(shards) * len(VECTORS)
                    kinds[kind] += n_seeds * n_vectors * width_of(backbone) * _FLOAT32 if shards else 0.0
                kinds["generations"] += n_seeds * _generations(study, actor)
                kinds["replicates"] += n_seeds * _replicates(study, actor)
    return kinds


def _replicates(study: PlannedStudy, actor: str) -> float:
    """Return the bytes of an actor's bootstrap replicates: one number per resample and metric.

    What is stored per donor pair is less than a tenth of it, and is not counted.
    """
    shards, resamples = study.shards, study.config["metrics"]["bootstrap"]["replicates"]
    splits = {shard[:2] for shard in shards.reported(actor)}
    return len(shards.methods_of(actor)) * len(splits) * len(STORED) * resamples * _FLOAT64


def while_training(study: PlannedStudy) -> dict[str, float]:
    """Return {backbone: bytes} of the checkpoints that one training keeps to resume from if it is killed."""
    kept: dict[str, float] = {}
    for name, backbone in study.config["backbones"].items():
        for entry in (study.config["actors"][actor] for actor in study.trained):
            if "save_every" in entry["settings"]:
                lora, whole = _lora(backbone, entry), _checkpoint(study, backbone, _FLOAT32)
                if lora is not None and "size" in backbone:
                    whole = adapter_parameters(backbone["size"], lora.rank, vision=lora.vision) * _FLOAT32
                kept[name] = max(kept.get(name, 0.0), 2 * (1 + _ADAM) * whole)
    return kept


def _lora(backbone: Mapping[str, Any], actor: Mapping[str, Any]) -> Lora | None:
    """Return the settings of the adapter that is trained; None if all weights are."""
    return settings_on(backbone, actor).lora


def downloads_of(study: PlannedStudy) -> Iterator[Download]:
    """Yield what has to be downloaded, or put into its folder, before the study can run."""
    for name in study.downloaded():
        dataset = study.config["datasets"][name]
        gigabytes, terms = (plugins.declared("datasets", dataset["loader"], what) for what in ("DOWNLOAD_GB", "TERMS"))
        size = gigabytes * 1e9 if gigabytes else None
        yield Download(name=name, where=_where(dataset["source"]), size=size, terms=terms or "")
    for name, backbone in study.config["backbones"].items():
        source = backbone["source"]
        if study.needs_base and "pretrain" not in source:
            yield from _missing(study, name, backbone, source)
    yield from _checkpoints_of(study)


def _checkpoints_of(study: PlannedStudy) -> Iterator[Download]:
    """Yield the checkpoints of actors that were trained elsewhere and are missing in their folder."""
    for actor in study.shards.answering:
        checkpoints = study.config["actors"][actor].get("checkpoints", {})
        for name, backbone in study.config["backbones"].items():
            for seed, source in checkpoints.get(name, {}).items():
                yield from _missing(study, f"{actor}, {name}, seed {seed}", backbone, source)


def _missing(
    study: PlannedStudy, name: str, backbone: Mapping[str, Any], source: Mapping[str, Any]
) -> Iterator[Download]:
    """Yield a checkpoint that is not in its folder; of an adapter, also its base."""
    whole = source.get("base") if "adapter" in source else source
    sizes = ((source.get("adapter"), None), (whole, _checkpoint(study, backbone, _BFLOAT16)))
    for place, size in sizes:
        if place is not None and ("hub" in place or not (study.root / place["folder"]).is_dir()):
            yield Download(name=name, where=_where(place), size=size, terms=_MODEL_TERMS)


def _where(source: Mapping[str, Any]) -> str:
    hub = f"{source['hub']} at {source['revision'][:12]}" if "hub" in source else None
    return hub or f"to be put into {source['folder']}"


def _checkpoint(study: PlannedStudy, backbone: Mapping[str, Any], weight_bytes: int) -> float:
    if "pretrain" in backbone["source"]:
        return study.costs["tiny"]["checkpoint_bytes"]
    return backbone["size"]["parameters"] * weight_bytes


def _generations(study: PlannedStudy, actor: str) -> float:
    """Return the bytes of one actor's completions and of the probabilities of its choices."""
    text, total = study.costs["text"], 0.0
    for shard in study.shards.generated(actor):
        asked, n = shard_spec(study.typed, actor, shard), study.asked(shard)
        if asked.choices is not None:
            first, last = asked.choices.integers or (1, len(asked.choices.words or ()))
            total += n * (last - first + 1) * _FLOAT64
        if (decoding := asked.decoding) is not None:
            tokens = decoding.max_completion_tokens * text["completion_share"]
            total += n * asked.n_completions * tokens * text["generation_bytes"]
    return total
