"""The images of a patient: one cluster, one role, no donor for each other, and no other split."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from dualread.data.datasets.base import Picture
from dualread.data.questions.build import build, digest, image_identities
from dualread.data.questions.leakage import refuse_patients, shared_pictures
from dualread.data.questions.roles import cluster_identities
from dualread.errors import DataError
from tests.data.questions.test_build import _build, _images, _loaded, _row

IMAGES = _images(a="p1", b="p2", c="p3", d="p4", e="p5")


def rows(**patients):
    return _loaded(*(_row(k, name=name, patient=who) for k, (name, who) in enumerate(patients.items())))


def clusters(loaded, resample="cluster"):
    return cluster_identities(loaded, image_identities(loaded, IMAGES), resample)


def test_the_images_of_a_patient_are_one_cluster_named_by_the_first():
    loaded = rows(c="kim", b="lee", a="kim", d=None)
    assert clusters(loaded) == {"a": "a", "c": "a", "b": "b", "d": "d"}
    assert clusters(loaded, "image") == {name: name for name in "abcd"}


def test_patients_who_share_an_image_are_one_cluster():
    loaded = rows(a="kim", b="lee", c="lee", d="ito", e=None)
    loaded = replace(loaded, rows=[*loaded.rows, _row(9, name="d", patient="lee"), _row(10, name="e", patient="ito")])
    assert clusters(loaded) == {"a": "a", **dict.fromkeys("bcde", "b")}
    reverse = replace(loaded, rows=loaded.rows[::-1])
    assert clusters(reverse) == clusters(loaded)


def test_a_patient_named_as_an_image_is_another():
    assert clusters(rows(a="b", b=None, c="b")) == {"a": "a", "b": "b", "c": "a"}


def of_images(*lists):
    """Rows that show these images, a list each."""
    pictures = ([Picture(Path(f"/official/imgs/{name}.jpg"), name) for name in names] for names in lists)
    return _loaded(*(_row(k, images=tuple(shown)) for k, shown in enumerate(pictures)))


def test_images_that_a_question_shows_together_are_one_cluster():
    loaded = of_images("ba", "c", "dc", "e")
    assert clusters(loaded) == clusters(loaded, "image") == {"a": "a", "b": "a", "c": "c", "d": "c", "e": "e"}
    manifest, _ = _build(loaded, IMAGES)
    assert manifest["image_id"].to_list() == ["b + a", "c", "d + c", "e"]
    assert manifest["cluster_id"].to_list() == ["a", "c", "c", "e"]
    assert manifest["image_files"].to_list()[0] == ["images/b.jpg", "images/a.jpg"]
    assert manifest["pixel_sha256s"].to_list()[0] == ["p2", "p1"]


def test_a_picture_that_two_lists_share_is_a_leak():
    fitted = _build(of_images("ab"), IMAGES, "fit")[0]
    tested = _build(of_images("cb"), IMAGES, "test")[0].with_columns(split=pl.lit("other"))
    looks = [(f"p{k}", bytes([k] * 64 * 64)) for k in range(1, 6)]
    shared = shared_pictures(pl.concat([fitted, tested]), looks)
    assert ("fit", "slake/test/a + b", "test", "slake/other/c + b", "exact") in shared.select(
        "role", "image", "other_role", "other_image", "kind"
    ).rows()


def test_every_patient_has_one_role():
    names = [f"i{k:02}" for k in range(30)]
    loaded = _loaded(*(_row(k, name=name, patient=f"patient {k % 10}") for k, name in enumerate(names)))
    images = _images(**{name: f"p-{name}" for name in names})
    shares = {"fit": 0.5, "stop": 0.2, "calibration": 0.3}
    manifest, _ = _build(loaded, images, shares)
    assert manifest.group_by("patient_id").agg(pl.col("role").n_unique())["role"].to_list() == [1] * 10
    assert sorted(manifest.group_by("role").len()["len"]) == [6, 9, 15]  # of ten patients with three images each
    by_image, _ = build(loaded, images, dataset="slake", split="test", roles=shares, seed=0, resample="image")
    assert by_image["patient_id"].null_count() == 30
    assert by_image["cluster_id"].to_list() == by_image["image_id"].to_list()


def test_names_of_patients_are_not_kept():
    manifest, _ = _build(rows(a="Kim, Jo", b="Kim, Jo"), IMAGES)
    assert manifest["patient_id"].n_unique() == 1
    assert "Kim" not in manifest.write_json()


def test_the_digest_of_a_table_without_patients_counts_no_clusters():
    """A digest that was set before there were patients still holds."""
    without, _ = _build(rows(a=None, b=None), IMAGES)
    assert digest(without) == digest(
        without.drop("cluster_id", "patient_id").with_columns(cluster_id="image_id", patient_id=pl.lit(None))
    )
    known, _ = _build(rows(a="kim", b="kim"), IMAGES)
    others, _ = _build(rows(a="kim", b="lee"), IMAGES)
    assert len({digest(without), digest(known), digest(others)}) == 3


PLACES = {"dataset": "mine", "image_id": "a", "patient_id": "x"}


@pytest.mark.parametrize(
    ("roles", "other", "is_leak"),
    [
        (("fit", "test"), {}, True),
        (("fit", "calibration"), {}, True),
        (("test", "ood"), {}, False),
        (("fit", "fit"), {}, False),
        (("fit", "test"), {"dataset": "theirs"}, False),
        (("fit", "test"), {"patient_id": None}, False),
    ],
)
def test_a_patient_in_two_roles_is_a_leak(roles, other, is_leak):
    splits = {"test": "test", "ood": "test"}
    manifest = pl.DataFrame(
        [
            {**PLACES, "role": role, "split": splits.get(role, "train"), **changes}
            for role, changes in zip(roles, ({}, other), strict=True)
        ]
    )
    if is_leak:
        with pytest.raises(DataError) as caught:
            refuse_patients(manifest)
        assert str(caught.value).splitlines()[1] == ", ".join(
            sorted(f"{role}: mine/{splits.get(role, 'train')}/a" for role in roles)
        ).join(["  ", ""])
    else:
        refuse_patients(manifest)
