"""Logs of other harnesses through `dualread.evaluate` and the program."""

import json
import math
import sys
from pathlib import Path

import polars as pl
import pytest
from sklearn.metrics import roc_auc_score

import dualread
from dualread import plugins
from dualread.commands import main as program
from dualread.commands.evaluate import DESCRIPTION
from dualread.errors import ConfigError, DataError
from tests.data.logs.archive import archive, sample

MADE = Path(__file__).parents[1] / "data/logs/made"
LESIONS = MADE / "lesions.eval"


def evaluated(path, log_format, **options):
    return dualread.evaluate(path, log_format=log_format, replicates=0, **options)


def estimate(found, metric, method):
    return found.metrics.filter(metric=metric, method=method, subset="all")["estimate"].item()


def confidences(found, method):
    answers = found.parts[0].methods[method].answers.sort("sample_id")
    return dict(zip(answers["sample_id"], answers["confidence"], strict=True))


def test_what_a_log_of_inspect_holds_is_used():
    found = evaluated(LESIONS, "inspect", score="pattern")
    # the percentages of tests/data/logs/made/inspect_log.py, whose tokens have log-probability -percent / 400
    assert confidences(found, "stated") == pytest.approx({"q1": 0.9, "q2": 0.7, "q3": 0.6, "q4": 0.8})
    assert confidences(found, "sequence_likelihood") == pytest.approx(
        {"q1": math.exp(-0.225), "q2": math.exp(-0.175), "q3": math.exp(-0.15), "q4": math.exp(-0.2)}
    )
    # q1: yes, then yes, no. q2: yes, then no, no. q3: no, then No., no. q4: yes, then no (one epoch failed)
    assert confidences(found, "self_consistency") == {"q1": 0.5, "q2": 0.0, "q3": 1.0, "q4": 0.0}
    correct = [1, 0, 1, 1]  # q2 is no
    for method in ("stated", "sequence_likelihood", "self_consistency"):
        assert estimate(found, "accuracy", method) == 0.75
        values = list(confidences(found, method).values())
        assert estimate(found, "auroc", method) == pytest.approx(roc_auc_score(correct, values))
    assert found.metrics.filter(metric="auroc", subset="all")["n_clusters"].unique().to_list() == [2]  # a.png, b.png
    assert found.left_out == {}
    assert f"{LESIONS}: the score 'pattern' says what is correct" in found.notes


def test_a_metric_of_choices_is_judged_with_the_choice_that_it_judges():
    path = MADE / "samples_organs.jsonl"
    # question 0: e^-1 / (e^-1 + e^-2.5) of the liver, which is right by acc; acc_norm judges the kidney
    liver = 1 / (1 + math.exp(-1.5))
    by_acc = evaluated(path, "lm-eval", score="acc", columns={"image_id": "doc.case"})
    assert confidences(by_acc, "choice_likelihood")["0"] == pytest.approx(liver)
    by_norm = evaluated(path, "lm_eval", score="acc_norm")
    assert confidences(by_norm, "choice_likelihood")["0"] == pytest.approx(1 - liver)
    assert by_acc.metrics.filter(metric="auroc", subset="all")["n_clusters"].item() == 2
    assert any("does not identify images" in note for note in by_norm.notes)
    assert not any("does not identify images" in note for note in by_acc.notes)


def test_a_score_whose_name_cannot_be_printed_is_named_in_one_line(tmp_path):
    rows = [json.loads(line) for line in (MADE / "samples_sums.jsonl").read_text().splitlines()]
    path = tmp_path / "samples_sums.jsonl"
    path.write_text("".join(json.dumps({**row, "filter": row["filter"].replace("last", "\r")}) + "\n" for row in rows))
    with pytest.raises(ConfigError, match=r"has \d scores: .*'exact_match,\\r'") as found:
        evaluated(path, "lm-eval")
    assert len(str(found.value).splitlines()) == 1


def test_what_cannot_be_evaluated_is_counted():
    path = MADE / "samples_sums.jsonl"
    found = evaluated(path, "lm-eval", score="exact_match,last")
    why = "self_consistency: the answers of further draws are missing or cannot be told"
    assert found.left_out == {f"{path}: {why}": 2}
    # question 2: #### 8 is the answer, and one of two further draws says 8
    assert confidences(found, "self_consistency") == {"2": 0.5}


