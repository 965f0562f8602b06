import math
import types

import polars as pl
import pytest
from tests.architectures import second_in_rest
from trl.trainer.grpo_trainer import GRPOTrainer

from dualread.errors import DataError, TrainingError
from dualread.training import _grpo_trainer, dcpo, grpo, vl_calibration
from dualread.training.grpo import train
from dualread.training.rewards import dcpo as dcpo_reward
from dualread.training.rewards import rlcr, rlvr
from dualread.training.rewards import vl_calibration as vl_reward
from dualread.training.trainer import Algorithm, _reward_function, counted


@second_in_rest
def test_the_turns_before_the_question_are_trained_on(tiny, job, calls):
    """The training itself compares what TRL makes of a prompt with transformers alone (`_reference`)."""
    turns = (("system", "You read images."), ("user", "Ready?"), ("assistant", "Yes."))
    rollouts = calls(_grpo_trainer, "roll_out")
    for algorithm, more in ((grpo, {}), (vl_calibration, {"patch_pixels": 8, "reward": vl_reward})):
        assert algorithm.train(job(f"{algorithm.__name__} turns", before=turns, **more))
    encoder = tiny.open().encoder
    texts = {encoder.tokenizer.decode(call.arguments[1][0].token_ids) for call in rollouts}
    assert all("You read images." in text and text.index("Ready?") < text.index("Yes.") for text in texts)
    image_token = encoder.processor.image_token
    assert all(text.index("Yes.") < text.index(image_token) for text in texts)


def test_a_prompt_that_is_too_long_is_refused_and_named(job):
    with pytest.raises(DataError, match=r"the prompt has \d+ tokens with its image, more than max_prompt_tokens = 17"):
        train(job("long", max_prompt_tokens=17))


def test_terms_are_logged_over_the_defined_values_of_all_processes(monkeypatch):
    # one completion on another process
    monkeypatch.setattr(
        "accelerate.utils.gather_object", lambda mine: [math.nan if math.isnan(mine[0]) else 0.9, *mine]
    )
    reward = types.SimpleNamespace(
        CONTRACT="single",
        reward=lambda found, bonus, **_: bonus,
        terms=lambda found, bonus, **_: {"seen": [0.5, math.nan], "none": [math.nan] * 2},
    )
    logged = {}
    job = types.SimpleNamespace(reward=reward)
    values = _reward_function(job, Algorithm())(
        completions=[[{"content": "<answer>gold</answer>"}], [{"content": "b"}]],
        reference_answers=[["gold"], ["gold"]],
        log_metric=logged.__setitem__,
        sample_id=["a", "b"],
        trainer_state=types.SimpleNamespace(global_step=0),
        bonus=[1.0, 0.0],
    )
    assert values == [1.0, 0.0]
    # .9 and .5: mean .7, population deviation .2. Of .9, 1, 0 and of .9, 0, 0: nobody states a confidence.
    assert logged == {
        "terms/seen/mean": pytest.approx(0.7),
        "terms/seen/std": pytest.approx(0.2),
        "terms/correct/mean": pytest.approx(1.9 / 3),
        "terms/correct/std": pytest.approx((1.81 / 3 - (1.9 / 3) ** 2) ** 0.5),
        "terms/valid/mean": pytest.approx(0.3),
        "terms/valid/std": pytest.approx((0.81 / 3 - 0.09) ** 0.5),
    }


@second_in_rest
def test_kl_is_measured_against_the_base_and_only_if_it_has_a_coefficient(answered, calls):
    make, _ = answered
    losses = calls(GRPOTrainer, "_compute_loss")
    log = pl.DataFrame(train(make("with", reward=rlvr, kl_coefficient=1.0)))
    kl = log.filter(pl.col("name") == "kl")["value"]
    assert kl[0] == pytest.approx(0.0, abs=1e-6)  # the policy still equals the base
    assert kl[1] > 1e-3  # and differs from it after a step
    assert all(loss.arguments[2]["ref_per_token_logps"] is not None for loss in losses)

    losses.clear()
    free = pl.DataFrame(train(make("without", reward=rlvr)))
    assert free.filter(pl.col("name") == "kl").height == 0
    assert [loss.arguments[2].get("ref_per_token_logps") for loss in losses] == [None, None]
    held, moved = ((make(name).out / "model.safetensors").read_bytes() for name in ("with", "without"))
    assert held != moved


