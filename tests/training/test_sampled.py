"""Rollouts by an engine, here one that reads whole rows with transformers; vLLM itself is in tests/with_vllm."""

import dataclasses
import types

import numpy as np
import pytest
import torch
from tests.architectures import second_in_rest
from tests.tiny import MODEL

from dualread.errors import TrainingError
from dualread.models import own_pass
from dualread.models.actor import Rollout, drawn_with
from dualread.models.backbones.checkpoint import load, open_checkpoint
from dualread.seeding import generator
from dualread.training import _rollouts, dcpo, grpo
from dualread.training._reference import FLOAT32, RATIO
from dualread.training.rewards import dcpo as dcpo_reward

pytestmark = pytest.mark.rest


class Engine:
    """A model of its own, which gets the weights and samples from full passes, one token after the other.

    `added` is added to each log-probability that it gives back, `lost` are weights that do not reach it, `told` differs
    in what it reports. It draws from the `likeliest` ids alone, by the seeds of `seeded`, and gives back what `cut`
    makes of ids and log-probabilities.
    """

    def __init__(
        self, checkpoint, model, *, added=0.0, lost=(), told=None, likeliest=None, seeded=None, cut=lambda *row: row
    ):
        self.opened, self.added, self.lost = open_checkpoint(checkpoint, model), added, lost
        self.told, self.likeliest, self.seeded, self.cut = told or {}, likeliest, seeded, cut
        self.asked, self.closed = [], False

    def roll_out(self, weights, prompts, decoding, seeds):
        given, own = dict(weights), self.opened.model.state_dict()
        assert given.keys() == own.keys()  # a tied weight comes under each of its names
        self.opened.model.load_state_dict({name: (own if name in self.lost else given)[name] for name in own})
        self.asked.append((decoding.temperature, list(seeds)))
        by = seeds if self.seeded is None else [self.seeded(i) for i in range(len(seeds))]
        return [self._drawn(*row[:1], decoding, *row[1:]) for row in zip(prompts, seeds, by, strict=True)]

    def _drawn(self, prompt, decoding, seed, drawn_by):
        ids, log_probs = self.cut(*self._complete(prompt, decoding, drawn_by))
        told = {
            **{"temperature": decoding.temperature, "top_p": decoding.top_p, "seed": seed},
            **{"max_completion_tokens": decoding.max_completion_tokens},
            **{"stop": self.opened.encoder.stop, "forbidden": self.opened.encoder.forbidden},
        }
        return Rollout(token_ids=ids, log_probs=log_probs, drawn_with=drawn_with(**told) | self.told)

    def _complete(self, prompt, decoding, seed):
        opened, ids, log_probs = self.opened, [], []
        for u in generator("engine", seed).random(decoding.max_completion_tokens):
            with torch.inference_mode():
                inputs = {**opened.encoder.batch([prompt], [ids]), **prompt.image}
                logits = opened.model(**inputs).logits[0, -1].double()
            log_p = logits.log_softmax(dim=-1).numpy()
            p = np.exp(log_p)
            p[list(opened.encoder.forbidden)] = 0
            if self.likeliest:
                p[np.argsort(p)[: -self.likeliest]] = 0
            ids.append(int(np.searchsorted(p.cumsum(), u * p.sum())))
            log_probs.append(float(log_p[ids[-1]]) + self.added)
            if ids[-1] in opened.encoder.stop:
                break
        return ids, log_probs

    def close(self):
        self.closed = True


@pytest.fixture
def sampled(job):
    """Return a function that makes a job with an `Engine`, and returns it with the list of the engines it opens."""

    def make(name="actor", *, fault=None, **settings):
        opened = []

        def open_rollouts(checkpoint, model, given, gpus):
            opened.append(Engine(checkpoint, model, **(fault or {}), **given))
            return opened[-1]

        module = types.SimpleNamespace(open_rollouts=open_rollouts)
        return dataclasses.replace(job(name, steps=3, **settings), rollouts=module), opened

    return make


def of(log, name):
    return [row["value"] for row in log if row["name"] == name]


@second_in_rest
def test_the_engine_has_the_weights_of_every_step(sampled):
    job, opened = sampled()
    differences = of(grpo.train(job), "rollout_difference")
    assert len(differences) == 3
    assert 0 < max(differences) < 1e-5
    [engine] = opened
    assert engine.closed
    assert [len(seeds) for _, seeds in engine.asked] == [4, 4, 4]
    # Every completion of every step has a stream of its own.
    assert len({seed for _, seeds in engine.asked for seed in seeds}) == 12


def test_weights_that_do_not_reach_the_engine_end_the_training_when_they_have_changed(tiny, sampled):
    names = tuple(load(tiny.checkpoint, MODEL).state_dict())
    job, _ = sampled(fault={"lost": names}, learning_rate=0.01)
    # Warm-up: the first step learns nothing, the second one does, and the third one has other weights.
    message = r"in step 3, .* by 0\.\d+ nats on average over \d+ tokens, expected at most 0\.0001 \(rounding\)"
    with pytest.raises(TrainingError, match=message):
        grpo.train(job)
    assert not job.out.exists()


def test_a_difference_that_is_rounding_is_logged(sampled):
    job, _ = sampled(fault={"added": 0.5 * FLOAT32})
    assert of(grpo.train(job), "rollout_difference") == pytest.approx([0.5 * FLOAT32] * 3, rel=0.05)


