"""Logs of lm-eval, lmms-eval and VLMEvalKit, and what every log shares, through `dualread.evaluate`."""

import base64
import hashlib
import json
import math
import random
import sys
from pathlib import Path

import polars as pl
import pytest

import dualread
from dualread import plugins
from dualread.apps import main as program
from dualread.apps.evaluate.log import answer_to, read_stated, self_consistency, sequence_likelihood, stated_text
from dualread.data.logs import lm_eval, lmms_eval, vlmevalkit
from dualread.data.logs.base import LoggedSample
from dualread.errors import ConfigError, DataError, DualReadError
from tests.drawn import examples

MADE = Path(__file__).parent / "made"  # by lm-eval 0.4.13 and lmms-eval 0.7.3, of models that are made up
ORGANS, SUMS, LESIONS = (
    MADE / name for name in ("samples_organs.jsonl", "samples_sums.jsonl", "20261124_samples_lesions.jsonl")
)


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def written(folder, records, name="a.jsonl"):
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder / name


def evaluated(path, log_format, **options):
    return dualread.evaluate(path, log_format=log_format, replicates=0, **options)


def answers_of(found, method):
    answers = found.parts[0].methods[method].answers
    return {row["sample_id"]: (row["confidence"], row["correct"]) for row in answers.to_dicts()}


def test_a_choice_is_judged_by_the_rule_of_its_score(tmp_path):
    # Question 0: e^-1 / (e^-1 + e^-2.5) of the liver, which is right by acc; acc_norm, -1 / 5 < -2.5 / 15, the kidney
    liver = 1 / (1 + math.exp(-1.5))
    by_acc = evaluated(ORGANS, "lm-eval", score="acc", columns={"image_id": "doc.case"})
    assert answers_of(by_acc, "choice_likelihood")["0"] == (pytest.approx(liver), True)
    assert by_acc.metrics.filter(metric="auroc", subset="all")["n_clusters"].item() == 2
    by_norm = evaluated(ORGANS, "lm_eval", score="acc_norm")
    assert answers_of(by_norm, "choice_likelihood")["0"] == (pytest.approx(1 - liver), False)
    assert any("does not identify images" in note for note in by_norm.notes)
    assert not any("does not identify images" in note for note in by_acc.notes)
    contradicted = written(tmp_path, [{**row, "acc": 1 - row["acc"]} for row in rows(ORGANS)])
    assert [one.choice_likelihoods.keys() for one in lm_eval.read_log(contradicted).samples] == [{"acc_norm"}] * 3


def test_likelihoods_of_other_things_are_no_choices(tmp_path):
    record = rows(ORGANS)[0]
    unconditional = {f"gen_args_{k + 2}": {"arg_0": "", "arg_1": text} for k, text in enumerate([" liver", " kidney"])}
    mutual = {**record, "arguments": record["arguments"] | unconditional}
    mutual["filtered_resps"] = [*record["filtered_resps"], ["-5.0", "False"], ["-6.0", "False"]]
    (read,) = lm_eval.read_log(written(tmp_path, [mutual])).samples
    assert read.choice_likelihoods["acc"] == pytest.approx(1 / (1 + math.exp(-1.5)))
    alone = {**record, "arguments": {"gen_args_0": record["arguments"]["gen_args_0"]}, "target": "liver"}
    alone["filtered_resps"] = [["-1.0", "True"]]  # of the gold answer: nothing was chosen
    assert lm_eval.read_log(written(tmp_path, [alone])).samples[0].choice_likelihoods == {}


def test_a_log_of_generation_has_one_score_per_filter_and_all_draws(tmp_path):
    second = lm_eval.read_log(SUMS).samples[1]
    assert second.completions == ["I say 8, no: 7", "#### 7", "#### 7"]
    # the filter `strict` finds no "#### 7" in the first draw; `last` finds 7
    assert second.scores == {"exact_match,strict": 0.0, "exact_match,last": 1.0}
    assert second.scored_answers == {"exact_match,strict": [], "exact_match,last": ["7"]}
    assert second.references == ["7"]
    found = evaluated(SUMS, "lm-eval", score="exact_match,last")
    # Question 2: #### 8 is the answer, and one of two further draws says 8. Of the others the log lacks draws' answers.
    assert answers_of(found, "self_consistency") == {"2": (0.5, False)}
    assert found.left_out == {f"{SUMS}: no self_consistency": 2}
    voted = [{**row, "filter": "vote", "filtered_resps": ["7"], "target": "['7', '8']"} for row in rows(SUMS)[:2]]
    first, second = lm_eval.read_log(written(tmp_path, voted)).samples
    assert (first.scores, second.scores) == ({"exact_match": None}, {"exact_match": 0.0})  # 7 is of no first draw
    assert first.references == ["7", "8"]


