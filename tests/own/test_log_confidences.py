"""Confidences in logs: on which scale replies state them, what is read without tags, and what is computed."""

import json
import math
from pathlib import Path

import pytest

import dualread
from dualread.data.logs.base import LoggedSample, Score
from dualread.errors import ConfigError, DataError
from dualread.own.log_confidences import (
    Stated,
    answer_of,
    answer_to,
    choice_likelihood,
    kinds_of,
    self_consistency,
    sequence_likelihood,
    stated_of,
    stated_text,
    statements_in,
)

PATH = Path("a.jsonl")


def read(texts, asked=None):
    stated = stated_of(PATH, texts, asked)
    return [stated.confidence(text) for text in texts]


@pytest.mark.parametrize(
    ("texts", "confidences"),
    [
        (["95", "7", "100", "0"], [0.95, 0.07, 1.0, 0.0]),  # 7 is small beside 95
        (["95.5", "1"], [0.955, 0.01]),
        (["1", "0.9", "0"], [1.0, 0.9, 0.0]),
        (["1.0", ".55", "0,7"], [1.0, 0.55, 0.7]),  # a decimal comma
        (["95%", "0.5 %", "7 percent", "100 per cent"], [0.95, 0.005, 0.07, 1.0]),
        (["95%", ".9", "1"], [0.95, 0.9, 1.0]),
        (["95%", "90"], [0.95, 0.9]),
        (["8/10", "95/100", "9 out of 10", "0.8/1"], [0.8, 0.95, 0.9, 0.8]),
        (["8/10", "90"], [0.8, 0.9]),
        (["0", "0"], [0.0, 0.0]),  # on every scale
        (["0", "95%"], [0.0, 0.95]),
        (["95", "high", None, "", "-5", "101", "1e2", "<b>", "9" * 400, "12/10"], [0.95, *[None] * 9]),
        (["\uff19\uff15", "\u0669\u0665", "95\u00a0%"], [0.95, 0.95, 0.95]),  # full-width, Arabic-Indic, no-break space
        (["10\u00b2", "95"], [None, 0.95]),
        (["150%", "95%"], [None, 0.95]),
        (["**95**", "95.", "_95%_"], [0.95, 0.95, 0.95]),
        ([], []),
    ],
)
def test_the_scale_follows_from_all_values(texts, confidences):
    assert read(texts) == confidences


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["1", "0", "1"], r"may be on several scales: '1', '0'\. Say .*--stated-scale 1, 10 or 100"),
        (["1.0", "95%"], r"may be on several scales: '1\.0'\. Say .*--stated-scale 1, 10 or 100"),
        (["8", "10", "3"], r"may be on several scales: '8', '10', '3'\. Say .*--stated-scale 10 or 100"),
        (["7.5", "9"], r".*--stated-scale 10 or 100"),
        (["95", "0.9", "80"], r"are on several scales: '0\.9', '95', '80'\. Say .*--stated-scale 1 or 100"),
        (["1.5", "0.9"], r"are on several scales: '0\.9', '1\.5'\. Say .*--stated-scale 1, 10 or 100"),
    ],
)
def test_where_several_scales_fit_it_is_asked_for(texts, message):
    with pytest.raises(ConfigError, match=f"^a.jsonl: its stated confidences {message}"):
        read(texts)


@pytest.mark.parametrize(
    ("texts", "asked", "confidences"),
    [
        (["1", "0"], 1, [1.0, 0.0]),
        (["1", "0"], 10, [0.1, 0.0]),
        (["1", "0"], 100, [0.01, 0.0]),
        (["8", "10", "90%"], 10, [0.8, 1.0, 0.9]),  # a percent sign decides by itself
        (["0.9", "95"], 1, [0.9, None]),
        (["0.9", "95"], 100, [0.009, 0.95]),
    ],
)
def test_the_scale_may_be_said(texts, asked, confidences):
    assert read(texts, asked) == confidences


def test_what_is_no_scale_is_refused():
    with pytest.raises(ConfigError, match="--stated-scale 5: expected 1, 10 or 100"):
        read(["1"], 5)


def test_every_stated_number_is_the_nearest_float():
    assert read([str(number) for number in range(101)]) == [number / 100 for number in range(101)]
    assert read([f"{number}%" for number in range(101)]) == [number / 100 for number in range(101)]
    assert read([f"{number / 100:.2f}" for number in range(101)]) == [number / 100 for number in range(101)]


