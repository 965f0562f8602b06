import polars as pl
import pytest
from PIL import Image, ImageOps

from dualread.data.questions.leakage import count, refuse_leakage, shared_pictures
from dualread.data.questions.pictures import thumbnail
from dualread.data.questions.roles import ROLES
from dualread.errors import DataError
from tests.data.questions.looks import COPIES, picture


def _manifest(*rows):
    """Return the columns that the check reads, given (pixels, role, dataset, split, image_id)."""
    names = ["pixel_sha256s", "role", "dataset", "split", "image_id"]
    return pl.DataFrame([([row[0]], *row[1:]) for row in rows], schema=names, orient="row")


def _shared(*rows):
    """`p1`, `p2`, ... are different pictures; `p1 again` has other pixels and shows the same as `p1`."""
    digests = [row[0] for row in rows]
    looks = {digest: picture(int(digest[1:].removesuffix(" again"))) for digest in digests}
    copied = {d: COPIES["half the size, encoded again"](image) if "again" in d else image for d, image in looks.items()}
    return shared_pictures(_manifest(*rows), [(digest, thumbnail(image)) for digest, image in copied.items()])


def _count(pairs, role, other, column="n_images"):
    return count(pairs).filter(pl.col("role") == role, pl.col("other_role") == other)[column].item()


def test_all_pairs_of_roles_are_counted_even_without_a_shared_image():
    shared = count(_shared(("p1", "fit", "slake", "train", "a"), ("p2", "test", "slake", "test", "b")))
    assert shared.columns == ["role", "other_role", "n_images", "n_near"]
    assert shared.height == len(ROLES) * (len(ROLES) + 1) // 2
    assert shared["n_images"].to_list() == shared["n_near"].to_list() == [0] * shared.height


def test_pictures_are_compared_by_what_they_show_and_not_by_their_names():
    """Two splits of one data set may both number their images from 0."""
    of_one_name = _shared(("p1", "fit", "mine", "train", "0.png"), ("p2", "test", "mine", "test", "0.png"))
    assert of_one_name.is_empty()


def test_pairs_are_listed_with_their_similarity_in_any_row_order():
    rows = [
        ("p1 again", "ood", "rad", "test", "x"),
        ("p1", "test", "slake", "test", "b"),
        ("p2", "test", "slake", "test", "c"),
        ("p1", "ood", "med", "test", "y"),
    ]
    pairs = _shared(*rows)
    assert pairs.drop("distance", "difference").rows() == [
        ("test", "slake/test/b", "ood", "med/test/y", "exact", "p1"),
        ("test", "slake/test/b", "ood", "rad/test/x", "near", "p1"),
        ("ood", "med/test/y", "ood", "rad/test/x", "near", "p1"),
    ]
    assert (pairs["distance"][0], pairs["difference"][0]) == (0, 0.0)
    assert 0 < pairs["difference"][1] < 0.022
    assert pairs.equals(_shared(*reversed(rows)))
    assert (_count(pairs, "test", "ood"), _count(pairs, "test", "ood", "n_near")) == (1, 1)
    assert (_count(pairs, "ood", "ood"), _count(pairs, "ood", "ood", "n_near")) == (0, 1)
    refuse_leakage(pairs)  # nothing is fitted on them


@pytest.mark.parametrize("role", ["fit", "stop", "calibration", "validation"])
@pytest.mark.parametrize("other", ROLES)
@pytest.mark.parametrize("pixels", ["p1", "p1 again"])
def test_a_fitting_role_shares_with_no_other_role(role, other, pixels):
    pairs = _shared(("p1", role, "slake", "train", "a"), (pixels, other, "rad", "test", "b"))
    column = "n_images" if pixels == "p1" else "n_near"
    if role == other:
        refuse_leakage(pairs)
        assert _count(pairs, role, role, column) == 1  # two data sets of one role
    else:
        with pytest.raises(DataError, match="leakage: 1 pairs of images show one picture in two roles") as error:
            refuse_leakage(pairs)
        assert f"{role}: slake/train/a" in str(error.value)
        assert f"{other}: rad/test/b" in str(error.value)
        assert ("(the same pixels)" in str(error.value)) == (pixels == "p1")
        first, second = sorted((role, other), key=ROLES.index)
        assert _count(pairs, first, second, column) == 1


def test_a_mirrored_copy_is_a_leak_and_says_so():
    rows = [("p1", "fit", "slake", "train", "a"), ("p2", "test", "slake", "test", "b")]
    looks = [("p1", thumbnail(picture(1))), ("p2", thumbnail(ImageOps.mirror(picture(1))))]
    pairs = shared_pictures(_manifest(*rows), looks)
    assert pairs["kind"].to_list() == ["mirrored"]
    assert _count(pairs, "fit", "test", "n_near") == 1
    with pytest.raises(DataError, match=r"test: slake/test/b \(a mirrored copy: 0 of 64 bits"):
        refuse_leakage(pairs)


def test_a_symmetric_picture_is_listed_once():
    half = picture(1, 64, 64).crop((0, 0, 32, 64))
    symmetric = Image.new("RGB", (64, 64))
    symmetric.paste(half, (0, 0))
    symmetric.paste(ImageOps.mirror(half), (32, 0))
    rows = [("p1", "fit", "slake", "train", "a"), ("p1", "test", "slake", "test", "b")]
    assert shared_pictures(_manifest(*rows), [("p1", thumbnail(symmetric))])["kind"].to_list() == ["exact"]


def test_a_picture_without_a_thumbnail_is_refused():
    rows = [("p1", "fit", "slake", "train", "a"), ("p2", "test", "slake", "test", "b")]
    with pytest.raises(DataError, match=r"thumbnails: 1 pictures have none, such as .* p2\."):
        shared_pictures(_manifest(*rows), [("p1", thumbnail(picture(1)))])
