"""What every writer of phantom hospitals has to fulfil."""

from dataclasses import replace

import pytest

from dualread import plugins
from dualread.store.code import library, stage_roots
from dualread.training.phantoms.questions import N_QUESTIONS
from dualread.training.writers.base import Hospital

FORMATS = plugins.known("writers")


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
