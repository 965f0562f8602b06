"""Peak memory by stage and backbone: computed from sizes, for the longest rows that a study can have.

That of one GPU, and, while an actor is trained, that of the machine itself.

Every prompt is taken to have the largest image, every completion to use its whole budget, and every answer of a replay
to be about another image. `peaks` has the formulas.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from dualread import plugins
from dualread.commands.plan import peaks, sharded
from dualread.commands.plan.models import Large
from dualread.models.training.settings import WEIGHTS, TrainingSettings, settings_on

_MOST_PROCESSES = 64


@dataclass(frozen=True, kw_only=True)
class Need:
    """What one GPU needs at most.

    Attributes:
        stage: The stage, and the actor where it matters.
        backbone: The backbone.
        parts: Bytes by what they hold.
        advice: Given the bytes that there are, returns what to change so that the stage needs no more.
    """

    stage: str
    backbone: str
    parts: Mapping[str, float]
    advice: Callable[[float], str]

    @property
    def total(self) -> float:
        """All bytes."""
        return sum(self.parts.values())


def needs(config: Mapping[str, Any], name: str, model: Large, *, on_gpu: bool = True) -> Iterator[Need]:
    """Yield what training, generation and replay with one backbone need.

    Without a GPU, a training keeps the activations of all layers, and more logits, and passes are smaller.
    """
    for actor, entry in config["actors"].items():
        if "training" in entry:
            yield _training(config, name, model, actor, on_gpu)
    yield _generation(config, name, model, on_gpu) if model.padded else _with_vllm(config, name, model)
    yield _replay(config, name, model, on_gpu)


def of_machine(config: Mapping[str, Any], name: str, model: Large) -> Iterator[tuple[str, Mapping[str, float]]]:
    """Yield (stage, {what is held: bytes}) of each training: what one machine holds at most beside its GPUs.

    Weights pass through it on their way to the GPUs: of a sharded model, its first process reads them for all others.
    What is as large for every model, such as packages and images, is left out.
    """
    backbone, n = config["backbones"][name], model.size["parameters"]
    for actor, entry in config["actors"].items():
        if "training" not in entry:
            continue
        settings = settings_on(backbone, entry)
        here, each = settings.processes // settings.nodes, peaks.BYTES[model.dtype]
        read = (1 if settings.shard else here) * n * (each if settings.lora else peaks.BYTES[WEIGHTS])
        # As tensors, and as a file in memory.
        for_engines = here * 2 * n * each if settings.rollout_gpus else 0.0
        reading = {"weights that are read": read}
        yield f"train_actor ({actor})", reading if read >= for_engines else {"weights for vLLM": for_engines}


def _training(config: Mapping[str, Any], name: str, model: Large, actor: str, on_gpu: bool) -> Need:
    backbone, entry = config["backbones"][name], config["actors"][actor]
    settings = settings_on(backbone, entry)
    limit = settings.longest_prompt(backbone["settings"])
    completions, group = settings.prompts_per_step * settings.group_size, settings.group_size

    lora = settings.lora
    vision = lora is not None and lora.vision
    adapter = None if lora is None else peaks.adapter_parameters(model.size, lora.rank, vision=vision)

    def batch_of(rows: int) -> peaks.LongestBatch:
        return peaks.LongestBatch(
            rows=rows,
            prompts=ceil(rows / group),
            prompt=min(limit, model.longest_prompt(entry.get("prompt", "shared"))),
            made=settings.max_completion_tokens,
            pixels=model.pixels[1],
            on_gpu=on_gpu,
        )

    engine, reads = settings.engine, bool(plugins.declared("training", entry["training"], "EXTRA_PASSES"))

    def parts(rows: int, sampled: int, processes: int, shard: str | None) -> Mapping[str, float]:
        of_step = completions // processes
        batch = batch_of(min(rows, of_step))
        if shard is not None:
            return sharded.training(
                model.size,
                batch,
                model.dtype,
                _layout(settings, shard, processes, model, reads=reads),
                rollouts=batch_of(min(sampled, of_step)),
                of_step=of_step,
                reference=bool(settings.kl_coefficient),
                adapter=adapter,
                logits=None if on_gpu else peaks.logits_on_cpu(model.size, batch),
            )
        found = peaks.training(
            model.size,
            batch,
            model.dtype,
            rollouts=None if engine is not None else batch_of(min(sampled, of_step)),
            of_step=of_step,
            reference=bool(settings.kl_coefficient),
            recompute=on_gpu,
            logits=None if on_gpu else peaks.logits_on_cpu(model.size, batch),
            adapter=adapter,
        )
        if engine is None or settings.rollout_gpus:
            return found
        vllm = {"vLLM": engine.gpu_memory_utilization * model.gpu["memory"]}
        if not engine.sleep:
            return {**found, **vllm}
        reference = bool(settings.kl_coefficient)
        awake = {**peaks.between_steps(model.size, model.dtype, reference=reference, adapter=adapter), **vllm}
        return max(found, awake, key=lambda parts: sum(parts.values()))

    rows, processes = settings.completions_per_pass, settings.processes

    def advice(room: float) -> str:
        # More processes hold the images of fewer rows each, and smaller parts.
        more = range(processes + 1, _MOST_PROCESSES + 1)
        tried = [(n, processes, settings.shard) for n in range(rows, 0, -1)] + [(1, n, settings.shard) for n in more]
        if settings.shard is None:
            tried += [(rows, n, "full") for n in (processes, *more) if n > 1]
        for passed, shared, shard in tried:
            if completions % (passed * shared) and (passed, shared) != (rows, processes):
                continue
            before = 1 if engine else settings.model_copy(update={"completions_per_pass": passed}).sampled_at_once
            for sampled in range(before, 0, -1):
                if sum(parts(passed, sampled, shared, shard).values()) <= room:
                    return _set(
                        f"backbones.{name}.training",
                        completions_per_pass=(rows, passed),
                        rollouts_per_pass=(before, sampled),
                        processes=(processes, shared),
                        shard=(settings.shard, shard),
                    )
        least = _no_batch(sum(parts(1, 1, processes, settings.shard).values()))
        return least if engine is None else f"lower rollout_settings.gpu_memory_utilization; with it as it is, {least}"

    found = parts(rows, settings.sampled_at_once, processes, settings.shard)
    return Need(stage=f"train_actor ({actor})", backbone=name, parts=found, advice=advice)


def _layout(
    settings: TrainingSettings, shard: str, processes: int, model: Large, *, reads: bool
) -> sharded.ShardedLayout:
    engine = settings.engine
    share = 0.0 if engine is None or settings.rollout_gpus else engine.gpu_memory_utilization * model.gpu["memory"]
    return sharded.ShardedLayout(
        processes=processes,
        by_layers=shard == "full",
        engine=None if engine is None else share,
        sleeps=engine is not None and engine.sleep,
        reads=reads,
    )


def _generation(config: Mapping[str, Any], name: str, model: Large, on_gpu: bool) -> Need:
    def batch_of(rows: int, prompts: int, prompt: float, made: int) -> peaks.LongestBatch:
        return peaks.LongestBatch(
            rows=rows, prompts=prompts, prompt=prompt, made=made, pixels=model.pixels[1], on_gpu=on_gpu
        )

    def parts(rows: int) -> dict[str, float]:
        found = []
        for view in ({"decoding": config["generation"]["decoding"]}, *config.get("views", {}).values()):
            decoding, choices = view.get("decoding"), view.get("choices")
            prompt = _longest(config, name, model, view.get("prompt") or "shared")
            if choices is not None:
                first, last = choices.get("integers") or (0, 0)
                # An integer follows a committed answer.
                before = model.committed if "integers" in choices else 0
                batch = batch_of(rows, rows, prompt + before, 0)
                found.append(peaks.scoring(model.size, batch, model.dtype, prefixes=last - first + 1))
            elif decoding is not None:
                n, made = decoding.get("n_samples", 1), decoding["max_completion_tokens"]
                n_prompts = max(1, rows // n)
                batch = batch_of(n_prompts * n, n_prompts, prompt, made)
                sampled = decoding.get("temperature", 0) > 0
                found.append(peaks.generation(model.size, batch, model.dtype, sampled=sampled))
        return max(found, key=lambda of_view: sum(of_view.values()))

    return Need(
        stage="generate",
        backbone=name,
        parts=parts(model.at_once),
        advice=_fewer(parts, model.at_once, "generation.settings.batch_size"),
    )


def _with_vllm(config: Mapping[str, Any], name: str, model: Large) -> Need:
    """Return what vLLM needs to start; it takes the share of the memory that it is told to, whatever it needs."""
    prompt = _longest(config, name, model, "shared")
    parts = peaks.one_answer(model.size, prompt + model.committed, model.dtype, model.pixels[1])
    share = config["generation"].get("settings", {}).get("gpu_memory_utilization", 1.0)

    def advice(room: float) -> str:
        least = f"vLLM gets {share:.0%} of the memory (generation.settings.gpu_memory_utilization)"
        return f"{least}: use GPUs with more memory or a smaller backbone"

    return Need(stage="generate (vLLM, at least)", backbone=name, parts=parts, advice=advice)


def _replay(config: Mapping[str, Any], name: str, model: Large, on_gpu: bool) -> Need:
    def parts(rows: int) -> dict[str, float]:
        prompt = _longest(config, name, model, "shared")
        made, pixels = model.committed, model.pixels[1]
        batch = peaks.LongestBatch(rows=rows, prompts=rows, prompt=prompt, made=made, pixels=pixels, on_gpu=on_gpu)
        return peaks.replay(model.size, batch, model.dtype)

    advice = _fewer(parts, model.replayed, "replay.settings.batch_size")
    return Need(stage="replay", backbone=name, parts=parts(model.replayed), advice=advice)


def _set(where: str, **changes: tuple[Any, Any]) -> str:
    """Return the advice to set each key of `where` from its first value to its second, if they differ."""
    return "set " + " and ".join(f"{where}.{key} to {new}" for key, (old, new) in changes.items() if new != old)


def _longest(config: Mapping[str, Any], name: str, model: Large, prompt: str) -> float:
    return min(model.longest_prompt(prompt), config["backbones"][name]["settings"]["max_prompt_tokens"])


def _fewer(parts: Callable[[int], Mapping[str, float]], rows: int, key: str) -> Callable[[float], str]:
    """Return the advice to set `key`, which is now `rows`, to the largest number that fits."""

    def advice(room: float) -> str:
        for fewer in range(rows - 1, 0, -1):
            if sum(parts(fewer).values()) <= room:
                return f"set {key} to {fewer}"
        return _no_batch(sum(parts(1).values()))

    return advice


def _no_batch(least: float) -> str:
    return f"even one row at once needs {least / 1e9:.0f} GB; use GPUs with more memory, or a smaller backbone"
