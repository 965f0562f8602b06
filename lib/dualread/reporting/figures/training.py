"""Training curves of the actors: reward, correctness, format, stated confidence, gradient norm and completion length.

One row of panels per backbone and one color per actor. A thin line is one seed, a thick line the mean over seeds.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from dualread.errors import ArtifactError
from dualread.reporting.figures.drawing import COLORS, TEXT_WIDTH, Drawing, refuse_more
from dualread.schema.tables import FigureLayout

READS = "train_log"
MEAN = "mean"  # takes the place of a seed

Log = Mapping[tuple[str, int], float]  # {(name, step): value}, finite values only

_LOGGED = {"step": pl.Int64, "name": pl.String, "value": pl.Float64}
_CSV = {
    **dict.fromkeys(("study", "backbone", "actor", "seed", "quantity"), pl.String),
    "step": pl.Int64,
    **dict.fromkeys(("value", "low", "high"), pl.Float64),
}
_READING = "Thin: one seed. Thick: mean over seeds. Band: \u00b1 one standard deviation over the completions of a step."


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A column of panels: its name, the names of its values and of their deviation in the train log, and its label."""

    name: str
    log: str
    label: str
    spread: str | None = None
    is_share: bool = False


QUANTITIES = (
    Quantity(name="reward", log="reward", label="Reward\n(mean)"),
    Quantity(name="accuracy", log="terms/correct/mean", label="Correct answers\n(share)", is_share=True),
    Quantity(name="valid_format", log="terms/valid/mean", label="Valid format\n(share)", is_share=True),
    Quantity(
        name="stated_confidence",
        log="terms/confidence/mean",
        label="Stated confidence\n(probability)",
        spread="terms/confidence/std",
        is_share=True,
    ),
    Quantity(name="gradient_norm", log="gradient_norm", label="Gradient norm\n(before clipping)"),
    Quantity(name="completion_length", log="completion_tokens", label="Completion length\n(tokens, mean)"),
)


def draw(tables: Mapping[str, pl.DataFrame], layout: FigureLayout) -> Drawing:
    """Return the curves of all train logs.

    A value that a log lacks at a step, or that is NaN, is a gap. The mean over seeds has a gap where any seed has one.
    The tables are `train_log/<backbone>/<actor>/<seed>`: step, name, value; one row per quantity and step.

    Raises:
        ConfigError: There are more actors than colors.
        ArtifactError: A log is missing, has other columns, or holds a quantity twice at a step.
    """
    backbones, actors = layout.backbones, layout.actors
    refuse_more("training", "actors", actors)
    values = pl.DataFrame(
        [
            {"study": layout.study, "backbone": backbone.name, "actor": actor.name, **row}
            for backbone in backbones
            for actor in actors
            for row in _rows(_logs_of(tables, backbone.name, actor.name))
        ],
        schema=_CSV,
    )
    figure = Figure(figsize=(TEXT_WIDTH, 1.25 * len(backbones) + 0.75), layout="constrained")
    lines = [Line2D([], [], color=color, label=actor.label) for color, actor in zip(COLORS, actors, strict=False)]
    figure.legend(handles=lines, loc="outside upper center", ncols=len(lines))
    figure.supxlabel(_READING, fontsize=6)
    grid = figure.subplots(len(backbones), len(QUANTITIES), squeeze=False)
    for row, backbone in zip(grid, backbones, strict=True):
        row[0].set_ylabel(backbone.label, fontweight="bold")
        for axes, quantity in zip(row, QUANTITIES, strict=True):
            of_panel = (pl.col("backbone") == backbone.name) & (pl.col("quantity") == quantity.name)
            _panel(axes, quantity, values.filter(of_panel), [actor.name for actor in actors])
    for top, bottom, quantity in zip(grid[0], grid[-1], QUANTITIES, strict=True):
        top.set_title(quantity.label)
        bottom.set_xlabel("Step")
    return Drawing(figure=figure, values=values)


