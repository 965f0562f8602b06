"""An adapter is trained in place of all weights, with TRL's own trainer."""

import dataclasses

import numpy as np
import peft
import polars as pl
import pytest
import torch
from tests.architectures import second_in_rest
from tests.tiny import MODEL, image
from tests.training.conftest import LENGTH
from tests.training.test_resume import Killed, dying
from trl.trainer.grpo_trainer import GRPOTrainer

from dualread.errors import ConfigError
from dualread.models import own_pass
from dualread.models.backbones.checkpoint import load
from dualread.training import _lora, dcpo, grpo, vl_calibration
from dualread.training.rewards import dcpo as dcpo_reward
from dualread.training.rewards import rlvr
from dualread.training.rewards import vl_calibration as vl_reward

pytestmark = pytest.mark.rest

LORA = {"rank": 2, "alpha": 4}
own_log_probs = torch.no_grad()(own_pass.log_probs)
LAYERS = ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")


def moved(tiny, folder, settings=MODEL):
    before, after = load(tiny.checkpoint, settings).state_dict(), load(folder, settings).state_dict()
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


@second_in_rest
def test_only_the_linear_layers_of_the_language_model_move(tiny, job):
    log = pl.DataFrame(grpo.train(job("actor", lora=LORA)))
    changed = moved(tiny, job("actor").out)
    assert all(".language_model.layers." in name and name.split(".")[-2] in LAYERS for name in changed)
    assert {name.split(".")[-2] for name in changed} == set(LAYERS)
    assert (log.filter(pl.col("name") == "gradient_norm")["value"] > 0).all()


def test_targets_and_vision_say_what_moves(tiny, job):
    grpo.train(job("few", lora={**LORA, "targets": ["q_proj"]}))
    assert {name.split(".")[-2] for name in moved(tiny, job("few").out)} == {"q_proj"}
    grpo.train(job("all", lora={**LORA, "vision": True}))
    assert any("vision" in name or "visual" in name for name in moved(tiny, job("all").out))


def test_what_is_no_linear_layer_is_refused_with_those_that_are(job):
    with pytest.raises(ConfigError, match=r"lora\.targets: 'q_prj' is no .* Known: .*o_proj, q_proj.* Did you mean"):
        grpo.train(job("actor", lora={**LORA, "targets": ["q_prj"]}))


def test_the_reference_of_the_penalty_is_the_base_and_there_is_no_second_model(tiny, answered, calls):
    make, _ = answered
    losses = calls(GRPOTrainer, "_compute_loss")
    log = pl.DataFrame(grpo.train(make("actor", reward=rlvr, kl_coefficient=1.0, learning_rate=0.02, lora=LORA)))
    kl = log.filter(pl.col("name") == "kl")["value"]
    assert kl[0] == pytest.approx(0.0, abs=1e-6)  # the policy still equals the base
    assert kl[1] > 1e-3  # and differs from it after a step
    assert all(loss.arguments[0].ref_model is None for loss in losses)
    # The base has not moved: its log-probabilities are those of the checkpoint before the training.
    base, encoder = tiny.load()
    inputs = losses[-1].arguments[2]
    asked = [encoder.inputs(question.text, [image(k)]) for k, question in enumerate(make("actor").questions)]
    for i, reference in enumerate(inputs["ref_per_token_logps"]):
        ids = inputs["completion_ids"][i][inputs["completion_mask"][i].bool()].tolist()
        prompt = inputs["prompt_ids"][i][inputs["prompt_mask"][i].bool()].tolist()
        [question] = [one for one in asked if one["input_ids"][0].tolist() == prompt]
        np.testing.assert_allclose(reference[: len(ids)].numpy(), own_log_probs(base, question, ids, 0), atol=2e-5)


@second_in_rest
def test_the_merged_checkpoint_answers_as_the_adapter_does(tiny, job, monkeypatch):
    """The adapter as peft saves it, opened by peft alone, against the checkpoint that the training wrote."""
    save, folder = _lora.save, job("actor").out.with_name("adapter")

    def keep(model, job):
        model.save_pretrained(folder)
        save(model, job)

    monkeypatch.setattr(_lora, "save", keep)
    grpo.train(job("actor", lora=LORA))
    adapted = peft.PeftModel.from_pretrained(load(tiny.checkpoint, MODEL), folder).eval()
    merged, (_, encoder) = load(job("actor").out, MODEL), tiny.load()
    for k, question in enumerate(job("actor").questions):
        inputs, said = encoder.inputs(question.text, [image(k)]), encoder.tokenizer("yes, upper left")["input_ids"]
        one, other = (own_log_probs(model, inputs, said, 0) for model in (adapted.get_base_model(), merged))
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "reward", "settings"),
    [(dcpo, dcpo_reward, {"gamma": 0.5}), (vl_calibration, vl_reward, {"patch_pixels": 8})],
    ids=["dcpo", "vl_calibration"],
)
def test_every_algorithm_trains_an_adapter(tiny, answered, algorithm, reward, settings):
    make, _ = answered
    algorithm.train(make("actor", reward=reward, steps=1, lora=LORA, **settings))
    assert moved(tiny, make("actor").out)


def test_in_bfloat16_the_base_stays_in_bfloat16_and_the_adapter_is_float32(tiny, job, monkeypatch):
    """An engine gets the weights that are saved, to the bit."""
    dtypes, weights, step, save = set(), {}, GRPOTrainer.training_step, _lora.save

    def record(self, *arguments):
        dtypes.update((".lora_" in name, weight.dtype) for name, weight in self.model.named_parameters())
        return step(self, *arguments)

    def note(model, job):
        weights.update({name: tensor.clone() for name, tensor in _lora.merged_weights(model)})
        save(model, job)

    monkeypatch.setattr(GRPOTrainer, "training_step", record)
    monkeypatch.setattr(_lora, "save", note)
    rounded = {**MODEL, "dtype": "bfloat16"}
    grpo.train(dataclasses.replace(job("actor", lora=LORA, learning_rate=0.01), backbone_settings=rounded))
    assert dtypes == {(True, torch.float32), (False, torch.bfloat16)}
    actor, base = (load(folder, {**MODEL, "dtype": "auto"}) for folder in (job("actor").out, tiny.checkpoint))
    assert actor.dtype == torch.bfloat16
    own, before = actor.state_dict(), base.bfloat16().state_dict()
    assert own.keys() == weights.keys()
    assert all(torch.equal(weights[name], tensor) for name, tensor in own.items())
    assert any(not torch.equal(before[name], tensor) for name, tensor in own.items())


def test_a_killed_training_resumes_with_the_same_weights(job, tmp_path):
    settings = {"lora": LORA, "save_every": 1, "steps": 2}
    grpo.train(job("whole", **settings))
    kept = settings | {"checkpoints": tmp_path / "kept"}
    with pytest.raises(Killed):
        grpo.train(job("resumed", reward=dying(LENGTH, 1), **kept))
    log = pl.DataFrame(grpo.train(job("resumed", **kept)))
    assert log["step"].unique().sort().to_list() == [1, 2]
    whole, resumed = ((job(name).out / "model.safetensors").read_bytes() for name in ("whole", "resumed"))
    assert whole == resumed