def test_a_log_of_lmms_eval_is_read(tmp_path):
    first, second, third = lmms_eval.read_log(LESIONS).samples
    assert (first.sample_id, first.question, first.references) == ("0", "Is there a lesion?", ["yes"])
    assert (second.completions, second.scores["exact"]) == (["kidney", "liver"], 0.0)
    assert (second.scores["by_organ"], second.others["by_organ.question_id"]) == (0.0, "b")
    assert [first.image, second.image, third.image] == ["scans/1.png", "scans/1.png", "scans/2.png"]
    agreed = answers_of(evaluated(LESIONS, "lmms-eval", score="exact"), "self_consistency")
    assert agreed == {"0": (1.0, True), "1": (0.0, False), "2": (0.0, True)}
    alone = [{key: value for key, value in row.items() if key != "resps"} for row in rows(LESIONS)]
    read = lmms_eval.read_log(written(tmp_path, alone)).samples
    assert [sample.completions for sample in read] == [["yes"], ["kidney"], ["no"]]


@pytest.mark.parametrize("answers", [["yes", "False"], [["yes"], ["False"]], [["yes", "False"]]])
def test_draws_of_lmms_eval_may_be_nested(tmp_path, answers):
    record = rows(LESIONS)[0] | {"resps": answers, "filtered_resps": answers}
    assert lmms_eval.read_log(written(tmp_path, [record])).samples[0].completions == ["yes", "False"]


def test_what_a_filter_leaves_stands_for_reasoning_that_mentions_the_tags(tmp_path):
    clean = "<answer>yes</answer><confidence>95</confidence>"
    record = rows(LESIONS)[0] | {"resps": [f"I need <answer>X</answer> and <confidence>NN</confidence>: {clean}"]}
    for filtered in (clean, [clean], [[clean]]):
        (read,) = lmms_eval.read_log(written(tmp_path, [record | {"filtered_resps": filtered}])).samples
        assert (read.completions, read.scores["exact"]) == ([clean], 1.0)


def test_images_and_likelihoods_of_lmms_eval(tmp_path):
    uri = "data:image/png;base64," + base64.b64encode(b"pixels").decode()
    records = [{**rows(LESIONS)[k], "input_media": media} for k, media in enumerate([[uri], ["a.png", "b.png"], None])]
    records.append(rows(LESIONS)[0] | {"doc_id": 9, "filtered_resps": [["-1.0", "False"], ["-2.0", "True"]]})
    del records[-1]["resps"]
    log = lmms_eval.read_log(written(tmp_path, records))
    digests = [hashlib.sha256(content).hexdigest() for content in (b"pixels", b"a.png\nb.png")]
    assert [one.image for one in log.samples] == [*digests, None]
    assert log.left_out == {"no answer, or log-likelihoods, whose sign is unknown": 1}


