import polars as pl
import pytest

from dualread.errors import DataError
from dualread.manifests.leakage import refuse_leakage, shared_images
from dualread.manifests.partition import ROLES


def _manifest(*rows):
    """Build the columns that the check reads from (pixels, role, dataset, split, image_id)."""
    return pl.DataFrame(rows, schema=["pixel_sha256", "role", "dataset", "split", "image_id"], orient="row")


def _count(manifest, role, other):
    found = shared_images(manifest).filter(pl.col("role") == role, pl.col("other_role") == other)
    return found["n_images"].item()


def test_all_pairs_of_roles_are_reported_even_without_a_shared_image():
    shared = shared_images(_manifest(("p1", "fit", "slake", "train", "a"), ("p2", "test", "slake", "test", "b")))
    assert shared.height == len(ROLES) * (len(ROLES) + 1) // 2
    assert shared["n_images"].to_list() == [0] * shared.height


def test_several_questions_on_one_image_are_no_leak():
    manifest = _manifest(*[("p1", "fit", "slake", "train", "a")] * 3)
    refuse_leakage(manifest)
    assert _count(manifest, "fit", "fit") == 0


@pytest.mark.parametrize("role", ["fit", "stop", "calibration", "validation"])
@pytest.mark.parametrize("other", ROLES)
def test_a_fitting_role_shares_with_no_other_role(role, other):
    manifest = _manifest(("p1", role, "slake", "train", "a"), ("p1", other, "rad", "test", "b"))
    if role == other:
        refuse_leakage(manifest)
        assert _count(manifest, role, role) == 1  # two data sets of one role
    else:
        with pytest.raises(DataError, match="1 pictures occur in two roles") as error:
            refuse_leakage(manifest)
        assert f"{role}: slake/train/a" in str(error.value)
        assert f"{other}: rad/test/b" in str(error.value)
        first, second = sorted((role, other), key=ROLES.index)
        assert _count(manifest, first, second) == 1


def test_test_and_ood_may_share():
    manifest = _manifest(
        ("p1", "test", "slake", "test", "a"), ("p1", "ood", "rad", "test", "b"), ("p1", "ood", "med", "test", "c")
    )
    refuse_leakage(manifest)
    assert _count(manifest, "test", "ood") == 1
    assert _count(manifest, "ood", "ood") == 1


def test_an_image_in_three_roles_is_refused_even_when_two_of_them_only_report():
    rows = [("p1", role, "d", "s", "a") for role in ("test", "ood", "stop")]
    with pytest.raises(DataError, match="ood: d/s/a, stop: d/s/a, test: d/s/a"):
        refuse_leakage(_manifest(*rows))


def test_ten_leaks_are_named():
    rows = [(f"p{i:02}", role, "d", role, f"i{i:02}") for i in range(12) for role in ("fit", "test")]
    with pytest.raises(DataError, match=r"(?s)leakage: 12 pictures.*i00.*i09.*\.\.\. and 2 more") as error:
        refuse_leakage(_manifest(*rows))
    assert "i10" not in str(error.value)
