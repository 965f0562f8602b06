"""Ten lines on checkpoints of other architectures: trained for a moment, so that some answers are right."""

import pytest

import dualread
from dualread.schema.recorded import Facts
from dualread.training.corpora import phantom
from tests import families
from tests.more_families import MORE

pytestmark = pytest.mark.long

METHODS = ["verbalized", "expected_confidence", "p_true", "sc2", "bicr", "dualread"]
CHANGES = {
    "methods": {
        "bicr": {"settings": {"max_epochs": 3, "patience": 2, "hidden": [16]}},
        "psr": {"settings": {"max_epochs": 3, "patience": 2}},
        **{name: {"settings": {"steps": 20}} for name in ("p_state", "per")},
    }
}


def examples():
    corpus = phantom.open_corpus(phantom.Settings(n_images=60, held_out=1, size=64), None, 5)
    return [
        {"image": subject.views[0], "question": item.question, "answer": item.answer, "part": part}
        for k, subject in enumerate(corpus.training)
        for part in [("fit", "fit", "validation", "test")[k % 4]]
        for item in subject.items[:2]
    ]


@pytest.mark.parametrize("name", ["paligemma", "qwen3_5", "llava_next", "internvl"])
def test_from_examples_to_confidences(name, tmp_path):
    facts = Facts(completion_type=1 if name == "paligemma" else 0)
    checkpoint = families.pretrain({**families.FAMILIES, **MORE}[name], tmp_path / "mine", facts)
    found = dualread.confidences(
        checkpoint, examples(), METHODS, settings=CHANGES, folder=tmp_path / "kept", max_completion_tokens=48
    )
    assert found["answer"].null_count() < len(found)
    answered = found["reason"].is_null()
    assert found.filter(answered)["answer"].null_count() == 0
    columns = [found[f"confidence_{method}"] for method in METHODS]
    fitted = [column for column in columns if column.null_count() < len(found)]  # else nothing could be fitted
    assert len(fitted) >= 3
    for column in fitted:
        assert column.drop_nulls().is_between(0, 1).all()
        assert column.is_not_null().to_list() == answered.to_list(), column.name
    dualread.evaluate(found, replicates=40)
