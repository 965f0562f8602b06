"""`dualread evaluate --by`: columns of other people as groups, on the screen, in files, and with thresholds."""

import polars as pl
import pytest

import dualread
from dualread.apps import main as program
from dualread.apps.evaluate import files
from dualread.apps.evaluate.report import evaluation_report

COLUMNS = {"sample_id": "Fall", "image_id": "Bild", "confidence": "Konfidenz", "correct": "Richtig"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two tables with semicolons, decimal commas, German names, empty cells, and houses with 3 answers each."""
    monkeypatch.chdir(tmp_path)
    for name, first in (("klinik.csv", 0), ("kalibrierung.csv", 1_000)):
        lines = ["Fall;Bild;Konfidenz;Richtig;Geschlecht;Alter;Haus"]
        for k in range(180):
            right = k * 7 % 10 < (8 if k // 2 % 3 else 4)
            confidence = f"{0.3 + 0.4 * right + k * 13 % 20 / 100:.2f}".replace(".", ",")
            sex = ("W", "M", " M ", "")[min(k // 2 % 3, 2) if k >= 12 else 3]
            lines.append(f"{first + k};b{first + k // 2};{confidence};{right:d};{sex};{20 + k % 40};Haus {k // 3:02d}")
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


def test_a_column_has_up_to_a_hundred_groups():
    table = {"confidence": [0.5] * 100, "correct": [1] * 100, "age": list(range(100))}
    evaluated = dualread.evaluate(table, by="age", replicates=0)
    assert evaluated.groups is not None
    assert evaluated.groups.metrics.drop_nulls("group")["group"].n_unique() == 100


def test_columns_of_other_people_are_groups(folder, capsys):
    evaluated = dualread.evaluate("klinik.csv", by=["Geschlecht", "Haus"], columns=COLUMNS, replicates=200)
    plain = dualread.evaluate("klinik.csv", columns=COLUMNS, replicates=200)
    assert evaluated.metrics.equals(plain.metrics)
    assert plain.groups is None
    groups = evaluated.groups.metrics
    sizes = groups.filter(metric="accuracy", by="Geschlecht").select("group", "n", "n_clusters").rows()
    assert sizes == [("M", 112, 56), ("W", 56, 28), (None, 12, 6)]  # " M " is M, an empty cell is none
    table = pl.read_csv("klinik.csv", separator=";").filter(Geschlecht="W")
    of_women = groups.filter(metric="accuracy", group="W")
    assert of_women["estimate"].to_list() == [table["Richtig"].mean()]
    of_houses = groups.filter(by="Haus")
    assert of_houses["group"].n_unique() == 60
    assert of_houses["low"].drop_nulls().is_empty()
    assert (
        program.main(
            ["evaluate", "klinik.csv", "--by", "Geschlecht", "Haus", "--replicates", "200", "--columns"]
            + [f"{name}={column}" for name, column in COLUMNS.items()]
        )
        == 0
    )
    said = capsys.readouterr().out
    assert "(no value)" in said
    [worst] = evaluated.groups.worst.filter(by="Geschlecht", metric="accuracy").to_dicts()
    assert f"worst accuracy: {worst['group']!r}" in said
    assert max(map(len, said.splitlines())) <= 100
    files.write(evaluated, evaluation_report(evaluated), folder / "out")
    assert pl.read_csv("out/groups.csv").height == groups.height
    drawn = pl.read_csv("out/forest_by_1.csv")
    assert drawn["label"].to_list() == ["M", "W"]
    assert (
        drawn["low_retrained"].to_list()
        == groups.filter(by="Geschlecht", metric="auroc")["simultaneous_low"][:2].to_list()
    )
    page = (folder / "out/evaluate.html").read_text(encoding="utf-8")
    assert page.count('<table class="forest">') == 2  # methods, sexes; houses have no interval
    assert "by Haus" in page


def test_certified_thresholds_share_delta_over_the_groups_of_a_column(folder):
    given = {"columns": COLUMNS, "replicates": 0, "target_risk": 0.3, "calibration": "kalibrierung.csv"}
    by_sex = dualread.evaluate("klinik.csv", by="Geschlecht", **given).groups.thresholds
    tables = {}
    for name in ("klinik.csv", "kalibrierung.csv"):
        frame = pl.read_csv(name, separator=";", decimal_comma=True)
        tables[name] = frame.with_columns(pl.col("Geschlecht").str.strip_chars())
    for group in ("M", "W"):  # the same as of this group alone, of two thresholds that share delta
        alone = dualread.evaluate(
            tables["klinik.csv"].filter(Geschlecht=group),
            **{**given, "calibration": tables["kalibrierung.csv"].filter(Geschlecht=group), "share_delta": 2},
        ).thresholds
        mine = by_sex.filter(group=group).drop("by", "group", "method", "dataset")
        assert mine.equals(alone.drop("method", "dataset"))
    assert by_sex.drop_nulls("threshold").height > 2
    nothing = dualread.evaluate("klinik.csv", by="Geschlecht", **given | {"target_risk": 0.001})
    assert "0 of 2 certified thresholds of groups, which share delta" in str(nothing)


def test_a_data_set_without_groups_has_no_thresholds_of_groups():
    table = {"dataset": ["a", "a", "b"], "confidence": [0.9, 0.2, 0.5], "correct": [1, 0, 1], "sex": ["f", "m", None]}
    calibration = {**table, "confidence": [0.8, 0.3, 0.4]}
    groups = dualread.evaluate(table, by="sex", calibration=calibration, target_risk=0.3, replicates=0).groups
    assert set(groups.thresholds.select("dataset", "group").rows()) == {("a", "f"), ("a", "m")}


@pytest.mark.parametrize(
    ("values", "groups"),
    [
        ([1.0, 0.0, float("nan"), 1.0], ["0", "1", None]),  # as pandas stores whole numbers with a missing one
        ([1.5, 0.0, None, 1.5], ["0.0", "1.5", None]),
        ([True, False, None, True], ["false", "true", None]),
        (["a", "a ", "", None], ["a", None]),
    ],
)
def test_values_of_any_type_are_names_of_groups(values, groups):
    table = {"confidence": [0.1, 0.9, 0.5, 0.4], "correct": [0, 1, 1, 0], "of": values}
    found = dualread.evaluate(table, by="of", replicates=0).groups.metrics
    assert found.filter(metric="accuracy")["group"].to_list() == groups
