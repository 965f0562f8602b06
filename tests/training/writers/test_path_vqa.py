import io
import json

import polars as pl
import pytest
from PIL import Image
from tests.training.writers.donors import n_pairs

from dualread.data.images import open_image
from dualread.training.phantoms.scene import Style
from dualread.training.writers.base import Hospital
from dualread.training.writers.path_vqa import WORDING, official_files

PINK = Style(tint=(1.0, 0.7, 0.9))
HOSPITAL = Hospital(name="path", seed=0, images={"train": 3, "test": 16}, size=32, questions_per_image=2, style=PINK)


@pytest.fixture(scope="module")
def files():
    return dict(official_files(HOSPITAL))


@pytest.fixture(scope="module")
def table(files):
    return pl.read_parquet(files["data/test-00000-of-00001.parquet"])


def test_the_columns_are_the_hubs(files, table):
    assert set(files) == {"data/train-00000-of-00001.parquet", "data/test-00000-of-00001.parquet"}
    image = pl.Struct({"bytes": pl.Binary, "path": pl.String})
    assert table.schema == {"image": image, "question": pl.String, "answer": pl.String}
    metadata = pl.read_parquet_metadata(io.BytesIO(files["data/test-00000-of-00001.parquet"]))
    assert json.loads(metadata["huggingface"])["info"]["features"]["image"] == {"_type": "Image"}
    assert table["image"].struct.field("path").null_count() == table.height


def test_a_quarter_of_the_images_is_cmyk_and_all_are_pink(table):
    images = table["image"].struct.field("bytes").unique().to_list()
    assert len(images) == 16
    # Numbers 0 to 18 are spread over 3 images of train and 16 of test; of the five multiples of four, those of test.
    modes = [Image.open(io.BytesIO(content)).mode for content in images]
    assert set(modes) == {"RGB", "CMYK"}
    assert 2 <= modes.count("CMYK") <= 5
    for content in images:
        red, green, blue = (sum(band.tobytes()) for band in open_image(content).split())
        assert red > blue > green


def test_all_text_but_that_of_one_repeated_row_is_in_lower_case(table):
    *rows, first, second, other_case = table.select("question", "answer").rows()
    assert len(rows) == 32
    assert all(text == text.lower() for row in rows for text in row)
    assert [first, second] == rows[:2]
    assert other_case == (rows[0][0], rows[0][1].upper())
    assert other_case != rows[0]
    assert table.height - table.unique().height == 2  # a row that differs in letter case is another row


def test_closed_questions_are_yes_or_no(table):
    answers = {kind: set() for kind in ("open", "closed")}
    for (_, kind), words in WORDING.items():
        if words:
            found = table.filter(pl.col("question") == words)["answer"].str.to_lowercase()
            answers[kind] |= set(found.to_list())
    assert answers["closed"] == {"yes", "no"}
    assert not answers["open"] & {"yes", "no"}


def test_donors_exist(table):
    rows = [(row["image"]["bytes"], row["question"], row["answer"]) for row in table.iter_rows(named=True)]
    assert n_pairs(rows) > 10