@pytest.mark.parametrize(
    ("algorithm", "reward", "settings"),
    [(grpo, rlcr, {}), (dcpo, dcpo_reward, {"gamma": 0.5})],
    ids=["rlcr", "dcpo"],
)
def test_every_train_log_has_accuracy_validity_and_confidence(answered, algorithm, reward, settings):
    make, _ = answered
    log = pl.DataFrame(algorithm.train(make("actor", reward=reward, steps=1, **settings)))
    found = dict(zip(log["name"], log["value"], strict=True))
    assert found["terms/correct/mean"] == 0.5
    assert found["terms/valid/mean"] == 0.75
    assert found["terms/confidence/mean"] == pytest.approx(2.3 / 3)  # of .9, .5, .9; the fourth completion states none
    # deviations from 23/30 are 4/30, -8/30, 4/30: sqrt(96 / 900 / 3)
    assert found["terms/confidence/std"] == pytest.approx((96 / 2700) ** 0.5)
    assert found["gradient_norm"] > 0
    assert found["seconds"] > 0


def test_processes_that_train_together_keep_no_second_copy_of_the_gradients(job, calls):
    steps = calls(GRPOTrainer, "training_step")
    train(job("actor", steps=1))
    [trainer] = [step.arguments[0] for step in steps]
    assert trainer.accelerator.ddp_handler.to_kwargs()["gradient_as_bucket_view"]


def always(value):
    calls = []

    def reward(found, **columns):
        calls.append(len(found))
        return value(found) if callable(value) else [1.0, value] * (len(found) // 2)

    return types.SimpleNamespace(CONTRACT="single", reward=reward, calls=calls)


@pytest.mark.parametrize("value", [math.nan, None, 1e39, "high", lambda found: [0.5]], ids=lambda value: str(value)[:9])
def test_a_reward_that_is_no_finite_number_ends_the_first_step(job, value):
    reward = always(value)
    with pytest.raises(TrainingError, match="the reward"):
        train(job("actor", reward=reward))
    assert reward.calls == [4]
    assert not job("actor").out.exists()


def test_rewards_without_spread_are_an_error_at_the_end(job):
    with pytest.raises(TrainingError, match=r"4 of 4 groups .*, 2 of 2 steps moved"):
        train(job("actor", reward=always(1.0), may_learn_nothing=False))
    assert not job("actor").out.exists()
    assert train(job("actor", reward=always(1.0)))
    assert job("actor").out.exists()
    assert train(job("other", may_learn_nothing=False))  # rewards that differ


def test_a_gradient_that_is_no_number_ends_its_step(job, monkeypatch):
    right = GRPOTrainer._compute_loss
    monkeypatch.setattr(GRPOTrainer, "_compute_loss", lambda self, *given: right(self, *given) * math.nan)
    with pytest.raises(TrainingError, match="in step 1, the norm"):
        train(job("actor"))


def test_groups_and_steps_are_counted_by_hand():
    # Step 1 has the rate 0; in step 2, one of four groups has a spread; step 3 has no gradient.
    values = {"groups_without_spread": (0, 0.75, 1), "gradient_norm": (1, 2, 0), "learning_rate": (0, 0.1, 0.1)}
    log = [
        {"step": step, "name": name, "value": value}
        for name, of_steps in values.items()
        for step, value in enumerate(of_steps)
    ]
    assert counted(log, 4) == (7, 12, 2, 3)