PREDICTIONS = pl.DataFrame(
    {
        **{"index": range(6), "question": ["Which organ?"] * 6, "A": ["liver"] * 6, "B": ["kidney"] * 6},
        **{"answer": [*"ABAAAB"], "image_path": ["1.jpg", "1.jpg", "['2a.jpg', '2b.jpg']", "3.jpg", "4.jpg", "5.jpg"]},
        "prediction": ["A. liver", "(B)", "kidney", "The liver", "Failed to obtain answer via API.", None],
        **{"hit": [1, 1, 0, 1, 0, 0], "sure": [0.9, 0.8, 0.3, 0.6, 0.5, 0.5], "category": ["organ"] * 6},
    }
)


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".json"])
def test_predictions_of_vlmevalkit_are_read(tmp_path, suffix):
    path = tmp_path / f"model_data_exact_matching_result{suffix}"
    if suffix == ".json":
        path.write_text(PREDICTIONS.write_json())
    else:
        PREDICTIONS.write_csv(path, separator="\t" if suffix == ".tsv" else ",", quote_style="always")
    read = vlmevalkit.read_log(path)
    assert read.left_out == {"no prediction, or 'Failed to obtain answer'": 2}
    assert (read.samples[0].sample_id, read.samples[0].completions, read.samples[0].scores) == (
        *("0", ["A. liver"]),
        {"hit": "1"},
    )
    assert (read.samples[0].options, read.samples[0].others["category"]) == (["liver", "kidney"], "organ")
    for score in ("hit", "graded"):
        found = evaluated(path, "vlmevalkit", score=score, columns={"confidence": "sure"})
        # 3 of 4 are right: (.1^2 + .2^2 + .3^2 + .4^2) / 4
        assert found.metrics.filter(metric="brier", subset="all")["estimate"].item() == pytest.approx(0.075)
        assert found.metrics.filter(metric="auroc", subset="all")["n_clusters"].item() == 3


def test_options_that_are_letters_are_not_mixed_up():
    groups = LoggedSample(sample_id="q", options=("B", "A", "AB"))  # blood groups: option A is "B"
    assert [answer_to(groups, said) for said in ("A", "B", "(A) B", "AB")] == ["(A) B", "(B) A", "(A) B", "(C) AB"]
    sides = LoggedSample(sample_id="q", options=("left lung", "right lung"))
    assert [answer_to(sides, said) for said in ("B. Right lung", "<answer>(b)</answer>", "lung", "<answer>")] == [
        *("right lung", "right lung", "lung"),
        None,
    ]


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("<answer>a</answer><confidence> .9 </confidence>", ".9"),
        ("a", None),
        ("Confidence: 85%", None),
        ("<confidence>1</confidence><confidence>2</confidence>", None),
        ("<answer><confidence>1</confidence></answer>", None),
        ("<confidence><answer>1</answer></confidence>", None),
        ("<think><confidence>1</confidence></think><answer>a</answer><confidence>.5</confidence>", ".5"),
    ],
)
def test_the_only_block_states_a_confidence(completion, text):
    assert stated_text(LoggedSample(sample_id="q", completions=(completion,))) == text


@pytest.mark.parametrize(
    ("texts", "scale", "confidences"),
    [
        (["95", "7.5", "100", "0", None], None, [0.95, 0.075, 1.0, 0.0, None]),
        (["95%", ".5 %", "0"], None, [0.95, 0.005, 0.0]),
        (["95", "high", "", "-5", "101", "1e2", "8/10", "9" * 400], None, [0.95, *[None] * 7]),
        (["1", ".9", "0"], 1, [1.0, 0.9, 0.0]),
        (["8", "10", "90%", "11"], 10, [0.8, 1.0, 0.9, None]),
        (["0.9", "95"], 100, [0.009, 0.95]),
        ([], None, []),
    ],
)
def test_a_number_is_a_confidence_on_the_scale_that_is_said(texts, scale, confidences):
    assert read_stated(Path("a"), texts, scale) == [
        None if one is None else pytest.approx(one, rel=1e-12) for one in confidences
    ]


@pytest.mark.parametrize("texts", [["1", "0"], ["10", "8"], ["95", ".9"], ["7.5"], ["0.9", "0.8"]])
def test_where_100_may_not_be_meant_the_scale_is_asked_for(texts):
    with pytest.raises(ConfigError, match="--stated-scale 1, 10 or 100"):
        read_stated(Path("a"), texts, None)
    with pytest.raises(ConfigError, match="--stated-scale 5"):
        read_stated(Path("a"), texts, 5)


def spelled(*pairs, completion=None):
    whole = "".join(text for text, _ in pairs) if completion is None else completion
    return LoggedSample(
        sample_id="q", completions=(whole,), tokens=[(text.encode(), log_prob) for text, log_prob in pairs]
    )


