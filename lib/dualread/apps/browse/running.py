"""The trainings of a study that has not ended: their curves so far, and how far each of them is.

A training that has ended left its log as an artifact. One that runs, or was interrupted, has a file beside the log of
its job, to which it adds each step (`dualread.progress.note_steps`).
"""

import io
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dualread.artifacts.tables import from_rows, read_table
from dualread.progress import STEPS, NotedStep, duration, read_steps
from dualread.schema.columns import TRAIN_LOG
from dualread.schema.tables import FigureLayout, Labeled
from dualread.store.digest import MANIFEST_NAME
from dualread.store.place import read_study

_SECONDS = "seconds"  # of a step, by which the trainer's log names them
_DOTS_PER_INCH = 150


def trainings(study: Path, *, all_ended: bool = False) -> dict[str, Any] | None:
    """Return a picture of the training curves of a study, as a data URI, and a sentence per training without an end.

    Args:
        study: The results folder of a study.
        all_ended: Whether the curves are also wanted where every training has ended.

    Returns:
        picture and sentences; None if there is no training, or none without an end and `all_ended` is false.
    """
    ended = {_run_of(path): path.with_name("train_log.parquet") for path in study.glob(f"actors/*/*/*/{MANIFEST_NAME}")}
    files = {_run_of(path): path for path in study.glob(f"logs/train_actor/*/*/*{STEPS}")}
    running = {run: steps for run, path in files.items() if _is_later(path, ended.get(run)) and (steps := _read(path))}
    if not running and not all_ended:
        return None
    logs = {run: read_table(path, TRAIN_LOG) for run, path in ended.items() if run not in running}
    logs = {run: log for run, log in logs.items() if "reward" in log["name"]}  # a base has none
    logs |= {run: _table(steps) for run, steps in running.items()}
    if not logs:
        return None
    now = time.time()
    sentences = [_sentence(run, running[run], now - files[run].stat().st_mtime) for run in sorted(running)]
    picture, left_out = _picture(study, logs)
    if left_out:
        sentences.append(f"Not drawn, because there are no more colors: {', '.join(left_out)}.")
    return {"picture": picture, "sentences": sentences}


def _run_of(path: Path) -> tuple[str, str, str]:
    """Return backbone, actor and seed of .../<backbone>/<actor>/<seed>.steps or .../<seed>/MANIFEST.json."""
    backbone, actor, seed = (path.parent if path.name == MANIFEST_NAME else path.with_suffix("")).parts[-3:]
    return backbone, actor, seed


def _is_later(steps: Path, ended: Path | None) -> bool:
    """Return whether a training has taken its last step since the artifact in its place was put there."""
    return ended is None or steps.stat().st_mtime > ended.with_name(MANIFEST_NAME).lstat().st_ctime


def _read(path: Path) -> list[NotedStep]:
    """Return the steps of a file by number; a training that was started twice at once may have one twice."""
    steps = {step.step: step for step in read_steps(path)}
    return [steps[number] for number in sorted(steps)]


def _table(steps: Sequence[NotedStep]) -> pl.DataFrame:
    rows = [
        {"step": noted.step, "name": name, "value": value} for noted in steps for name, value in noted.values.items()
    ]
    return from_rows(rows, TRAIN_LOG)


def _sentence(run: tuple[str, str, str], steps: Sequence[NotedStep], ago: float) -> str:
    last, seconds = steps[-1], [noted.values[_SECONDS] for noted in steps if _SECONDS in noted.values]
    told = f"{'/'.join(run)}: step {last.step} of {last.of}, {duration(ago)} ago"
    if not seconds or last.step == last.of:
        return f"{told}."
    mean = sum(seconds) / len(seconds)
    return f"{told}; {mean:.1f} s per step, about {duration(mean * (last.of - last.step))} left while it runs."


def _picture(study: Path, logs: Mapping[tuple[str, str, str], pl.DataFrame]) -> tuple[str, list[str]]:
    """Return the picture, and the labels of the actors that are not in it."""
    # Here, because other pages need no matplotlib.
    from dualread.reporting.figures.drawing import COLORS, house_style
    from dualread.reporting.figures.training import draw

    settings = read_study(study).get("settings", {})

    def labeled(place: int, kind: str) -> tuple[Labeled, ...]:
        entries, there = settings.get(kind, {}), {run[place] for run in logs}
        order = [*(name for name in entries if name in there), *sorted(there - entries.keys())]
        return tuple(Labeled(name=name, label=entries.get(name, {}).get("label", name)) for name in order)

    known = labeled(1, "actors")
    actors = known[: len(COLORS)]
    layout = FigureLayout(study=study.name, backbones=labeled(0, "backbones"), actors=actors)
    tables = {f"train_log/{'/'.join(run)}": log for run, log in logs.items()}
    for backbone in layout.backbones:
        for actor in actors:
            if not any(run[:2] == (backbone.name, actor.name) for run in logs):
                tables[f"train_log/{backbone.name}/{actor.name}/0"] = _table([])
    buffer = io.BytesIO()
    with house_style():
        draw(tables, layout).figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH)
    picture = f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"
    return picture, [actor.label for actor in known[len(COLORS) :]]
