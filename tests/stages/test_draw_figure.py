import os
import subprocess
import sys

import matplotlib
import polars as pl
import pytest
from PIL import Image

from dualread.errors import ArtifactError
from dualread.schema.base import Plugin
from dualread.schema.tables import DrawFigureSpec, Labeled
from dualread.stages import draw_figure
from tests.evaluation.cells import cell
from tests.reporting.figures.logs import LAYOUT, LOGS
from tests.specs import changed
from tests.stages.test_compute_metrics import save

FILES = ["training.csv", "training.pdf", "training.png"]
SPEC = DrawFigureSpec(figure=Plugin(module="reporting.figures.training"), layout=LAYOUT)


def inputs_of(root):
    inputs = {}
    for name, table in LOGS.items():
        inputs[name] = root / name
        inputs[name].mkdir(parents=True, exist_ok=True)
        table.filter(pl.col("value").is_not_nan()).write_parquet(inputs[name] / "train_log.parquet")  # as trainings do
    return inputs


def draw(root, out, spec=SPEC):
    out.mkdir()
    return draw_figure.compute(spec, inputs_of(root), out)


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def test_for_print_for_a_page_and_every_value(tmp_path):
    # 3 curves (two seeds, mean) x 6 quantities x 3 steps = 54 values; gaps: both shares everywhere (2 x 9), length (9),
    # the confidence of seed 17 at step 2 and of the mean there, the gradient norm of seed 29 at step 3 and of the mean
    assert draw(tmp_path, tmp_path / "out") == "read 2 tables, drew 54 rows of values"
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == FILES
    values = pl.read_csv(tmp_path / "out" / "training.csv", schema_overrides={"seed": pl.String})
    assert values["value"].null_count() == 2 * 9 + 9 + 2 + 2
    row = values.filter(quantity="stated_confidence", seed="mean", step=1).row(0, named=True)
    assert (row["value"], row["low"]) == ((0.5 + 0.7) / 2, (0.5 + 0.7) / 2 - (0.1 + 0.3) / 2)  # every bit
    assert (row["study"], row["backbone"], row["actor"]) == ("embedded", "tiny", "rlvr")
    pdf = (tmp_path / "out" / "training.pdf").read_bytes()
    assert b"/Title (training, study embedded)" in pdf
    assert b"CreationDate" not in pdf
    assert b"DejaVuSans" in pdf


@pytest.mark.rest
def test_another_process_with_other_settings_draws_the_same_bytes(tmp_path):
    draw(tmp_path, tmp_path / "one")
    with matplotlib.rc_context({"font.size": 30, "pdf.compression": 0, "savefig.dpi": 10}):
        draw(tmp_path, tmp_path / "two")
    program = (
        "import sys; from pathlib import Path; from tests.stages.test_draw_figure import draw\n"
        "draw(Path(sys.argv[1]), Path(sys.argv[1], 'three'))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "SOURCE_DATE_EPOCH": "1", "TZ": "Asia/Tokyo"}
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True, env=environment)
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == contents(tmp_path / "three")
    assert matplotlib.rcParams["pdf.fonttype"] == 3  # the style ends with the figure


RELIABILITY = DrawFigureSpec(
    figure=Plugin(module="reporting.figures.reliability"),
    layout=changed(
        LAYOUT, methods=(Labeled(name="psr", label="PSR"),), datasets=(Labeled(name="slake", label="SLAKE-test"),)
    ),
)
PAIRS = changed(RELIABILITY, figure=Plugin(module="reporting.figures.counterfactuals"))


def confidences(root, change=lambda frame: frame):
    """One run's predictions under every condition, and the grades of the original answers."""
    questions, _, grades, predictions = cell()
    return {
        "predictions/tiny/rlvr/17/psr": save(root / "p", change(pl.concat(predictions.values())), "predictions"),
        "manifest/slake/test": save(root / "m", change(questions), "manifest"),
        "graded/tiny/rlvr/17/slake/test/original": save(root / "g", change(grades["original"]), "graded"),
    }


def test_confidences_meet_labels_in_the_evaluations_own_join(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    inputs = confidences(tmp_path)
    assert draw_figure.compute(RELIABILITY, inputs, out) == "read 3 tables, drew 15 rows of values"
    assert pl.read_csv(out / "reliability.csv")["n"].sum() == 40  # the cell's questions
    (turned := tmp_path / "turned" / "out").mkdir(parents=True)
    draw_figure.compute(RELIABILITY, confidences(tmp_path / "turned", pl.DataFrame.reverse), turned)
    for path in out.iterdir():
        assert path.read_bytes() == (turned / path.name).read_bytes()
    grades = pl.read_parquet(inputs["graded/tiny/rlvr/17/slake/test/original"] / "graded.parquet")
    inputs["graded/tiny/rlvr/17/slake/test/original"] = save(tmp_path / "less", grades[1:], "graded")
    with pytest.raises(ArtifactError, match="tiny/rlvr/17/slake/test/original: predictions and graded answers must"):
        draw_figure.compute(RELIABILITY, inputs, out)


def test_donor_pairs_get_their_question_gold_answers_and_images(tmp_path):
    questions, donors, grades, _ = cell()
    inputs = confidences(tmp_path)
    inputs["pairs/slake/test"] = save(tmp_path / "d", donors, "pairs")
    inputs["graded/tiny/rlvr/17/slake/test/donor"] = save(tmp_path / "gd", grades["donor"], "graded")
    (tmp_path / "m" / "images").mkdir()
    for number in range(12):
        Image.new("RGB", (4, 4), (20 * number, 0, 0)).save(tmp_path / "m" / "images" / f"{number}.png")
    out = tmp_path / "out"
    out.mkdir()
    draw_figure.compute(PAIRS, inputs, out)
    drawn = pl.read_csv(out / "counterfactuals.csv")
    assert set(drawn["case"]) == {"greatest", "median", "smallest"}
    asked = dict(questions.select("sample_id", "question").iter_rows())
    assert [asked[sample_id] for sample_id in drawn["sample_id"]] == drawn["question"].to_list()
    del inputs["pairs/slake/test"]
    with pytest.raises(ArtifactError, match="slake/test has no pairs: no same-question donors"):
        draw_figure.compute(PAIRS, inputs, out)
