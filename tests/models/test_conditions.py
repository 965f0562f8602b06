import polars as pl
import pytest
from PIL import Image

from dualread.artifacts.tables import from_rows
from dualread.errors import ArtifactError
from dualread.models.conditions import asked
from dualread.schema.columns import GENERATIONS, MANIFEST, PAIRS
from dualread.stages._asked import forced
from tests.specs import changed, image
from tests.stages import shards

PROMPT = "shared"


def manifest():
    return from_rows(shards.manifest_rows(3, split="test", roles=("test",)), MANIFEST)


def pairs(source: str, donor: str):
    row = {"sample_id": source, "donor_sample_id": donor, "question_key": "q"}
    return from_rows([row | {"source_image_id": "s", "donor_image_id": "d", "n_candidates": 1}], PAIRS)


def test_the_original_condition_asks_every_question_of_its_own_image():
    found = list(asked(manifest().reverse(), prompt=PROMPT))
    assert [(q.sample_id[-1], q.image_files[0], q.image_id) for q in found] == [
        ("0", "images/0.png", "image 0"),
        ("1", "images/1.png", "image 1"),
        ("2", "images/2.png", "image 2"),
    ]


def test_the_donor_condition_asks_the_source_question_of_all_images_of_the_donor_in_their_order():
    given = pairs("slake/test/0000", "slake/test/0002")
    for table, files in ((manifest(), ["images/2.png"]), (several(), ["images/2.png", "images/2b.png"])):
        (found,) = asked(table, images=[image("donor")], prompt=PROMPT, pairs=given)
        assert (found.sample_id, found.image_files, found.image_id) == ("slake/test/0000", files, "image 2")
        assert found.text.endswith("Question: What is in region 0?")


def test_a_shuffled_image_is_another_one_and_the_same_for_all_questions_about_an_image():
    rows = shards.manifest_rows(6, split="test", roles=("test",))
    for i, row in enumerate(rows):
        row["image_id"] = row["cluster_id"] = f"image {i // 2}"
        row["image_files"] = [f"images/{i // 2}.png"]
    table = from_rows(rows, MANIFEST)
    found = list(asked(table, images=[image("shuffled")], prompt=PROMPT))
    own = dict(table.select("sample_id", "image_id").iter_rows())
    assert all(q.image_id != own[q.sample_id] and q.image_files[0] == f"images/{q.image_id[-1]}.png" for q in found)
    assert [a.image_id == b.image_id for a, b in zip(found[::2], found[1::2], strict=True)] == [True] * 3
    assert {q.image_id for q in found} == set(own.values())
    assert list(asked(table.reverse(), images=[image("shuffled")], prompt=PROMPT)) == found


def several(*, roles=("prior", "current"), n=3):
    rows = shards.manifest_rows(n, split="test", roles=("test",))
    for i, row in enumerate(rows):
        row |= {"image_files": [f"images/{i}.png", f"images/{i}b.png"], "image_roles": list(roles)}
    return from_rows(rows, MANIFEST)


def test_a_change_applies_to_all_images_or_to_those_of_a_role(tmp_path):
    (tmp_path / "images").mkdir()
    for name in ("0", "0b"):
        Image.new("RGB", (5, 3), "white").save(tmp_path / f"images/{name}.png")
    (first, *_) = asked(several(), images=[image("black")], prompt=PROMPT)
    assert [shown.getextrema()[0] for shown in first.request(tmp_path).images] == [(0, 0)] * 2
    for role, own in (("prior", "0b"), ("current", "0")):
        (first, *_) = asked(several(), images=[changed(image("black"), role=role)], prompt=PROMPT)
        request = first.request(tmp_path)
        assert [shown for shown in request.images if shown == tmp_path / f"images/{own}.png"]
        assert len(request.images) == 2
    (first, *_) = asked(several(), images=[changed(image("none"), role="prior")], prompt=PROMPT)
    assert first.request(tmp_path).images == (tmp_path / "images/0b.png",)
    with pytest.raises(ArtifactError, match=r"role 'lateral' is to be changed, and 3 questions show none"):
        asked(several(), images=[changed(image("black"), role="lateral")], prompt=PROMPT)


def test_shuffled_images_are_of_another_patient_and_as_many():
    table = several(n=4).with_columns(cluster_id=pl.Series(["a", "a", "b", "b"]))
    cluster = dict(table.select("image_id", "cluster_id").iter_rows())
    own = dict(table.select("sample_id", "cluster_id").iter_rows())
    found = list(asked(table, images=[image("shuffled")], prompt=PROMPT))
    assert all(cluster[q.image_id] != own[q.sample_id] for q in found)
    assert {len(q.image_files) for q in found} == {2}
    with pytest.raises(ArtifactError, match="of another patient"):
        asked(table.head(2), images=[image("shuffled")], prompt=PROMPT)


def test_a_self_check_contains_the_answer_and_leaves_out_questions_without_one():
    answers = {"slake/test/0001": "left lung", "slake/test/0002": "{QUESTION}"}
    found = list(asked(manifest(), prompt="p_true", answers=answers))
    assert [q.sample_id[-1] for q in found] == ["1", "2"]
    assert "\nProposed answer: left lung\n" in found[0].text
    assert "\nProposed answer: {QUESTION}\n" in found[1].text


def test_a_black_image_has_the_size_of_the_image_that_it_replaces(tmp_path):
    (tmp_path / "images").mkdir()
    Image.new("RGB", (5, 3), "white").save(tmp_path / "images/2.png")
    given = pairs("slake/test/0000", "slake/test/0002")
    (found,) = asked(manifest(), images=[image("donor"), image("black")], prompt=PROMPT, pairs=given)
    request = found.request(tmp_path)
    [shown] = request.images
    assert (request.image_name, found.image_id) == ("black 5x3", "image 2")
    assert found.request(tmp_path).images[0] is shown  # one object per size, for any number of questions
    assert shown.size == (5, 3)
    assert shown.getextrema() == ((0, 0),) * 3
    (own,) = asked(manifest(), images=[image("donor")], prompt=PROMPT, pairs=given)
    request = own.request(tmp_path)
    assert (request.image_name, request.images) == ("image 2", (tmp_path / "images/2.png",))


def test_forced_completions_are_relabeled_and_complete():
    rows = [shards.generation(f"slake/test/000{i}", "text", image_id=f"image {i}") for i in range(3)]
    completions = from_rows(rows, GENERATIONS)
    images = {"slake/test/0000": "image 2"}
    (row,) = forced(completions, images, "donor_fixed_prefix").to_dicts()
    assert row == completions.row(0, named=True) | {"condition": "donor_fixed_prefix", "image_id": "image 2"}


@pytest.mark.parametrize("name", ["donor", "shuffled", "original"])
def test_whole_lists_are_exchanged_and_no_single_role(name):
    with pytest.raises(ArtifactError, match="replaces all images of a question, and a role is named"):
        asked(
            several(),
            images=[changed(image(name), role="prior")],
            prompt=PROMPT,
            pairs=pairs("slake/test/0000", "slake/test/0002"),
        )
