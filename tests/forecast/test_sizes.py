import polars as pl
import pytest

from dualread.errors import ConfigError
from dualread.forecast.sizes import Size, Sizes

CLOSED = {"answer_types": ["closed"]}
BALANCED = {"questions": {"open": 5, "closed": 4}}
CONFIG = {
    "phantoms": {
        "hospital": {"images": {"train": 100, "test": 48}, "questions_per_image": 6},
        "plain": {"images": {"test": 5}},
    },
    "datasets": {
        "drawn": {"loader": "slake", "source": {"phantom": "hospital"}},
        "plain": {"loader": "slake", "source": {"phantom": "plain"}, "select": {"questions": 7, "max_per_image": 1}},
        "slake": {"loader": "slake", "source": {"folder": "x"}},
        "closed": {"loader": "vqa_med_2019", "source": {"folder": "x"}, "select": CLOSED},
        "balanced": {"loader": "path_vqa", "source": {"folder": "x"}, "select": BALANCED},
        "own": {"loader": "table", "source": {"folder": "x"}},
    },
}


@pytest.fixture
def sizes(tmp_path):
    return Sizes(CONFIG, tmp_path / "results/study")


@pytest.mark.parametrize(
    ("dataset", "split", "questions", "images", "source"),
    [
        ("drawn", "train", 600, 100, "phantoms.hospital"),  # 100 images x 6 questions
        ("plain", "test", 7, 5, "select"),  # 5 images x 8 questions, of which 7
        ("slake", "train", 4919, 450, "the loader slake"),  # 2976 open + 1943 closed (paper)
        ("slake", "test", 1061, 96, "the loader slake"),
        ("closed", "test", 64, 64, "the loader vqa_med_2019"),  # 64 of 496 are closed, on one image each at most
        ("balanced", "test", 9, 9, "select"),
    ],
)
def test_what_the_config_says(sizes, dataset, split, questions, images, source):
    assert sizes.of(dataset, split) == Size(questions=questions, images=images, source=source)


def test_a_manifest_knows_better(tmp_path, sizes):
    folder = tmp_path / "results/study/manifests/slake/test"
    folder.mkdir(parents=True)
    pl.DataFrame({"image_id": ["a", "a", "b"]}).write_parquet(folder / "manifest.parquet")
    assert sizes.of("slake", "test") == Size(questions=3, images=2, source="its manifest")


def test_donors_are_at_most_the_questions_until_they_are_paired(tmp_path, sizes):
    shard = ("slake", "test", "donor")
    assert sizes.asked(shard, donors=True) == sizes.asked(shard, donors=False) == 1061
    folder = tmp_path / "results/study/pairs/slake/test"
    folder.mkdir(parents=True)
    pl.DataFrame({"sample_id": range(442)}).write_parquet(folder / "pairs.parquet")
    assert sizes.asked(shard, donors=True) == 442
    assert sizes.asked(shard, donors=False) == 1061


def test_a_size_that_nothing_says_is_asked_for(sizes):
    with pytest.raises(ConfigError, match=r"datasets.own: nothing says how many .*the loader table declares no SIZES"):
        sizes.of("own", "test")
