import polars as pl
import pytest
from matplotlib.colors import to_hex

from dualread.errors import ConfigError
from dualread.reporting.figures import training_signals
from dualread.reporting.figures.drawing import COLORS
from dualread.schema.columns import METRICS
from dualread.schema.tables import FigureLayout, Labeled
from tests.reporting.figures.answers import labeled
from tests.specs import changed

LAYOUT = FigureLayout(
    study="signals",
    backbones=labeled(tiny="Tiny"),
    actors=labeled(rlvr="RLVR", state="Head, trained"),
    methods=labeled(rlvr="Stated", head="Head", stated="Stated"),
    datasets=labeled(slake="SLAKE"),
)
# By method: its actor, and accuracy, different confidences and CCG-AUC by seed.
RUNS = {
    "rlvr": ("rlvr", {17: (0.5, 3, 0.6), 29: (0.6, 5, 0.7)}),
    "head": ("state", {17: (0.4, 100, 0.8), 29: (0.2, 200, None)}),
    "stated": ("state", {17: (0.4, 4, 0.5)}),
}


def metrics(runs=RUNS) -> dict[str, pl.DataFrame]:
    rows = [
        {
            **dict.fromkeys(METRICS.columns),
            **{"study": "signals", "backbone": "tiny", "actor": actor, "seed": seed, "method": method},
            **{"dataset": "slake", "split": "test", "subset": "all", "metric": name, "estimate": value},
        }
        for method, (actor, seeds) in runs.items()
        for seed, values in seeds.items()
        for name, value in zip(("accuracy", "unique_confidences", "natural_ccg_auc"), values, strict=True)
    ]
    return {"metrics": pl.DataFrame(rows, schema={name: of.dtype for name, of in METRICS.columns.items()})}


def test_each_seed_and_the_mean_over_those_with_a_value_are_drawn():
    drawing = training_signals.draw(metrics(), LAYOUT)
    upper, lower = drawing.figure.axes
    [legend] = drawing.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["RLVR", "Head, trained", "Stated", "Head"]
    marks = [(to_hex(line.get_color()).upper(), line.get_marker()) for line in upper.lines[::2]]
    assert marks == [(COLORS[0], "o"), (COLORS[1], "s"), (COLORS[1], "o")]  # the actor's color, the kind's mark
    means = [tuple(line.get_xydata()[0]) for line in upper.lines[1::2]]
    assert means == [pytest.approx(mean) for mean in [(0.55, 4), (0.3, 150), (0.4, 4)]]
    assert lower.lines[3].get_xydata().tolist() == [[0.4, 0.8]]  # the head has no CCG-AUC of the second seed
    assert drawing.values.sort("method", "seed")["unique_confidences"].to_list() == [100, 200, 3, 5, 4]


def test_more_kinds_than_marks_are_refused():
    methods = tuple(Labeled(name="head", label=str(k)) for k in range(7))
    with pytest.raises(ConfigError, match="7 labels of methods"):
        training_signals.draw(metrics(), changed(LAYOUT, methods=methods))
