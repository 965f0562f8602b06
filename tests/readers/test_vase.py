import math

import numpy as np
import polars as pl
import pytest

from dualread.errors import ConfigError
from dualread.readers import vase
from dualread.readers.answers import COLUMNS, Answers, ViewAnswers
from dualread.readers.vase import amplified_entropy, shares
from tests.readers import synthetic
from tests.readers.test_self_consistency import PLATT

SETTINGS = {"k": 2, "alpha": 1.0, "weights": "likelihood"}


def test_shares_by_hand():
    # Weights 1, 1 and 1/2 (exp of -1 + 1, -1 + 1 and -1 - ln 2 + 1): of 2.5, a has 2 and b has .5.
    found = shares(["a", "a", "b"], [-1.0, -1.0, -1.0 - math.log(2)], "samples")
    assert found == pytest.approx({"answer a": 0.8, "answer b": 0.2})
    assert shares(["a", None], [-3.0, -3.0], "samples") == {"answer a": 0.5, "invalid samples 1": 0.5}


def test_the_amplified_entropy_by_hand():
    # One group in both: softmax of one number is 1, and its entropy 0.
    assert amplified_entropy({"a": 1.0}, {"a": 1.0}, 1.0) == 0.0
    # p = (1, 0), p' = (0, 1): p + (p - p') = (2, -1), so 1 / (1 + e^-3) = .952574 and .047426;
    # .952574 * .048587 + .047426 * 3.048587 = .046283 + .144582 = .190865.
    assert amplified_entropy({"a": 1.0}, {"b": 1.0}, 1.0) == pytest.approx(0.190865, abs=1e-6)
    # With alpha 0 the distorted images have no part but their groups: softmax of (1, 0) is .731059 and .268941;
    # .731059 * .313262 + .268941 * 1.313262 = .582203.
    assert amplified_entropy({"a": 1.0}, {"b": 1.0}, 0.0) == pytest.approx(0.582203, abs=1e-6)
    # Equal distributions: softmax of (.5, .5) is even, ln 2.
    assert amplified_entropy({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5}, 1.0) == pytest.approx(math.log(2))


def view(name: str, *texts: tuple[str, str], log_probs: tuple[float, ...] = (-1.0, -1.0)) -> ViewAnswers:
    tokens = pl.Series([[[value] for value in log_probs] for _ in texts], dtype=pl.List(pl.List(pl.Float32)))
    return ViewAnswers(
        name=name, texts=tuple(tuple(f"<answer>{t}</answer>" for t in pair) for pair in texts), token_log_probs=tokens
    )


def answers(*views: ViewAnswers) -> Answers:
    n = len(views[0].texts or ())
    table = pl.DataFrame({name: [f"{name} {i}" for i in range(n)] for name in COLUMNS})
    return Answers(table=table, source={}.__getitem__, rows=np.arange(n), views=views)


def test_answers_that_a_distortion_changes_are_less_certain_than_those_that_stay():
    clean = view("samples", ("liver", "Liver"), ("lung", "lung"))
    distorted = view("distorted", ("liver", "liver"), ("heart", "heart"))
    found = vase.score(synthetic.reader("readers.vase", PLATT, SETTINGS), answers(clean, distorted))
    assert found.score == pytest.approx([0.0, -0.190865], abs=1e-6)
    assert found.confidence[0] > found.confidence[1]


def test_what_it_cannot_read_is_refused():
    one, reader = view("samples", ("a", "b")), synthetic.reader("readers.vase", PLATT, SETTINGS)
    with pytest.raises(ConfigError, match="this reader needs 2 of completions"):
        vase.score(reader, answers(one))
    silent = ViewAnswers(
        name="silent", texts=one.texts, token_log_probs=pl.Series([[[], []]], dtype=pl.List(pl.List(pl.Float32)))
    )
    with pytest.raises(ConfigError, match=r"views\.silent: sample_id 0 has samples without log-probabilities"):
        vase.score(reader, answers(one, silent))
    equal = synthetic.reader("readers.vase", PLATT, SETTINGS | {"weights": "equal"})
    assert vase.score(equal, answers(one, silent)).score == pytest.approx([-math.log(2)])  # (.5, .5) in both
