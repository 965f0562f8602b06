"""The trainings of a study that has not ended, as the page of questions shows them."""

import io
import os
import time
from base64 import b64decode

import polars as pl
import pytest
from PIL import Image

from dualread.apps.browse.page import collect, render, trainings
from dualread.apps.main import main
from dualread.artifacts.tables import from_rows, write_table
from dualread.errors import ArtifactError
from dualread.progress import NotedStep, note_steps
from dualread.reporting.figures import training
from dualread.schema.columns import TRAIN_LOG
from dualread.store.place import write_study
from dualread.store.store import Store
from tests.apps.browse import study

FIVE = [NotedStep(step=k, of=20, values={"reward": 0.1 * k, "seconds": 30.0}) for k in range(1, 6)]


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "results/mine"
    folder.mkdir(parents=True)
    labels = {
        "backbones": {"tiny": {"label": "Tiny"}},
        "actors": {"rlvr": {"label": "GRPO"}, "rlcr": {"label": "RLCR"}},
    }
    write_study(folder, Store(tmp_path / "store"), settings=labels)
    return folder


def run(folder, actor="rlvr", seed=17, steps=FIVE, ago=0.0):
    """Let a training have taken steps, the last one some seconds ago."""
    file = folder / f"logs/train_actor/tiny/{actor}/{seed}.steps"
    note_steps(file, steps)
    os.utime(file, (time.time() - ago,) * 2)
    return file


def end(folder, actor="rlvr", seed=17, rows=((1, "reward", 0.5), (2, "reward", 0.75))):
    made = folder / f"actors/tiny/{actor}/{seed}"
    made.mkdir(parents=True)
    table = from_rows([dict(zip(("step", "name", "value"), row, strict=True)) for row in rows], TRAIN_LOG)
    write_table(made / "train_log.parquet", table, TRAIN_LOG)
    (made / "MANIFEST.json").write_text("{}")


@pytest.fixture
def drawn(monkeypatch):
    """What the training figure is asked to draw: tables and layouts."""
    given, right = [], training.draw

    def noted(tables, layout):
        given.append((dict(tables), layout))
        return right(tables, layout)

    monkeypatch.setattr(training, "draw", noted)
    return given


def test_a_training_that_runs_is_drawn_beside_one_that_has_ended(folder, drawn):
    end(folder, "rlcr")
    end(folder, "base", 0, [(0, "loss", 3.0)])  # of a pretraining: no actor of the figure
    run(folder, ago=90.2)
    found = trainings(folder)
    # 15 steps of 30 s are left.
    said = "tiny/rlvr/17: step 5 of 20, 1 min 30 s ago; 30.0 s per step, about 7 min 30 s left while it runs."
    assert found["sentences"] == [said]
    picture = Image.open(io.BytesIO(b64decode(found["picture"].partition(",")[2])))
    assert picture.format == "PNG"
    assert picture.width > 900
    [(tables, layout)] = drawn
    assert [(one.name, one.label) for one in layout.actors] == [("rlvr", "GRPO"), ("rlcr", "RLCR")]
    values = {name: table.filter(pl.col("name") == "reward")["value"].to_list() for name, table in tables.items()}
    assert values == {
        "train_log/tiny/rlvr/17": pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5]),
        "train_log/tiny/rlcr/17": [0.5, 0.75],
    }


def test_a_line_that_is_just_being_written_is_left_out(folder, drawn):
    file = run(folder)
    whole = file.read_bytes()
    last = len(whole) - len(whole.splitlines(keepends=True)[-1])
    for cut in (len(whole) - 1, last + 20, last + 1, last):  # without its end, in the middle, one byte, none
        file.write_bytes(whole[:cut])
        assert trainings(folder)["sentences"][0].startswith("tiny/rlvr/17: step 4 of 20, ")
    file.write_bytes(whole[:5])
    assert trainings(folder) is None
    assert len(drawn) == 4


def test_what_is_no_step_is_left_out(folder):
    file = run(folder)
    with file.open("ab") as opened:
        opened.write(b'null\n[1]\n{"step": 6}\n{"step": 7, "of": 20, "values": [1]}\n\xff\xfe\n\n')
    assert trainings(folder)["sentences"][0].startswith("tiny/rlvr/17: step 5 of 20, ")


def test_the_artifact_counts_once_it_is_there_and_the_file_again_when_the_training_begins_anew(folder):
    run(folder, ago=60)
    end(folder)
    assert trainings(folder) is None
    assert trainings(folder, all_ended=True)["sentences"] == []
    run(folder, steps=FIVE[:1], ago=-60)  # after an edit; the old artifact is still in its place
    assert len(trainings(folder)["sentences"]) == 1


def test_curves_are_the_page_while_there_are_no_answers(folder, drawn, capsys):
    run(folder)
    run(folder, seed=29, steps=FIVE[:2])
    assert main(["browse", str(folder)]) == 0
    page = (folder / "browse.html").read_text()
    assert "No method has read an answer yet" in page
    assert page.count('src="data:image/png;base64,') == 1
    assert page.count("<p>tiny/rlvr/") == 2
    assert "<script" not in page
    assert "0 questions" in capsys.readouterr().out
    [(tables, _)] = drawn
    assert len(tables) == 2


def test_curves_stand_above_the_questions_until_the_last_training_has_ended(folder):
    study.write(folder)
    assert collect(folder, split="test")["training"] is None
    plain = render(collect(folder, split="test"))
    run(folder)
    content = collect(folder, split="test")
    assert len(content["questions"]) == 3
    shown = render(content)
    assert '<details id="training">' in shown
    data = '<script type="application/json" id="data">'
    assert shown.partition(data)[2] == plain.partition(data)[2]


def test_actors_without_a_color_are_named(folder, drawn):
    for name in "abcdefghi":
        run(folder, name)
    assert trainings(folder)["sentences"][-1] == "Not drawn, because there are no more colors: h, i."
    assert [actor.name for actor in drawn[0][1].actors] == list("abcdefg")


def test_a_folder_without_answers_and_trainings_is_refused(folder):
    (folder / "manifests/mine/test").mkdir(parents=True)
    (folder / "manifests/mine/test/MANIFEST.json").write_text("{}")
    with pytest.raises(ArtifactError, match="no predictions in it, and no training"):
        collect(folder, split="test")