HALF, EIGHTH = math.log(0.5), math.log(0.125)  # their geometric mean is .25


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (spelled(("the ", HALF), ("liver", EIGHTH)), 0.25),
        (spelled(("<answer>", -9.0), ("left", HALF), (" lung", EIGHTH), ("</answer>", -9.0)), 0.25),
        (spelled(("<think>an <answer></think>", -9.0), ("<answer>", -9), ("a", HALF), ("</answer>", -9)), 0.5),
        (spelled(("<think>yes</think>", -9.0), ("yes", HALF), ("<|im_end|>", -9.0), completion="yes"), 0.5),
        (spelled(("no", -0.5), completion="yes"), None),
        (spelled(("<answer>", -0.5), ("no", -0.5)), None),
        (spelled(("yes", 1e-5)), None),
        (spelled(("yes", 1e-7)), 1.0),
        (spelled(("yes", math.nan)), None),
        (spelled(("", -0.5)), None),
    ],
)
def test_the_likelihood_is_the_geometric_mean_of_the_answers_tokens(sample, expected):
    assert sequence_likelihood(sample) == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("completions", "read", "expected"),
    [
        (("Liver", "the liver", "kidney", "liver."), (), 2 / 3),
        (("<answer>yes</answer>", "<answer>Yes</answer> so", "yes, <answer>"), (), 0.5),
        (("<answer>", "<answer>"), (), 0.0),  # an invalid answer agrees with none
        (("yes",), (), None),
        (("I say B", "B of course", "A"), ("B", "B", "A"), 0.5),
        (("B", "B of course", "A"), ("B", "B", "A"), 0.5),
        (("I say B", "B of course", "A"), ("B",), None),  # which it reads in the others is not known
        (("I say B", "I say B", "A"), ("I say B.",), 0.5),  # it judges the whole completion
    ],
)
def test_consistency_is_the_share_of_further_draws_that_agree(completions, read, expected):
    sample = LoggedSample(sample_id="q", completions=completions, scored_answers={"s": read})
    assert self_consistency(sample, "s") == (None if expected is None else pytest.approx(expected))


STATED = [
    {**rows(SUMS)[0], "doc_id": k, "resps": [[f"<answer>a</answer><confidence>{n}</confidence>"]], "exact_match": k % 2}
    | {"filtered_resps": ["a"], "target": "a"}
    for k, n in enumerate((90, 60, "high", 20))
]


def test_what_has_no_score_or_no_value_is_left_out_and_counted(tmp_path):
    path = written(
        tmp_path, [{**row, "exact_match": math.nan if k == 3 else row["exact_match"]} for k, row in enumerate(STATED)]
    )
    found = evaluated(path, "lm-eval")
    assert answers_of(found, "stated") == {"0": (0.9, False), "1": (0.6, True)}
    assert found.left_out == {f"{path}: no score 'exact_match'": 1, f"{path}: no stated": 1}
    assert any("from 0 to 100; not read: high" in note for note in found.notes)
    named = evaluated(path, "lm-eval", columns={"correct": "score.exact_match"})
    assert answers_of(named, "stated") == {"0": (0.9, False), "1": (0.6, True)}
    assert named.left_out == {f"{path}: no stated": 1, f"{path}: no value for 'score.exact_match'": 1}


def test_the_answers_may_be_graded_and_may_choose_thresholds(tmp_path):
    path = written(tmp_path, STATED)
    assert answers_of(evaluated(path, "lm-eval", score="graded"), "stated")["0"] == (0.9, True)
    others = json.loads(json.dumps(STATED).replace('"doc_id": ', '"doc_id": 1').replace(">20<", ">30<"))
    calibration = written(tmp_path, others, "c.jsonl")
    found = evaluated(path, "lm-eval", score="graded", calibration=calibration, target_risk=0.1)
    assert found.thresholds.filter(rule="empirical")["threshold"].item() == 0.3


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda found: found + found[:1], {}, "occurs more than once"),
        (lambda found: [{"doc_id": 0}], {}, "row 1 is no object"),
        (lambda found: ["text"], {}, "row 1 is no object"),
        (lambda found: [], {}, "has no rows"),
        (lambda found: [{**found[0], "filtered_resps": []}], {}, "is not as lm-eval"),
        (lambda found: [{**found[0], "arguments": {"a": 1}}], {}, "is not as lm-eval"),
        (lambda found: [{**found[0], "exact_match": 0.5}], {}, "is 0.5 for"),
        (lambda found: [{**found[0], "exact_match": None}], {}, "1 .no score"),
        (lambda found: found, {"score": "exact_mtch"}, "Did you mean 'exact_match'"),
        (lambda found: found, {"columns": {"image_id": "doc.questio"}}, "Did you mean 'doc.question'"),
        (lambda found: found[2:3], {}, "holds no confidence"),
        (lambda found: [{**found[0], "metrics": ["a\r", "b"], "a\r": 1, "b": 1}], {}, r"scores: 'a\\r', b"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path, change, options, message):
    with pytest.raises(DualReadError, match=message) as refused:
        evaluated(written(tmp_path, change(STATED)), "lm-eval", **options)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("harness", ["lm-eval", "lmms-eval", "vlmevalkit"])
