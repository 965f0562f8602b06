"""On which scale a log states its confidences is found once, from all of them, or asked for."""

import json
from pathlib import Path

import pytest

import dualread
from dualread.data.logs.base import Sample
from dualread.errors import ConfigError, DataError
from dualread.own.log_confidences import stated_of, stated_text

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
    assert stated_text(Sample(sample_id="q", completions=(completion,)), None) == text


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