def _rows(logs: Mapping[str, Log]) -> list[dict]:
    """Return the drawn values of one actor: every seed and the mean, at every step from the first to the last."""
    logged = {step for log in logs.values() for _, step in log}
    steps = range(min(logged), max(logged) + 1) if logged else range(0)  # a step without any value is also a gap
    rows = []
    for quantity in QUANTITIES:
        curves = _curves_of(logs, quantity.log, steps)
        spread = _curves_of(logs, quantity.spread, steps)[MEAN] if quantity.spread else [None] * len(steps)
        for seed, curve in curves.items():
            for step, value, deviation in zip(steps, curve, spread, strict=True):
                low, high = None, None
                if value is not None and deviation is not None and seed == MEAN:
                    low, high = value - deviation, value + deviation
                rows.append(
                    {"seed": seed, "quantity": quantity.name, "step": step, "value": value, "low": low, "high": high}
                )
    return rows


def _panel(axes: Axes, quantity: Quantity, values: pl.DataFrame, actors: Sequence[str]) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    if quantity.is_share:
        axes.set_ylim(-0.03, 1.03)  # a line along 0 or 1 keeps its width
        axes.set_yticks([0, 0.5, 1])
    if values["value"].null_count() == len(values):
        axes.text(0.5, 0.5, "not logged", transform=axes.transAxes, ha="center", va="center")
    for color, actor in zip(COLORS, actors, strict=False):
        for (seed,), curve in (
            values.filter(actor=actor).partition_by("seed", as_dict=True, maintain_order=True).items()
        ):
            step, value, low, high = (curve[name].to_numpy() for name in ("step", "value", "low", "high"))
            # A value between two gaps needs a marker, because no line shows it.
            there = [False, *curve["value"].is_not_null(), False]
            alone = [k for k in range(len(value)) if there[k + 1] and not there[k] and not there[k + 2]]
            (line,) = axes.plot(step, value, color=color, marker=".", markersize=3, markevery=alone)
            line.set(linewidth=1.3, alpha=1) if seed == MEAN else line.set(linewidth=0.5, alpha=0.6)
            axes.fill_between(step, low, high, color=color, alpha=0.2, linewidth=0)


def _logs_of(tables: Mapping[str, pl.DataFrame], backbone: str, actor: str) -> dict[str, Log]:
    """Return the log of every seed of one actor, in the order of the seeds."""
    prefix = f"train_log/{backbone}/{actor}/"
    names = sorted((name for name in tables if name.startswith(prefix)), key=lambda name: int(name.split("/")[-1]))
    if not names:
        raise ArtifactError(
            f"figures: no train log of {backbone}/{actor}; found: {', '.join(tables)}. Train this actor first."
        )
    return {name.removeprefix(prefix): _log(name, tables[name]) for name in names}


def _log(name: str, table: pl.DataFrame) -> Log:
    if dict(table.schema) != _LOGGED:
        raise ArtifactError(f"{name}: columns {dict(table.schema)}, expected {_LOGGED}. Train this actor again.")
    if not (twice := table.filter(table.select("name", "step").is_duplicated())).is_empty():
        raise ArtifactError(f"{name}: {twice['name'][0]} occurs twice at step {twice['step'][0]}; expected it once.")
    return {(row[1], row[0]): row[2] for row in table.iter_rows() if row[2] is not None and math.isfinite(row[2])}


def _curves_of(logs: Mapping[str, Log], name: str, steps: Sequence[int]) -> dict[str, list[float | None]]:
    """Return the values of `name` at `steps` by seed, and under `MEAN` their mean, None where any seed has no value."""
    curves = {seed: [log.get((name, step)) for step in steps] for seed, log in logs.items()}
    mean = [None if None in at_step else fmean(at_step) for at_step in zip(*curves.values(), strict=True)]
    return {**curves, MEAN: mean}
