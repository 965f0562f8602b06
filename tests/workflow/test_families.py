"""The whole road for checkpoints of other architectures: from a folder to tables, a report, and `dualread score`."""

from pathlib import Path

import polars as pl
import pytest
import yaml

from dualread.apps import main as program
from dualread.apps.score.scorer import Scorer
from dualread.schema.recorded import Facts
from tests import families
from tests.more_families import MORE
from tests.workflow.checkout import Checkout
from tests.workflow.faults import STUDY
from tests.workflow.test_scoring import asked_of, study_confidences, without_an_answer

pytestmark = pytest.mark.long

RUN = "mine/rlvr/17"
# Methods that together read every view: samples, choices, self-checks, other wordings, and a black image.
METHODS = ["base", "rlvr", "dualread", "p_true", "self_probing", "prompt_ensemble", "sc8", "bicr"]
SHARED = {"paligemma": "prompt", "qwen3_5": "nothing"}


def overlay(checkpoint: Path) -> dict:
    """What is laid over the micro study: one backbone of a folder, all views, and replays of the donor's image."""
    return {
        "study": "family",
        "only": {"backbones": ["mine"], "actors": ["base", "rlvr"], "methods": METHODS},
        "backbones": {"mine": {"label": "Mine", "source": {"folder": str(checkpoint)}, "settings": families.SETTINGS}},
        "views": {"samples": {"decoding": {"max_completion_tokens": 12}}},
        # Six images for calibration: 36 answers, a third of them yes or no. Of twelve, some actors get none right, and
        # then no reader can be fitted. With fewer for validation, samples tell right from wrong too well.
        "phantoms": {"slake": {"images": {"train": 30, "validation": 10}}},
        "conditions": {"donor_fixed_prefix": {"image": "donor", "completions": "original", "control": True}},
        "methods": {"bicr": {"settings": {"max_epochs": 3, "patience": 2, "hidden": [16]}}},
    }


# The others take the same ways as one of these; `make test-families` runs all of them.
@pytest.mark.parametrize("name", ["qwen2_5_vl", "paligemma"])
def test_from_a_folder_to_a_score(name, tmp_path, capsys):
    walk(name, tmp_path, capsys)


def walk(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the study of one family and score its questions again."""
    facts = Facts(completion_type=1 if name == "paligemma" else 0)
    checkpoint = families.pretrain({**families.FAMILIES, **MORE}[name], tmp_path / "mine", facts)
    checkout = Checkout.create(tmp_path / "checkout")
    (checkout.folder / "family.yaml").write_text(yaml.safe_dump(overlay(checkpoint)))
    run = checkout.snakemake("all", study=f"{STUDY} family.yaml")
    assert run.returncode == 0, run.text
    results = checkout.folder / "results/family"
    assert f'<td class="left">{SHARED.get(name, "image prefix")}</td>' in (results / "report.html").read_text()

    ids, questions = asked_of(results, "slake")
    scorer = Scorer.load(results / "readers" / RUN / "dualread", results / "actors" / RUN)
    expected = study_confidences(results, RUN, "dualread", "slake")
    unanswered = without_an_answer(results, RUN, "slake")
    assert len(unanswered) < len(ids)
    for sample_id, scored in zip(ids, scorer.each(questions), strict=True):
        key = (sample_id, "original")
        assert scored.confidence == (None if key in unanswered else pytest.approx(expected[key], abs=1e-5))
    graded = pl.read_parquet(results / "graded" / RUN / "slake/train/original/graded.parquet")
    assert 0 < graded["correct"].sum() < graded.height
    image = min((results / "manifests/slake/test/images").rglob("*.*"))
    call = ["score", "--reader", str(results / "readers" / RUN / "dualread"), "--image", str(image)]
    call += ["--checkpoint", str(results / "actors" / RUN), "--question", "Is there a lesion?"]
    assert program.main(call) == 0, capsys.readouterr().err
