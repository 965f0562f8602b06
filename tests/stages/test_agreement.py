"""A replay in bfloat16: the model that generated always agrees, another model or other inputs never do."""

import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from dualread.errors import DataError, ReplayDisagreementError
from dualread.models.actor import Request
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.backbones.encode import Encoder
from dualread.models.replay import agreement
from dualread.schema.replay import Agreement
from dualread.stages import generate, replay
from tests import specs
from tests.architectures import second_in_rest
from tests.specs import changed
from tests.stages.test_model_stages import actor  # noqa: F401 (a fixture)
from tests.tiny import MODEL


def in_bfloat16(spec, **changes):
    return changed(spec, **{"model": {**MODEL, "dtype": "bfloat16"}, **changes})


@pytest.fixture
def answered(tiny, actor, hospital, tmp_path, monkeypatch):  # noqa: F811
    """Return a function that replays answers of an actor in bfloat16; its bounds are those of float32."""
    # The layers of an untrained model add almost nothing to the embeddings; those of a trained one do.
    weights = actor / "checkpoint" / "model.safetensors"
    tensors = load_file(weights)
    tensors = {name: 4 * t if "self_attn" in name and t.dim() > 1 else t for name, t in tensors.items()}
    save_file(tensors, weights, metadata={"format": "pt"})
    monkeypatch.setattr(replay, "artifact_digest", lambda path: "digest of the actor")
    inputs = {
        **{"actor": actor, "facts": specs.facts(), "manifest": hospital["manifest"]},
        **{"generations": tmp_path / "generations"},
    }
    (tmp_path / "generations").mkdir()
    generate.compute(in_bfloat16(specs.generate(specs.shard("original"))), inputs, tmp_path / "generations")

    def run(folder="features", actor=actor, batch_size=4, **changes):
        (tmp_path / folder).mkdir()
        replay.loaded_actor.cache_clear()
        spec = in_bfloat16(specs.replay(specs.shard("original"), batch_size), **changes)
        return replay.compute(spec, {**inputs, "actor": actor}, tmp_path / folder)

    return run


@second_in_rest
@pytest.mark.parametrize("batch_size", [1, 64])
def test_the_model_that_generated_agrees(answered, batch_size):
    assert "replayed" in answered(batch_size=batch_size)


@second_in_rest
def test_a_swapped_checkpoint_is_refused(answered, actor, tmp_path):  # noqa: F811
    """A training changes weights by little; here by 3% of their spread."""
    other = shutil.copytree(actor, tmp_path / "other")
    weights = other / "checkpoint" / "model.safetensors"
    random = torch.Generator().manual_seed(0)
    tensors = {
        name: t + 0.03 * t.std() * torch.randn(t.shape, generator=random) if t.dim() > 1 else t
        for name, t in load_file(weights).items()
    }
    save_file(tensors, weights, metadata={"format": "pt"})
    with pytest.raises(ReplayDisagreementError, match="does not reproduce its generation"):
        answered(actor=other)


@second_in_rest
def test_dropped_token_types_are_refused(tiny, answered, monkeypatch):
    batch = Encoder.batch

    def dropped(self, *rows):
        return {name: t * 0 if name.endswith("token_type_ids") else t for name, t in batch(self, *rows).items()}

    monkeypatch.setattr(Encoder, "batch", dropped)
    with pytest.raises(ReplayDisagreementError, match="does not reproduce its generation"):
        answered()


def test_other_pixel_limits_are_refused(tiny, answered):
    refused = {
        "qwen3_vl": (ReplayDisagreementError, r"prompt's tokens differ|does not reproduce"),
        "gemma3": (DataError, "makes 1024 pixels of an image, and takes no limits. Expected 256 to 256"),
    }
    error, words = refused[tiny.family]
    with pytest.raises(error, match=words):
        answered(model={**MODEL, "dtype": "bfloat16", "min_pixels": 256, "max_pixels": 256})


def test_measuring_the_rounding_leaves_the_weights_as_they_were(tiny, hospital, tmp_path):
    opened = open_checkpoint(tiny.checkpoint, {**MODEL, "dtype": "bfloat16"})
    before = {name: weight.clone() for name, weight in opened.model.state_dict().items()}
    from tests.tiny import image

    requests = [
        Request(text=text, images=[image(0)], image_name="0", row="") for text in ("Where?", "Is this a CT scan?")
    ]
    completions = [[60, 61, 62], [63, 64]]
    found = agreement.ReferenceLogProbs.of(opened, requests, completions)
    assert 0 < found.rounding < 0.1
    after = opened.model.state_dict()
    assert all(after[name].dtype == torch.bfloat16 and torch.equal(before[name], after[name]) for name in before)
    exact = open_checkpoint(tiny.checkpoint, MODEL)
    own = agreement.ReferenceLogProbs.of(exact, requests, completions)
    assert own.rounding == 0


def test_no_weight_is_cast_where_there_are_no_completions(tiny, monkeypatch):
    monkeypatch.setattr(agreement.own_pass, "in_float32", None)
    opened = open_checkpoint(tiny.checkpoint, {**MODEL, "dtype": "bfloat16"})
    assert agreement.ReferenceLogProbs.of(opened, [], []).rounding == 0


CONFIGURED = Agreement(argmax_tolerance=1e-3, max_mean_log_prob_difference=1e-3, max_argmax_mismatch_share=1e-3)


def test_the_bounds_of_the_config_hold_where_rounding_is_smaller():
    own = agreement.allowed(CONFIGURED, 0.0)
    assert own == CONFIGURED
    wider = agreement.allowed(CONFIGURED, 0.01)
    found = wider.max_mean_log_prob_difference, wider.argmax_tolerance, wider.max_argmax_mismatch_share
    assert found == (0.02, 0.3, 1e-3)


def test_a_sample_is_spread_over_all_completions():
    assert agreement.sample(0, 32) == []
    assert agreement.sample(3, 32) == [0, 1, 2]
    chosen = agreement.sample(1000, 32)
    assert (chosen[0], chosen[-1], len(chosen)) == (0, 999, 32)
