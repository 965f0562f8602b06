"""Readers without a network, by hand: the answers that they score, and their scores and confidences."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualread.errors import ConfigError
from dualread.readers import self_consistency, semantic_uncertainty, sequence_likelihood
from dualread.readers.base import Answers, ViewAnswers, Weights, score
from dualread.readers.calibration.platt import fit_platt
from dualread.readers.groups import sample_groups
from dualread.readers.replies import choice_probabilities
from dualread.readers.semantic_uncertainty import normalized_entropy
from dualread.readers.vase import amplified_entropy, shares
from tests.readers import synthetic
from tests.readers.synthetic import PLATT, flat, percents, sampled, seen

LN = np.log


def replies(*of_views: list[str]) -> Answers:
    """Answers that were asked about once per view, and what was replied."""
    views = [ViewAnswers(name=f"asked_{k}", texts=tuple((t,) for t in texts)) for k, texts in enumerate(of_views)]
    return seen(len(of_views[0]), *views)


def yes_no(yes, no) -> Answers:
    return seen(len(yes), ViewAnswers(name="yes_no", log_probs={"Yes": np.array(yes), "No": np.array(no)}))


def stating(others: float = -60.0, **log_probs) -> Answers:
    """Three answers with log-probabilities of p0 to p100."""
    return percents({**flat(others), **{name.strip("p"): np.array(values) for name, values in log_probs.items()}})


def core(whole, hidden) -> Answers:
    tensors = {"entropy": whole, "entropy_hidden": hidden}
    columns = {name: np.array(of, np.float32)[:, np.newaxis] for name, of in tensors.items()}
    return seen(len(whole), ViewAnswers(name="core", source=columns.__getitem__, rows=np.arange(len(whole))))


def with_states(n: int, **tensors) -> Answers:
    columns = {name: np.array(of, np.float32).reshape(n, -1) for name, of in tensors.items()}
    return Answers(table=synthetic.examples(n).answers.table, source=columns.__getitem__, rows=np.arange(n))


def pairs_of(name: str, *texts: tuple[str, str], log_probs: tuple[float, ...] = (-1.0, -1.0)) -> ViewAnswers:
    """Two samples of each answer, of one token each."""
    tokens = pl.Series([[[value] for value in log_probs] for _ in texts], dtype=pl.List(pl.List(pl.Float32)))
    blocks = tuple(tuple(f"<answer>{t}</answer>" for t in pair) for pair in texts)
    return ViewAnswers(name=name, texts=blocks, token_log_probs=tokens)


# What the model said: a and b mean the same, and so do a and c, but not b and c; nothing means the same as d.
MEANING = {("a", "b"): (1.0, True), ("a", "c"): (1.0, True), ("b", "c"): (0.75, False)}
MEANING |= {(letter, "d"): (0.0, False) for letter in "abc"}


def meant(answers: Answers) -> Answers:
    return replace(answers, views=(*answers.views, ViewAnswers(name="meaning", pairs=(MEANING,) * len(answers))))


def sigmoid(*values: float) -> list[float]:
    return [1 / (1 + math.exp(-value)) for value in values]


def likely(*shares: float) -> Answers:
    return with_states(len(shares), answer_log_prob=LN(shares))


def divided(temperature: float) -> Weights:
    return Weights(notes={"temperature": temperature})


TWICE, STATED = ([0.85, 0.7, 0.5],) * 2, ([0.7, 0.9, 0.1],) * 2
ASKED = ["80", "x", "x", "0"], ["60", "30", "x", "x"], ["x", "31", "x", "x"]
PROBED = seen(3, ViewAnswers(name="probe", texts=(("80",), (), ("20",))))
CORE = core([0.5, 0.5, 2.0], [1.25, 0.5, 1.0])
STATES = with_states(2, h_pre=[[3, 0], [0, 0]], h_close=[[0, 0], [0, -2]])
HEAD = Weights(tensors={"weight": np.array([[1, 0], [0, 0.5]], np.float32), "bias": np.array([0.5, -1], np.float32)})
SAMPLES = sampled(
    ("liver", ["Liver", "the livers", "lung", ""]),  # "the livers" is "liver", and "" is invalid
    ("heart, lung", ["Lung and Heart", "heart", "Heart, Lung", "heart; lung"]),  # sets have no order
    (None, ["", "", "liver", "."]),  # what is invalid agrees with nothing
    ("liver", ["", "", "", ""]),
)
LETTERS = sampled(("a", [*"bacd"]), ("c", [*"bacd"]), ("d", [*"abab"]), (None, [*"aaaa"]))
AGREEING = sampled(
    ("liver", ["Liver", "liver", "the liver", "livers"]),
    ("heart", ["liver", "liver", "lung", "lung"]),
    (None, [".", ".", "liver", "lung"]),
)
_CHANGED = pairs_of("distorted", ("liver", "liver"), ("heart", "heart"))
DISTORTED = seen(2, pairs_of("samples", ("liver", "Liver"), ("lung", "lung")), _CHANGED)
GROUPED = seen(1, pairs_of("samples", ("a", "b")), pairs_of("distorted", ("c", "d")))
VASE = {"k": 2, "alpha": 1.0, "weights": "likelihood"}
Q = 1 / (1 + math.exp(-2))


class Case(NamedTuple):
    """A reader and answers; what it scores and is confident of, exactly or so far from it; which are imputed."""

    reader: str
    answers: Answers
    score: list[float] | None = None
    confidence: list[float] | None = None
    imputed: tuple[int, ...] = ()
    settings: dict | None = None
    weights: Weights = Weights()
    within: float = 0.0


CASES = [
    # P(Yes) = .3 and P(No) = .1 of the whole vocabulary: .3 / .4, with the log-odds ln 3. The second was not shown.
    Case("p_true", yes_no(LN([0.3, 0.2]), LN([0.1, 0.2])), [LN(3), 0.0], [0.75, 0.5], within=1e-12),
    Case("p_true", yes_no(LN([1e-9]), LN([0.9])), [LN(1e-9 / 0.9)], [1e-9 / 0.9], within=1e-12),
    Case("p_true", yes_no([-1.0, np.nan], [-2.0, np.nan]), [1.0, 0.0], sigmoid(1, 0), (1,), within=1e-15),
    Case("p_true", seen(3, ViewAnswers(name="yes_no", log_probs={})), [0.0] * 3, [0.5] * 3, (0, 1, 2)),
    Case("p_true", yes_no([-900.0] * 3, [-901.0] * 3), [1.0] * 3),  # whose probabilities are zero
    Case("self_probing", replies(["85", "I am <confidence>70</confidence> sure, of 100", "none"]), *TWICE, (2,)),
    # (.8 + .6) / 2, (.3 + .31) / 2, none, and a valid 0
    Case("prompt_ensemble", replies(*ASKED), None, [0.7, 0.305, 0.5, 0.0], (2,), within=1e-15),
    # An answer that is not valid cannot be placed in a prompt: it was not asked about.
    Case("self_probing", PROBED, None, [0.8, 0.5, 0.2], (1,)),
    Case("prompt_ensemble", PROBED, None, [0.8, 0.5, 0.2], (1,)),
    # Of all completions 3% say 90 and 1% say 10; the rest says no integer: (3 * 90 + 1 * 10) / 4 = 70.
    Case("expected_confidence", stating(p90=LN([0.03, 1, 1e-30]), p10=LN([0.01, 1e-30, 1])), *STATED, within=1e-12),
    Case("expected_confidence", stating(), None, [0.5] * 3, within=1e-15),  # the mean of 0 to 100
    # The ends are reached and not exceeded: 100 + 99e-16 is rounded up, 1 + 1e-16 down.
    Case("expected_confidence", stating(-2000.0, p100=[-1e-9, -1500, -900], p0=[-1500, 0, -900]), None, [1, 0, 0.5]),
    Case("expected_confidence", stating(-2000.0, p100=[0] * 3, p99=LN([1e-16] * 3)), None, [1.0] * 3),
    # H = .5, H' = 1.25: IS = .75, and VAUQ = .5 - .6 * .75 = .05. Equal entropies leave H. H = 2, H' = 1: 2 + .6 = 2.6.
    Case("vauq", CORE, [-0.05, -0.5, -2.6], None, (), {"alpha": 0.6}, PLATT, 1e-12),
    Case("vauq", CORE, [-0.5, -0.5, -2.0], None, (), {"alpha": 0.0}, PLATT),  # the entropy alone
    # (3 + .5 + 0 - 1) / 2 = 1.25 and (0 + .5 - 1 - 1) / 2 = -.75
    Case("state_head", STATES, [1.25, -0.75], sigmoid(1.25, -0.75), weights=HEAD, within=1e-15),
    # Tokens of probability .9 and .4: the geometric mean is sqrt(.36) = .6, its log-odds ln(.6 / .4) = ln 1.5.
    Case("sequence_likelihood", likely(0.36**0.5, 0.5), [LN(1.5), 0.0], [0.6, 0.5], (), None, divided(1.0), 1e-7),
    # ln 1.5 / 2: the odds are sqrt(1.5).
    Case("sequence_likelihood", likely(0.6), None, [1.5**0.5 / (1 + 1.5**0.5)], (), None, divided(2.0), 1e-7),
    Case("self_consistency", SAMPLES, [0.5, 0.75, 0, 0], sigmoid(0, 0.5, -1, -1), (), {"k": 4}, PLATT, 1e-15),
    Case("self_consistency", SAMPLES, [1.0, 0.5, 0, 0], None, (), {"k": 2}, PLATT),  # the first two samples alone
    Case("self_consistency", LETTERS, [0.25, 0.25, 0, 0], None, (), {"k": 4}, PLATT),
    Case("self_consistency", meant(LETTERS), [0.75, 0.5, 0, 0], None, (), {"k": 4}, PLATT),
    Case("radflag", meant(LETTERS), [0.75, 0.5, 0, 0], None, (), {"k": 4}, PLATT),
    # Groups of 2, 1 and 1: 1.5 ln 2 / (2 ln 2); one group of four. The committed answer is not read.
    Case("semantic_uncertainty", meant(LETTERS), [-0.75, -0.75, 0, 0], None, (), {"k": 4}, PLATT, 1e-15),
    # ln 2 / ln 4
    Case("semantic_uncertainty", AGREEING, [0, -0.5, -1], sigmoid(-1, -2, -3), (), {"k": 4}, PLATT, 1e-15),
    # An answer that a distortion changes is less certain than one that stays.
    Case("vase", DISTORTED, [0.0, -0.190865], sigmoid(-1, -1.381730), (), VASE, PLATT, 1e-6),
    # One group a of both samples on the image, of which a distortion keeps half: p = (1, 0), p' = (1/2, 1/2), and the
    # softmax of (1.5, -.5) is Q = .880797: .880797 * .126928 + .119203 * 2.126928.
    Case("vase", meant(GROUPED), [Q * LN(Q) + (1 - Q) * LN(1 - Q)], None, (), VASE, PLATT, 1e-12),
]


@pytest.mark.parametrize("case", CASES, ids=[f"{case.reader} {k}" for k, case in enumerate(CASES)])
def test_by_hand(case):
    found = score(synthetic.reader(f"readers.{case.reader}", case.weights, case.settings), case.answers)
    for values, expected in ((found.score, case.score), (found.confidence, case.confidence)):
        if expected is not None:
            assert values == pytest.approx(expected, abs=case.within)
            assert not np.signbit(values[values == 0]).any()
    assert np.flatnonzero(found.imputed).tolist() == [*case.imputed]


def test_the_stated_confidence_is_kept_and_a_missing_one_is_marked():
    scores = score(synthetic.reader("readers.verbalized", Weights()), synthetic.examples(15).answers)
    assert np.flatnonzero(scores.imputed).tolist() == [0, 7, 14]
    assert scores.confidence[[0, 1, 2, 7, 8, 14]].tolist() == [0.5, 0.01, 0.02, 0.5, 0.08, 0.5]
    assert (scores.score == scores.confidence).all()


# --- replies
@given(st.lists(st.lists(st.integers(0, 100), min_size=4, max_size=4), min_size=1, max_size=20))
def test_equal_means_of_stated_integers_are_equal_floats(rows):
    answers = replies(*([f"{percent}" for percent in column] for column in zip(*rows, strict=True)))
    found = score(synthetic.reader("readers.prompt_ensemble", Weights()), answers)
    assert found.confidence.tolist() == [float(Fraction(sum(row), 400)) for row in rows]


@given(st.sets(st.integers(0, 100), min_size=1))
def test_equal_shares_give_the_float_nearest_to_the_mean(chosen):
    answers = percents({**flat(-2000.0, n=1), **{str(percent): np.array([-1.5]) for percent in chosen}})
    found = score(synthetic.reader("readers.expected_confidence", Weights()), answers)
    assert found.confidence.tolist() == [float(Fraction(sum(chosen), 100 * len(chosen)))]


def test_probabilities_are_among_the_choices_of_the_question():
    # Of what is left out of all choices, nothing is read.
    log_probs = {"A": LN([0.3, np.nan, 0.1]), "B": LN([0.1, np.nan, 0.1]), "C": LN([np.nan, np.nan, 0.2])}
    found = choice_probabilities(log_probs, 3)
    assert found[0] == pytest.approx([0.75, 0.25, np.nan], nan_ok=True)  # .3 / (.3 + .1)
    assert np.isnan(found[1]).all()
    assert found[2] == pytest.approx([0.25, 0.25, 0.5])
    assert np.isnan(choice_probabilities({}, 2)).all()  # no question has choices
    tiny = choice_probabilities({"A": np.array([-2000.0]), "B": np.array([-2000.0])}, 1)
    assert tiny[0] == pytest.approx([0.5, 0.5])


def test_likelihoods_at_both_ends_are_finite_and_in_order():
    ends = with_states(8, answer_log_prob=[-1000.0, -100.0, -1e-3, -1e-6, -1e-7, -1e-8, -1e-40, 0.0])
    reader = synthetic.reader("readers.sequence_likelihood", Weights(notes={"temperature": 1.0}))
    found = score(reader, ends).score
    assert np.isfinite(found).all()
    assert (np.diff(found) >= 0).all()
    assert (np.diff(found[:5]) > 0).all()
    # m - ln(1 - e^m) = m - ln(-m) - ln(1 + m/2 + ...) = -ln(-m) + m/2 for a small m
    m = float(np.float32(-1e-6))
    assert found[3] == pytest.approx(-LN(-m) + m / 2, abs=1e-12)
    assert found[0] == -1000.0  # e^-1000 is 0 in float64, its log-odds are -1000
    # The largest float32 below 1 is 1 - 2^-24; its odds are 2^24 - 1
    assert found[-1] == pytest.approx(LN(2.0**24 - 1), rel=1e-12)
    assert np.log1p(-(2.0**-24)) == pytest.approx(sequence_likelihood.LARGEST_LOG_PROB, rel=1e-12)


# --- samples
def test_the_map_of_samples_is_platt_scaling_on_validation():
    examples = synthetic.with_views(synthetic.examples(300, role="validation"), ("samples",))
    weights = self_consistency.fit(examples, self_consistency.Settings(k=8), {}, 0)
    found = score(synthetic.reader("readers.self_consistency", weights, {"k": 8}), examples.answers)
    expected = fit_platt(found.score, examples.correct)
    notes = {"platt_slope": expected.slope, "platt_intercept": expected.intercept, "platt_clipped": False}
    assert (weights.notes, weights.tensors) == (notes, {})
    assert (found.confidence == expected.confidence(found.score)).all()


@pytest.mark.parametrize(
    ("samples", "groups"),
    [
        ("abcd", ["a", "a", "a", "d"]),
        ("bacd", ["b", "b", "c", "d"]),  # a is like both b and c, and comes to b
        ("bcad", ["b", "c", "b", "d"]),  # it comes to the first of two (the code of Farquhar et al.: to c)
        ("d.a.", ["d", None, "a", None]),
    ],
)
def test_a_sample_comes_to_the_first_group_whose_first_member_means_the_same(samples, groups):
    assert sample_groups(meant(sampled(("a", [*samples]))), 4) == [groups]


@pytest.mark.parametrize(
    ("samples", "value"),
    [
        (["a"] * 8, 0.0),
        ([*"abcdefgh"], 1.0),
        (["a"] * 4 + ["b"] * 4, 1 / 3),  # ln 2 / ln 8
        (["a", "a", "b", "c"], 0.75),  # (1/2 ln 2 + 2 * 1/4 ln 4) / ln 4 = 1.5 ln 2 / 2 ln 2
        ([None] * 4, 1.0),
        ([""] * 4, 0.0),  # an answer of punctuation alone has an empty form, and is an answer
        (["a", "a", None, None], 0.75),  # as with b and c
    ],
)
def test_entropies_by_hand(samples, value):
    assert normalized_entropy(samples) == pytest.approx(value, abs=1e-15)


def group_sizes(total: int, largest: int) -> Iterator[list[int]]:
    """Yield every way to divide `total` answers into groups of at most `largest`, largest group first."""
    if total == 0:
        yield []
    for size in range(min(total, largest), 0, -1):
        yield from ([size, *rest] for rest in group_sizes(total - size, size))


@pytest.mark.parametrize("k", [2, 8, 12, 16, 24])
def test_equal_entropies_of_different_groups_are_equal_floats_and_others_are_not(k):
    """K ln K minus K times the entropy is the sum of n ln n, whose exponential is the integer product of n^n."""
    found = defaultdict(set)
    for sizes in group_sizes(k, k):
        samples = [str(group) for group, size in enumerate(sizes) for _ in range(size)]
        found[math.prod(size**size for size in sizes)].add(normalized_entropy(samples))
    assert all(len(values) == 1 for values in found.values())
    ordered = [value for _, (value,) in sorted(found.items(), reverse=True)]
    assert ordered == sorted(set(ordered))
    assert (ordered[0], ordered[-1]) == (0.0, 1.0)


def test_the_kernel_entropy_by_hand():
    """Of two samples with the weight w, the eigenvalues of the normalized kernel are (1 +- r) / 2, r = tanh(w t)."""
    for similarity in (0.0, 0.25, 0.5, 1.0):
        r = math.tanh(2 * similarity * 0.3)
        expected = -sum(p * math.log2(p) for p in ((1 + r) / 2, (1 - r) / 2) if p > 0)
        found = semantic_uncertainty.kernel_entropy(np.array([[1.0, similarity], [similarity, 1.0]]), 0.3)
        assert found == pytest.approx(expected, abs=1e-12)
    assert semantic_uncertainty.kernel_entropy(np.ones((2, 2)), 20.0) == 0.0  # the smaller eigenvalue is 0 itself
    reader = synthetic.reader("readers.semantic_uncertainty", PLATT, {"k": 3, "t": 0.3})
    answers = sampled(("a", [*"bcd"]), ("a", [*"bbd"]), ("a", [*"dbc"]), ("a", [*"bbb"]), ("a", [*".d."]))
    found = score(reader, meant(answers)).score
    assert found[0] == found[2]  # the order of samples says nothing
    assert found[4] == -1.0 < found[0] < found[1] < found[3] < 0  # b and c are near; b and b are nearer


def test_shares_and_amplified_entropies_by_hand():
    # Weights 1, 1 and 1/2 (exp of -1 + 1, -1 + 1 and -1 - ln 2 + 1): of 2.5, a has 2 and b has .5.
    found = shares(["a", "a", "b"], [-1.0, -1.0, -1.0 - math.log(2)], "samples")
    assert found == pytest.approx({"answer a": 0.8, "answer b": 0.2})
    assert shares(["a", None], [-3.0, -3.0], "samples") == {"answer a": 0.5, "invalid samples 1": 0.5}
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


def test_what_vase_cannot_read_is_refused():
    one, reader = pairs_of("samples", ("a", "b")), synthetic.reader("readers.vase", PLATT, VASE)
    with pytest.raises(ConfigError, match="this reader needs 2 of completions"):
        score(reader, seen(1, one))
    nothing = pl.Series([[[], []]], dtype=pl.List(pl.List(pl.Float32)))
    silent = ViewAnswers(name="silent", texts=one.texts, token_log_probs=nothing)
    with pytest.raises(ConfigError, match=r"views\.silent: slake/train/00000 has samples without log-probabilities"):
        score(reader, seen(1, one, silent))
    equal = synthetic.reader("readers.vase", PLATT, VASE | {"weights": "equal"})
    assert score(equal, seen(1, one, silent)).score == pytest.approx([-math.log(2)])  # (.5, .5) in both
