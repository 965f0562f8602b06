import polars as pl
import pytest

from dualread.artifacts.tables import from_rows, read_table
from dualread.errors import ArtifactError
from dualread.schema.columns import DIFFICULTY, TRUTH
from dualread.schema.metrics import MeasureDifficultySpec
from dualread.stages import measure_difficulty
from tests.evaluation.cells import RUN, cell
from tests.stages.test_compute_metrics import save

NULL = "question_prior"
SPEC = MeasureDifficultySpec(
    study="embedded",
    dataset="slake",
    split="test",
    actor=RUN["actor"],
    seeds={RUN["backbone"]: (RUN["seed"],)},
    methods=(RUN["method"], NULL),
    nulls=(NULL,),
    replicates=50,
)


def inputs_of(root, *, without=None):
    questions, _, grades, predictions = cell()
    run = f"{RUN['backbone']}/{RUN['actor']}/{RUN['seed']}"
    images = sorted(set(questions["image_id"]) - {without})
    truth = from_rows([{"image_id": name, "haze": 0.9 * (k % 2)} for k, name in enumerate(images)], TRUTH)
    constant = predictions["original"].with_columns(method=pl.lit(NULL), confidence=pl.lit(0.5))
    return {
        "truth": save(root / "truth", truth, "truth"),
        "manifest": save(root / "manifest", questions, "manifest"),
        f"graded/{run}/{SPEC.dataset}/{SPEC.split}/original": save(root / "graded", grades["original"], "graded"),
        f"predictions/{run}/{RUN['method']}": save(root / "own", pl.concat(predictions.values()), "predictions"),
        f"predictions/{run}/{NULL}": save(root / "null", constant, "predictions"),
    }


def compute(root, inputs):
    (root / "out").mkdir()
    line = measure_difficulty.compute(SPEC, inputs, root / "out")
    return line, read_table(root / "out" / "difficulty.parquet", DIFFICULTY)


def test_every_method_has_both_readings_and_is_compared_with_the_null(tmp_path):
    line, found = compute(tmp_path, inputs_of(tmp_path))
    questions = cell()[0]
    n_images = questions["image_id"].n_unique()
    assert line == f"read {n_images} images, {n_images // 2} of them hazy, wrote 9 estimates"
    auroc = found.filter(metric="auroc")
    assert auroc.select("reading", "method", "baseline").rows() == [
        ("own", None, None),
        *[
            (reading, method, baseline)
            for reading in ("own", "exchanged")
            for method, baseline in ((RUN["method"], None), (NULL, None), (RUN["method"], NULL))
        ],
    ]
    assert set(found["backbone"]) == {RUN["backbone"]}
    own = found.filter(reading="own", metric="auroc", method=NULL).row(0, named=True)
    assert (own["estimate"], own["n"]) == (0.5, len(questions))  # constant confidences


def test_an_image_of_unknown_difficulty_is_refused(tmp_path):
    name = sorted(cell()[0]["image_id"])[0]
    with pytest.raises(ArtifactError, match=f"says nothing about {name}"):
        compute(tmp_path, inputs_of(tmp_path, without=name))


def test_a_method_without_an_answer_is_refused(tmp_path):
    inputs = inputs_of(tmp_path)
    name = f"predictions/{RUN['backbone']}/{RUN['actor']}/{RUN['seed']}/{NULL}"
    path = inputs[name] / "predictions.parquet"
    pl.read_parquet(path)[1:].write_parquet(path)
    with pytest.raises(ArtifactError, match=f"{name}: no confidence of"):
        compute(tmp_path, inputs)
