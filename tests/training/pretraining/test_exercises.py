from dataclasses import replace

import numpy as np
import pytest
from tests.grading.contracts import parse
from tests.study.embedded import EMBEDDED

from dualread.grading.claim_labels.attributes import is_supported, sentences_of
from dualread.models import prompts
from dualread.study.config import _named_prompts, resolve
from dualread.training.corpora import Item, phantom
from dualread.training.pretraining.exercises import EXERCISES

ITEM = Item(
    question="What is the size of the lesion?",
    answer="large",
    wrong_answers=("small", "medium", "none"),
    options=("small", "large", "medium", "none"),
    findings="axial ct chest 1 white large round upper left",
    evidence="lesion large",
    difficulty=0.5,
)


def draw(name, n=400):
    rng = np.random.default_rng(0)
    return [EXERCISES[name](ITEM, rng) for _ in range(n)]


@pytest.mark.parametrize("name", ["shared", "option_visible", "vl_calibration"])
def test_completions_follow_their_contract(name):
    contract = "dual" if name == "vl_calibration" else "single"
    made = draw(name)
    assert {parse(e.completion, contract).status for e in made} == {"valid"}
    assert {parse(e.completion, contract).answer for e in made} == {"large", "small", "medium", "none"}


@pytest.mark.parametrize("name", ["shared", "option_visible", "vl_calibration"])
def test_tokens_of_wrong_answers_have_no_weight(name):
    contract = "dual" if name == "vl_calibration" else "single"
    for made in draw(name, 50):
        [at] = [i for i, (text, _) in enumerate(made.parts) if text.endswith("<answer>")]
        answer, weight = made.parts[at + 1]
        assert answer == parse(made.completion, contract).answer
        assert weight == (3.0 if answer == "large" else 0.0)


def test_stated_confidence_is_partly_informative():
    stated = [(parse(e.completion).confidence, parse(e.completion).answer == "large") for e in draw("shared")]
    right = np.array([c for c, is_right in stated if is_right])
    wrong = np.array([c for c, is_right in stated if not is_right])
    assert right.mean() - wrong.mean() > 0.2
    assert wrong.max() > right.min()  # the distributions overlap
    assert len({c for c, _ in stated}) > 20


def test_stated_confidence_is_lower_for_difficult_questions():
    rng = np.random.default_rng(0)

    def mean(item):
        stated = (parse(EXERCISES["shared"](item, rng).completion) for _ in range(400))
        return np.mean([s.confidence for s in stated if s.answer == item.answer])

    assert mean(replace(ITEM, difficulty=0.1)) - mean(replace(ITEM, difficulty=0.9)) > 0.2


def test_probes_are_answered_with_an_integer_and_p_true_with_a_word():
    for name in ("self_probing", "ensemble_2", "ensemble_3", "ensemble_4"):
        assert all(0 <= int(e.completion) <= 100 for e in draw(name, 50))
    assert {e.completion for e in draw("p_true")} == {"Yes", "No"}


def test_every_prompt_of_the_study_is_covered():
    assert set(EXERCISES) <= set(prompts.names())
    assert {name for _, name in _named_prompts(resolve(EMBEDDED))} <= set(EXERCISES)
    assert all("What is the size of the lesion?" in draw(name, 1)[0].prompt for name in EXERCISES)


def test_options_hold_the_answer_and_their_order_varies():
    shown = {e.prompt for e in draw("option_visible", 50)}
    assert len(shown) > 10
    assert all(". large\n" in prompt for prompt in shown)


def test_the_report_on_a_phantom_is_one_item_that_follows_the_contract():
    task = phantom.Settings(n_images=20, held_out=1, size=16, task="report")
    corpus = phantom.open_corpus(task, None, 0)
    items = [item for subject in corpus.training for item in subject.items]
    assert len(items) == 20
    assert {item.question for item in items} == {"Write a report of this image."}
    wrong = 0
    for item in items:
        labels = [is_supported(s, [item.answer]) for other in item.wrong_answers for s in sentences_of(other)]
        assert None not in labels  # another report, in sentences that are known
        wrong += labels.count(False)
        assert parse(EXERCISES["shared"](item, np.random.default_rng(0)).completion).answer in (
            item.answer,
            *item.wrong_answers,
        )
    assert wrong > 20
