"""Answer sets of new questions: from the thresholds of a bundle and the probabilities that a view of choices has."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from dualread.apps.score import answering
from dualread.apps.score.bundle import read_bundle
from dualread.apps.score.lines import read_rows, score, text
from dualread.apps.score.results import AnswerSet, SetOption
from dualread.apps.score.scorer import Scorer
from dualread.errors import ArtifactError, DataError
from dualread.evaluation.answer_sets import SetThreshold
from dualread.models import prompts
from dualread.models.actor import Request, SeededDecoding
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.conditions import question_field
from dualread.models.generation.choices import ScoredChoices
from dualread.models.generation.transformers_engine import TransformersEngine
from tests.apps.score import small
from tests.tiny import MODEL

WHICH, LESION, OPTIONS = "Which is it?", "Is there a lesion?", ["CT", "MRI", "X-ray"]


@pytest.fixture(scope="module")
def bundle(study, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sets") / "mine"
    return small.exported(study, folder, "choices", sets={20: 0.3, 5: None})


@pytest.fixture(scope="module")
def scorer(bundle):
    return Scorer.load(bundle, methods=["choices"])


def by_hand(study, question, field, choices):
    """Return the share of each choice in the likelihoods of all, spelled with both first letters, in <answer>."""
    opened = open_checkpoint(study.actor / "checkpoint", MODEL)
    asked = prompts.render("shared", question=field)
    engine, tokenizer = TransformersEngine(opened, 1), opened.encoder.tokenizer
    request = Request(text=asked, images=[study.image(1)], image_name="x", row=question)
    [[completion]] = engine.answer([request], SeededDecoding(**small.DECODING, seed=0))
    assert "<answer>" not in completion.text  # so that the block is appended

    def ids(content):
        return tuple(tokenizer("\n" + content, add_special_tokens=False)["input_ids"])[
            len(tokenizer("\n")["input_ids"]) :
        ]

    said = tuple(token for token in completion.token_ids if token != tokenizer.eos_token_id)
    likelihoods = []
    for choice in choices:
        spelled = {choice, choice[0].upper() + choice[1:], choice[0].lower() + choice[1:]}
        after = [ids(f"{spelling}</answer>") for spelling in spelled]
        after = [tokens[: len(tokens) - len(ids("</answer>")) + 1] for tokens in after]
        prefixed = Request(**{**vars(request), "prefix": (*said, *ids("<answer>"))})
        [scored] = engine.loglikelihoods([prefixed], [after])
        likelihoods.append(sum(np.exp(scored.values)))
    return np.array(likelihoods) / sum(likelihoods)


def test_a_bundle_has_the_thresholds_of_validation_questions(bundle, study, tmp_path):
    assert read_bundle(bundle).answer_sets == [
        SetThreshold(method="choices", miss_percent=5, value=None, reason="too few", n_clusters=20),
        SetThreshold(method="choices", miss_percent=20, value=0.3, reason=None, n_clusters=20),
    ]
    without = small.exported(study, tmp_path / "without")
    assert "answer_sets" not in json.loads((without / "bundle.json").read_text())


@pytest.mark.parametrize(
    ("asked", "field", "choices"),
    [
        ({"question": WHICH, "options": OPTIONS}, question_field(WHICH, OPTIONS), OPTIONS),
        ({"question": LESION, "answer_type": "closed"}, LESION, ["yes", "no"]),
    ],
)
def test_a_set_has_the_choices_with_at_least_the_threshold(scorer, study, asked, field, choices):
    scored = scorer(study.image(1), **asked)
    without, found = scored.answer_sets
    expected = by_hand(study, asked["question"], field, choices)
    assert [option.text for option in found.options] == choices
    assert [option.probability for option in found.options] == pytest.approx(expected, abs=1e-5)
    assert [option.in_set for option in found.options] == [bool(p >= 0.3) for p in expected]
    assert (found.method, found.miss_percent, found.threshold, found.n_clusters) == ("choices", 20, 0.3, 20)
    assert {option.in_set for option in without.options} == {None}
    assert (without.threshold, without.reason, found.reason) == (None, "too few", None)
    assert scored.methods["choices"].confidence == pytest.approx(max(expected), abs=1e-5)


def test_a_question_without_choices_has_none_and_says_why(scorer, study, bundle):
    scored = scorer(study.image(1), LESION)
    assert [(found.options, found.threshold) for found in scored.answer_sets] == [([], None), ([], 0.3)]
    assert len({found.reason for found in scored.answer_sets}) == 1
    assert scored.methods["choices"].imputed
    with pytest.raises(DataError, match="open or closed"):
        scorer(study.image(1), LESION, answer_type="yes/no")
    assert (
        Scorer.load(bundle)(study.image(1), WHICH, options=OPTIONS).answer_sets == []
    )  # of a method that is not asked


def test_numbers_that_are_nan_make_no_set(scorer, study, monkeypatch):
    """The largest of two probabilities would be 1 if a NaN counted as a choice that the question does not have."""
    scored = ScoredChoices(log_probs={"A": float("nan"), "B": -1.0}, n_prompt_tokens=3)
    monkeypatch.setattr(answering, "score_choices", lambda *given: [scored])
    [*_, found] = scorer(study.image(1), WHICH, options=["CT", "MRI"]).answer_sets
    assert (found.options, found.reason) == ([], "the model's log-probabilities of the choices are NaN")


def test_a_line_has_its_sets_and_a_person_reads_them(scorer, study, tmp_path):
    image = study.image(1)
    (tmp_path / "asked.jsonl").write_text(
        "\n".join(
            json.dumps({"image": str(image), "question": LESION, **more})
            for more in ({"answer_type": "yes/no"}, {"answer_type": "sometimes"}, {})
        )
    )
    score(scorer, read_rows(tmp_path / "asked.jsonl"), tmp_path / "out.jsonl")
    closed, refused, open_ = map(json.loads, (tmp_path / "out.jsonl").read_text().splitlines())
    single = scorer(image, LESION, answer_type="closed")
    for found, alone in zip(closed["answer_sets"], single.answer_sets, strict=True):
        assert [option["text"] for option in found["options"]] == ["yes", "no"]
        for option, same in zip(found["options"], alone.options, strict=True):
            assert (option["in_set"], option["probability"]) == (same.in_set, pytest.approx(same.probability, abs=1e-6))
    assert "open or closed" in refused["error"]
    assert "has no choices" in open_["answer_sets"][0]["reason"]
    option = AnswerSet(
        method="choices", miss_percent=20, threshold=0.3, n_clusters=20, reason=None,
        options=[SetOption(text=name, probability=p, in_set=p >= 0.3) for name, p in (("no", 0.2), ("yes", 0.8))],
    )  # fmt: skip
    assert text(replace(single, answer_sets=[option]), "dualread").splitlines()[-1].split() == [
        *("answer", "set,", "miss", "20%", "{yes", "0.8000}", "not", "no", "0.2000"),
    ]


def test_a_threshold_of_a_method_without_choices_is_refused(bundle, tmp_path):
    damaged = shutil.copytree(bundle, tmp_path / "damaged")
    known = json.loads((damaged / "bundle.json").read_text())
    known["answer_sets"][0]["method"] = "dualread"
    (damaged / "bundle.json").write_text(json.dumps(known))
    with pytest.raises(ArtifactError, match="reads no probabilities of choices"):
        Scorer.load(damaged)
    known["answer_sets"][0] |= {"value": 1.5}
    (damaged / "bundle.json").write_text(json.dumps(known))
    with pytest.raises(ArtifactError, match="no probability from 0 to 1"):
        Scorer.load(damaged)