def test_a_note_says_the_scale_and_what_cannot_be_read():
    note = stated_of(PATH, ["95", "95", "8/10", "high", "high"], None).note
    assert note == (
        "stated confidences are read on the scale 0 to 100 (for example '95'); those with a unit by that unit"
        " ('8/10'); 2 cannot be read: 'high'"
    )
    assert stated_of(PATH, [None], None).note is None
    assert stated_of(PATH, ["0"], None).note == "all stated confidences are 0"


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("<answer>a</answer><confidence> .9 </confidence>", ".9"),
        ("<confidence>1</confidence>", "1"),
        ("a", None),
        ("<confidence>1</confidence><confidence>2</confidence>", None),
        ("<answer><confidence>1</confidence></answer>", None),
        ("<confidence><answer>1</answer></confidence>", None),
        ("<think><confidence>1</confidence></think><answer>a</answer><confidence>.5</confidence>", ".5"),
    ],
)
def test_the_only_block_counts(completion, text):
    assert stated_text(LoggedSample(sample_id="q", completions=(completion,)), None) == text


def log_of(folder, texts):
    rows = [
        {
            **{"doc_id": k, "doc": {}, "target": "a", "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": {}}}},
            "resps": [[f"<answer>a</answer><confidence>{text}</confidence>"]],
            **{"filtered_resps": ["a"], "filter": "none", "metrics": ["exact_match"], "exact_match": k % 2},
        }
        for k, text in enumerate(texts)
    ]
    path = folder / "samples.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_stated_1_beside_decimals_is_certainty(tmp_path):
    found = dualread.evaluate(log_of(tmp_path, ["1", "0.9", "0.25"]), log_format="lm-eval", replicates=0)
    # wrong, right, wrong: (1 + .01 + .0625) / 3
    assert found.metrics.filter(metric="brier", subset="all")["estimate"].item() == pytest.approx(1.0725 / 3)


def test_an_option_says_the_scale(tmp_path):
    path = log_of(tmp_path, ["1", "0", "1"])
    with pytest.raises(ConfigError, match="--stated-scale 1, 10 or 100"):
        dualread.evaluate(path, log_format="lm-eval", replicates=0)
    found = dualread.evaluate(path, log_format="lm-eval", replicates=0, stated_scale=1)
    # wrong, right, wrong with 1, 0, 1
    assert found.metrics.filter(metric="brier", subset="all")["estimate"].item() == 1.0
    assert any("on the scale 0 to 1 (as --stated-scale says)" in note for note in found.notes)


def test_blocks_that_cannot_be_read_are_shown(tmp_path):
    with pytest.raises(DataError, match=r"holds no confidence.* 2 cannot be read: 'high', 'low'"):
        dualread.evaluate(log_of(tmp_path, ["high", "low"]), log_format="lm-eval", replicates=0)
    with pytest.raises(ConfigError, match=r"--stated-scale: needs a log \(--from\)"):
        dualread.evaluate({"confidence": [0.5], "correct": [1]}, replicates=0, stated_scale=1)


@pytest.mark.parametrize(
    ("reply", "confidence", "answer"),
    [
        ("liver\nConfidence: 85%", "85%", "liver"),
        ("Answer: liver\nConfidence: 0.85\n", "0.85", "liver"),
        ("**Answer:** liver\n**Confidence:** 8.5/10", "8.5/10", "liver"),
        ("Guess: liver\nProbability: .95", ".95", "liver"),
        ("liver (90% sure)", "90%", "liver ()"),  # brackets at the end do not count in an answer
        ("Answer: liver, Confidence: 95 %", "95 %", "liver"),
        ("liver (confidence: 0,85)", "0,85", "liver )"),
        ("B\n\nFinal confidence level: ~80 % (quite sure)\n", "80 %", "B"),
        ("B\nConfidence (0-100) - 80", "80", "B"),
        ("B\nMy confidence in this answer is 85/100.", "85/100", "B"),
        ("B\nConfidence:\n85%", "85%", "B"),
        ("B\nConfidence：９０", "９０", "B"),
        ("yes\nConfidence: 80%\nas I said\nConfidence: 80%", "80%", "yes\n\nas I said"),
        ('{"answer": "liver", "confidence": 0.85}', "0.85", "liver"),
        ('```json\n{\n "Answer": 2,\n "Confidence": "85%"\n}\n```', "85%", "2"),
        # what can be read in several ways, or in none, stays as it is and is counted as unread
        ("B\nConfidence: 80%\nConfidence: 90%", "80% and 90%", "B"),
        ("B\nConfidence: 80-90%", "80-90%", "B"),
        ("B\nConfidence: 0.8 to 0.9", "0.8 to 0.9", "B"),
        ("B\nConfidence: high", "high", "B"),
        ("B\nConfidence: -5", "-5", "B"),
        ("B\nConfidence: >90%", ">90%", "B"),
        ("B\nConfidence: 85% of 3 readers", "85% of 3 readers", "B"),
        ("It is B; I am not 100% sure", "not 100% sure", "It is B; I am"),
        # and what states no confidence
        ("the 95% confidence interval: 3 to 4", None, "the 95% confidence interval: 3 to 4"),
        ("the probability: of malignancy is 3", None, "the probability: of malignancy is 3"),
        ("the model's confidence: 3 of 4 readers", None, "the model's confidence: 3 of 4 readers"),
        ("Answer: liver", None, "Answer: liver"),
    ],
)
def test_statements_without_tags(reply, confidence, answer):
    found = statements_in(reply)
    assert (found.confidence, found.answer) == (confidence, answer)


