"""The trainings of a study that has not ended: their curves so far, and how far each of them is.

A training that has ended left its log as an artifact. One that runs, or was interrupted, has a file beside the log of
its job, to which it adds each step (`dualread.progress.note_steps`).
"""

import io
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from itertools import product
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
    ended = {path.parent.parts[-3:]: path for path in study.glob(f"actors/*/*/*/{MANIFEST_NAME}")}
    files = {path.with_suffix("").parts[-3:]: path for path in study.glob(f"logs/train_actor/*/*/*{STEPS}")}
    running = {}
    for run, path in files.items():
        # One that has taken its last step since the artifact in its place was put there.
        is_later = run not in ended or path.stat().st_mtime > ended[run].lstat().st_ctime
        # A training that was started twice at once may have a step twice.
        if is_later and (steps := {step.step: step for step in read_steps(path)}):
            running[run] = [steps[number] for number in sorted(steps)]
    if not running and not all_ended:
        return None
    logs = {
        run: read_table(path.with_name("train_log.parquet"), TRAIN_LOG)
        for run, path in ended.items()
        if run not in running
    }
    logs = {run: log for run, log in logs.items() if "reward" in log["name"]}  # a base has none
    for run, steps in running.items():
        values = [(step.step, name, value) for step in steps for name, value in step.values.items()]
        logs[run] = from_rows([dict(zip(("step", "name", "value"), row, strict=True)) for row in values], TRAIN_LOG)
    if not logs:
        return None
    sentences = [_sentence(run, running[run], time.time() - files[run].stat().st_mtime) for run in sorted(running)]
    picture, left_out = _picture(study, logs)
    if left_out:
        sentences.append(f"Not drawn, because there are no more colors: {', '.join(left_out)}.")
    return {"picture": picture, "sentences": sentences}


def _sentence(run: tuple[str, ...], steps: Sequence[NotedStep], ago: float) -> str:
    last, seconds = steps[-1], [noted.values[_SECONDS] for noted in steps if _SECONDS in noted.values]
    told = f"{'/'.join(run)}: step {last.step} of {last.of}, {duration(ago)} ago"
    if not seconds or last.step == last.of:
        return f"{told}."
    mean = sum(seconds) / len(seconds)
    return f"{told}; {mean:.1f} s per step, about {duration(mean * (last.of - last.step))} left while it runs."


def _picture(study: Path, logs: Mapping[tuple[str, ...], pl.DataFrame]) -> tuple[str, list[str]]:
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
    for backbone, actor in product(layout.backbones, actors):
        if not any(run[:2] == (backbone.name, actor.name) for run in logs):
            tables[f"train_log/{backbone.name}/{actor.name}/0"] = from_rows([], TRAIN_LOG)
    buffer = io.BytesIO()
    with house_style():
        draw(tables, layout).figure.savefig(buffer, format="png", dpi=_DOTS_PER_INCH)
    picture = f"data:image/png;base64,{b64encode(buffer.getvalue()).decode()}"
    return picture, [actor.label for actor in known[len(COLORS) :]]
