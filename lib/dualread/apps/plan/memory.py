"""The memory of one GPU, by stage and backbone: what was measured, with a margin, and what a training has to hold."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dualread.study.costs import is_tiny, parameters_of
from dualread.study.work import PlannedStudy


@dataclass(frozen=True, kw_only=True)
class Need:
    """What one GPU needs."""

    stage: str  # the stage, and the actor where it matters
    backbone: str
    gb: float  # GB, without a margin
    basis: str  # where it was measured, or what it holds
    advice: str  # what to change where this is too much


def needs(study: PlannedStudy) -> Iterator[Need]:
    """Yield what one GPU needs for each stage with a model that is not tiny."""
    generation = study.config["generation"]
    share = generation.get("settings", {}).get("gpu_memory_utilization")
    datasets = study.config["datasets"].items()
    most_images = max(
        study.sizes.of(name, split).most_images for name, dataset in datasets for split in dataset["splits"]
    )
    for name, entry in ((name, entry) for name, entry in study.opened.items() if not is_tiny(entry)):
        for actor in study.trained:
            yield _training(study, name, actor)
        for stage in ("probe_checkpoint", "generate", "replay"):
            cost = study.costs.peak(stage, name, entry, 1 if stage == "probe_checkpoint" else most_images)
            gb, basis, advice = cost.value, cost.basis, "use GPUs with more memory, or a smaller backbone"
            if stage != "probe_checkpoint":
                section = {"generate": "generation", "replay": "replay"}[stage]
                advice = f"lower {section}.settings.batch_size, or {advice}"
            if stage == "generate" and share is not None:
                gb, basis = 2e-9 * parameters_of(name, entry), f"at least the weights; vLLM takes {share:.0%} of a GPU"
                advice = "use GPUs with more memory, or a smaller backbone"
            yield Need(stage=stage, backbone=name, gb=gb, basis=basis, advice=advice)


def _training(study: PlannedStudy, name: str, actor: str) -> Need:
    """Return what one process of a training holds while it learns or, if that is more, while vLLM samples beside it."""
    settings, entry, room = study.settings(name, actor), study.opened[name], study.costs["gpu"]["memory_gb"]
    unit, engine = study.costs["training_memory"]["bytes_per_parameter"], settings.engine
    vllm = engine.gpu_memory_utilization * room if engine is not None and not settings.rollout_gpus else 0.0
    n_images = study.sizes.of(study.shards.in_distribution, "train").most_images
    n, each = parameters_of(name, entry) / 1e9, study.costs.completion_gb(name, entry, n_images)
    kept: list[str] = ["weights", "Adam", *(["reference model"] if settings.kl_coefficient else [])]
    learning = [*kept, "gradients", "bfloat16 copies"]
    if settings.lora is not None:  # before the first step, completions are read one by one in float32
        kept, learning = ["base in float32"], ["base in bfloat16"]

    def gb(completions: int, processes: int, shard: str | None) -> tuple[float, str]:
        """Return the GB of the phase that takes most, and its parts."""
        parts = processes if shard else 1
        resting = {} if engine is not None and engine.sleep else {"vLLM": vllm}
        phases: list[dict[str, float]] = [
            {**{part: unit[part] * n / parts for part in learning}, "completions": completions * each, **resting},
            {**{part: unit[part] * n / parts for part in kept}, "vLLM": vllm},
        ]
        if shard:  # weights are gathered to be pushed to an engine and compared, or to sample by themselves
            gathered = n * (2 if engine is not None else 6)
            phases.append({**{part: unit[part] * n / parts for part in kept}, "weights in one piece": gathered})
        most = max(phases, key=lambda phase: sum(phase.values()))
        return sum(most.values()), ", ".join(f"{part} {size:.1f} GB" for part, size in most.items() if size)

    rows, processes = settings.completions_per_pass, settings.processes
    total, basis = gb(rows, processes, settings.shard)
    fewer: list[Any] = [({"completions_per_pass": k}, (k, processes, settings.shard)) for k in range(rows - 1, 0, -1)]
    more: list[Any] = [
        ({"processes": k, "shard": "full"}, (1, k, "full")) for k in (processes, 2, 4, 8, 16, 32) if k > 1
    ]
    fits = (changes for changes, layout in [*fewer, *more] if gb(*layout)[0] <= room)
    advised = next(fits, None)
    where = f"backbones.{name}.training"
    advice = " and ".join(f"{key}: {value}" for key, value in (advised or {}).items())
    advice = f"set {where} to {advice}" if advised else "use GPUs with more memory, or lora"
    return Need(stage=f"train_actor ({actor})", backbone=name, gb=total, basis=basis, advice=advice)