def test_an_answer_without_a_score_is_graded_by_its_references(tmp_path):
    samples = [
        sample("q1", "<answer>The liver</answer><confidence>70</confidence>", target=["liver", "hepar"]),
        sample("q2", "<answer>left</answer><confidence>60</confidence>", target="right"),
        sample("q3", "<answer>left</answer><confidence>50</confidence>", target=""),
    ]
    found = evaluated(path := archive(tmp_path / "a.eval", samples), "inspect")
    answers = found.parts[0].methods["stated"].answers
    assert dict(zip(answers["sample_id"], answers["correct"], strict=True)) == {"q1": True, "q2": False}
    assert found.left_out == {f"{path}: no reference answer": 1}
    assert f"{path}: left out: 1 (no reference answer)" in found.notes
    assert f"{path}: the answers are graded by their references, as in the paper" in found.notes


def test_a_name_of_several_scores_has_to_be_chosen():
    with pytest.raises(ConfigError, match=r"has 2 scores: pattern, length\. .*--score pattern; or --score graded"):
        evaluated(LESIONS, "inspect")
    with pytest.raises(ConfigError, match=r"--score patern: .*Known: pattern, length, graded\. Did you mean 'pattern'"):
        evaluated(LESIONS, "inspect", score="patern")
    graded = evaluated(LESIONS, "inspect", score="graded")
    assert estimate(graded, "accuracy", "stated") == 0.75


def test_a_fraction_is_neither_right_nor_wrong():
    with pytest.raises(
        DataError,
        match=r"score 'length' is 0\.6666666666666666 for question 'q2', and neither .* for 2 of 4 questions",
    ):
        evaluated(LESIONS, "inspect", score="length")


def test_columns_of_the_log_may_be_named(tmp_path):
    samples = [
        sample("q1", "yes", metadata={"sure": 0.75, "scan": "ct-1", "ok": 1}),
        sample("q2", "no", metadata={"sure": 0.25, "scan": "ct-2", "ok": 0}),
        sample("q3", "no", metadata={"sure": None, "scan": "ct-2", "ok": 0}),
    ]
    path = archive(tmp_path / "a.eval", samples)
    names = {"confidence": "metadata.sure", "image_id": "metadata.scan", "correct": "metadata.ok"}
    found = evaluated(path, "inspect", columns=names)
    assert confidences(found, "metadata.sure") == {"q1": 0.75, "q2": 0.25}
    assert found.left_out == {f"{path}: no value for 'confidence'": 1}
    assert found.parts[0].cluster == "image_id"
    with pytest.raises(ConfigError, match=r"confidence=metadata\.shure: .*Did you mean 'metadata\.sure'"):
        evaluated(path, "inspect", columns={"confidence": "metadata.shure"})


def test_a_cluster_of_the_log_may_be_named():
    found = evaluated(LESIONS, "inspect", score="pattern", cluster="metadata.patient")
    assert found.metrics.filter(metric="auroc", method="stated", subset="all")["n_clusters"].item() == 4


def test_a_log_without_a_confidence_says_what_to_switch_on(tmp_path):
    path = archive(tmp_path / "a.eval", [sample("q1", "yes")])
    with pytest.raises(
        DataError, match=r"holds no confidence\. In Inspect, log token .*--columns confidence=NAME\. Fou"
    ):
        evaluated(path, "inspect")


def test_a_log_with_nothing_to_evaluate_says_why(tmp_path):
    path = archive(tmp_path / "a.eval", [sample("q1", "yes", error={"message": "x"})])
    with pytest.raises(DataError, match=r"no answer can be evaluated: 1 \(the sample failed in Inspect\)"):
        evaluated(path, "inspect")


