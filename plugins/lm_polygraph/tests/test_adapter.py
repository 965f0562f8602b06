"""The adapter to LM-Polygraph, as far as it needs no LM-Polygraph: what is given, what is refused, and the direction.

`test_study.py` calls the package itself.
"""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest
from tests.readers import synthetic

from dualread import plugins
from dualread.errors import ConfigError, ReaderError
from dualread.readers.answers import ViewAnswers
from dualread.schema.base import settings_class
from dualread_lm_polygraph import adapter
from dualread_lm_polygraph.sampling import classes

READERS = [path for path in sorted(Path(adapter.__file__).parent.glob("*.py")) if "\ndef score(" in path.read_text()]
NAMES = [f"dualread_lm_polygraph.{path.stem}" for path in READERS]
PAGE = (Path(__file__).parents[3] / "docs/estimators.md").read_text()
WHERE = "slake/test/00001"


class MeanOf:
    """An estimator as LM-Polygraph's are: a batch in, one uncertainty per answer out."""

    def __init__(self, name):
        self.name = name

    def __call__(self, stats):
        return np.array([np.mean(of_one) for of_one in stats[self.name]])


@pytest.mark.parametrize("name", NAMES)
def test_a_study_is_checked_without_importing_the_reader_and_the_page_names_its_settings(name):
    settings = settings_class("readers", name)
    assert settings.model_fields["estimator"].is_required()
    assert plugins.declared("readers", name, "FITTED_ON") in ("train", "validation")
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    estimators = get_args(settings.model_fields["estimator"].annotation)
    assert [one for one in (*estimators, *settings.model_fields) if f"`{one}`" not in row] == []


@pytest.mark.parametrize("name", NAMES)
def test_without_the_package_one_sentence_says_where_it_is_expected(name):
    if importlib.util.find_spec("lm_polygraph"):
        pytest.skip("LM-Polygraph is installed here, so its absence cannot be seen")
    estimator = get_args(settings_class("readers", name).model_fields["estimator"].annotation)[0]
    with pytest.raises(ReaderError, match=rf"cannot be imported by {sys.executable}.*`make env-estimators` installs"):
        adapter.open_estimator(estimator)


def test_a_higher_uncertainty_is_a_lower_score():
    entropies = [[0.5, 1.5], [3.0], [0.0]]  # means 1, 3 and 0
    statistics = [adapter.of_tokens("entropy", np.array(of), sign=1, where=WHERE) for of in entropies]
    found = adapter.certainty(MeanOf("entropy"), statistics, ["a", "b", "c"])
    assert found.tolist() == [-1.0, -3.0, 0.0]
    assert not np.signbit(found[2])


def test_what_answers_have_in_common_is_given_with_each():
    def estimator(stats):
        return np.array([np.linalg.norm(stats["embeddings_decoder"][0] - stats["train"].mean(axis=0))])

    train = np.array([[0.0, 0.0], [2.0, 0.0]])  # the mean is (1, 0)
    statistics = [adapter.of_state(np.array(state), 2, where=WHERE) for state in ([1.0, 2.0], [4.0, 4.0])]
    assert adapter.certainty(estimator, statistics, ["a", "b"], {"train": train}).tolist() == [-2.0, -5.0]


def test_what_differs_by_the_order_of_a_sum_is_a_tie():
    sums = [0.1 + 0.2 + 0.3, 0.3 + 0.2 + 0.1]
    assert sums[0] != sums[1]
    one, other = adapter.certainty(MeanOf("of"), [{"of": [[value]]} for value in sums], ["a", "b"])
    assert one == other == -0.6


@pytest.mark.parametrize("wrong", [[1.0, 2.0], [np.nan], [np.inf], [], [[1.0]]])
def test_an_estimator_that_does_not_give_one_number_is_named(wrong):
    class Wrong:
        def __call__(self, stats):
            return np.array(wrong)

    with pytest.raises(ReaderError, match=r"slake/test/7: LM-Polygraph's Wrong returns .* Expected one finite number"):
        adapter.certainty(Wrong(), [{}], ["slake/test/7"])


@pytest.mark.parametrize(
    ("name", "values", "sign", "message"),
    [
        ("greedy_log_likelihoods", [], -1, r"has the shape \(0,\). Expected \[tokens\], at least one"),
        ("greedy_log_likelihoods", [[-1.0]], -1, r"has the shape \(1, 1\)"),
        ("greedy_log_likelihoods", [-1.0, 0.5], -1, r"holds 0.5. Expected numbers in nats of no more than 0"),
        ("greedy_log_likelihoods", [-1.0, -np.inf], -1, r"-inf"),
        ("entropy", [1.0, -0.1], 1, r"holds -0.1. Expected numbers in nats of no less than 0"),
        ("entropy", [1.0, np.nan], 1, r"nan"),
    ],
)
def test_wrong_numbers_of_tokens_are_refused(name, values, sign, message):
    with pytest.raises(ReaderError, match=rf"^{WHERE}: .*{name}.* {message}"):
        adapter.of_tokens(name, np.array(values), sign=sign, where=WHERE)


