"""Everything that figures draw, and the values that they list beside it: figures.txt has both, case by case."""

import io
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib.colors import to_hex
from PIL import Image
from scipy.stats import binomtest

from dualread.evaluation.metrics.selective import aurc
from dualread.reporting.figures import counterfactuals, reliability, risk_coverage, training
from dualread.reporting.figures.drawing import house_style
from dualread.reporting.figures.reliability_diagram import diagram
from tests import golden
from tests.reporting.figures.answers import LAYOUT, answers, of_all
from tests.reporting.figures.cases import CASES, FOUR, PAIRS, RISKS, SEEDS
from tests.reporting.figures.logs import LAYOUT as TRAINING
from tests.reporting.figures.logs import LOGS


def rounded(value):
    """Seven digits of each number, in lists as well; masked numbers are gaps."""
    if isinstance(value, str | None):
        return str(value)
    numbers = np.ma.filled(np.ma.asarray(value, dtype=float), np.nan)
    return f"{numbers:.7g}" if numbers.ndim == 0 else "[" + ", ".join(map(rounded, numbers)) + "]"


def words(texts):
    return [text.get_text() for text in texts if text.get_text()]


def of_axes(axes):
    """Titles, words, limits and marks of one panel."""
    titles = [axes.get_title(), axes.get_title(loc="left")]
    sides = axes.xaxis.get_tick_params() | axes.yaxis.get_tick_params()
    numbered = "+".join(side for side in ("bottom", "left") if sides.get(f"label{side}")) or "nowhere"
    yield f"panel {titles} {rounded(axes.get_xlim())} {rounded(axes.get_ylim())} numbered {numbered}"
    ticks = words([*axes.get_xticklabels(), *axes.get_yticklabels()])
    ticks = [of for of in ticks if of.strip("−0123456789.") and "mathdefault" not in of]  # those are the engine's
    if shown := [*filter(None, (axes.get_xlabel(), axes.get_ylabel())), *ticks, *words(axes.texts)]:
        yield f"  words {shown}"
    for line in axes.lines:
        if not np.isnan(np.ma.filled(np.ma.asarray(line.get_ydata(), dtype=float), np.nan)).all():
            fill = line.get_markerfacecolor()
            style = [to_hex(line.get_color()), line.get_linestyle(), line.get_marker(), line.get_markevery()]
            style += [fill if fill == "white" else to_hex(fill), rounded(line.get_linewidth())]
            yield f"  line {rounded(line.get_xdata())} {rounded(line.get_ydata())} {' '.join(map(str, style))}"
    for bar in axes.patches:
        if bar.get_height():
            place = (bar.get_x(), bar.get_y(), bar.get_width(), bar.get_height())
            yield f"  bar {rounded(place)} {to_hex(bar.get_facecolor())}"
    for marks in axes.collections:
        yield "  paths " + "; ".join(" ".join(map(rounded, path.vertices.T)) for path in marks.get_paths())
    for picture in axes.images:
        yield f"  picture {picture.get_array().shape}"


def of_page(page):
    yield f"page {words(page.texts)}"
    for legend in page.legends:
        yield f"legend {legend.get_title().get_text()!r} {words(legend.get_texts())}"
    for axes in () if page.subfigs else page.axes:
        yield from of_axes(axes)
    for part in page.subfigs:
        yield from of_page(part)


def text_of(drawing):
    """The pages, and the values of all bins that are not empty; of a gap, there is nothing but nulls."""
    pages = (drawing.figure, *drawing.further)
    found = [line for page in pages for line in (f"inches {rounded(page.get_size_inches())}", *of_page(page))]
    values = drawing.values.filter(pl.col("n") > 0) if "n" in drawing.values.columns else drawing.values
    found.append(" · ".join(values.columns))
    for row in values.iter_rows():
        found.append(" · ".join(rounded(of) if isinstance(of, float) else str(of) for of in row))
    return "\n".join(found)


def test_all_that_is_drawn_and_listed(tmp_path):
    Image.new("RGB", (8, 6), "gray").save(tmp_path / "image.png")
    found = {}
    for name, case in CASES.items():
        made = []
        with house_style():
            found[name] = golden.message_of(lambda made=made, case=case: made.append(case(tmp_path / "image.png")))
            found[name] = text_of(made[0]) if made else found[name]
    golden.check(Path(__file__).with_name("figures.txt"), found)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        # In order: b and c (1/2 each), a (1/4), d (-1/8); the median is the greater of the two in the middle.
        (PAIRS, {"greatest": "b", "median": "c", "smallest": "d"}),
        (PAIRS[::-1], {"greatest": "b", "median": "c", "smallest": "d"}),
        # No pair is shown twice.
        (PAIRS[4:], {}),
        (PAIRS[:1] + PAIRS[4:], {"greatest": "a"}),
        (PAIRS[:2] + PAIRS[4:], {"greatest": "b", "smallest": "a"}),
    ],
)
def test_the_greatest_median_and_smallest_drops_are_chosen_and_ties_by_id(pairs, expected):
    found = counterfactuals.choose(pl.DataFrame(pairs))
    assert {case: row["sample_id"] for (kind, case), row in found.items() if kind == "natural"} == expected


def test_every_bin_is_listed_and_empty_ones_have_no_share():
    values = diagram({"mine": FOUR}).values
    assert values["bin"].to_list() == list(range(15))
    filled = values.filter(pl.col("n") > 0)
    assert filled.drop("low", "high").rows() == [
        ("mine", 3, 3 / 15, 4 / 15, 2, 2, pytest.approx(0.225), 0.5),
        ("mine", 14, 14 / 15, 1.0, 2, 2, pytest.approx(0.975), 1.0),
    ]
    for column in ("share_correct", "mean_confidence", "low", "high"):
        assert values[column].null_count() == 13


