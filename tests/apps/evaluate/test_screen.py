"""The one screen that an evaluation says first."""

from dataclasses import replace

import polars as pl
import pytest

from dualread.apps.evaluate.evaluation import evaluate
from dualread.apps.evaluate.printed import WIDTH, number, summary
from dualread.apps.evaluate.report import evaluation_report
from tests.apps.evaluate.tables import write


def table(confidences, correct):
    rows = [f"{c},{int(z)},i{i}" for i, (c, z) in enumerate(zip(confidences, correct, strict=True))]
    return "\n".join(["confidence,correct,image_id", *rows])


def found_in(folder, text, pairs=None, **options):
    pairs = None if pairs is None else write(folder, "pairs.csv", pairs)
    return evaluate(write(folder, "mine.csv", text), pairs, replicates=200, **options)


def told(folder, text, pairs=None):
    """Return {metric: verdict} of the only method."""
    (part,) = evaluation_report(found_in(folder, text, pairs)).parts
    [numbers] = part.verdicts.values()
    return {verdict.metric: verdict for verdict in numbers}


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.8123, ".812"), (-0.03, "-.030"), (1.0, "1"), (0.0, "0"), (-0.0001, ".000"), (0.9999, "1.000")],
)
def test_numbers(value, text):
    assert number(value) == text


def test_confidences_that_tell_right_from_wrong_that_are_turned_around_and_constant(tmp_path):
    right = [k % 4 != 0 for k in range(200)]
    found = told(tmp_path, table([0.85 if z else 0.45 for z in right], right))
    assert (found["auroc"].value, found["auroc"].kind) == ("1", "good")
    # Right answers .85, so .15 too low; wrong ones .45 too high; on average 3/4 x .15 - 1/4 x .45 = 0
    assert (found["ece15"].value, found["ece15"].kind) == (".225", "bad")  # 3/4 x .15 + 1/4 x .45
    assert found["ece15"].words.startswith("not calibrated")
    # Right answers come first: of 200, 50 are wrong; without an order, each k has an error rate of 1/4.
    assert ".250 without an order" in found["aurc"].words
    assert "natural_ccg_auc" not in found  # no pairs
    right = [k % 2 == 0 for k in range(100)]
    turned = told(tmp_path, table([0.2 if z else 0.8 for z in right], right))["auroc"]
    assert (turned.value, turned.kind, "MORE confidence" in turned.words) == ("0", "bad", True)
    same = told(tmp_path, table([0.5] * 100, right))
    assert (same["auroc"].kind, same["ece15"].kind) == ("", "good")
    for confidences, side in (([0.95] * 99 + [0.9], "high"), ([0.05] * 99 + [0.1], "low")):
        assert told(tmp_path, table(confidences, right))["ece15"].words == f"not calibrated, too {side} on average"


def test_print_shows_the_values_without_images_or_resamples():
    # Four answers, two right: accuracy .5. Right ones have .9 and .4, wrong ones .6 and .1: of the four pairs, the
    # right one is ahead in (.9, .6), (.9, .1), (.4, .1), so AUROC is .75. Risks 0, 1/2, 1/3, 1/2; gaps .1, .6, .6, .1.
    head, *lines = str(evaluate({"correct": [1, 1, 0, 0], "confidence": [0.9, 0.4, 0.6, 0.1]}, replicates=0)).split(
        "\n"
    )
    assert head.endswith("4 answers")
    values = dict(line.split()[:2] for line in lines[: lines.index("")])
    assert values == {"accuracy": ".500", "auroc": ".750", "ece15": ".350", "aurc": ".333"}


def test_many_methods_fit_one_screen_and_warnings_are_counted():
    rows = {f"confidence_a_method_with_a_long_name_{k}": [j * (k + 3) % 41 / 41 for j in range(40)] for k in range(30)}
    found = evaluate({**rows, "sample_id": range(40), "correct": [0, 1] * 20}, replicates=40)
    lines = str(replace(found, warnings=["warning: x", "warning: y"])).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= WIDTH
    assert "... and 18 more methods" in lines
    assert lines[-1] == "2 warnings in .warnings, the first: warning: x"


def test_of_several_methods_each_interval_stands_beside_its_value(tmp_path):
    right = [k % 2 == 0 for k in range(40)]
    methods = {"same": [0.5] * 40, "own": [k / 40 for k in range(40)]}
    text = pl.concat(
        pl.read_csv(table(c, right).encode()).with_columns(method=pl.lit(name), sample_id=pl.col("image_id"))
        for name, c in methods.items()
    ).write_csv()
    found = found_in(tmp_path, text)
    head, *rows = [line.text for line in summary(evaluation_report(found))][1:4]
    assert head.split() == ["method", "accuracy", "auroc", "ece15", "aurc"]
    assert rows[1].split()[:4] == ["same", ".500", rows[1].split()[2], ".500"]
    (low, high) = found.metrics.filter(method="same", metric="accuracy", subset="all").select("low", "high").row(0)
    assert rows[1].split()[2] == f"{number(low, 2)}-{number(high, 2)}"