def test_the_statistics_of_samples():
    log_probs = [np.array([-0.5, -1.0]), np.array([-2.0]), np.array([-0.25, -0.25, -0.5])]
    found = adapter.of_samples(["yes", "no", "Yes."], log_probs, [0, 1, 0], where=WHERE)
    assert found == {
        "sample_texts": [["yes", "no", "Yes."]],
        "sample_log_likelihoods": [[[-0.5, -1.0], [-2.0], [-0.25, -0.25, -0.5]]],
        "sample_log_probs": [[-1.5, -2.0, -1.0]],  # -.5 - 1, -2, -.25 - .25 - .5
        "sample_tokens": [[[0, 0], [0], [0, 0, 0]]],
        "semantic_classes_entail": {"sample_to_class": {0: {0: 0, 1: 1, 2: 0}}, "class_to_sample": {0: [[0, 2], [1]]}},
    }


@pytest.mark.parametrize(
    ("texts", "lengths", "groups", "message"),
    [
        (["a"], [1], [0], r"1 texts, 1 lists of log-probabilities and 1 classes .* at least two samples"),
        (["a", "b"], [1], [0, 0], r"2 texts, 1 lists of log-probabilities and 2 classes"),
        (["a", "b"], [1, 1], [0], r"2 texts, 2 lists of log-probabilities and 1 classes"),
        (["a", "b"], [1, 1], [0, 2], r"the classes of samples are \[0, 2\]. Expected 0, 1, ... without a gap"),
        (["a", "b"], [1, 0], [0, 1], r"has the shape \(0,\). Expected \[tokens\]"),
    ],
)
def test_wrong_samples_are_refused(texts, lengths, groups, message):
    with pytest.raises(ReaderError, match=f"{WHERE}: .*{message}"):
        adapter.of_samples(texts, [np.full(n, -1.0) for n in lengths], groups, where=WHERE)


def test_states_of_another_shape_are_refused():
    with pytest.raises(ReaderError, match=rf"{WHERE}: the state has the shape \(3,\). Expected \(4,\), as in training"):
        adapter.of_state(np.zeros(3), 4, where=WHERE)
    with pytest.raises(ReaderError, match=f"{WHERE}: 1 numbers of the state are not finite"):
        adapter.of_state(np.array([0.0, np.nan]), 2, where=WHERE)
    with pytest.raises(ReaderError, match=r"states of the shape \(1, 4\). Expected \[n, D\] with at least two answers"):
        adapter.training_states(np.zeros((1, 4)), where="partition 'fit'")
    with pytest.raises(ReaderError, match="partition 'fit': 1 numbers of the states are not finite, such as inf"):
        adapter.training_states(np.array([[0.0], [np.inf]]), where="partition 'fit'")


def test_equal_answers_are_one_class_and_every_invalid_sample_is_its_own():
    assert classes(["lung", None, "heart", "lung", None, "heart"]) == [0, 1, 2, 0, 3, 2]
    assert classes([None, None]) == [0, 1]


def test_all_tokens_or_those_of_the_answer_are_read():
    tokens = pl.DataFrame(
        {"token_log_probs": [[-1.0, -2.0, -3.0], [-4.0]], "answer_positions": [[1, 2], [0]]},
        schema={"token_log_probs": pl.List(pl.Float32), "answer_positions": pl.List(pl.Int32)},
    )
    answers = replace(synthetic.examples(2).answers, tokens=tokens)
    chosen = [of.tolist() for of in adapter.chosen_tokens(answers, "answer")]
    assert chosen == [[1, 2], [0]]
    assert [of.tolist() for of in adapter.chosen_tokens(answers, "completion")] == [[0, 1, 2], [0]]
    swapped = answers.take(np.array([1, 0]))
    assert [of.tolist() for of in swapped.of_tokens("token_log_probs")] == [[-4.0], [-1.0, -2.0, -3.0]]


def test_answers_without_a_replay_and_views_without_log_probs_say_so():
    answers = replace(synthetic.examples(2).answers, tokens=None)
    with pytest.raises(ConfigError, match="there is no token_log_probs of these answers"):
        answers.of_tokens("token_log_probs")
    with pytest.raises(ConfigError, match=r"views.samples: gives no log-probabilities of completions"):
        ViewAnswers(name="samples", texts=(("a", "b"),)).completion_log_probs()
    with pytest.raises(ValueError, match="tokens has 2 rows"):
        replace(answers, tokens=pl.DataFrame({"token_log_probs": [[-1.0]] * 2}))