@pytest.mark.parametrize(("right", "n"), [(0, 1), (1, 1), (3, 10), (50, 50), (17, 1061)])
def test_the_interval_is_that_of_scipy_where_every_answer_has_its_own_image(right, n):
    frame = answers([0.5] * n, [k < right for k in range(n)])
    (row,) = diagram({"mine": frame}).values.filter(pl.col("n") > 0).iter_rows(named=True)
    expected = binomtest(right, n).proportion_ci(method="wilson")
    assert (row["low"], row["high"]) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_answers_on_one_image_are_one_observation_of_the_interval():
    # 4 of 8 answers are right, on 2 images: the interval of 1 of 2 above, not that of 4 of 8
    frame = answers([0.5] * 8, [True, False] * 4, images=["a", "a", "a", "a", "b", "b", "b", "b"])
    (row,) = diagram({"mine": frame}).values.filter(pl.col("n") > 0).iter_rows(named=True)
    assert (row["n"], row["n_clusters"], row["share_correct"]) == (8, 2, 0.5)
    assert (row["low"], row["high"]) == (pytest.approx(0.5 - 0.405469, abs=2e-6), pytest.approx(0.905469, abs=2e-6))


def test_a_name_is_not_read_as_a_formula():
    figure = diagram({"a$_b$": FOUR}).figure
    figure.draw_without_rendering()
    assert figure.axes[0].get_title().startswith("a$_b$\n")


def whiskers(axes):
    return [tuple(segment[:, 1]) for of_bins in axes.collections for segment in of_bins.get_segments()]


def test_bars_and_whiskers_are_the_listed_values_and_the_error_is_that_of_pooled_answers():
    one, pooled = diagram({"mine": FOUR}), reliability.draw(of_all(*SEEDS), LAYOUT)
    for drawing, axes in ((one, one.figure.axes[0]), (pooled, pooled.figure.axes[2])):
        listed = drawing.values.filter(pl.col("n") > 0)
        listed = drawn(listed) if drawing is pooled else listed
        assert [(bar.get_x(), bar.get_height()) for bar in axes.patches] == listed.select(
            "from", "share_correct"
        ).rows()
        assert whiskers(axes) == listed.select("low", "high").rows()
    # (2 |.5 - .2| + |1 - .9| + |0 - 1|) / 4
    assert drawn(pooled.values)["pooled_ece"].to_list() == pytest.approx([0.425] * 15)


def test_the_lines_of_training_are_the_listed_values():
    drawing = training.draw(LOGS, TRAINING)
    for quantity, axes in zip(training.QUANTITIES, drawing.figure.axes, strict=True):
        for seed, line in zip(("17", "29", "mean"), axes.lines, strict=True):
            listed = drawing.values.filter(quantity=quantity.name, seed=seed).sort("step")
            assert list(line.get_xdata()) == listed["step"].to_list()
            assert [None if np.isnan(of) else of for of in line.get_ydata()] == listed["value"].to_list()


def test_the_lines_of_risks_are_the_listed_values_and_their_mean_is_the_area():
    drawing = risk_coverage.draw(of_all(*RISKS, answers([0.5] * 2, [False] * 2, backbone="other")), LAYOUT)
    for axes, backbone in zip(drawing.figure.axes, ("tiny", "other"), strict=True):
        for line, method in zip(axes.lines, ("rlvr", "psr"), strict=True):
            assert list(line.get_ydata()) == drawn(drawing.values, backbone, method)["risk"].to_list()
            assert axes.get_ylim()[1] > max(line.get_ydata())
    areas = [aurc(seed["confidence"].to_numpy(), seed["correct"].to_numpy()) for seed in RISKS]
    assert drawn(drawing.values)["risk"].mean() == pytest.approx(np.mean(areas))


def drawn(values, backbone="tiny", method="psr"):
    return values.filter(backbone=backbone, method=method)


def test_a_long_line_lists_what_a_screen_shows(monkeypatch):
    random = np.random.default_rng(0)
    n = 5_000
    runs = [answers(random.random(n).tolist(), (random.random(n) < 0.7).tolist(), seed=seed) for seed in range(2)]
    thin = risk_coverage.draw(of_all(*runs), LAYOUT)
    monkeypatch.setattr(risk_coverage, "_MOST_DRAWN", n)
    whole = risk_coverage.draw(of_all(*runs), LAYOUT)
    listed, all_points = drawn(thin.values), drawn(whole.values)
    assert all_points.height == n
    assert listed.height <= 2_000
    # Every listed point is one of the line's, and each of 500 strips of ten points keeps its ends and extremes.
    assert listed.join(all_points, on=["kept", "coverage", "risk"]).height == listed.height
    strips = [part.with_columns(strip=(pl.col("kept") - 1) // 10) for part in (listed, all_points)]
    ends = [pl.col("risk").min().alias("low"), pl.col("risk").max().alias("high"), pl.col("risk").first()]
    shown = [part.sort("kept").group_by("strip", maintain_order=True).agg(*ends) for part in strips]
    assert shown[0].equals(shown[1])
    pictures = []
    for drawing in (thin, whole):
        drawing.figure.savefig(picture := io.BytesIO(), format="png", dpi=200)
        pictures.append(np.asarray(Image.open(picture)).astype(int))
    assert (abs(pictures[0] - pictures[1]).max(axis=2) > 64).mean() < 0.002  # of the pixels
