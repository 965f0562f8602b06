"""Questions of the smoke study, scored without the workflow: the same confidences, and a card with its numbers."""

import json
import random
from pathlib import Path

import polars as pl
import pytest

from dualread.apps import main as program
from dualread.apps.score.results import Question
from dualread.apps.score.scorer import Scorer

pytestmark = pytest.mark.rest

BACKBONES = ("qwen3-vl-tiny", "medgemma-tiny")
# All kinds of methods that draw nothing: stated, likelihood, self-check with an answer, network, linear, prior.
OTHERS = ["rlvr", "sequence_likelihood", "p_true", "self_probing", "saplma", "bicr", "question_answer_prior"]
# A state is rounded to float32 differently in another batch, and some readers amplify it: PSR on Gemma to 1.5e-6.
TOLERANCE, OF_OTHERS = 1e-6, 5e-6


def asked_of(results: Path, dataset: str) -> tuple[list[str], list[Question]]:
    """Twenty questions of a test split, or all if there are fewer; with their donors."""
    folder = results / "manifests" / dataset / "test"
    rows = pl.read_parquet(folder / "manifest.parquet").sort("sample_id").to_dicts()
    files = {row["sample_id"]: folder / row["image_files"][0] for row in rows}
    donors: dict[str, Path] = {}
    if (pairs := results / "pairs" / dataset / "test" / "pairs.parquet").exists():
        named = pl.read_parquet(pairs).select("sample_id", "donor_sample_id").iter_rows()
        donors = {sample_id: files[donor] for sample_id, donor in named}
    chosen = random.Random(1).sample(rows, min(20, len(rows)))
    questions = [
        Question(image=files[i], question=row["question"], options=row["options"], donor=donors.get(i))
        for row in chosen
        for i in [row["sample_id"]]
    ]
    return [row["sample_id"] for row in chosen], questions


def study_confidences(results: Path, run: str, method: str, dataset: str) -> dict[tuple[str, str], float]:
    predictions = pl.read_parquet(results / "predictions" / run / method / "predictions.parquet")
    of_test = predictions.filter(dataset=dataset, split="test")
    return {(i, condition): c for i, condition, c in of_test.select("sample_id", "condition", "confidence").iter_rows()}


def without_an_answer(results: Path, run: str, dataset: str) -> set[tuple[str, str]]:
    """What grading found no answer in: it counts as wrong in the study, and no confidence is told anybody else."""
    tables = (results / "graded" / run / dataset / "test").glob("*/graded.parquet")
    rows = (
        row
        for table in tables
        for row in pl.read_parquet(table).filter(pl.col("canonical_answer").is_null()).iter_rows(named=True)
    )
    return {(row["sample_id"], row["condition"]) for row in rows}


@pytest.mark.parametrize("backbone", BACKBONES)
def test_scoring_gives_the_confidences_of_the_study(study, backbone):
    results, run = study.folder / "results/smoke", f"{backbone}/rlvr/17"
    scorer = Scorer.load(results / "readers" / run / "dualread", results / "actors" / run, methods=OTHERS)
    n_donors = 0
    for dataset in ("slake", "pmc_vqa"):  # questions with donors, and with options
        ids, questions = asked_of(results, dataset)
        scored = list(scorer.each(questions))
        found = {(i, "original"): result for i, result in zip(ids, scored, strict=True)}
        found |= {(i, "donor"): r.donor for i, r in zip(ids, scored, strict=True) if r.donor is not None}
        n_donors += len(found) - len(ids)
        invalid = without_an_answer(results, run, dataset)
        assert {key for key, result in found.items() if result.reason is not None} == invalid & found.keys()
        for method in ("dualread", "psr", "per", *OTHERS):
            expected = study_confidences(results, run, method, dataset)
            for key, result in found.items():
                own = {"dualread": result.confidence, "psr": result.psr, "per": result.per}
                value = own[method] if method in own else result.methods[method].confidence
                tolerance = TOLERANCE if method == "dualread" else OF_OTHERS
                has_value = method == "psr" or key not in invalid  # PSR is read before the answer
                wanted = pytest.approx(expected[key], abs=tolerance) if has_value else None
                assert value == wanted, (method, key)
    assert n_donors > 0


def test_another_actor_of_the_study_is_refused(study):
    results = study.folder / "results/smoke"
    reader = results / "readers/qwen3-vl-tiny/rlvr/17/dualread"
    with pytest.raises(program.DualReadError, match=r"checkpoint: model\.safetensors has sha256 \w+, expected \w+"):
        Scorer.load(reader, results / "actors/qwen3-vl-tiny/rlvr/29")
    with pytest.raises(program.DualReadError, match=r"checkpoint: config\.json has sha256"):
        Scorer.load(reader, results / "actors/medgemma-tiny/rlvr/17", allow_other=False)


def test_an_exported_reader_has_the_numbers_and_thresholds_of_the_study(study, tmp_path, capsys):
    from huggingface_hub import ModelCard

    results = study.folder / "results/smoke"
    call = ["export", str(results), "--backbone", "qwen3-vl-tiny", "--actor", "rlvr", "--seed", "17"]
    assert program.main([*call, "--out", str(tmp_path / "mine"), "--with-checkpoint"]) == 0
    metrics = pl.read_parquet(results / "metrics/metrics.parquet")
    of_run = metrics.filter(
        backbone="qwen3-vl-tiny", actor="rlvr", seed=17, method="dualread", split="test", subset="all"
    )
    data = ModelCard.load(tmp_path / "mine" / "README.md").data
    assert data.license == "apache-2.0"
    names = {"AUROC": "auroc", "Brier": "brier", "accuracy": "accuracy"}
    shown = [result for result in data.eval_results if result.metric_name in names]
    values = {(r["dataset"], r["metric"]): r["estimate"] for r in of_run.iter_rows(named=True)}
    stated = {(result.dataset_name, names[result.metric_name]): result.metric_value for result in shown}
    assert {("slake", "accuracy"), ("slake", "brier"), ("ood6", "accuracy"), ("ood6", "brier")} <= stated.keys()
    assert stated == {key: values[key] for key in stated}
    for threshold in json.loads((tmp_path / "mine" / "thresholds.json").read_text()):
        metric = f"threshold_at_risk_{threshold['target_risk_percent']}"
        metric = metric if threshold["rule"] == "empirical" else f"{threshold['rule']}_{metric}"
        assert threshold["value"] == values["slake", metric]
    ids, questions = asked_of(results, "slake")
    result = Scorer.load(tmp_path / "mine")(questions[0].image, questions[0].question)
    expected = study_confidences(results, "qwen3-vl-tiny/rlvr/17", "dualread", "slake")
    assert result.confidence == pytest.approx(expected[ids[0], "original"], abs=TOLERANCE)


def test_the_tables_of_a_run_have_its_confidences_and_evaluate_reads_them(study):
    results, run = study.folder / "results/smoke", "qwen3-vl-tiny/rlvr/17"
    folder = results / "answers" / run
    answers, pairs = (pl.read_parquet(folder / f"{name}.parquet") for name in ("answers", "pairs"))
    for table, condition, column in ((answers, "original", "confidence"), (pairs, "donor", "donor_confidence")):
        expected = study_confidences(results, run, "psr", "slake")
        of_psr = table.filter(method="psr", dataset="slake").select("sample_id", column).iter_rows()
        assert dict(of_psr) == {i: value for (i, name), value in expected.items() if name == condition}
    tables = [str(folder / "answers.parquet"), "--pairs", str(folder / "pairs.parquet")]
    assert program.main(["evaluate", *tables, "--replicates", "0"]) == 0
