"""What every writer of phantom hospitals has to fulfil."""

import gzip
import hashlib
import io
from collections import Counter
from dataclasses import replace

import polars as pl
import pytest
from PIL import Image

from dualread import plugins
from dualread.store.code import library, stage_roots
from dualread.training.phantoms.questions import N_QUESTIONS
from dualread.training.writers.base import Hospital

FORMATS = plugins.known("writers")
# Of a hospital with 24 images per split: the digest of its questions and answers, which shared code must not change
# unnoticed, and the kinds of its images. Their bytes change with Pillow; test_round_trip.py compares them with scenes.
MADE = {
    "follow_ups": ("3a054db3b758c4ef", {"PNG RGB": 61}),
    "medframeqa": ("77685700ee5f1b5c", {"PNG RGB": 56}),
    "mimic_cxr": ("cabaa87f4699f479", {"JPEG RGB": 72}),
    "omnimedvqa": ("3ab88e1b89cf5312", {"PNG I;16": 10, "PNG RGB": 10, "PNG L": 4}),
    "openi": ("22b7c1defb0748c7", {"PNG L": 32}),
    "path_vqa": ("dd70a6637e735c41", {"JPEG RGB": 54, "JPEG CMYK": 18}),
    "pmc_vqa": ("857942e95994fdd5", {"JPEG RGB": 24}),
    "rexgradient": ("0c03891d16a248f2", {"PNG L": 108}),
    "rexvqa": ("ea59d62e1f62d899", {"PNG L": 36}),
    "slake": ("0ef17bbf71fc2490", {"JPEG RGB": 72}),
    "table": ("d84da10d1bd730d1", {"PNG RGB": 37}),
    "vqa_med_2019": ("5a0dccb803a5483f", {"JPEG RGB turned": 3, "JPEG RGB": 25}),
    "vqa_rad": ("eba9fe853819634a", {"JPEG RGB": 52}),
}


def tables_and_images(files: dict[str, bytes]) -> tuple[bytes, list[bytes]]:
    """The tables of official files without the images that some of them hold, and all images."""
    images = [content for name, content in files.items() if name.endswith((".jpg", ".png"))]
    tables = []
    for name, content in sorted(files.items()):
        if name.endswith(".parquet"):
            table = pl.read_parquet(content)
            shown = [name for name in table.columns if table[name].dtype == pl.Struct]
            contents = [table[name].struct.field("bytes") for name in shown]
            images += pl.concat(contents).drop_nulls().unique().to_list()
            texts = table.drop(shown)
            tables.append(texts.write_json().encode() if len(shown) > 1 else texts.write_csv().encode())
        elif not name.endswith((".jpg", ".png")):
            tables.append(gzip.decompress(content) if name.endswith(".gz") else content)
    return b"".join(tables), images


def kind_of(content: bytes) -> str:
    image = Image.open(io.BytesIO(content))
    return f"{image.format} {image.mode}{' turned' * (image.getexif().get(0x0112) == 6)}"


def hospital(writer):
    """Return a hospital with a few images in each split of the format."""
    images = dict.fromkeys(writer.SPLITS, 4)
    return Hospital(name="x", seed=0, images=images, size=32, questions_per_image=min(4, writer.MOST_QUESTIONS))


@pytest.mark.parametrize("name", FORMATS)
def test_the_bytes_depend_on_the_hospital_only(name):
    writer = plugins.load("writers", name)
    files = dict(writer.official_files(hospital(writer)))
    assert dict(writer.official_files(hospital(writer))) == files
    other_order = replace(hospital(writer), images=dict(reversed(hospital(writer).images.items())))
    assert dict(writer.official_files(other_order)) == files
    for change in ({"seed": 1}, {"name": "y"}, {"size": 33}):
        assert dict(writer.official_files(replace(hospital(writer), **change))) != files


@pytest.mark.parametrize("name", FORMATS)
def test_one_image_per_split_is_enough(name):
    writer = plugins.load("writers", name)
    one = replace(hospital(writer), images=dict.fromkeys(writer.SPLITS, 1), questions_per_image=1)
    assert all(content for _, content in writer.official_files(one))


@pytest.mark.parametrize("name", FORMATS)
def test_the_splits_and_the_number_of_questions_are_possible(name):
    writer = plugins.load("writers", name)
    assert set(writer.SPLITS) <= {"train", "validation", "test"}
    assert 1 <= writer.MOST_QUESTIONS <= N_QUESTIONS


@pytest.mark.parametrize("name", FORMATS)
def test_an_edit_of_a_writer_redraws_only_its_own_hospitals(name):
    spec = {"writer": {"module": f"training.writers.{name}"}}
    modules = library().table(stage_roots("draw_phantom", spec))
    writers = {module for module in modules if module.removeprefix("dualread.training.writers.") in FORMATS}
    assert writers == {f"dualread.training.writers.{name}"}


@pytest.mark.parametrize("name", FORMATS)
def test_rows_and_kinds_of_images_are_those_of_this_version(name):
    writer = plugins.load("writers", name)
    many = replace(hospital(writer), images=dict.fromkeys(writer.SPLITS, 24), size=16)
    rows, images = tables_and_images(dict(writer.official_files(many)))
    kinds = dict(Counter(map(kind_of, images)))
    assert (hashlib.sha256(rows).hexdigest()[:16], kinds) == MADE[name]
    assert len(set(images)) == len(images)
