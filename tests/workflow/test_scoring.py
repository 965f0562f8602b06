"""Questions of the smoke study, scored without the workflow: the same confidences, and a card with its numbers."""

import random
from pathlib import Path

import polars as pl
import pytest

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
