"""`dualread evaluate` on claims of reports: numbers by hand, whatever names a report, and what is shown."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dualread
from dualread.apps import main as program
from dualread.evaluation.statistics.proportion import share_interval
from tests.apps.evaluate.tables import write

# Report a has the claims .9 (supported), .7 (not), and .3 (supported); b has .8 and .6 (both supported); c has .4 (not)
# and .95, of which nobody knows.
TEST = """\
sample_id,claim,correct,confidence
a,first,1,0.9
a,second,0,0.7
a,third,1,0.3
b,first,1,0.8
b,second,1,0.6
c,first,0,0.4
c,second,,0.95
"""
# 60 patients with two reports each of two claims; all at .8 are supported, those at .5 are not.
CALIBRATION = "report,claim,patient,correct,confidence\n" + "".join(
    f"{patient}-{k},{claim},{patient},{1 - claim},{0.8 - 0.3 * claim:.1f}\n"
    for patient in range(60)
    for k in range(2)
    for claim in range(2)
)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("test.csv", TEST), ("validation.csv", CALIBRATION)):
        write(tmp_path, name, text)


def filters_of(*tables, **options) -> pl.DataFrame:
    filters = dualread.evaluate(*tables, **options).claim_filter
    assert filters is not None
    return filters


def rows(filters, *names):
    return filters.select("target_risk", "loss", *names).rows()


def test_the_filter_by_hand(tables):
    found = dualread.evaluate("test.csv", calibration="validation.csv", target_risk=0.2, replicates=0)
    assert found.left_out == {"test.csv: no value in column 'correct'": 1}
    filters = filters_of("test.csv", calibration="validation.csv", target_risk=0.2, replicates=0)
    # All claims: 2 of 6 are unsupported; a has the share 1/3, b 0, c 1. At .8, where the calibration reports have no
    # loss (at .5 all have), .9 and .8 are kept, both supported, and none of c.
    counts = ("threshold", "kept", "unsupported", "none_kept", "risk", "n", "n_reports", "n_clusters")
    assert rows(filters, *counts) == [
        (None, "share", 0.0, 1.0, pytest.approx(1 / 3), 0.0, pytest.approx(4 / 9), 6, 3, 3),
        (None, "any", 0.0, 1.0, pytest.approx(1 / 3), 0.0, pytest.approx(2 / 3), 6, 3, 3),
        (0.2, "share", 0.8, pytest.approx(1 / 3), 0.0, pytest.approx(1 / 3), 0.0, 6, 3, 3),
        (0.2, "any", 0.8, pytest.approx(1 / 3), 0.0, pytest.approx(1 / 3), 0.0, 6, 3, 3),
    ]
    # Intervals are over reports: one of three has no claim left.
    ends = share_interval(np.array([False, False, True]), np.arange(3)) or ()
    assert rows(filters, "none_kept_low", "none_kept_high")[2:] == [(0.2, loss, *ends) for loss in ("share", "any")]
    # Metrics are over claims, with the report as cluster: 4 of 6 are supported.
    (accuracy,) = found.metrics.filter(metric="accuracy", subset="all").to_dicts()
    assert (accuracy["estimate"], accuracy["n"], accuracy["n_clusters"]) == (pytest.approx(4 / 6), 6, 3)


def test_what_names_a_report_does_not_matter(tables):
    found = dualread.evaluate("test.csv", replicates=50)
    frame = pl.read_csv("test.csv").rename({"sample_id": "study_uid"}).sample(fraction=1.0, shuffle=True, seed=1)
    numbered = frame.with_columns(claim=pl.int_range(pl.len()).over("study_uid"))
    for table in (frame, numbered, numbered.with_columns(patient=pl.col("study_uid") + "x")):
        cluster = "patient" if "patient" in table.columns else None
        options = {"columns": {"report": "study_uid"}, "cluster": cluster, "replicates": 50}
        other = dualread.evaluate(table, **options)
        filters = filters_of(table, **options), filters_of("test.csv", replicates=50)
        assert filters[0].drop("method").equals(filters[1].drop("method"))
        key = ["metric", "subset"]
        estimates = [of.metrics.select(*key, "estimate", "n", "n_clusters").sort(key) for of in (other, found)]
        assert estimates[0].equals(estimates[1])


def test_patients_are_the_units_of_what_is_certified(tables):
    # 60 patients with two reports each: with a stake of 1 / (.9 * 2), half of the capital grows by 1 + .2 / 1.8 for
    # each, and .5 * (10 / 9)^60 = 278 > 1 / .06. With M = 8, .5 * (1 + .2 / 7.2)^60 = 2.6 is too few.
    options = {"calibration": "validation.csv", "target_risk": 0.1, "replicates": 0}
    table = pl.read_csv("test.csv").with_columns(patient=pl.col("sample_id"))
    by_patient = filters_of(table, cluster="patient", **options)
    assert by_patient["threshold"].to_list() == [0.0, 0.0, 0.8, 0.8]
    assert by_patient["calibration_clusters"].to_list() == [None, None, 60, 60]
    assert by_patient["calibration_max_reports"].to_list()[2:] == [2, 2]
    few = filters_of(table, cluster="patient", max_reports=8, **options)
    assert few["threshold"].to_list() == [0.0, 0.0, None, None]
    assert "too few patients (60)" in few["reason"][2]
    # What chose names no images: each of its reports is by itself.
    alone = filters_of(table.with_columns(image_id=pl.col("sample_id")), max_reports=8, **options)
    assert "too few reports (120)" in alone["reason"][2]


def test_pairs_of_claims_are_forced_on_a_donor(tables):
    pairs = {"sample_id": ["a", "b"], "claim": ["first", "second"], "donor_image_id": ["y", "x"]}
    pairs |= {"donor_correct": [0, 0], "donor_confidence": [0.5, 0.7]}
    table = pl.read_csv("test.csv").with_columns(
        image_id=pl.col("sample_id").replace_strict({"a": "x", "b": "y", "c": "z"})
    )
    found = dualread.evaluate(table, pairs, replicates=0).metrics.filter(metric="natural_ccg_auc", subset="all")
    assert found["estimate"].to_list() == [0.5]  # .9 > .5, and .6 < .7


def test_what_is_shown(tables, capsys):
    command = ["evaluate", "test.csv", "--calibration", "validation.csv", "--target-risk", ".2", "--replicates", "0"]
    assert program.main([*command, "--out", "out"]) == 0
    screen = capsys.readouterr().out
    page = Path("out/evaluate.html").read_text(encoding="utf-8")
    for line in ("test.csv: 6 claims of 3 reports", "left out: 1 of 7 rows"):
        assert line in screen
    for text in (screen, page):
        assert all(words in " ".join(text.split()) for words in ("reports: none", "all claims", "of claims: the loss"))
    assert "Left out: 1" in page
    assert pl.read_csv("out/claim_filter.csv")["threshold"].to_list() == [0.0, 0.0, 0.8, 0.8]
    assert all(len(line) <= 100 for line in screen.splitlines() if not line.startswith("wrote"))
