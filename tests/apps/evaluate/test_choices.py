"""`dualread evaluate --choices`: answer sets by hand, from columns of other people."""

import polars as pl
import pytest

import dualread
from dualread.apps import main as program

# Nine calibration images of one answer, whose right choice has .1, .2, ..., .9.
_ROWS = [("ja", k / 10, 1 - k / 10) if k % 2 else ("nein", 1 - k / 10, k / 10) for k in range(1, 10)]
CALIBRATION = "image_id;reference_answer;correct;confidence;p_ja;p_nein\n" + "".join(
    f"c{k};{right};1;0,5;{yes:.1f};{no:.1f}\n".replace(".", ",") for k, (right, yes, no) in enumerate(_ROWS)
)
TABLE = """\
image_id;reference_answer;correct;confidence;p_ja;p_nein;site
a;ja;1;0,5;0,7;0,3;x
a;nein;1;0,5;0,7;0,3;x
b;nein;1;0,5;0,1;0,9;y
c;ja;1;0,5;0,2;0,2;
"""
CHOICES = {"ja": "p_ja", "nein": "p_nein"}


@pytest.fixture
def tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("test.csv", TABLE), ("validation.csv", CALIBRATION)):
        (tmp_path / name).write_text(text, encoding="utf-8")


def test_sets_by_hand(tables, capsys):
    options = {"choices": CHOICES, "calibration": "validation.csv", "replicates": 0}
    found = dualread.evaluate("test.csv", miss=0.3, by="site", **options).answer_sets
    # Seven of ten images: the seventh largest probability is .3. Sets: both, both, nein, none; covered: 3 of 4.
    rows = found.select("group", "threshold", "coverage", "coverage_of_clusters", "mean_size", "empty", "single", "n")
    assert rows.rows() == [
        (None, pytest.approx(0.3), 0.75, pytest.approx(2 / 3), 1.25, 0.25, 0.25, 4),
        (None, pytest.approx(0.3), 0.0, 0.0, 0.0, 1.0, 0.0, 1),  # without a site
        ("x", pytest.approx(0.3), 1.0, 1.0, 2.0, 0.0, 0.0, 2),
        ("y", pytest.approx(0.3), 1.0, 1.0, 1.0, 0.0, 1.0, 1),
    ]
    assert found["by"].to_list() == [None, "site", "site", "site"]
    few = dualread.evaluate("test.csv", miss=0.05, **options).answer_sets
    assert few["coverage"].to_list() == [None]
    assert "expected at least 19" in few["reason"][0]
    command = ["evaluate", "test.csv", "--choices", "ja=p_ja", "nein=p_nein", "--calibration", "validation.csv"]
    assert program.main([*command, "--miss", ".3", "--replicates", "0", "--out", "out"]) == 0
    assert ".750" in capsys.readouterr().out
    assert pl.read_csv("out/answer_sets.csv")["coverage"].to_list() == [0.75]


def test_a_choice_that_a_question_does_not_have_is_in_no_set(tables):
    table = pl.read_csv("test.csv", separator=";", decimal_comma=True).with_columns(
        p_nein=pl.when(pl.col("reference_answer") == "ja").then(None).otherwise("p_nein")
    )
    found = dualread.evaluate(table, choices=CHOICES, calibration="validation.csv", miss=0.3, replicates=0).answer_sets
    assert found["mean_size"].to_list() == [1.0]  # ja; both; nein; none
