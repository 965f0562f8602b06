import polars as pl
import pytest

from dualread.errors import ConfigError
from dualread.reporting.figures import robustness
from dualread.schema.columns import METRICS
from dualread.schema.tables import FigureLayout, LabeledCondition
from tests.reporting.figures.answers import labeled
from tests.specs import changed

LAYOUT = FigureLayout(
    study="embedded",
    backbones=labeled(tiny="Tiny", other="Other"),
    methods=labeled(rlvr="GRPO (RLVR)", psr="PSR"),
    datasets=labeled(slake="SLAKE"),
    conditions=(
        LabeledCondition(name="blur_2", image="blur", strength=1.0),
        LabeledCondition(name="blur_1", image="blur", strength=0.5),
        LabeledCondition(name="no_image", image="none"),
    ),
)
NAMES = ("original", "blur_1", "blur_2", "no_image")


def row(condition: str, metric: str, value: float | None, *, backbone="tiny", method="rlvr", seed=17) -> dict:
    ends = (None, None) if value is None else (value - 0.1, value + 0.1)
    return {
        **dict.fromkeys(METRICS.columns),
        **{"backbone": backbone, "method": method, "seed": seed, "dataset": "slake", "split": "test"},
        **{"subset": f"condition:{condition}", "metric": metric, "estimate": value, "low": ends[0], "high": ends[1]},
    }


USUAL = [0.8, 0.7, 0.5, 0.3]


def metrics(**values: list) -> dict[str, pl.DataFrame]:
    """Accuracies .8, .7, .5, .3 everywhere, and the same of mean confidences, but for those of `values` by method."""
    rows = [
        row(condition, metric, value, backbone=backbone, method=method, seed=seed)
        for backbone in ("tiny", "other")
        for method in ("rlvr", "psr")
        for seed in (17, 29)
        for metric in ("accuracy", "mean_confidence")
        for of in [values.get(method, USUAL) if metric == "mean_confidence" else USUAL]
        for condition, value in zip(NAMES, of, strict=True)
    ]
    return {"metrics": pl.DataFrame(rows, schema={name: of.dtype for name, of in METRICS.columns.items()})}


def lines(axes) -> list[tuple[list[float], list[float]]]:
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]


def test_confidence_and_accuracy_against_strength():
    drawing = robustness.draw(metrics(psr=[0.9, 0.9, 0.85, None]), LAYOUT)
    blur, _, others, _ = drawing.figure.axes
    # rlvr's confidence, psr's, and the accuracy once, because both judge the same answers
    assert lines(blur) == [
        ([0.0, 0.5, 1.0], [0.8, 0.7, 0.5]),
        ([0.0, 0.5, 1.0], [0.9, 0.9, 0.85]),
        ([0.0, 0.5, 1.0], [0.8, 0.7, 0.5]),
    ]
    assert lines(others) == [([0.0, 1.0], [0.8, 0.3]), ([0.0], [0.9]), ([0.0, 1.0], [0.8, 0.3])]
    assert [text.get_text() for text in others.get_xticklabels()] == ["original", "no image"]
    assert (blur.get_ylabel(), others.get_ylabel()) == ("blur", "other conditions")
    ends = [segment.tolist() for of in blur.collections for segment in of.get_segments()]
    assert ends[0] == [[0.0, pytest.approx(0.7)], [0.0, pytest.approx(0.9)]]


def test_every_drawn_value_is_listed():
    values = robustness.draw(metrics(), LAYOUT).values
    assert len(values) == 2 * 2 * 4 * 2  # backbones, methods, conditions, metrics
    one = values.row(
        by_predicate=(pl.col("condition") == "blur_2")
        & (pl.col("metric") == "accuracy")
        & (pl.col("backbone") == "tiny")
        & (pl.col("method") == "psr"),
        named=True,
    )
    assert one["mean"] == pytest.approx(0.5)
    assert (one["strength"], one["n_seeds"], one["image"]) == (1.0, 2, "blur")


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ConfigError, match="the study has no other conditions"):
        robustness.draw(metrics(), changed(LAYOUT, conditions=()))
    with pytest.raises(ConfigError, match="methods: 8 methods"):
        robustness.draw(metrics(), changed(LAYOUT, methods=labeled(**{str(k): "x" for k in range(8)})))