def test_in_bfloat16_the_bound_is_what_weights_and_states_in_bfloat16_change(sampled, calls):
    checks, weights = calls(_rollouts, "check"), calls(_rollouts, "merged_weights")
    job, _ = sampled()
    grpo.train(dataclasses.replace(job, backbone_settings={**MODEL, "dtype": "bfloat16"}))
    assert len(checks) == 3
    bounds = [(difference, rounding) for difference, _, rounding, _ in (check.arguments for check in checks)]
    assert all(1e-5 < difference < FLOAT32 + RATIO * rounding < 0.1 for difference, rounding in bounds)
    assert weights[0].arguments[0].dtype == torch.float32  # the weights are not left in bfloat16


def test_weights_come_back_as_they_were(tiny):
    model = load(tiny.checkpoint, MODEL)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with own_pass.in_bfloat16(model):
        assert {weight.dtype for weight in model.parameters()} == {torch.bfloat16}
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_an_adapter_reaches_the_engine_merged_and_is_not_changed(tiny, sampled):
    job, opened = sampled(lora={"rank": 2, "alpha": 4, "vision": True}, learning_rate=0.01)
    differences = of(grpo.train(job), "rollout_difference")
    assert max(differences) < 1e-5
    # The engine's last weights are the base with the adapter as of the start of step 3: neither the base nor the actor.
    given, base, actor = (
        dict(model.state_dict())
        for model in (opened[0].opened.model, load(tiny.checkpoint, MODEL), load(job.out, MODEL))
    )
    moved = [name for name in base if not torch.equal(base[name], actor[name])]
    assert moved
    assert all(not torch.equal(given[name], base[name]) and not torch.equal(given[name], actor[name]) for name in moved)
    assert all(torch.equal(given[name], base[name]) for name in base if name not in moved)


def test_the_correction_weighs_tokens_by_the_ratio_of_both_probabilities(sampled):
    # The engine says log p + .00005, so that every ratio is exp(-.00005).
    job, _ = sampled(fault={"added": 5e-5}, importance_sampling={"mode": "token_truncate", "clip_max": 2.0})
    ratios = of(grpo.train(job), "importance_ratio")
    assert ratios == pytest.approx([np.exp(-5e-5)] * 3, abs=2e-6)


def test_other_algorithms_are_sampled_for_as_well(sampled):
    job, opened = sampled(reward=dcpo_reward, gamma=0.5, kl_coefficient=1e-3)
    assert max(of(dcpo.train(job), "rollout_difference")) < 1e-5
    assert len(opened[0].asked) == 3


def test_later_steps_on_the_same_completions_are_of_another_policy_and_are_not_compared(sampled):
    job, opened = sampled(num_iterations=3, learning_rate=0.01)
    grpo.train(job)
    assert [len(seeds) for _, seeds in opened[0].asked] == [4]


def test_where_all_completions_are_cut_and_masked_there_is_nothing_to_compare(sampled):
    job, _ = sampled(mask_truncated_completions=True, max_completion_tokens=1)
    assert set(of(grpo.train(job), "gradient_norm")) == {0.0}


OF_ONE = "in step 1, completion 1 of 4"
STILL = {"prompts_per_step": 3, "completions_per_pass": 6, "learning_rate": 1e-12}  # no step changes the policy
MANY = {"prompts_per_step": 3, "group_size": 4, "completions_per_pass": 12}
# By what an engine does: its faults, settings of the training, and the message.
FAULTS = {
    "draws at another temperature": ({"told": {"temperature": 0.7}}, {}, "in step 1, .* temperature: "),
    "draws by another seed": ({"told": {"seed": 1}}, {}, "in step 1, .* seed: "),
    "draws from few ids": ({"told": {"top_k": 5}}, {}, "in step 1, .* top_k: "),
    # Other ids than were drawn come back; none is a stop token.
    "cuts": ({"cut": lambda ids, log_probs: (ids[:3], log_probs[:3])}, {}, OF_ONE),
    "goes on": ({"cut": lambda ids, log_probs: ([*ids, ids[0]], [*log_probs, -1.0])}, {}, OF_ONE),
    "gives nothing": ({"cut": lambda ids, log_probs: ([], [])}, {}, OF_ONE),
    "leaves out a log-probability": ({"cut": lambda ids, log_probs: (ids, log_probs[:-1])}, {}, OF_ONE),
    # Log-probabilities are right.
    "draws from another distribution": ({"likeliest": 20}, MANY, "too likely"),
    "has one seed for a group": ({"seeded": lambda i: i // 2}, STILL, "copies of others"),
    "has the same seeds in each step": ({"seeded": lambda i: i}, STILL, "copies of others"),
    "differs": ({"added": 2 * FLOAT32}, {}, "in step 1, the log-probabilities of the rollouts differ"),
    "says what is no number": ({"added": np.nan}, {}, "in step 1, the log-probabilities of the rollouts differ"),
}


@pytest.mark.parametrize(("fault", "settings", "message"), FAULTS.values(), ids=FAULTS)
def test_an_engine_with_a_fault_ends_the_training(sampled, fault, settings, message):
    job, opened = sampled(fault=fault, **settings)
    with pytest.raises(TrainingError, match=message):
        grpo.train(job)
    assert opened[0].closed


def test_a_parameter_without_a_value_is_the_engines_default(sampled):
    job, _ = sampled(fault={"told": {"top_k": None}})
    assert len(of(grpo.train(job), "rollout_difference")) == 3


def test_an_engine_that_fails_in_the_trainers_process_ends_in_a_sentence(sampled):
    def failing(*_):
        raise RuntimeError("CUDA out of memory")

    job, opened = sampled(fault={"cut": failing})
    with pytest.raises(TrainingError, match=r"in step 1, .*RuntimeError: CUDA out of memory"):
        grpo.train(job)
    assert opened[0].closed
    with pytest.raises(TrainingError, match="cannot be opened"):
        grpo.train(dataclasses.replace(job, rollouts=types.SimpleNamespace(open_rollouts=failing)))
