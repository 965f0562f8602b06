import csv
import io
import re

import pytest
from PIL import Image

from dualread.training.phantoms.scene import Style
from dualread.training.writers.base import Hospital
from dualread.training.writers.pmc_vqa import official_files

# 36 rows: three of each planted kind.
HOSPITAL = Hospital(
    name="pmc", seed=0, images={"test": 36}, size=64, questions_per_image=1, style=Style(lesion_counts=(0.5, 0.5, 0, 0))
)
CHOICES = ("Choice A", "Choice B", "Choice C", "Choice D")


@pytest.fixture(scope="module")
def files():
    return dict(official_files(HOSPITAL))


@pytest.fixture(scope="module")
def rows(files):
    return list(csv.DictReader(io.StringIO(files["test_clean.csv"].decode())))


def _text(choice):
    return re.sub(r"^\s*[A-D]:", "", choice).strip()


def _texts(row):
    return [_text(row[choice]) for choice in CHOICES]


def test_the_table_has_the_official_columns(rows):
    assert tuple(rows[0]) == ("Figure_path", "Question", "Answer", *CHOICES, "Answer_label")
    assert len(rows) == 36


def test_a_figure_is_wider_than_high_and_has_a_white_margin(files, rows):
    figures = {name: content for name, content in files.items() if name != "test_clean.csv"}
    assert set(figures) == {f"images/{row['Figure_path']}" for row in rows}
    for content in figures.values():
        image = Image.open(io.BytesIO(content))
        assert (image.mode, image.size) == ("RGB", (64 + 2 * 12, 64 + 2 * 4))  # margins of 3 and 1 sixteenths
        assert min(image.getpixel((2, 36))) > 240


def test_the_label_names_the_answers_column(rows):
    for row in rows:
        assert _text(row[f"Choice {row['Answer_label']}"]) == row["Answer"]
    assert {row["Answer_label"] for row in rows} == set("ABCD")


def test_the_defects_are_there(rows):
    wrong = [row for row in rows if row["Choice B"].startswith(" C:")]
    missing = [row for row in rows if not row["Choice A"].startswith(" A:")]
    assert (len(wrong), len(missing)) == (3, 3)
    assert all(re.match(r" D:|^ D:$", row["Choice D"]) for row in rows)
    empty = [row for row in rows if "" in _texts(row)]
    repeated = [row for row in rows if len({text.lower() for text in _texts(row)}) == 3]
    assert (len(empty), len(repeated)) == (3, 3)
    assert not any(row["Answer"] in ("",) for row in rows)
    assert sum(row["Answer"] == "NA" for row in rows) >= 1


def test_few_questions_are_closed(rows):
    assert sum(row["Answer"] in ("Yes", "No") for row in rows) == 3
