"""An answer that does not exist, or numbers that are not finite: no confidence, a reason, and never "keep" (E4)."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

import dualread
from dualread.apps.score import answering, lines, readings
from dualread.apps.score.answering import ActorNeeds
from dualread.apps.score.readings import LoadedReaders
from dualread.apps.score.results import Scored, ShownQuestion
from dualread.apps.serve.replies import of_answer
from dualread.apps.serve.service import Answer, AnsweringService, Before
from dualread.errors import DataError
from dualread.evaluation.thresholds import Threshold, decide
from dualread.grading import answers as grading
from dualread.grading.canonical import is_correct
from dualread.models.actor import Completion
from dualread.models.streams import Finished, PromptRead, TokenEvent
from dualread.readers.base import FittedReader, fit, settings_of
from dualread.readers.requirements import NAME, ScoringReader
from dualread.schema.answers import Decoding
from tests.apps.score import small
from tests.readers import synthetic

WIDTH = 6
TEXTS = {
    "valid": "<answer>yes</answer><confidence>90</confidence>",
    "no block": "yes<confidence>90</confidence>",
    "two blocks": "<answer>yes</answer><answer>yes</answer><confidence>90</confidence>",
    "empty": "<answer> </answer><confidence>90</confidence>",
    "punctuation": "<answer>...</answer><confidence>90</confidence>",
}
LOGITS = [("logit", value) for value in (np.nan, np.inf, -np.inf)]
THRESHOLD = Threshold(method="dualread", rule="empirical", target_risk_percent=10, value=0.0, reason=None)


@pytest.fixture(autouse=True)
def as_it_is(answers_exist, monkeypatch):
    monkeypatch.setattr(readings, "why_no_answer", grading.why_no_answer)


@pytest.fixture(scope="module")
def readers():
    """DualRead, PSR, and what the actor states, fitted on random states."""
    examples = synthetic.examples(80)
    width = examples.answers.features("h_pre").shape[1]
    assert width

    def fitted(name, settings, parents, features):
        weights = fit(f"readers.{name}", examples, dict(settings), parents, seed=0)
        return FittedReader(
            module=f"readers.{name}",
            settings=settings_of(f"readers.{name}", settings),
            weights=weights,
            parents=parents,
            provenance={"features": features, NAME: small.requirements().model_dump()},
        )

    every = sorted(synthetic.TENSORS)
    psr = fitted("psr", {**synthetic.PSR, "max_epochs": 2}, {}, ["h_pre"])
    state = fitted("p_state", {**synthetic.P_STATE, "steps": 5}, {}, every)
    per = fitted("p_visual", {**synthetic.P_VISUAL, "steps": 5}, {"state": state}, every)
    by_method = {
        "dualread": fitted("dualread", {}, {"pre": psr, "post": per}, every),
        "psr": psr,
        "rlvr": fitted("verbalized", {}, {}, []),
    }
    scoring = {name: ScoringReader.from_fitted(reader, where="here") for name, reader in by_method.items()}
    return LoadedReaders(by_method=scoring, method="dualread", threshold=THRESHOLD)


def states_of(n):
    found = synthetic.examples(80).answers
    return {name: np.array(found.features(name)[:n]) for name in synthetic.TENSORS}


def answered(texts, states=None, log_probs=None):
    n = len(texts)
    states = states_of(n) if states is None else states
    ids = {"prompt_token_ids": [1], "token_ids": [2, 3], "finish_reason": "stop"}
    completions = [
        Completion(**ids, token_log_probs=[-0.1, -0.2] if log_probs is None else log_probs[i], text=text)
        for i, text in enumerate(texts)
    ]
    asked = [
        ShownQuestion(images=[f"{i}"], contents=[f"{i}" * 20], roles=["-"], question="Is it?", options=(), choices={})
        for i in range(n)
    ]
    return answering.as_answered(asked, completions, "single", states.__getitem__)


def scored(reading, threshold=THRESHOLD, donor=None):
    return Scored(**vars(reading), decision=decide(reading.confidence, threshold, reading.reason), donor=donor)


def no_confidence(reading):
    assert reading.confidence is None
    assert reading.reason
    assert reading.per is None
    assert {(of.confidence, of.score, of.imputed) for of in reading.methods.values()} == {(None, None, False)}
    for threshold in (THRESHOLD, None, replace(THRESHOLD, value=None, reason="none")):
        decision = decide(reading.confidence, threshold, reading.reason)
        assert decision.keep is False
        assert reading.reason in decision.reason
    json.dumps(scored(reading).to_json(), allow_nan=False)


def test_what_grading_counts_as_wrong_whatever_the_reference_is_has_no_confidence(readers):
    found = readers.readings(answered(list(TEXTS.values())))
    wrong = [not any(is_correct(one.answer, [gold]) for gold in ("yes", "...", "")) for one in found]
    assert wrong == [one.confidence is None for one in found] == [False, True, True, True, True]
    for reading in found[1:]:
        no_confidence(reading)
        assert 0 < reading.psr < 1  # it is read before the answer, and says whether there will be one
    assert decide(found[0].confidence, THRESHOLD, found[0].reason).keep


def test_others_have_the_confidence_that_they_have_alone(readers):
    texts = [TEXTS[name] for name in ("no block", "valid", "empty", "valid", "valid")]
    states = states_of(5)
    states["h_close"][3] = np.nan
    found = readers.readings(answered(texts, states))
    alone = readers.readings(answered([TEXTS["valid"]] * 5))
    assert [one.confidence is None for one in found] == [True, False, True, True, False]
    assert [found[i] for i in (1, 4)] == [alone[i] for i in (1, 4)]


@pytest.mark.parametrize(
    ("name", "value"),
    [*((name, np.nan) for name in sorted(synthetic.TENSORS)), ("h_close", np.inf), ("h_pre", -np.inf), *LOGITS],
)
def test_a_state_or_a_logit_that_is_missing_or_not_finite(readers, name, value):
    """Of a state, all readers have no confidence; of a logit, what the actor states has none."""
    states, log_probs = states_of(3), [[-0.1, -0.2]] * 3
    if name == "logit":
        log_probs[1] = [-0.1, value]
    else:
        states[name][1, 0] = value
    method = "rlvr" if name == "logit" else "dualread"
    found = replace(readers, method=method).readings(answered([TEXTS["valid"]] * 3, states, log_probs))
    no_confidence(found[1])
    assert name == "logit" or name in found[1].reason
    assert None not in (found[0].confidence, found[2].confidence)


def test_a_reader_whose_score_is_not_finite_says_so_for_this_answer_alone(readers):
    """Whatever it reads: here the stated confidence."""
    given = answered([TEXTS["valid"]] * 3)
    stated = pl.Series([0.9, float("nan"), 0.9])
    table = given.answers.table.with_columns(verbalized_confidence=stated)
    found = replace(readers, method="rlvr").readings(replace(given, answers=replace(given.answers, table=table)))
    assert [one.confidence for one in found] == [0.9, None, 0.9]
    assert "nan" in found[1].reason


def test_before_the_answer_a_state_that_is_not_finite_says_nothing(readers):
    states = states_of(3)["h_pre"]
    states[1] = np.nan
    first, second, third = readers.before_answer(states)
    assert second is None
    assert 0 < first < 1
    assert 0 < third < 1
    assert readers.before_answer(states[1:2]) == [None]


@pytest.mark.parametrize("name", ["no block", "punctuation"])
def test_score_shows_the_reason(readers, name):
    given = answered([TEXTS[name], TEXTS["valid"]])
    missing, there = readers.readings(given)
    for first, second in ((missing, there), (there, missing), (missing, missing)):
        result = scored(first, donor=second)
        assert result.drop is None
        shown = lines.text(result, "dualread")
        assert missing.reason in shown
        assert "nan" not in shown.lower()
    assert "do not keep" in lines.text(scored(missing), "dualread")


class Actor:
    """An actor that serves one answer, of which some numbers are not finite."""

    broken, n_open, config = None, 0, None
    encoder = SimpleNamespace(tokenizer=SimpleNamespace(added_tokens_decoder={}))

    def __init__(self, text, state, log_prob):
        given = answered([text], log_probs=[[log_prob, -0.2]])
        [completion] = given.completions
        self.read = lambda asked, ended: given
        self.events = [
            PromptRead(name="a", state=state),
            TokenEvent(name="a", index=0, token=2, log_prob=log_prob),
            Finished(name="a", index=0, completion=completion),
        ]

    def add(self, asked): ...
    def abort(self, name): ...
    def wake(self): ...
    def close(self): ...
    def step(self):
        return [self.events.pop(0)]


def served(readers, text, state, log_prob):
    """Return what a client is told of one request."""
    loaded = SimpleNamespace(
        actor=Actor(text, state, log_prob),
        readers=readers,
        needs=ActorNeeds(requirements=small.requirements()),
        notes=(),
        known_early=False,
    )
    service = AnsweringService(loaded, abstain_below=0.0)
    decoding = Decoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=5)
    sent = SimpleNamespace(n=1, stop=(), log_probs=False, stream=False)
    encoded = SimpleNamespace(name="a", decoding=decoding)
    asked = SimpleNamespace(sent=sent, encoded=encoded, shown=object(), reasons=(), notes=())
    told = []
    service.submit(asked, told.append)
    service.close()
    assert service.broken is None
    return told


@pytest.mark.parametrize(
    ("text", "h_pre", "log_prob"),
    [("no block", 0.1, -0.1), ("valid", 0.1, np.nan), ("valid", np.nan, -np.inf), ("punctuation", np.inf, -0.1)],
)
def test_a_server_says_it_and_goes_on(readers, tmp_path, text, h_pre, log_prob):
    state = states_of(1)["h_pre"][0] * h_pre
    before, answer = served(readers, TEXTS[text], state, log_prob)
    assert isinstance(before, Before)
    assert isinstance(answer, Answer)
    assert (before.psr is None) == (not np.isfinite(h_pre))
    reply = of_answer(answer, THRESHOLD)
    assert (reply["confidence"], reply["abstain"]) == (None, True)
    assert any(note.startswith("no confidence: ") for note in reply["notes"])
    json.dumps(reply, allow_nan=False)


ROWS = [("yes", "yes", 0.9), ("no", "yes", 0.4), (None, "yes", None), ("...", "yes", None), ("yes", "yes", 0.7)]


def table(**more):
    answers, references, confidences = zip(*ROWS, strict=True)
    columns = {"answer": answers, "reference_answer": references, "confidence": confidences}
    return pl.DataFrame({**columns, "image_id": list("abcde"), **more}, strict=False)


def metric(found, name):
    return found.metrics.filter(metric=name, subset="all")["estimate"][0]


def test_evaluate_counts_such_answers_as_wrong_and_as_kept_by_nobody():
    rows = table()
    others = rows.with_columns(image_id="calibration " + pl.col("image_id"), question=pl.lit("Is it?"))
    found = dualread.evaluate(rows, replicates=0, calibration=others, target_risk=0.01)
    assert metric(found, "accuracy") == 2 / 5
    assert metric(found, "brier") == pytest.approx((0.1**2 + 0.4**2 + 0.3**2) / 5)
    kept = found.thresholds.filter(rule="empirical").row(0, named=True)
    assert (kept["threshold"], kept["coverage"], kept["risk"]) == (0.7, 2 / 5, 0)
    assert any("2 of 5 rows have no answer" in said for said in found.notes)


def test_evaluate_takes_empty_columns_only_where_no_answer_exists():
    rows = table(confidence_p=[None] * 5, confidence_q=[None] * 5).drop("confidence")
    for no_answer in (None, "", "..."):
        found = dualread.evaluate(rows.with_columns(answer=pl.lit(no_answer, pl.String)), replicates=0)
        assert found.metrics.filter(metric="accuracy")["estimate"].to_list() == [0, 0]
        assert found.metrics.filter(metric="accuracy")["method"].to_list() == ["p", "q"]
        assert any("10 of 10 rows have no answer" in said for said in found.notes)
    for refused in (rows, rows.drop("answer", "reference_answer").with_columns(correct=pl.lit(0))):
        with pytest.raises(DataError, match="columns confidence_p, confidence_q are empty"):
            dualread.evaluate(refused, replicates=0)
    scores = rows.rename({"confidence_p": "score_p", "confidence_q": "score_q"}).with_columns(answer=pl.lit("..."))
    with pytest.raises(DataError, match="columns score_p, score_q are empty"):
        dualread.evaluate(scores, replicates=0)


@pytest.mark.parametrize("answers", [[["a"], ["b"]], [{"x": 1}, {"x": 2}], [b"a", b"b"], [object(), object()]])
def test_answers_that_are_no_texts_are_refused_in_a_sentence(answers):
    kind = pl.Object if type(answers[0]) is object else None
    for confidences in ([None, None], [0.1, 0.2]):
        columns = {"answer": pl.Series(answers, dtype=kind), "correct": [0, 1], "confidence_p": confidences}
        with pytest.raises(DataError, match=r"columns confidence_p are empty|'answer' holds"):
            dualread.evaluate(pl.DataFrame(columns), replicates=0)
