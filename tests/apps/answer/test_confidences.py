"""`dualread.confidences` and `dualread answer` on untrained checkpoints, whose answers have no valid form."""

import json

import polars as pl
import pytest
from scipy.stats import rankdata

import dualread
from dualread.apps import main as program
from dualread.errors import ConfigError, DataError, DualReadError, ReaderError
from dualread.evaluation.metrics import auroc
from dualread.models.backbones.processor import load_processor
from dualread.models.generation.transformers_engine import TransformersEngine
from tests.tiny import MODEL, image

METHODS = ["verbalized", "sequence_likelihood", "sc2"]
QUICK = {"max_completion_tokens": 6, "batch_size": 4}


def examples(n, part="test", **columns):
    return [
        {"image": image(k // 2), "question": ("Is it?", "Where is it?")[k % 2], "part": part, "site": k, **columns}
        for k in range(n)
    ]


def fitted():
    """Questions about other pictures, for what is fitted."""
    more = [*examples(9, "fit", answer="yes"), *examples(2, "validation", answer="no")]
    return [{**row, "image": image(10 + k)} for k, row in enumerate(more)]


@pytest.fixture(scope="module")
def tiny(study):
    return study.tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def asked(tiny, folder):
    """The frame of six questions, of which four have reference answers."""
    given = [*examples(4, answer="yes"), *examples(6)[4:], *fitted()]
    return dualread.confidences(tiny.checkpoint, given, METHODS, folder=folder, **QUICK)


def test_one_row_per_example_with_its_own_columns(asked):
    assert asked["site"].to_list() == list(range(6))
    assert asked["part"].unique().to_list() == ["test"]
    assert asked["question"].to_list() == ["Is it?", "Where is it?"] * 3
    assert asked["correct"].to_list() == [False] * 4 + [None] * 2  # nothing is said where nothing is known
    assert asked["reference_answer"].to_list() == [["yes"]] * 4 + [None] * 2
    assert asked["answer"].to_list() == [None] * 6


def test_methods_that_cannot_be_fitted_are_null_and_without_any_the_reasons_are_said(tiny, folder, asked):
    for method in METHODS:
        assert asked[f"confidence_{method}"].null_count() == 6  # no answer has a valid form
    assert asked["reason"].null_count() == 0
    given = [*examples(4, answer="yes"), *examples(6)[4:], *fitted()]
    with pytest.raises(ReaderError, match=r"^sc2: .* 0 correct of "):  # the only method that was asked for
        dualread.confidences(tiny.checkpoint, given, ["sc2"], folder=folder, **QUICK)


def test_evaluate_takes_the_frame(asked):
    found = dualread.evaluate(asked, replicates=0)
    assert found.metrics.filter(metric="accuracy", subset="all")["n"].to_list() == [4] * 3
    assert set(found.metrics["method"]) == set(METHODS)
    # All answers are wrong and equally sure: there is nothing to rank.
    of_auroc = found.metrics.filter(metric="auroc", subset="all")
    assert of_auroc["estimate"].to_list() == [None] * 3
    assert of_auroc["reason"].to_list() == ["one class only: all 4 rows are incorrect"] * 3


def test_another_order_and_further_rows_change_nothing_and_compute_nothing_again(tiny, folder, asked, monkeypatch):
    given = [*fitted(), *reversed([*examples(4, answer="yes"), *examples(6)[4:]])]
    monkeypatch.setattr(TransformersEngine, "answer", lambda *_: pytest.fail("this was computed before"))
    again = dualread.confidences(tiny.checkpoint, given, METHODS, folder=folder, **QUICK)
    assert again.reverse().equals(asked)


def test_batches_change_nothing(tiny, tmp_path, asked):
    given = [*examples(4, answer="yes"), *examples(6)[4:], *fitted()]
    quick = {"max_completion_tokens": 6, "batch_size": 3, "folder": tmp_path}
    assert dualread.confidences(tiny.checkpoint, given, METHODS, **quick).equals(asked)


def test_an_opened_model_is_its_checkpoint(tiny, folder, asked):
    import pandas
    from transformers import AutoModelForImageTextToText

    model = AutoModelForImageTextToText.from_pretrained(tiny.checkpoint)
    processor = load_processor(tiny.checkpoint, MODEL)  # AutoProcessor needs torchvision, for videos
    found = dualread.confidences(
        (model, processor), pandas.DataFrame(examples(4)), "verbalized", folder=folder, **QUICK
    )
    assert isinstance(found, pandas.DataFrame)
    assert found["sample_id"].to_list() == asked["sample_id"].to_list()[:4]
    assert found["correct"].to_list() == [None] * 4


def test_what_cannot_be_asked_or_fitted_is_refused(tiny, folder):
    leak = [*examples(2), *({**row, "image": image(k)} for k, row in enumerate(examples(9, "fit", answer="yes")))]
    two = examples(2)
    for call, kind, said in (
        ((("/nowhere", two, "dualread"), {}), DataError, r"part 'fit'.*need none: .*verbalized.* sc8"),
        (((tiny.checkpoint, two, "psr"), {"fit": two}), DataError, "where 2 of 2 examples have no reference"),
        (((tiny.checkpoint, two, "psr"), {"parts": "fit"}), ConfigError, "expected test, validation, or both"),
        (((3, two, "verbalized"), {}), DataError, "Expected a folder, owner/name of the hub, or a tuple"),
        (((tiny.checkpoint, leak, "psr"), QUICK), DualReadError, "picture"),  # an image in two parts
    ):
        with pytest.raises(kind, match=said):
            dualread.confidences(*call[0], **call[1], folder=folder)


def test_without_labels_methods_give_scores_and_no_probability(tiny, folder, monkeypatch):
    monkeypatch.setattr("dualread.apps.answer.confidences.why_no_answer", lambda *_: None)  # no answer has a valid form
    found = dualread.confidences(tiny.checkpoint, examples(4), METHODS, folder=folder, **QUICK)
    names = [name for name in found.columns if name.startswith(("confidence_", "score_"))]
    assert names == ["confidence_verbalized", "score_sequence_likelihood", "score_sc2"]
    assert found["score_sc2"].to_list() == [0.0] * 4  # no sample agrees with an answer without a form
    # As for a study that fits a temperature, whose scores are what it divides.
    assert found["score_sequence_likelihood"].n_unique() > 1
    labels = pl.Series("correct", [True, False, True, False])
    graded = found.select("image_id", *names).with_columns(labels)
    rows = {(row["method"], row["metric"]): row for row in dualread.evaluate(graded, replicates=0).metrics.to_dicts()}
    of_ranks = rows["sequence_likelihood", "auroc"]["estimate"]
    assert of_ranks == auroc(rankdata(found["score_sequence_likelihood"]) / 4, labels)
    assert rows["sc2", "auroc"]["estimate"] == 0.5
    for metric in ("ece15", "brier", "log_loss"):
        assert rows["sequence_likelihood", metric]["estimate"] is None
        assert rows["verbalized", metric]["estimate"] is not None


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_the_command_writes_what_evaluate_reads(tiny, folder, tmp_path, capsys, suffix):
    for k in range(2):
        image(k).save(tmp_path / f"{k}.png")
    rows = [{"image": f"{k // 2}.png", "question": f"Is it {k}?", "reference_answer": ["no", "none"]} for k in range(4)]
    (tmp_path / "q.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    out = tmp_path / f"answers.{suffix}"
    call = ["answer", str(tiny.checkpoint), str(tmp_path / "q.jsonl"), "--methods", "verbalized", "--out", str(out)]
    assert program.main([*call, "--folder", str(folder), "--max-tokens", "6"]) == 0
    more = " --alternatives '#'" if suffix == "csv" else ""
    said = f"wrote {out}: 4 answers, 0.0% of 4 correct. Next: dualread evaluate {out}{more}\n"
    assert said in capsys.readouterr().out
    assert program.main(["evaluate", str(out), *(["--alternatives", "#"] if more else [])]) == 0
    found = dualread.evaluate(out, replicates=0, alternatives="#" if more else None)
    assert found.metrics.filter(metric="accuracy", subset="all")["n"].to_list() == [4]


def test_the_command_lists_methods_and_refuses_other_files(tiny, tmp_path, capsys):
    call = ["answer", str(tiny.checkpoint), str(tmp_path / "q.jsonl")]
    assert program.main(call) == 1
    assert "Known: expected_confidence, verbalized" in capsys.readouterr().err
    assert program.main([*call, "--methods", "verbalized", "--out", "a.xlsx"]) == 1
    assert "unknown suffix. Expected .parquet, .jsonl, .csv, .tsv" in capsys.readouterr().err
