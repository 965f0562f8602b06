"""What the page shows of a study."""

import json
import shutil

import pytest

from dualread.apps.browse import page
from dualread.apps.browse.page import collect, part_of, render
from dualread.errors import ArtifactError, ConfigError
from tests.apps.browse import study


@pytest.fixture
def folder(tmp_path):
    return study.write(tmp_path / "mine")


def test_questions_come_in_the_order_of_the_official_file_with_their_donors(folder):
    content = collect(folder, split="test")
    assert [question["id"] for question in content["questions"]] == list(study.QUESTIONS)
    first, second, third = content["questions"]
    assert first["donor"] == {"gold": ["no"], "images": second["images"]}
    assert second["donor"] is third["donor"] is None
    assert first["images"] == third["images"] != second["images"]
    assert len(content["images"]) == 2  # equal pictures are embedded once


def test_an_actor_without_a_seed_of_its_own_is_part_of_each_run_of_its_backbone(folder):
    (run,) = collect(folder, split="test")["runs"]
    assert (run["backbone"], run["seed"]) == ("tiny", 17)
    assert set(run["actors"]) == {"base", "rlvr"}
    assert {name: of["actor"] for name, of in run["methods"].items()} == {"baseline": "base", "dualread": "rlvr"}


def test_an_actor_that_has_this_seed_and_none_is_shown_with_this_seed(folder):
    (alone,) = collect(folder, split="test")["runs"]
    for kind in ("graded", "generations", "predictions"):
        shutil.copytree(folder / kind / "tiny/base/0", folder / kind / "tiny/rlvr/0")
    shutil.copytree(folder / "predictions/tiny/base/0/baseline", folder / "predictions/tiny/rlvr/0/dualread")
    shutil.rmtree(folder / "predictions/tiny/rlvr/0/baseline")
    assert collect(folder, split="test")["runs"] == [alone]


def test_answers_and_confidences_stand_at_the_place_of_their_question(folder):
    (run,) = collect(folder, split="test")["runs"]
    assert run["actors"]["rlvr"]["original"][1] == ["yes", False, "<answer>yes</answer>"]
    assert run["actors"]["base"]["original"][2][0] is None  # no valid answer
    assert run["actors"]["rlvr"]["donor"] == [["yes", False, "<answer>yes</answer>"], None, None]
    assert run["methods"]["dualread"]["original"] == [0.9, 0.95, 0.3]  # .30004, rounded to four digits
    assert run["methods"]["dualread"]["donor"] == [0.2, None, None]
    assert run["methods"]["baseline"]["imputed"] == {"original": [0, 2], "donor": []}


def test_a_page_is_the_same_bytes_twice_and_holds_texts_as_data(folder):
    written = render(collect(folder, split="test"))
    assert written == render(collect(folder, split="test"))
    assert "<img src=x" not in written
    assert written.count("</script>") == 2  # of the data and of the page's own script
    data = written.partition('<script type="application/json" id="data">')[2].partition("</script>")[0]
    assert json.loads(data)["questions"][2]["question"] == study.HOSTILE


def test_what_the_study_lacks_is_named(folder, tmp_path, monkeypatch):
    for arguments, says in (
        ({"split": "train"}, "it has test"),
        ({"split": "test", "datasets": ["mien"]}, "Did you mean 'mine'"),
        ({"split": "test", "skip": 3}, r"--skip 3: .* has 3 such questions"),
    ):
        with pytest.raises(ConfigError, match=says):
            collect(folder, **arguments)
    with pytest.raises(ConfigError, match="not the results folder of a study"):
        collect(tmp_path, split="test")
    content = collect(folder, split="test")
    monkeypatch.setattr(page, "_MOST_BYTES", 1000)  # browsers do not show more
    with pytest.raises(ConfigError, match=r"Expected fewer questions: --most 1"):
        render(content)
    path = folder / "predictions/tiny/rlvr/17/dualread/predictions.parquet"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ArtifactError, match=r"predictions\.parquet: cannot be read"):
        collect(folder, split="test")
    for path in folder.glob("predictions/*/*/*/*/MANIFEST.json"):
        path.unlink()
    with pytest.raises(ArtifactError, match="no predictions"):
        collect(folder, split="test")


def test_a_page_shows_a_part_and_says_which(folder):
    whole = collect(folder, split="test")
    assert part_of(whole) == ""
    first = collect(folder, split="test", most=2)
    assert [question["id"] for question in first["questions"]] == list(study.QUESTIONS)[:2]
    assert part_of(first).startswith("Questions 1 to 2 of 3: `dualread browse` with --skip 2 shows the next ones")
    assert part_of(first) in render(first).replace("&#39;", "'")
    assert first["questions"][0]["donor"] == {"gold": ["no"], "images": first["questions"][1]["images"]}
    last = collect(folder, split="test", skip=2)
    assert [question["id"] for question in last["questions"]] == list(study.QUESTIONS)[2:]
    assert part_of(last).startswith("Questions 3 to 3 of 3: `dualread browse` with a smaller --skip shows others")
    for name in ("rlvr", "base"):
        of_all, of_first, of_last = (c["runs"][0]["actors"][name]["original"] for c in (whole, first, last))
        assert of_first + of_last == of_all
