import pytest

from dualread.artifacts.tables import read_table, write_rows
from dualread.errors import ArtifactError
from dualread.models.images.base import rows_shown
from dualread.schema.answers import GradeSpec
from dualread.schema.columns import GENERATIONS, MANIFEST
from dualread.stages import grade
from tests.specs import changed, contract, image
from tests.stages import shards

SHARD = {"dataset": "slake", "split": "test", "condition": "original", "image": image("original")}
SPEC = GradeSpec(backbone="tiny", actor="rlvr", seed=17, contract=contract("single"), **SHARD)
DONOR = changed(SPEC, condition="donor", image=image("donor"))
TEXTS = [
    "<answer>Heart</answer><confidence>90</confidence>",
    "<answer>the lungs</answer><confidence>9.5</confidence>",
    "<answer>...</answer><confidence>10</confidence>",
    "Lung",
]


@pytest.fixture
def inputs(tmp_path):
    rows = shards.manifest_rows(4, split="test", roles=("test",))
    generations = [
        shards.generation(row["sample_id"], text, image_id=row["image_id"])
        for row, text in zip(rows, TEXTS, strict=True)
    ]
    return {
        "manifest": shards.write(tmp_path / "m", "manifest", rows),
        "generations": shards.write(tmp_path / "g", "generations", generations[::-1]),
    }


def test_answers_confidences_and_labels(tmp_path, inputs):
    (out := tmp_path / "out").mkdir()
    said = grade.compute(SPEC, inputs, out)
    graded = shards.read(out, "graded")
    # Gold answers alternate: Heart, Lung, Heart, Lung.
    assert graded["sample_id"].is_sorted()
    assert graded["correct"].to_list() == [True, True, False, False]
    assert graded["answer"].to_list() == ["Heart", "the lungs", "...", None]
    assert graded["canonical_answer"].to_list() == ["heart", "lung", None, None]
    assert graded["verbalized_confidence"].to_list() == [0.9, None, 0.1, None]
    assert graded["parse_status"].to_list() == ["valid", "invalid_confidence", "valid", "invalid_both"]
    assert said == "read 4 completions, wrote 4 graded completions: 50.0% valid, 50.0% correct"


def donor_inputs(tmp_path, inputs, image_id):
    pair = {"sample_id": "slake/test/0000", "donor_sample_id": "slake/test/0003", "question_key": "q"}
    pair |= {"source_image_id": "image 0", "donor_image_id": "image 3", "n_candidates": 1}
    text = "<answer>Lung</answer><confidence>90</confidence>"
    generation = shards.generation("slake/test/0000", text, image_id=image_id, condition="donor")
    return {
        **inputs,
        "pairs": shards.write(tmp_path / "p", "pairs", [pair]),
        "generations": shards.write(tmp_path / "gd", "generations", [generation]),
    }


def test_a_donor_image_is_graded_by_its_own_gold_answer(tmp_path, inputs):
    (out := tmp_path / "out").mkdir()
    grade.compute(DONOR, donor_inputs(tmp_path, inputs, "image 3"), out)
    # The source's gold answer is Heart, the donor's Lung.
    row = shards.read(out, "graded").select("sample_id", "image_id", "correct").row(0)
    assert row == ("slake/test/0000", "image 3", True)


def test_a_completion_of_the_wrong_image_is_refused(tmp_path, inputs):
    with pytest.raises(ArtifactError, match="1 completions of another image than the gold answer's"):
        grade.compute(DONOR, donor_inputs(tmp_path, inputs, "image 0"), tmp_path)


def test_missing_and_unknown_questions_are_named(tmp_path, inputs):
    rows = shards.read(inputs["generations"], "generations").to_dicts()
    inputs["generations"] = shards.write(tmp_path / "few", "generations", rows[1:])
    with pytest.raises(ArtifactError, match="1 questions without a completion, such as slake/test/0003"):
        grade.compute(SPEC, inputs, tmp_path)
    inputs["generations"] = shards.write(tmp_path / "more", "generations", [*rows, {**rows[0], "sample_id": "x"}])
    with pytest.raises(ArtifactError, match="1 completions of unknown questions, such as x"):
        grade.compute(SPEC, inputs, tmp_path)


def test_generations_in_parts_give_the_same_grades(tmp_path, inputs):
    whole = shards.read(inputs["generations"], "generations")
    for name in ("parts", "one", "two"):
        (tmp_path / name).mkdir()
    write_rows(tmp_path / "parts", whole.to_dicts(), GENERATIONS, rows_per_part=3)
    grade.compute(SPEC, inputs, tmp_path / "one")
    grade.compute(SPEC, {**inputs, "generations": tmp_path / "parts"}, tmp_path / "two")
    assert shards.read(tmp_path / "two", "graded").equals(shards.read(tmp_path / "one", "graded"))


def test_a_forced_completion_is_the_sources_judged_by_the_donors_gold_answer(tmp_path, inputs):
    donor = donor_inputs(tmp_path, inputs, "image 3")
    spec = changed(DONOR, condition="donor_fixed_prefix", completions="original")
    (out := tmp_path / "out").mkdir()
    grade.compute(spec, {**inputs, "pairs": donor["pairs"]}, out)
    # The source was answered with Heart, its own gold answer; the donor's is Lung.
    row = shards.read(out, "graded").select("sample_id", "condition", "image_id", "canonical_answer", "correct").row(0)
    assert row == ("slake/test/0000", "donor_fixed_prefix", "image 3", "heart", False)


def test_a_shuffled_image_is_graded_by_the_questions_own_gold_answer(tmp_path, inputs):
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    images = dict(rows_shown(manifest, [image("shuffled")], None).select("sample_id", "image_id").iter_rows())
    rows = [
        shards.generation(name, "<answer>Heart</answer>", image_id=image, condition="shuffled_image")
        for name, image in images.items()
    ]
    inputs["generations"] = shards.write(tmp_path / "gs", "generations", rows)
    (out := tmp_path / "out").mkdir()
    grade.compute(changed(SPEC, condition="shuffled_image", image=image("shuffled")), inputs, out)
    assert shards.read(out, "graded")["correct"].to_list() == [True, False, True, False]