def test_a_tag_leaves_words_aside():
    tagged = "Confidence: 10%\n<answer>a</answer><confidence>90</confidence>"
    assert stated_text(LoggedSample(sample_id="q", completions=(tagged,)), None) == "90"
    twice = f"{tagged}<confidence>90</confidence>"
    assert stated_text(LoggedSample(sample_id="q", completions=(twice,)), None) is None


def test_long_replies_take_no_time():
    for word in ("confidence ", "my ", "the final confidence score in my answer ", "(", "{\n", "0,", "Answer: a\n"):
        assert statements_in(word * 20_000).confidence is None


def evaluated(folder, replies, **options):
    rows = [
        {
            **{"doc_id": k, "doc": {}, "target": "liver", "arguments": {"gen_args_0": {"arg_0": "?", "arg_1": {}}}},
            **{"resps": [[reply]], "filtered_resps": [reply], "filter": "none", "metrics": []},
        }
        for k, reply in enumerate(replies)
    ]
    path = folder / "samples.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return dualread.evaluate(path, log_format="lm-eval", replicates=0, **options)


def test_a_log_of_lines(tmp_path):
    replies = ["Answer: the liver\nConfidence: 90%", "kidney\nConfidence: 60 %", "liver (50% sure)", "liver"]
    found = evaluated(tmp_path, [*replies, "liver\nConfidence: high", "liver\nConfidence: 20%\nConfidence: 30%"])
    estimates = {row["metric"]: row for row in found.metrics.filter(subset="all").to_dicts()}
    assert estimates["accuracy"]["n"] == 3
    assert estimates["accuracy"]["estimate"] == pytest.approx(2 / 3)
    assert estimates["brier"]["estimate"] == pytest.approx((0.1**2 + 0.6**2 + 0.5**2) / 3)
    assert "2 cannot be read: 'high', '20% and 30%'" in "\n".join(found.notes)
    assert sum(found.left_out.values()) == 3


def tokens(*pairs):
    return tuple((text.encode(), log_prob) for text, log_prob in pairs)


def spelled(*pairs, completion=None):
    whole = "".join(text for text, _ in pairs)
    return LoggedSample(
        sample_id="q", completions=(whole if completion is None else completion,), tokens=tokens(*pairs)
    )


def drawn(*completions):
    return LoggedSample(sample_id="q", completions=completions)


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("the liver", "the liver"),
        ("<answer>liver</answer>", "liver"),
        ("<answer>liver", None),
        ("liver <confidence>80</confidence>", None),
    ],
)
def test_an_answer_is_a_block_or_a_completion_without_tags(completion, answer):
    assert answer_of(completion) == answer


def test_the_likelihood_of_a_completion_is_the_geometric_mean_of_its_tokens():
    # (.5 * .25) ^ (1/2) = .125 ^ .5
    assert sequence_likelihood(spelled(("the ", math.log(0.5)), ("liver", math.log(0.25))), None) == pytest.approx(
        math.sqrt(0.125)
    )


