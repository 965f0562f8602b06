"""Readers on states that a real, untrained model gave: what they learn, and what they cannot.

An image can change whether an answer is right; a question alone makes it easy or hard. With labels permuted within each
question only the second is left, and a reader must be worth no more than `question_prior`. More would be a leak.
"""

import numpy as np
import pytest

from dualread.artifacts.tables import read_table
from dualread.artifacts.tensors import read_tensors
from dualread.evaluation.metrics.discrimination import auroc, within_question_auroc
from dualread.evaluation.statistics.bootstrap import ImageDraws, image_cluster_replicates, interval
from dualread.evaluation.statistics.kernels import auroc_kernel
from dualread.readers.base import Examples, FittedReader, fit, score
from dualread.readers.join import committed, join_answers
from dualread.schema.answers import GradeSpec
from dualread.schema.columns import FEATURES, GRADED, MANIFEST
from dualread.stages import build_manifest, draw_phantom, generate, grade, replay
from tests import specs, tiny
from tests.readers import synthetic

READERS = {"psr": ("psr", {}), "p_state": ("p_state", {}), "per": ("p_visual", {"state": "p_state"})}
READERS |= {"dualread": ("dualread", {"pre": "psr", "post": "per"}), "question_prior": ("question_prior", {})}
READERS |= {"saplma": ("saplma", {})}
SETTINGS = {
    "psr": synthetic.PSR,
    "saplma": synthetic.SAPLMA,
    "p_state": synthetic.P_STATE,
    "p_visual": synthetic.P_VISUAL,
}
SETTINGS |= {"question_prior": synthetic.PRIOR, "dualread": {}}
ROLES = {"train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2}, "test": "test"}


@pytest.fixture(scope="module")
def replayed(tmp_path_factory):
    """{split: (answers, image of each)} of an untrained Qwen3-VL on a phantom hospital."""
    folder = tmp_path_factory.mktemp("honesty")

    def make(stage, name, spec, **inputs):
        (folder / name).mkdir(parents=True)
        stage.compute(spec, inputs, folder / name)
        return folder / name

    images = {"train": 60, "validation": 1, "test": 40}
    hospital = specs.phantom(seed=1, images=images, questions_per_image=8)
    source = make(draw_phantom, "phantom", hospital)
    tiny.build("qwen3_vl", folder / "actor" / "checkpoint")
    found = {}
    for split in ("train", "test"):
        spec = specs.manifest(split=split, settings={"language": "en"}, roles=ROLES[split])
        shard = specs.shard(split=split, decoding=specs.decoding(max_completion_tokens=4))
        inputs = {"manifest": make(build_manifest, f"{split}/manifest", spec, source=source)}
        asked = inputs | {"actor": folder / "actor", "facts": specs.facts()}
        inputs["generations"] = make(generate, f"{split}/generations", specs.generate(shard, batch_size=64), **asked)
        grades = GradeSpec(
            backbone="tiny",
            actor="rlvr",
            seed=17,
            contract=specs.contract(),
            dataset="slake",
            split=split,
            condition="original",
            image=specs.image("original"),
        )
        graded = committed(read_table(make(grade, f"{split}/graded", grades, **inputs) / "graded.parquet", GRADED))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replay, "artifact_digest", lambda path: "digest of the actor")
            features = make(
                replay,
                f"{split}/features",
                specs.replay(shard, batch_size=64),
                **asked,
                generations=inputs["generations"],
            )
        manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
        index = read_table(features / "features.parquet", FEATURES)
        tensors = read_tensors(features / "features.safetensors")
        answers = join_answers(manifest, graded.drop("correct"), index, tensors.__getitem__, where=split)
        image_of = dict(manifest.select("sample_id", "image_id").iter_rows())
        found[split] = answers, [image_of[sample_id] for sample_id in answers.table["sample_id"]]
    return found


def labels(replayed: dict, rng: np.random.Generator) -> dict[str, Examples]:
    """Labels that depend on the question and, somewhat more, on what the states say of the image.

    An untrained actor is never right, so its labels are drawn; its states are its own.
    """
    answers, _ = replayed["train"]
    states = answers.features("h_pre").astype(np.float64)
    questions = answers.table["question_key"].to_list()
    mean = {q: states[[k == q for k in questions]].mean(axis=0) for q in sorted(set(questions))}
    easy = dict(zip(mean, rng.permutation(np.linspace(-2, 2, len(mean))), strict=True))
    centered = states - [mean[q] for q in questions]
    axis = np.linalg.svd(centered, full_matrices=False)[2][0]
    scale = (centered @ axis).std()
    found = {}
    for split, (given, _) in replayed.items():
        asked = given.table["question_key"].to_list()
        image_says = (given.features("h_pre") - [mean[q] for q in asked]) @ axis / scale
        log_odds = np.array([easy[q] for q in asked]) + 4 * image_says
        found[split] = Examples(answers=given, correct=rng.random(len(given)) < 1 / (1 + np.exp(-log_odds)))
    return found


def permuted_within_questions(given: Examples, rng: np.random.Generator) -> Examples:
    correct = given.correct.copy()
    keys = given.answers.table.select("role", "question_key").rows()
    for key in sorted(set(keys)):
        rows = np.flatnonzero([k == key for k in keys])
        correct[rows] = rng.permutation(correct[rows])
    return Examples(answers=given.answers, correct=correct)


def confidences(examples: dict[str, Examples]) -> dict[str, np.ndarray]:
    fitted: dict[str, FittedReader] = {}
    for method, (name, roles) in READERS.items():
        parents = {role: fitted[parent] for role, parent in roles.items()}
        weights = fit(f"readers.{name}", examples["train"], SETTINGS[name], parents, 17)
        fitted[method] = synthetic.reader(f"readers.{name}", weights, SETTINGS[name], parents)
    return {method: score(reader, examples["test"].answers).confidence for method, reader in fitted.items()}


@pytest.mark.rest
def test_with_labels_permuted_within_questions_a_reader_is_worth_the_question(replayed):
    rng = np.random.default_rng(0)
    informative = labels(replayed, rng)
    test = informative["test"]
    keys = test.answers.table["question_key"].to_list()
    before = {m: within_question_auroc(c, test.correct, keys) for m, c in confidences(informative).items()}
    null = {split: permuted_within_questions(given, rng) for split, given in informative.items()}
    after, correct = confidences(null), null["test"].correct

    images = replayed["test"][1]
    draws = ImageDraws(names=("honesty",), image_ids=tuple(sorted(set(images))), replicates=1000)
    cluster = draws.cluster_of(images)
    prior_kernel = auroc_kernel(after["question_prior"], correct, cluster, len(draws.image_ids))
    prior = interval(image_cluster_replicates({"prior": prior_kernel}, draws)["prior"])
    for method in ("psr", "p_state", "per", "dualread", "saplma"):
        assert before[method] > 0.65  # there is something to read, and the reader reads it ...
        # ... but makes up nothing where there is nothing. Less than the prior is honest: states tell questions apart
        # less well than the questions' names do.
        assert auroc(after[method], correct) <= prior.high
        assert within_question_auroc(after[method], correct, keys) == pytest.approx(0.5, abs=0.15)
    assert within_question_auroc(after["question_prior"], correct, keys) == 0.5
