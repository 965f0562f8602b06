"""Groups by entailment: LM-Polygraph's classes and estimators beside ours, with one classifier, row by row."""

import importlib.util
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from tests import meaning
from tests.stages import shards
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from dualread.artifacts.tables import read_table
from dualread.readers.answers import OF_GRADED, OF_MANIFEST, join_answers
from dualread.readers.base import FittedReader, Weights, load, score, settings_of
from dualread.readers.groups import sample_groups
from dualread.schema.base import Place
from dualread.schema.columns import GRADED, MANIFEST
from dualread.schema.groups import GroupAnswersSpec, Groups
from dualread.stages import group_answers
from dualread.stages._views import read_views

pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(
        importlib.util.find_spec("lm_polygraph") is None,
        reason="LM-Polygraph is not installed (make test-estimators)",
    ),
]
N, K = 40, 6


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    return meaning.classifier(tmp_path_factory.mktemp("nli"))


@pytest.fixture(scope="module")
def nli(classifier):
    """What LM-Polygraph takes in the place of its DeBERTa: the same checkpoint."""
    model = AutoModelForSequenceClassification.from_pretrained(classifier).eval()
    model.config.label2id = {label: index for index, label in enumerate(meaning.LABELS)}
    return SimpleNamespace(
        deberta=model, deberta_tokenizer=AutoTokenizer.from_pretrained(classifier), batch_size=7, device="cpu"
    )


@pytest.fixture(scope="module")
def samples():
    """K texts per question, all different: an untrained classifier may say that a text does not entail itself."""
    places = itertools.product(("left", "right", "upper"), ("left", "right", "upper"), ("lung", "liver", "heart"))
    texts, rng = [" ".join(words) for words in places], np.random.default_rng(0)
    return [[texts[i] for i in rng.permutation(len(texts))[:K]] for _ in range(N)]


@pytest.fixture(scope="module")
def answers(samples, classifier, tmp_path_factory):
    """The answers with both views, as the stage gives them to readers."""
    folder, rng = tmp_path_factory.mktemp("answers"), np.random.default_rng(1)
    rows = shards.manifest_rows(N, split="test", roles=("test",))
    graded = [row | {"canonical_answer": "heart"} for row in shards.graded_rows(rows, np.ones(N))]
    made = [
        shards.generation(row["sample_id"], f"<answer>{text}</answer>", image_id="image", sample_index=k)
        | {
            "condition": "original/samples",
            "token_log_probs": (-rng.exponential(size=3)).tolist(),
            "token_ids": [1] * 3,
        }
        for row, texts in zip(rows, samples, strict=True)
        for k, text in enumerate(texts)
    ]
    folders = {
        "manifest": shards.write(folder / "manifest", "manifest", rows),
        "graded": shards.write(folder / "graded", "graded", graded),
        "view/samples": shards.write(folder / "samples", "generations", made),
    }
    groups = Groups(by="entailment", of=["samples"], source=Place(folder=str(classifier)), with_question=False)
    spec = GroupAnswersSpec(dataset="slake", split="test", condition="original/meaning", groups=groups)
    (folder / "meaning").mkdir()
    group_answers.compute(spec, {**folders, "source": classifier}, folder / "meaning")
    table = read_table(folders["manifest"] / "manifest.parquet", MANIFEST, OF_MANIFEST)
    answered = join_answers(
        table, read_table(folders["graded"] / "graded.parquet", GRADED, OF_GRADED), None, {}.get, where="here"
    )
    views = {"samples": folders["view/samples"], "meaning": folder / "meaning"}
    return answered, read_views(("samples", "meaning"), views, answered, where="here")


@pytest.fixture(scope="module")
def seen(answers):
    from dataclasses import replace

    return replace(answers[0], views=answers[1])


@pytest.fixture(scope="module")
def theirs(samples, seen, nli):
    """LM-Polygraph's statistics of the samples."""
    from lm_polygraph.stat_calculators.semantic_classes import SemanticClassesCalculator
    from lm_polygraph.stat_calculators.semantic_matrix import SemanticMatrixCalculator

    log_probs = [[float(of_sample.sum()) for of_sample in row] for row in seen.views[0].completion_log_probs()]
    stats = {"sample_texts": samples, "sample_log_probs": log_probs}
    stats |= SemanticMatrixCalculator(nli)(stats, [], None)
    return stats | SemanticClassesCalculator()(stats, [], None)


def ours(seen, module, **settings):
    reader = FittedReader(module=module, settings=settings_of(module, settings), weights=Weights())
    assert load(module).SCORES_UNFITTED
    return score(reader, seen).score


def test_the_classes_are_theirs(seen, theirs):
    of_ours = [[[*dict.fromkeys(row)].index(name) for name in row] for row in sample_groups(seen, K)]
    classes = theirs["semantic_classes_entail"]["sample_to_class"]
    assert of_ours == [[classes[i][j] for j in range(K)] for i in range(N)]
    assert len({max(row) for row in of_ours}) > 2  # some questions have few classes, others many


def test_the_semantic_entropies_are_theirs(seen, theirs):
    from lm_polygraph.estimators import SemanticEntropy

    by_share = SemanticEntropy(class_probability_estimation="frequency")(theirs)
    np.testing.assert_allclose(-ours(seen, "readers.semantic_uncertainty", k=K) * np.log(K), by_share, atol=1e-11)
    settings = {"estimator": "SemanticEntropy", "k": K}
    np.testing.assert_allclose(-ours(seen, "dualread_lm_polygraph.sampling", **settings), SemanticEntropy()(theirs))


def test_kernel_entropy_is_theirs_of_the_classes_and_not_of_their_probabilities(seen, theirs):
    """Their docstring (step 2) and the authors' code take the most probable class; their code, probabilities."""
    from lm_polygraph.estimators import KernelLanguageEntropy

    labels = {name: index for index, name in enumerate(meaning.LABELS)}
    hard = {
        f"semantic_matrix_{short}": (theirs["semantic_matrix_classes"] == labels[label]).astype(float)
        for short, label in (("entail", "ENTAILMENT"), ("contra", "CONTRADICTION"))
    }
    entropy = -ours(seen, "readers.semantic_uncertainty", k=K, t=0.3)
    np.testing.assert_allclose(entropy, KernelLanguageEntropy(t=0.3)(hard), atol=1e-9)
    assert np.abs(entropy - KernelLanguageEntropy(t=0.3)(theirs)).max() > 0.01
