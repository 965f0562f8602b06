"""The plan of a study beside what was measured: the time of each stage, from the records of its artifacts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualread.commands.plan.report import COSTS, by_stage, time_text
from dualread.commands.plan.work import PlannedStudy, work_of
from dualread.commands.text import aligned
from dualread.declared.study import Config
from dualread.errors import ConfigError
from dualread.store.digest import MANIFEST_NAME
from dualread.store.graph import artifacts_below
from dualread.store.manifest import read_manifest
from dualread.store.store import Store
from dualread.study.files import laid_over, read

# Their jobs make one artifact each, so that a part of them can be compared with the plan of this part.
_ONE_EACH = ("pretrain_base", "copy_checkpoint", "probe_checkpoint", "train_actor", "build_table", "draw_figure")


@dataclass
class _StageUse:
    """What the artifacts of one stage took: seconds of all its GPUs together, and the largest peaks of memory in MB."""

    artifacts: int = 0
    seconds: float = 0.0
    peak_mb: float | None = None
    gpu_peak_mb: float | None = None


def comparison(config: Config, *, root: Path, files: Sequence[Path] = (), costs: Path = COSTS) -> Iterator[str]:
    """Yield the lines of a table: by stage, the planned and the measured time, and how far the plan is off.

    A stage of which a part is done is compared with that part of its plan where each of its jobs makes one artifact.
    Where some do more than others, such as trainings of several algorithms, all are taken to do as much.

    Args:
        config: A validated config.
        root: The folder of the repository.
        files: The config files of the study.
        costs: A YAML file with costs of units of work that differ from those in `COSTS`.

    Raises:
        ConfigError: The study has no results.
    """
    results = root / "results" / config.study
    found = _measured(results, Store(root / config.store))
    if not found:
        raise ConfigError(f"{results}: no results. Expected those of a study that runs or has run. Start it first.")
    units = laid_over(*(read(file) for file in (COSTS, costs)))
    planned: dict[str, tuple[int, float]] = {}
    for row in by_stage(work_of(PlannedStudy(config, units, root=root, results=results, files=files))):
        jobs, seconds = planned.get(row.stage, (0, 0.0))
        planned[row.stage] = jobs + row.jobs, seconds + sum(row.seconds.values())
    compared = [0.0, 0.0]
    rows: list[tuple[str, ...]] = [("stage", "jobs", "artifacts", "planned", "measured", "ratio", "memory", "of a GPU")]
    for stage, (jobs, seconds) in planned.items():
        made, ratio = found.get(stage, _StageUse()), "-"
        expected = seconds * (min(1.0, made.artifacts / jobs) if stage in _ONE_EACH else 1.0)
        if made.seconds and expected:
            ratio = f"{made.seconds / expected:.2f}"
            compared = [compared[0] + expected, compared[1] + made.seconds]
        peaks = ("-" if mb is None else f"{mb:,.0f} MB" for mb in (made.peak_mb, made.gpu_peak_mb))
        artifacts = f"{made.artifacts:,}" if made.artifacts else "-"
        rows.append((stage, f"{jobs:,}", artifacts, time_text(seconds), time_text(made.seconds), ratio, *peaks))
    if compared[0]:
        times = (time_text(seconds) for seconds in compared)
        rows.append(("what was measured", "", "", *times, f"{compared[1] / compared[0]:.2f}", "", ""))
    yield f"study {config.study}: planned, and measured where there are results; ratio = measured / planned"
    yield from (f"  {line}" for line in aligned(rows, numbers=range(1, 8)))


def _measured(results: Path, store: Store) -> dict[str, _StageUse]:
    """Return what was measured of each stage below `results`; an artifact without a record counts without a time."""
    found: dict[str, _StageUse] = {}
    for directory in artifacts_below(results, store):
        manifest = read_manifest(directory / MANIFEST_NAME)
        record, settings = store.record(manifest.key), manifest.action.spec.get("settings", {})
        # A plan adds up the seconds of all GPUs of a training; a record has those of the job.
        n_gpus = settings.get("processes", 1) * (1 + settings.get("rollout_gpus", 0))
        of_stage = found.setdefault(manifest.action.stage, _StageUse())
        of_stage.artifacts += 1
        of_stage.seconds += record.get("seconds", 0.0) * n_gpus
        of_stage.peak_mb = _larger(of_stage.peak_mb, record.get("peak_memory_mb"))
        of_stage.gpu_peak_mb = _larger(of_stage.gpu_peak_mb, record.get("peak_gpu_memory_mb"))
    return found


def _larger(one: float | None, other: float | None) -> float | None:
    return max((mb for mb in (one, other) if mb), default=None)