def test_a_log_may_choose_the_thresholds(tmp_path):
    text = "<answer>{}</answer><confidence>{}</confidence>"
    chosen_on = [sample(f"c{k}", text.format("yes" if k else "no", 90 if k else 10)) for k in range(6)]
    judged = [sample("q1", text.format("yes", 95)), sample("q2", text.format("no", 50))]
    calibration, path = archive(tmp_path / "c.eval", chosen_on), archive(tmp_path / "a.eval", judged)
    found = evaluated(path, "inspect", calibration=calibration, target_risk=0.1)
    assert found.thresholds is not None
    row = found.thresholds.filter(method="stated", rule="empirical").row(0, named=True)
    assert (row["threshold"], row["coverage"]) == (0.9, 0.5)  # five right answers have .9; one of two has as much


@pytest.mark.parametrize("name", plugins.known("logs"))
def test_every_reader_declares_what_people_need(name):
    assert f"--from {name.replace('_', '-')}" in DESCRIPTION
    suffixes = plugins.declared("logs", name, "SUFFIXES")
    assert suffixes
    assert all(suffix.startswith(".") for suffix in suffixes)
    assert isinstance(plugins.declared("logs", name, "FIELDS"), list)
    assert len(plugins.declared("logs", name, "CONFIDENCE")) > 20


@pytest.mark.parametrize("name", plugins.known("logs"))
@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"[]", b'{"a": [1', b"null\n", b"PK\x05\x06" + bytes(18)])
def test_no_reader_ends_in_an_error_of_python(tmp_path, name, content):
    suffix = plugins.declared("logs", name, "SUFFIXES")[0]
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match="a" + suffix.replace(".", r"\.")):
        evaluated(path, name)


def test_the_program_reads_a_log(monkeypatch, capsys):
    monkeypatch.chdir(MADE)
    words = ["evaluate", "lesions.eval", "--from", "inspect", "--score", "pattern", "--replicates", "0", "--all"]
    assert program.main(words) == 0
    said = capsys.readouterr().out
    assert "lesions.eval: further epochs that failed and are not among the draws: 1\n" in said
    assert "\nlesions.eval: 12 answers, 3 methods\n" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["lesions.eval"],
            "lesions.eval: unknown format '.eval'. Known: .csv, .tsv, .jsonl, .ndjson, .json, .parquet, each also"
            " with .gz. If it is a log of another harness, add --from inspect.",
        ),
        (["samples_sums.jsonl"], "This looks like a log of lm-eval: if it is, add --from lm-eval."),
        (["20261124_samples_lesions.jsonl"], "This looks like a log of lmms-eval: if it is, add --from lmms-eval."),
        (["none.eval", "--from", "inspect"], "none.eval: there is no such file."),
        ([".", "--from", "inspect"], ".: is a folder; give one log"),
        (["a.csv", "--score", "x"], "--score: needs a log (--from)"),
    ],
)
def test_an_error_is_one_line(words, message, monkeypatch, capsys):
    monkeypatch.chdir(MADE)
    assert program.main(["evaluate", *words]) == 1
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1


def test_an_unknown_harness_is_refused_with_the_known_ones(capsys):
    assert program.main(["evaluate", "a.eval", "--from", "inspekt"]) == 1
    assert "Known: inspect, lm-eval, lmms-eval, vlmevalkit. Did you mean 'inspect'?" in capsys.readouterr().err
    with pytest.raises(ConfigError, match="Did you mean 'lm-eval'"):
        evaluated("a.jsonl", "lm-evl")


def test_a_log_is_no_table_in_memory():
    with pytest.raises(ConfigError, match=r"predictions: DataFrame; a log \(--from inspect\) is given by its path"):
        evaluated(pl.DataFrame({"a": [1]}), "inspect")


@pytest.mark.parametrize(
    ("package", "harness", "path"), [("zstandard", "inspect", "lesions.eval"), ("fastexcel", "vlmevalkit", "a.xlsx")]
)
def test_a_missing_package_is_named_with_the_extra_that_has_it(tmp_path, package, harness, path, monkeypatch, capsys):
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    (tmp_path / "lesions.eval").write_bytes(LESIONS.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)  # an import raises ModuleNotFoundError
    assert program.main(["evaluate", path, "--from", harness, "--score", "pattern"]) == 1
    assert capsys.readouterr().err == (
        f"dualread evaluate: {package} is not installed. Run: pip install 'dualread[logs]'.\n"
    )
