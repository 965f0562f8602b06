"""What a forest plot shows, by hand."""

import polars as pl
import pytest

from dualread.reporting.forest import VALUES, filled_means, judged, plot, rows_of, scale
from tests.reporting import forests
from tests.reporting.forests import LABELS, own

PLACE = {"study": "s", "backbone": "tiny", "dataset": "slake"}


def values(rows=forests.VALUES, tests=forests.TESTS, **options):
    return pl.DataFrame(list(rows_of(rows, tests, LABELS, **PLACE, **options)), schema=VALUES)


def above(frame):
    return dict(frame.filter(role="method").select("method", "above").iter_rows())


def test_p_values_are_adjusted_over_all_methods_and_nulls():
    # 4 x .01 = .04; 3 x .015 = .045; 2 x .02 = .04, raised to .045; 1 x .5
    found = judged(forests.TESTS)
    assert found["a"] == {"p": pytest.approx(0.045), "p_retrained": None, "above": True}
    assert found["b"] == {"p": 0.5, "p_retrained": None, "above": False}


def test_both_senses_of_p_count_and_both_nulls():
    again = [{**row, "p_retrained": p} for row, p in zip(forests.TESTS, (0.001, 0.001, 0.001, 0.9), strict=True)]
    assert judged(again)["a"]["above"]
    again[1]["p_retrained"] = 0.02  # 2 x .02 = .04, the third of four; .9 is the fourth
    assert judged(again)["a"]["above"]
    again[1]["p_retrained"] = 0.03
    assert judged(again)["a"] == {"p": pytest.approx(0.045), "p_retrained": pytest.approx(0.06), "above": False}


@pytest.mark.parametrize(
    "change", [{"estimate": -0.1}, {"short": "donor"}, {"p": None, "p_at_most": None, "estimate": None}]
)
def test_a_method_below_a_null_or_on_few_images_or_without_a_value_is_not_above(change):
    tests = [row | change if row["baseline"] == "qa" else row for row in forests.TESTS]
    assert above(values(tests=tests)) == {"a": False, "b": False}


def test_nulls_are_bands_and_no_methods():
    frame = values()
    assert dict(frame.select("method", "role").iter_rows()) == {"a": "method", "b": "method", "q": "null", "qa": "null"}
    assert above(frame) == {"a": True, "b": False}
    assert frame.filter(role="null")["above"].to_list() == [None, None]
    assert filled_means(["q", "qa"]) == "above both nulls"


@pytest.mark.parametrize(
    ("low", "again", "short", "filled"),
    [(0.51, None, None, True), (0.5, None, None, False), (0.51, 0.5, None, False), (0.6, 0.51, None, True),
     (0.51, None, "source", False), (None, None, None, False)],
)  # fmt: skip
def test_without_nulls_an_interval_above_a_half_is_marked(low, again, short, filled):
    row = own("a", 0.7, low=low, low_retrained=again, short=short)
    assert above(values([row], [])) == {"a": filled}
    assert filled_means([]) == "interval above .5"


def test_an_undefined_value_keeps_its_reason_and_has_no_dot():
    frame = values([own("a", None), own("b", 0.7)], [])
    assert frame.filter(method="a").select("estimate", "reason", "above").row(0) == (*(None, "one class only", False),)
    drawn = plot(frame, "Tiny", (0.5, 1.0))
    (label, (mark,)) = drawn.lines[0]
    assert (label, mark.text, mark.at, mark.note) == ("Method A", "—", None, "undefined: one class only")


def test_places_are_percent_of_the_width():
    limit = own(None, 0.9)
    frame = values([*forests.VALUES, own("a", 0.6, "natural_ccg_auc", short="donor")], limit=limit)
    ends = scale(frame)
    assert ends == (0.5, 1.0)  # of .5, and .8 + .1 and .9 + .1
    drawn = plot(frame, "Tiny, one run", ends)
    auroc, ccg = drawn.axes
    assert (auroc.name, ccg.name) == ("AUROC", "Natural CCG-AUC")
    assert auroc.ticks == {".5": 0, ".6": 20, ".7": 40, ".8": 60, ".9": 80, "1.0": 100}
    assert (auroc.chance, auroc.limit.at, ccg.limit) == (0, 80, None)
    assert {label: (mark.at, mark.inner) for label, mark in auroc.nulls.items()} == {
        "Question": (20, (0, 40)),  # .5 to .7
        "Question and answer": (30, (10, 40)),
    }
    marks = dict(drawn.lines)
    one, other = marks["Method A"]
    assert (one.text, one.at, one.inner, one.outer, one.kind) == (".800", 60, (40, 40), None, "above")
    assert (one.note, other.text, other.kind) == ("[.700, .900]; above the bar", ".600†", "few")
    assert marks["Method B"][1].note == "not measured"  # no pairs of it


def test_texts_of_a_long_axis_do_not_touch():
    drawn = plot(values([own("a", 0.7)], []), "Tiny", (0.3, 1.0))
    # Every second tenth, .5 among them; .7 lies (.7 - .3) / .7 = 57.14% from the left.
    assert drawn.axes[0].ticks == {".3": 0, ".5": 28.57, ".7": 57.14, ".9": 85.71}


@pytest.mark.parametrize(
    ("numbers", "ends"), [([], (0.5, 0.6)), ([0.31], (0.3, 0.5)), ([0.0, 1.0], (0.0, 1.0)), ([0.7], (0.5, 0.7))]
)
def test_the_axis_shows_all_values_and_a_half(numbers, ends):
    rows = [own(method, number, low=None, high=None) for method, number in zip("ab", numbers, strict=False)]
    assert scale(values(rows, [])) == ends
