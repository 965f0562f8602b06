"""A bundle's stored answers: written, read, found again, and not found again by an engine that reads otherwise."""

import json
import shutil

import numpy as np
import pytest

from dualread.apps.score import ScorerChoice, stored
from dualread.apps.score.bundle import DISTANCES, STORED
from dualread.apps.score.scorer import Scorer
from dualread.apps.serve.opening import open_service
from dualread.artifacts.tensors import read_file, read_header, read_tensors, write_tensors
from dualread.errors import ArtifactError, ConfigError
from dualread.models.generation import _transformers_stream
from tests.apps.score import small
from tests.apps.serve.running import LESION


def opened(bundle, **options):
    return open_service(ScorerChoice(reader=bundle), engine="transformers", batch_size=4, **options)


def test_the_stored_answers_are_those_of_score_and_are_found_again(bundle, capsys):
    scorer = Scorer.load(bundle)
    answers = stored.read(read_file(bundle / STORED))
    assert len(answers) == 4
    for one in answers:
        scored = scorer(one.images, one.question)
        assert one.confidences == pytest.approx([scored.confidence], abs=2e-6)
        assert scorer._loaded.actor.encoder.decode(one.token_ids) == scored.completion
    assert (bundle / STORED).stat().st_mode == (bundle / "bundle.json").stat().st_mode
    opened(bundle).close()
    assert "4 of 4 stored answers are the same" in capsys.readouterr().err


def edited(bundle, folder, edit):
    """A copy of the bundle whose stored answers are edited."""
    shutil.copytree(bundle, folder / "edited")
    file = folder / "edited" / STORED
    tensors, header = read_tensors(file), read_header(file)
    edit(tensors, header)
    write_tensors(file, tensors, header)
    return folder / "edited"


def turned(tensors, header):
    tensors["h_evid"] = -tensors["h_evid"]


def other_answer(tensors, header):
    header["answers"][2]["token_ids"][1] += 1


def other_confidence(tensors, header):
    header["answers"][1]["confidence"] = 1 - header["answers"][1]["confidence"]


def not_a_number(tensors, header):
    tensors["h_pre"] = np.full_like(tensors["h_pre"], np.nan)


def fewer(tensors, header):
    header["answers"].pop()


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (turned, r"h_evid of 'Is there a lesion\?' is 200.0% of its length apart"),
        (other_answer, "1 of 4 answers are other ones"),
        (other_confidence, r"confidences are up to 0\.\d+ apart"),
        (not_a_number, "h_pre of 'Is there a lesion.' is nan% of its length apart"),
        (fewer, "its tensors and its answers differ in number"),  # a file of somebody else
        (b"", r"stored.safetensors: "),
        (b"x" * 100, r"stored.safetensors: "),
    ],
)
def test_what_an_engine_reads_otherwise_and_what_is_damaged_is_refused(bundle, tmp_path, edit, said):
    if isinstance(edit, bytes):
        shutil.copytree(bundle, tmp_path / "edited")
        (tmp_path / "edited" / STORED).chmod(0o600)
        (tmp_path / "edited" / STORED).write_bytes(edit)
    else:
        edited(bundle, tmp_path, edit)
    with pytest.raises(ArtifactError, match=said):
        opened(tmp_path / "edited")


def test_only_what_is_used_may_stop_a_bundle(study, tmp_path):
    bundle = small.exported(study, tmp_path / "b", "rlvr", "psr", "expected", thresholds={"dualread": 0.4, "psr": 0.6})
    for file in (STORED, DISTANCES):
        (bundle / file).write_bytes(b"damaged")
    thresholds = [row for row in json.loads((bundle / "thresholds.json").read_text()) if row["method"] != "psr"]
    for rule, percent in (("certified", 10), ("empirical", 20)):
        row = {"method": "psr", "rule": rule, "target_risk_percent": percent, "value": 0.6, "reason": None}
        (bundle / "thresholds.json").write_text(json.dumps([*thresholds, row]))
        with pytest.raises(ArtifactError, match=r"distances\.safetensors: cannot be read"):
            Scorer.load(bundle, target_risk_percent=10)  # what psr lacks is not asked for
    with pytest.raises(ArtifactError, match=r"stored\.safetensors: cannot be read"):
        opened(bundle)
    with pytest.raises(ConfigError, match=r"threshold empirical at 10%: .* Known: empirical at 20%"):
        open_service(ScorerChoice(reader=bundle, target_risk_percent=10), batch_size=4, abstain_before="threshold")
    (bundle / STORED).unlink()
    known = json.loads((bundle / "bundle.json").read_text())
    (bundle / "bundle.json").write_text(json.dumps({**known, "method": "rlvr"}))
    assert Scorer.load(bundle)(study.image(1), LESION).distance_percentile is None  # rlvr reads no states
    with pytest.raises(ConfigError, match=r"the method expected asks the actor more .* Leave it out \(--methods\)"):
        open_service(ScorerChoice(reader=bundle, methods=["expected"]), batch_size=4, engine="vllm")


def test_an_actor_that_fails_is_refused(bundle, monkeypatch):
    def fails(*given, **named):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(_transformers_stream, "steps", fails)
    with pytest.raises(ArtifactError, match=r"an answer fails \(RuntimeError: out of memory\)"):
        opened(bundle)


def test_the_threshold_of_psr_may_decide_whether_to_answer(bundle):
    service = opened(bundle, abstain_before="threshold")
    assert service._limit == 0.6
    service.close()
    with pytest.raises(ConfigError, match="--abstain-before much: expected a number"):
        opened(bundle, abstain_before="much")
