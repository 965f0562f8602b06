import polars as pl
import pytest

from dualread.errors import ConfigError
from dualread.reporting.figures import layers
from dualread.schema.columns import METRICS
from dualread.schema.tables import FigureLayout
from tests.reporting.figures.answers import labeled
from tests.specs import changed

LAYOUT = FigureLayout(
    study="embedded",
    backbones=labeled(tiny="Tiny"),
    methods=labeled(layer_100="Layer at 1", layer_0="Layer at 0"),
    datasets=labeled(slake="SLAKE"),
    layers={"layer_0": 0.0, "layer_100": 1.0},
)


def metrics(**values: list[float | None]) -> dict[str, pl.DataFrame]:
    rows = [
        {
            **dict.fromkeys(METRICS.columns),
            **{"backbone": "tiny", "method": method, "seed": seed, "dataset": "slake", "split": "test"},
            **{"subset": "all", "metric": "auroc", "estimate": value, "low": value and value - 0.1},
            "high": value and value + 0.1,
        }
        for method, of in values.items()
        for seed, value in enumerate(of)
    ]
    return {"metrics": pl.DataFrame(rows, schema={name: of.dtype for name, of in METRICS.columns.items()})}


def test_the_mean_over_seeds_by_depth():
    drawing = layers.draw(metrics(layer_0=[0.5, 0.6], layer_100=[0.8, 0.7]), LAYOUT)
    (axes,) = drawing.figure.axes
    assert list(axes.lines[0].get_xdata()) == [0.0, 1.0]
    assert list(axes.lines[0].get_ydata()) == pytest.approx([0.55, 0.75])
    ends = [segment[:, 1].tolist() for of in axes.collections for segment in of.get_segments()]
    assert ends == [pytest.approx([0.45, 0.65]), pytest.approx([0.65, 0.85])]
    assert drawing.values["auroc"].to_list() == pytest.approx([0.75, 0.55])


def test_a_probe_without_a_value_in_a_seed_is_a_gap():
    drawing = layers.draw(metrics(layer_0=[0.5, None], layer_100=[0.8, 0.7]), LAYOUT)
    assert list(drawing.figure.axes[0].lines[0].get_xdata()) == [1.0]
    assert drawing.values["auroc"].to_list() == [pytest.approx(0.75), None]


def test_a_method_without_a_layer_is_refused():
    with pytest.raises(ConfigError, match="\\['layer_0'\\] read no layer"):
        layers.draw(metrics(), changed(LAYOUT, layers={"layer_100": 1.0}))
