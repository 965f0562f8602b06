"""The forecast of a study as text: the work, how long it takes, what it needs, and where these numbers come from."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from dualread.apps.plan.memory import needs
from dualread.apps.plan.storage import disk_of, downloads_of
from dualread.apps.text import aligned
from dualread.errors import ConfigError
from dualread.store.digest import MANIFEST_NAME
from dualread.store.graph import artifacts_below
from dualread.store.manifest import read_manifest
from dualread.store.store import Store
from dualread.study.costs import is_tiny
from dualread.study.work import STAGES, PlannedStudy, Work, machine_gb, work_of

# Their jobs make one artifact each, so that a part of them can be compared with the plan of this part.
_ONE_EACH = ("pretrain_base", "copy_checkpoint", "probe_checkpoint", "train_actor")


def forecast(study: PlannedStudy, *, cores: int, gpus: int, pilot: Mapping[str, float] | None = None) -> Iterator[str]:
    """Yield the lines of the forecast for so many CPU cores and GPUs.

    `pilot` says by stage how many times as long as planned its jobs took in a pilot run. Raises ConfigError if the size
    of a data set or of a backbone is not known, DataError if the files that would tell it are invalid.
    """
    config, costs = study.config, study.costs
    work = []
    for row in by_stage(work_of(study)):
        if (ratio := (pilot or {}).get(row.stage)) is not None and row.seconds:
            basis = f"the pilot: {ratio:.2f} times the table ({row.basis})"
            row = replace(row, seconds=row.seconds * ratio, basis=basis)
        work.append(row)
    yield f"study {config['study']}"
    for section in ("backbones", "actors", "datasets", "methods", "tables"):
        yield f"  {section}: {', '.join(config[section])}"
    yield f"  seeds: {', '.join(map(str, config['seeds']))}"
    for actor, reasons in study.typed.left_out.items():
        yield from (f"  left out of {actor}: {method}: {reason}" for method, reason in reasons.items())
    sizes = [
        (name, split, f"{size.questions:,}", f"{size.images:,}", size.source)
        for name, dataset in config["datasets"].items()
        for split, size in ((split, study.sizes.of(name, split)) for split in dataset["splits"])
    ]
    yield from _table("questions", ("data set", "split", "questions", "images", "known from"), sizes, numbers=(2, 3))
    rows: list[tuple[str, ...]] = []
    for row in work:
        times = ("-", time_text(row.seconds)) if row.gpus else (time_text(row.seconds), "-")
        jobs = f"{row.jobs:,}" if row.jobs else "-"
        rows.append((row.stage, row.backbone or "", jobs, f"{row.items:,}", row.what, *times))
    total = [sum(row.seconds for row in work if bool(row.gpus) is on_gpu) for on_gpu in (False, True)]
    rows.append(("total", "", f"{sum(row.jobs for row in work):,}", "", "", *map(time_text, total)))
    title = "work, without anything that the store may already hold, and without data sets, tables and figures"
    yield from _table(
        title, ("stage", "backbone", "jobs", "items", "", "one core", "one GPU"), rows, numbers=(2, 3, 5, 6)
    )
    yield ""
    yield f"on {cores} CPU cores about {time_text(total[0] / cores)}"
    if total[1]:
        yield f"on {gpus} GPU{'s' * (gpus > 1)} about {time_text(total[1] / gpus)}, if no GPU is ever idle"
    yield from _memory(study)
    yield from _table("disk", (), [(kind, _gb(size / 1e9)) for kind, size in disk_of(study).items()], numbers=(1,))
    yield from ("", "to download or to put in place")
    downloads = list(downloads_of(study))
    for download in downloads:
        size = _gb(download.size / 1e9) if download.size else "size unknown"
        yield from (f"  {download.name}: {download.where}, {size}", f"    {download.terms}")
    yield from [] if downloads else ["  nothing"]
    yield from ("", "where these numbers come from (lib/dualread/study/costs.yaml)")
    yield from (f"  {name}: {text}" for name, text in costs["machines"].items())
    of_models = dict.fromkeys((row.stage, row.what, row.backbone or "one core", row.basis) for row in work if row.basis)
    yield from _table(None, (), list(of_models))
    share = costs["assumed"]["completion_share"]
    yield f"  assumed: completions use {share:.0%} of their token budget; questions have donors until they are paired"
    yield f"  training memory: {costs['training_memory']['from']}"


def by_stage(work: Iterable[Collection[Work]]) -> list[Work]:
    """Return one row per stage, kind of item and backbone that does it, in the order of the pipeline."""
    merged: dict[tuple, Work] = {}
    for row in (row for rows in work for row in rows):
        key = (row.stage, row.what, row.backbone)
        same = merged.get(key, replace(row, jobs=0, items=0, seconds=0.0))
        counts = {n: getattr(same, n) + getattr(row, n) for n in ("jobs", "items", "seconds")}
        merged[key] = replace(same, **counts)
    return sorted((row for row in merged.values() if row.items), key=lambda row: STAGES.index(row.stage))


def measured(
    study: PlannedStudy, results: Path, store: Store
) -> list[tuple[str, int, int, float, float, float, float]]:
    """Return (stage, jobs, artifacts, planned s, measured s, peak MB, peak MB of a GPU) for each stage of a study.

    Of a stage of which a part is done, the plan is that of this part where each job makes one artifact. Seconds are
    those of all GPUs of a training, and 0 where no result has a record.
    """
    used: dict[str, list[float]] = {}
    for directory in artifacts_below(results, store):
        manifest = read_manifest(directory / MANIFEST_NAME)
        record, settings = store.record(manifest.key), manifest.action.spec.get("settings", {})
        # A plan adds up the seconds of all GPUs of a training; a record has those of the job.
        n_gpus = settings.get("processes", 1) * (1 + settings.get("rollout_gpus", 0))
        use = used.setdefault(manifest.action.stage, [0, 0.0, 0.0, 0.0])
        peaks = (record.get(name) or 0.0 for name in ("peak_memory_mb", "peak_gpu_memory_mb"))
        use[:] = [use[0] + 1, use[1] + record.get("seconds", 0.0) * n_gpus, *map(max, use[2:], peaks)]
    if not used:
        raise ConfigError(f"{results}: no results. Expected those of a study that runs or has run. Start it first.")
    planned: dict[str, tuple[int, float]] = {}
    for row in by_stage(work_of(study)):
        jobs, seconds = planned.get(row.stage, (0, 0.0))
        planned[row.stage] = jobs + row.jobs, seconds + row.seconds
    rows = []
    for stage, (jobs, seconds) in planned.items():
        artifacts, took, *peaks = used.get(stage, [0, 0.0, 0.0, 0.0])
        part = min(1.0, artifacts / jobs) if stage in _ONE_EACH and jobs else 1.0
        rows.append((stage, jobs, int(artifacts), seconds * part, took, *peaks))
    return rows


def comparison(study: PlannedStudy, results: Path, store: Store) -> Iterator[str]:
    """Yield the lines of a table: by stage, the planned and the measured time, and their ratio."""
    stages = measured(study, results, store)
    lines = [
        (
            *(stage, f"{jobs:,}", f"{artifacts:,}" if artifacts else "-", time_text(planned), time_text(took)),
            f"{took / planned:.2f}" if took and planned else "-",
            *(f"{mb:,.0f} MB" if mb else "-" for mb in peaks),
        )
        for stage, jobs, artifacts, planned, took, *peaks in stages
    ]
    both = [sum(column) for column in zip(*((r[3], r[4]) for r in stages if r[3] and r[4]), strict=True)]
    if both:
        lines.append(("what was measured", "", "", *map(time_text, both), f"{both[1] / both[0]:.2f}", "", ""))
    title = f"study {study.config['study']}: planned, and measured where there are results; ratio = measured / planned"
    head = ("stage", "jobs", "artifacts", "planned", "measured", "ratio", "memory", "of a GPU")
    yield from list(_table(title, head, lines, numbers=range(1, 8)))[1:]


def _memory(study: PlannedStudy) -> Iterator[str]:
    gpu, all_needs = study.costs["gpu"], list(needs(study))
    rows = [(need.stage, need.backbone, _gb(need.gb), need.basis) for need in all_needs]
    title, margin = "memory of one GPU, without a margin", study.costs["assumed"]["memory_margin"]
    yield from _table(
        title if rows else None, ("stage", "backbone", "memory", "known from") if rows else (), rows, numbers=(2,)
    )
    for need in (need for need in all_needs if need.gb * margin > gpu["memory_gb"]):
        yield (
            f"  {need.stage} of {need.backbone} {'does not' if need.gb > gpu['memory_gb'] else 'may not'} fit: it needs"
            f" {_gb(need.gb)}, and {gpu['name']} has {_gb(gpu['memory_gb'])}; {need.advice}."
        )
    large = [name for name, entry in study.opened.items() if not is_tiny(entry)]
    rows = [(actor, name, _gb(machine_gb(study, name, actor))) for name in large for actor in study.trained]
    if rows:
        yield from _table("memory of one machine beside its GPUs, for weights that are read", (), rows, numbers=(2,))


def _table(
    title: str | None, head: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Collection[int] = ()
) -> Iterator[str]:
    if title is not None:
        yield from ("", title)
    yield from (f"  {line}" for line in aligned([head, *rows] if head else rows, numbers=numbers))


def time_text(seconds: float) -> str:
    """Return seconds as text, in hours where they are many."""
    if not seconds:
        return "-"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def _gb(size: float) -> str:
    # Rounded to whole MB, unlike `size_text`: a forecast is not known to a tenth.
    return f"{size * 1000:.0f} MB" if size < 1 else f"{size:,.1f} GB"
