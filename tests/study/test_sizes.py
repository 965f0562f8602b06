import json
import shlex
from pathlib import Path

import polars as pl
import pytest

from dualread.errors import ConfigError
from dualread.study.sizes import Sizes, SplitSize

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
    return Sizes(CONFIG, tmp_path / "results/study", root=tmp_path)


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
def test_sizes_from_the_config(sizes, dataset, split, questions, images, source):
    assert sizes.of(dataset, split) == SplitSize(questions=questions, images=images, source=source)


def test_a_manifest_takes_precedence(tmp_path, sizes):
    folder = tmp_path / "results/study/manifests/slake/test"
    folder.mkdir(parents=True)
    files = [["a.png", "c.png", "d.png"]] * 2 + [["b.png"]]
    pl.DataFrame({"image_id": ["a", "a", "b"], "image_files": files}).write_parquet(folder / "manifest.parquet")
    assert sizes.of("slake", "test") == SplitSize(questions=3, images=2, source="its manifest", most_images=3)


def test_donors_are_at_most_the_questions_until_they_are_paired(tmp_path, sizes):
    shard = ("slake", "test", "donor")
    assert sizes.asked(shard, donors=True) == sizes.asked(shard, donors=False) == 1061
    folder = tmp_path / "results/study/pairs/slake/test"
    folder.mkdir(parents=True)
    pl.DataFrame({"sample_id": range(442)}).write_parquet(folder / "pairs.parquet")
    assert sizes.asked(shard, donors=True) == 442
    assert sizes.asked(shard, donors=False) == 1061


def test_an_unknown_size_is_reported(sizes):
    with pytest.raises(
        ConfigError,
        match=r"datasets.own: the number of questions in .* is not known: the loader table declares no SIZES",
    ):
        sizes.of("own", "test")


def test_the_command_that_makes_a_manifest_has_every_config_file_in_order(tmp_path):
    files = [Path("workflow/studies/smoke.yaml"), tmp_path / "my data.yaml"]
    sizes = Sizes(CONFIG, Path("results/study"), root=tmp_path, files=files)
    with pytest.raises(ConfigError) as error:
        sizes.of("own", "test")
    command = shlex.split(str(error.value).partition("make the manifest first: ")[2])
    target = "results/study/manifests/own/test/MANIFEST.json"
    assert command == ["snakemake", "--cores", "1", target, "--configfile", *map(str, files)]


def test_existing_rows_are_counted(tmp_path, sizes):
    rows = [("Is there a lesion?", "yes", "0.png"), ("Which organ?", "liver", "0.png"), ("Is it?", "no", "1.png")]
    (tmp_path / "x").mkdir()
    with (tmp_path / "x/test.jsonl").open("w") as file:
        for question, answer, image in rows:
            file.write(json.dumps({"question": question, "reference_answers": [answer], "image": image}) + "\n")
    assert sizes.of("own", "test") == SplitSize(questions=3, images=2, source="the rows in x")
    assert sizes.of("slake", "test").source == "the loader slake"  # which declares them


def test_the_question_with_the_most_images_counts_also_where_a_part_is_drawn_or_roles_say_it(tmp_path):
    entry = {"loader": "table", "source": {"folder": "x"}}
    roles = {"loader": "table", "source": {"phantom": "visits"}, "settings": {"image_roles": ["prior", "current"]}}
    config = {
        "datasets": {"own": entry | {"select": {"questions": 2}}, "visits": roles},
        "phantoms": {"visits": {"images": {"test": 3}, "questions_per_image": 2}},
    }
    (tmp_path / "x").mkdir()
    rows = [
        {"question": f"Question {k}?", "reference_answers": ["yes"], "image": ["a", "b", "c"][:k]} for k in (1, 2, 3)
    ]
    (tmp_path / "x/test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sizes = Sizes(config, tmp_path / "results/study", root=tmp_path)
    # Of three lists of images, two are drawn; each of them may be the longest.
    assert sizes.of("own", "test") == SplitSize(questions=2, images=2, source="select", most_images=3)
    assert sizes.of("visits", "test") == SplitSize(questions=6, images=3, source="phantoms.visits", most_images=2)
