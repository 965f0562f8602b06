"""How many images a reader knows, and in which roles."""

import pytest

from dualread.errors import DataError
from dualread.schema.recorded import Facts, PromptText, Requirements
from tests.specs import decoding

TWO_OR_THREE = (("prior", "current"), ("-", "-", "-"))


def required(images):
    prompt = PromptText(name="shared", sha256="0" * 64)
    facts = Facts().model_dump()
    return Requirements(
        model={}, facts=facts, checkpoint={}, prompt=prompt, decoding=decoding(), contract="single", images=images
    )


@pytest.mark.parametrize(
    ("images", "n", "roles"),
    [
        (None, 1, ("-",)),
        (None, 2, None),
        (TWO_OR_THREE, 2, ("prior", "current")),
        (TWO_OR_THREE, 3, ("-",) * 3),
        (TWO_OR_THREE, 1, None),
        (TWO_OR_THREE, 0, None),
        ((), 1, ("-",)),  # fitted on nothing
        ((), 4, ("-",) * 4),
        ((), 0, None),
    ],
)
def test_the_roles_of_so_many_images(images, n, roles):
    needs = required(images)
    assert needs.fits(n) == (roles is not None)
    if roles is None:
        with pytest.raises(DataError, match=f"{n} images: expected"):
            needs.roles(n)
    else:
        assert tuple(needs.roles(n)) == roles


def test_a_reader_of_one_image_is_written_as_before():
    assert "images" not in required(None).model_dump()
    written = required(TWO_OR_THREE).model_dump(mode="json")
    assert written["images"] == [list(roles) for roles in TWO_OR_THREE]
    assert Requirements.from_spec(written, "scoring") == required(TWO_OR_THREE)
