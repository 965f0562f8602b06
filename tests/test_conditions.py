import pytest

from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.schemas.pairs import PAIRS
from dualread.artifacts.tables import from_rows
from dualread.conditions import asked
from dualread.errors import ArtifactError, ConfigError
from tests.stages import shards

PROMPT = {"name": "shared"}


def manifest():
    return from_rows(shards.manifest_rows(3, split="test", roles=("test",)), MANIFEST)


def pairs(source: str, donor: str):
    row = {"sample_id": source, "donor_sample_id": donor, "question_key": "q"}
    return from_rows([row | {"source_image_id": "s", "donor_image_id": "d", "n_candidates": 1}], PAIRS)


def test_the_original_condition_asks_every_question_of_its_own_image():
    found = asked(manifest().reverse(), {"image": "original", "prompt": PROMPT}, None)
    assert [(q.sample_id[-1], q.image_file, q.image_id) for q in found] == [
        ("0", "images/0.png", "image 0"),
        ("1", "images/1.png", "image 1"),
        ("2", "images/2.png", "image 2"),
    ]


def test_the_donor_condition_asks_the_source_question_of_the_donor_image():
    given = pairs("slake/test/0000", "slake/test/0002")
    (found,) = asked(manifest(), {"image": "donor", "prompt": PROMPT}, given)
    assert (found.sample_id, found.image_file, found.image_id) == ("slake/test/0000", "images/2.png", "image 2")
    assert found.text.endswith("Question: What is in region 0?")


@pytest.mark.parametrize(("source", "donor"), [("slake/test/0000", "gone"), ("gone", "slake/test/0000")])
def test_a_pair_of_another_manifest_is_refused_and_not_dropped(source, donor):
    with pytest.raises(ArtifactError, match=r"pairs\.parquet: 1 questions that the manifest lacks, such as gone"):
        asked(manifest(), {"image": "donor", "prompt": PROMPT}, pairs(source, donor))


def test_an_unknown_image_is_answered_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"'blank' is unknown\. Known: original, donor"):
        asked(manifest(), {"image": "blank", "prompt": PROMPT}, None)
