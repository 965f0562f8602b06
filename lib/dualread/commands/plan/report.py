"""The forecast of a study as text: the work, how long it takes, what it needs, and how this was estimated."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dualread.commands.plan.memory import needs, of_machine
from dualread.commands.plan.models import Large
from dualread.commands.plan.storage import disk_of, downloads_of, while_training
from dualread.commands.plan.work import STAGES, PlannedStudy, Work, work_of
from dualread.commands.text import aligned
from dualread.declared.study import Config
from dualread.errors import DualReadError
from dualread.models.replay.forward import VECTORS
from dualread.study.files import laid_over, read

COSTS = Path(__file__).with_name("costs.yaml")


def forecast(
    config: Config,
    *,
    root: Path,
    results: Path,
    files: Sequence[Path] = (),
    costs: Path = COSTS,
    cores: int,
    gpus: int,
) -> Iterator[str]:
    """Yield the lines of the forecast.

    Args:
        config: A validated config.
        root: The folder of the repository.
        results: The folder results/<study>, which may hold manifests already.
        files: The config files of the study, for commands in error messages.
        costs: A YAML file with costs of units of work that differ from those in `COSTS`.
        cores: Number of CPU cores that the study may use.
        gpus: Number of GPUs that the study may use.

    Raises:
        ConfigError: The size of a data set or of a backbone is not known.
        DataError: A data set's size is only known from the files in its folder, and these are invalid.
    """
    units = laid_over(*(read(file) for file in (COSTS, costs)))
    study = PlannedStudy(config, units, root=root, results=results, files=files)
    work = by_stage(work_of(study))
    yield from _heading(study)
    yield from ("", "questions", *_questions(study))
    yield from ("", "work, without anything that the store may already hold", *_work(work))
    yield from ("", *_together(study, work, cores, gpus))
    if memory := list(_memory(study)):
        yield from ("", "memory of one GPU, at most", *memory)
    if memory := list(_memory_of_machine(study)):
        yield from ("", "memory of one machine, at most, beside its GPUs", *memory)
    yield from ("", "disk", *_disk(study))
    yield from ("", "to download or to put in place", *_downloads(study))
    yield from ("", "how this was estimated", *_assumptions(study))


def seconds_of_jobs(config: Config, *, root: Path, results: Path) -> dict[str, float]:
    """Return how long a job of each stage takes on one core or one GPU; nothing where a size is not known yet.

    Args:
        config: A validated config.
        root: The folder of the repository.
        results: The folder results/<study>.
    """
    try:
        study = PlannedStudy(config, read(COSTS), root=root, results=results)
        found: dict[str, list[Work]] = {}
        for row in work_of(study):
            found.setdefault(row.stage, []).append(row)
    except DualReadError:
        return {}
    jobs = {stage: sum(row.jobs for row in rows) for stage, rows in found.items()}
    seconds = {stage: sum(sum(row.seconds.values()) for row in rows) for stage, rows in found.items()}
    return {stage: seconds[stage] / n for stage, n in jobs.items() if n}


def _heading(study: PlannedStudy) -> Iterator[str]:
    config = study.config
    yield f"study {config['study']}"
    for section in ("backbones", "actors", "datasets", "methods", "tables"):
        yield f"  {section}: {', '.join(config[section])}"
    yield f"  seeds: {', '.join(map(str, config['seeds']))}"
    for actor, reasons in study.left_out.items():
        for method, reason in reasons.items():
            yield f"  left out of {actor}: {method}: {reason}"


def _questions(study: PlannedStudy) -> Iterator[str]:
    rows = [("data set", "split", "questions", "images", "known from")]
    for name, dataset in study.config["datasets"].items():
        for split in dataset["splits"]:
            size = study.sizes.of(name, split)
            rows.append((name, split, f"{size.questions:,}", f"{size.images:,}", size.source))
    yield from _indented(aligned(rows, numbers=(2, 3)))


def by_stage(work: Iterator[Work]) -> list[Work]:
    """Return one row per stage and kind of item, in the order of the pipeline."""
    found: dict[tuple[str, str], list[Work]] = {}
    for row in work:
        found.setdefault((row.stage, row.what), []).append(row)
    merged = [
        Work(
            stage=stage,
            what=what,
            jobs=sum(row.jobs for row in rows),
            models=sum(row.models for row in rows),
            items=sum(row.items for row in rows),
            seconds={device: sum(row.seconds.get(device, 0.0) for row in rows) for device in ("cpu", "gpu")},
        )
        for (stage, what), rows in found.items()
    ]
    return sorted((row for row in merged if row.jobs or row.items), key=lambda row: STAGES.index(row.stage))


def _work(work: Sequence[Work]) -> Iterator[str]:
    rows: list[tuple[str, ...]] = [("stage", "jobs", "models", "items", "", "one core", "one GPU")]
    for row in work:
        times = [time_text(row.seconds[device]) for device in ("cpu", "gpu")]
        rows.append((row.stage, _count(row.jobs), _count(row.models), f"{row.items:,}", row.what, *times))
    jobs, models = (sum(getattr(row, name) for row in work) for name in ("jobs", "models"))
    total = [time_text(_total(work, device)) for device in ("cpu", "gpu")]
    rows.append(("total", _count(jobs), _count(models), "", "", *total))
    yield from _indented(aligned(rows, numbers=(1, 2, 3, 5, 6)))


def _together(study: PlannedStudy, work: Sequence[Work], cores: int, gpus: int) -> Iterator[str]:
    yield f"on {cores} CPU cores about {time_text(_total(work, 'cpu') / cores / study.costs['cpu']['busy_share'])}"
    if seconds := _total(work, "gpu"):
        yield f"on {gpus} GPU{'s' * (gpus > 1)} about {time_text(seconds / gpus)}, if no GPU is ever idle"


def _memory(study: PlannedStudy) -> Iterator[str]:
    gpu = study.costs["gpu"]
    found = [need for name, model in _large(study).items() for need in needs(study.config, name, model)]
    yield from _memory_table((need.stage, need.backbone, need.parts) for need in found)
    room = gpu["memory"] * gpu["memory_share"]
    for need in found:
        if need.total > room:
            yield (
                f"  {need.stage} of {need.backbone} does not fit: it needs {_bytes(need.total)}, and of the"
                f" {_bytes(gpu['memory'])} of an {gpu['name']} {gpu['memory_share']:.0%} can be counted on;"
                f" {need.advice(room)}."
            )


def _memory_of_machine(study: PlannedStudy) -> Iterator[str]:
    yield from _memory_table(
        (stage, name, parts)
        for name, model in _large(study).items()
        for stage, parts in of_machine(study.config, name, model)
    )


def _memory_table(held: Iterable[tuple[str, str, Mapping[str, float]]]) -> Iterator[str]:
    rows = [(stage, backbone, _bytes(sum(parts.values())), _parts(parts)) for stage, backbone, parts in held]
    if rows:
        yield from _indented(aligned([("stage", "backbone", "memory", "of which"), *rows], numbers=(2,)))


def _parts(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {_bytes(size)}" for name, size in parts.items() if size)


def _large(study: PlannedStudy) -> dict[str, Large]:
    return {name: model for name, model in study.models.items() if isinstance(model, Large)}


def _disk(study: PlannedStudy) -> Iterator[str]:
    rows = [(kind, _bytes(size)) for kind, size in disk_of(study).items()]
    rows += [(f"also, while an actor of {name} trains", _bytes(size)) for name, size in while_training(study).items()]
    yield from _indented(aligned(rows, numbers=(1,)))


def _downloads(study: PlannedStudy) -> Iterator[str]:
    downloads = list(downloads_of(study))
    for download in downloads:
        yield f"  {download.name}: {download.where}, {_bytes(download.size) if download.size else 'size unknown'}"
        yield f"    {download.terms}"
    if not downloads:
        yield "  nothing"


def _assumptions(study: PlannedStudy) -> Iterator[str]:
    cpu, gpu, text = (study.costs[section] for section in ("cpu", "gpu", "text"))
    large = _large(study)
    yield f"  one core: measured on {cpu['machine']}; downloads, manifests and copies of checkpoints are not included"
    if tiny := [name for name in study.models if name not in large]:
        yield f"  {', '.join(tiny)}: measured on the same machine with models of this size"
    yield "  donors: every question is assumed to have one until the donors are paired"
    yield f"  features: {len(VECTORS)} hidden states per answer, 4 bytes per number"
    yield "  checkpoints: 4 bytes per parameter if the workflow trained all weights, else 2"
    for name, model in large.items():
        read, longest = model.prompt_tokens("shared"), model.longest_prompt("shared")
        yield (
            f"  {name}: a prompt with its image has {read:.0f} tokens, at most {longest:.0f}; an image has"
            f" {model.patches:.0f} patches at most"
        )
    for model in list(large.values())[:1]:
        yield from _of_gpu(gpu, model)
        share = f"{text['completion_share']:.0%}"
        yield f"  images of {text['image_pixels']:,} pixels; completions that use {share} of their token budget"


def _of_gpu(gpu: Mapping[str, Any], model: Large) -> Iterator[str]:
    flops, bandwidth = gpu["flops"] * gpu["flops_share"], gpu["bandwidth"] * gpu["bandwidth_share"]
    yield "  batches: padded to their longest row, except by vLLM; each image is encoded once per batch that shows it"
    yield f"  a pass: 2 operations per weight and token, and attention, at {flops / 1e12:.0f} TFLOP/s in bfloat16"
    yield (
        f"  training: the rollouts, {gpu['train_passes']} passes over each completion with its image, one more with a"
        " KL penalty, and the extra passes of the algorithm"
    )
    yield (
        f"  generation: one step reads all weights and the keys and values of {model.at_once} sequences at"
        f" {bandwidth / 1e12:.1f} TB/s, and takes at least {1000 * model.least_step:.0f} ms"
    )
    yield (
        f"  {gpu['name']}: {gpu['flops'] / 1e12:.0f} TFLOP/s and {gpu['bandwidth'] / 1e12:.1f} TB/s, of which"
        f" {gpu['flops_share']:.0%} and {gpu['bandwidth_share']:.0%} are assumed; {gpu['start']} s to load a model"
    )


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _count(n: int) -> str:
    return f"{n:,}" if n else "-"


def _total(work: Sequence[Work], device: str) -> float:
    return sum(row.seconds[device] for row in work)


def time_text(seconds: float) -> str:
    """Return seconds as text, in hours where they are many."""
    if not seconds:
        return "-"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def _bytes(size: float) -> str:
    # Rounded to whole MB, unlike `size_text`: a forecast is not known to a tenth.
    return f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:,.1f} GB"