def test_only_the_tokens_of_the_answer_count():
    pairs = [("<answer>", -9.0), ("left", math.log(0.5)), (" lung", math.log(0.125)), ("</answer>", -9.0)]
    assert sequence_likelihood(spelled(*pairs), None) == pytest.approx(0.25)  # (.5 * .125) ^ (1/2)


def test_tokens_outside_the_completion_do_not_count():
    pairs = [("<think>yes</think>", -9.0), ("yes", math.log(0.5)), ("<|im_end|>", -9.0)]
    assert sequence_likelihood(spelled(*pairs, completion="yes"), None) == pytest.approx(0.5)


def test_tokens_may_split_a_letter():
    sample = LoggedSample(
        sample_id="q", completions=("ä",), tokens=((b"\xc3", math.log(0.5)), (b"\xa4", math.log(0.125)))
    )
    assert sequence_likelihood(sample, None) == pytest.approx(0.25)


@pytest.mark.parametrize(
    "sample",
    [
        spelled(("no", -0.5), completion="yes"),
        spelled(("<answer>", -0.5), ("no", -0.5)),
        spelled(("yes", 0.5)),
        spelled(("yes", math.nan)),
        spelled(("", -0.5)),
    ],
)
def test_tokens_that_spell_no_answer_have_no_likelihood(sample):
    assert sequence_likelihood(sample, None) is None


def test_consistency_is_the_share_of_further_draws_that_agree():
    assert self_consistency(drawn("Liver", "the liver", "kidney", "liver."), None) == pytest.approx(2 / 3)
    assert self_consistency(drawn("<answer>yes</answer>", "<answer>Yes</answer> so", "yes, <answer>"), None) == 0.5
    assert self_consistency(drawn("<answer>", "<answer>"), None) == 0.0  # an invalid answer agrees with none
    assert self_consistency(drawn("yes"), None) is None


def test_answers_that_the_score_read_are_compared():
    sample = drawn("I say B", "B of course", "A")
    assert self_consistency(sample, Score(value=1, answer="B", draws=("B", "A"))) == 0.5
    assert self_consistency(sample, Score(value=1, answer="B")) is None  # which it reads in the others is not known
    assert self_consistency(sample, Score(value=1, answer="I say B.")) == 0.0  # it judges the whole completion


def test_a_score_of_another_draw_judges_no_confidence_of_the_first():
    sample = LoggedSample(
        sample_id="q",
        completions=("<answer>yes</answer><confidence>80</confidence>",) * 2,
        tokens=tokens(("yes", -1.0)),
    )
    score = Score(value=1, answer="no", of_first=False)
    assert [kind.of(sample, score) for kind in kinds_of(Stated(scale=100, note=None)).values()] == [None] * 4


def test_reasoning_that_mentions_the_tags_does_not_count():
    completion = "<think>I need <answer>X</answer> and <confidence>NN</confidence></think><answer>left</answer>"
    assert answer_of(completion) == "left"
    assert answer_of("<think>so</think>left") == "left"
    pairs = [("<think>an <answer></think>", -9.0), ("<answer>", -9.0), ("left", math.log(0.5)), ("</answer>", -9.0)]
    assert sequence_likelihood(spelled(*pairs), None) == pytest.approx(0.5)
    assert self_consistency(drawn(completion, "<think>or right</think><answer>Left</answer>", "right"), None) == 0.5


@pytest.mark.parametrize(
    ("completion", "answer"),
    [("B. Right lung", "right lung"), ("<answer>(b)</answer>", "right lung"), ("lung", "lung"), ("<answer>", None)],
)
def test_an_answer_that_names_an_option_is_this_option(completion, answer):
    sample = LoggedSample(sample_id="q", options=("left lung", "right lung"))
    assert answer_to(sample, completion) == answer


def test_draws_that_name_one_option_agree():
    sample = LoggedSample(sample_id="q", completions=("A. left", "A", "The left", "B"), options=("left", "right"))
    assert self_consistency(sample, None) == pytest.approx(2 / 3)


def test_the_probability_of_a_choice_is_a_softmax():
    sample = LoggedSample(sample_id="q", choices=(-1000.0, -1000.0 + math.log(3)))
    assert choice_likelihood(sample, Score(value=1, choice=1)) == pytest.approx(0.75)  # 3 / (1 + 3)
    assert choice_likelihood(sample, Score(value=1, choice=0)) == pytest.approx(0.25)
    assert choice_likelihood(sample, Score(value=1)) is None
    assert choice_likelihood(sample, None) is None