@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe", b"[]", b'{"a": [1', b"null\n", b"[" * 5000, b'{"a":' * 900 + b"1" + b"}" * 900, b"[1, 2]"],
)
def test_no_reader_ends_in_an_error_of_python(tmp_path, harness, content):
    for suffix in plugins.declared("logs", harness.replace("-", "_"), "SUFFIXES"):
        (tmp_path / f"a{suffix}").write_bytes(content)
        with pytest.raises(DataError) as refused:
            evaluated(tmp_path / f"a{suffix}", harness)
        assert len(str(refused.value).splitlines()) == 1


VALUES = (
    *("null", "true", "-1", "0", "1", "1e400", "NaN", "0.5", '""', '"A"', '"95%"', "[]", "{}", '"\\ud800"', "1" * 400),
    *('"<confidence>"', '"<answer>1</answer><confidence>1</confidence>"', "[[[]]]", '["1", "True"]', '"[1, 2"'),
    *('{"a": {"b": [null]}}', '"data:image/png;base64,!!"', '"\\u0000"'),
)


def inside(value):
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(inner for item in items for inner in inside(item))]


@pytest.mark.parametrize(
    ("harness", "source", "score"),
    [("lm-eval", ORGANS, "acc"), ("lm-eval", SUMS, "exact_match,last"), ("lmms-eval", LESIONS, "exact")],
)
def test_a_log_with_any_value_is_evaluated_or_refused(tmp_path, harness, source, score):
    draw = random.Random(f"{source.name}")
    for _ in range(examples(30)):
        lines = source.read_text().splitlines()
        at = draw.randrange(len(lines))
        values = [json.dumps(value) for value in inside(json.loads(lines[at]))]
        lines[at] = lines[at].replace(draw.choice(values), draw.choice(VALUES), 1)
        (tmp_path / "a.jsonl").write_text("\n".join(lines))
        for judge in (score, "graded"):
            try:
                found = evaluated(tmp_path / "a.jsonl", harness, score=judge, stated_scale=100)
            except DualReadError as error:
                assert len(str(error).splitlines()) == 1  # noqa: PT017
            else:
                for method in found.parts[0].methods.values():
                    assert method.answers["confidence"].is_between(0, 1).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.eval", "--from", "inspect"], "none.eval: is not there"),
        ([".", "--from", "inspect"], ".: is a folder"),
        (["a.csv", "--score", "x"], "--score: needs a log (--from)"),
        (["a.eval", "--from", "inspekt"], "Did you mean 'inspect'?"),
        (["a.xlsx", "--from", "vlmevalkit"], "PRED_FORMAT=tsv"),
        (["a.pkl", "--from", "vlmevalkit"], "PRED_FORMAT=tsv"),
    ],
)
def test_the_program_refuses_in_one_line(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a.eval", "a.xlsx", "a.pkl"):
        Path(name).write_bytes(b"PK")
    assert program.main(["evaluate", *words]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1


def test_a_missing_package_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)  # an import raises ModuleNotFoundError
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    (tmp_path / "a.eval").write_bytes(b"PK")
    assert program.main(["evaluate", str(tmp_path / "a.eval"), "--from", "inspect"]) == 1
    assert "inspect-ai is not installed. Run: pip install" in capsys.readouterr().err


def test_a_log_is_no_table_in_memory():
    with pytest.raises(ConfigError, match="is given by its path"):
        evaluated(pl.DataFrame({"a": [1]}), "inspect")
