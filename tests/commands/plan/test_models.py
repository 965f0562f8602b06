"""Seconds computed by hand for a model of 1e9 parameters on a machine with round numbers."""

import pytest

from dualread import plugins
from dualread.commands.plan.models import Large, Tiny, model_of
from dualread.errors import ConfigError
from dualread.models import prompts, training
from dualread.specs.generation import Choices
from tests import specs

GPU = {
    "flops": 1e15, "flops_share": 0.5, "bandwidth": 4e12, "bandwidth_share": 0.5,
    "least_step_seconds": {"fast": 0.001, "other": 0.01}, "sequences": 256, "start": 60,
    "train_flops": 8, "extra_pass_flops": 2, "reference_flops": 2,
}  # fmt: skip
TEXT = {"characters_per_token": 4, "question_tokens": 30, "image_pixels": 400_000, "completion_share": 0.5}
SIZE = {
    "parameters": 1e9,
    "hidden_size": 2048,
    "layers": 25,
    "key_value_width": 1000,
    "pixels_per_token": 1000,
    "patches_per_token": 4,
    "vision_width": 500,
    "vision_layers": 10,
    "vocabulary": 100_000,
}
# tokens of the shared prompt: its text / 4 + 30 + 400,000 / 1,000 pixels
READ = len(prompts.template("shared")) / 4 + 30 + 400


def large(**changes):
    fields = {
        "size": SIZE, "pixels": (1, 10**9), "at_once": 10, "least_step": 0.001, "least_training_step": 0.001,
        "gpu": GPU, "text": TEXT,
    }  # fmt: skip
    return Large(**{**fields, **changes})


def asked(n_samples=1, budget=100, **changes):
    decoding = specs.decoding(n_samples=n_samples, max_completion_tokens=budget)
    return specs.shard(**{"decoding": decoding} | changes)


def test_a_prompt_has_its_text_and_its_image():
    assert large().prompt_tokens("shared") == READ
    assert large(pixels=(1, 256_000)).prompt_tokens("shared") == READ - 400 + 256  # images are made smaller ...
    assert large(pixels=(800_000, 900_000)).prompt_tokens("shared") == READ + 400  # ... or larger


def test_a_forward_pass_takes_two_operations_per_parameter_and_token():
    # 2 x 1e9 x tokens / (0.5 x 1e15 a second) = 4e-6 seconds a token; a replay reads prompt and 50 tokens of answer
    assert large().replay(asked(), 1000) == pytest.approx(1000 * (READ + 50) * 4e-6)


def test_generation_reads_weights_and_keys_in_every_step():
    # a step: 2e9 bytes of weights, and of 10 sequences READ + 50 tokens x 2 x 25 x 1,000 numbers x 2 bytes, at 2e12
    # bytes a second. 1,000 answers x 50 tokens are 5,000 steps of 10.
    step = (2e9 + 10 * (READ + 50) * 100_000) / 2e12
    assert step > 0.001
    assert large().generate("answers", asked(), 1000) == pytest.approx(1000 * READ * 4e-6 + 5000 * step)


def test_samples_share_their_prompt():
    one, eight = (large().generate("samples", asked(n), 1000) for n in (1, 8))
    read = 1000 * READ * 4e-6
    assert eight - read == pytest.approx(8 * (one - read))


def test_a_generation_step_has_a_minimum_time():
    slow = large(least_step=0.5).generate("answers", asked(), 1000)
    assert slow == pytest.approx(1000 * READ * 4e-6 + 5000 * 0.5)


def test_choices_need_no_generation():
    words = asked(choices=Choices(words=("Yes", "No")), decoding=None)
    integers = asked(choices=Choices(integers=(0, 100)), decoding=None)
    assert large().generate("words", words, 1000) == pytest.approx(1000 * READ * 4e-6)
    assert large().generate("integers", integers, 1000) == pytest.approx(1000 * (READ + 100) * 4e-6)


def test_training_samples_and_learns():
    settings = {
        "prompts_per_step": 4,
        "group_size": 5,
        "max_completion_tokens": 100,
        "kl_coefficient": 0.0,
        "processes": 2,
    }
    # 3 steps x 20 completions of 50 tokens, on two processes 10 at once; weights of 4 bytes; learning takes 8 N
    step = (4e9 + 10 * (READ + 50) * 100_000) / 2e12
    rollouts = 60 * READ * 4e-6 + 60 * 50 / 10 * step
    learning = 60 * (READ + 50) * 16e-6
    assert large().train("grpo", settings, 3, "shared") == pytest.approx(rollouts + learning)
    # a KL penalty takes one more forward pass: 2 N, a quarter of 8 N
    with_penalty = large().train("grpo", {**settings, "kl_coefficient": 0.1}, 3, "shared")
    assert with_penalty == pytest.approx(rollouts + 1.25 * learning)
    assert large().train("vl_calibration", settings, 3, "shared") == pytest.approx(rollouts + 1.5 * learning)


def test_a_tiny_model_takes_the_measured_time():
    tiny = Tiny(unit={"train_completion": 0.5, "extra_pass": 0.125, "generate": {"samples": 0.25}, "replay_answer": 2.0,
                      "start": {"model": 3, "training": 4}})  # fmt: skip
    settings = {"prompts_per_step": 4, "group_size": 8}
    assert tiny.train("grpo", settings, 10, "shared") == 160  # 320 completions
    assert tiny.train("vl_calibration", settings, 10, "shared") == 240  # 320 x (0.5 + two extra passes of 0.125)
    assert tiny.generate("samples", asked(8), 10) == 20
    assert tiny.replay(asked(), 10) == 20
    assert (tiny.start(training=False), tiny.start(training=True)) == (3, 4)


@pytest.fixture
def with_new_algorithms(monkeypatch, tmp_path):
    """Two training plugins that no other file names: one declares what it costs, the other nothing."""
    train = "def train(job):\n    return []\n"
    (tmp_path / "plain.py").write_text(train)
    (tmp_path / "thorough.py").write_text("EXTRA_PASSES = 3\n" + train)
    monkeypatch.setattr(training.__spec__, "submodule_search_locations", [*training.__path__, str(tmp_path)])
    plugins.known.cache_clear()
    yield
    plugins.known.cache_clear()
    plugins.declared.cache_clear()


@pytest.mark.usefixtures("with_new_algorithms")
def test_a_new_training_algorithm_needs_no_entry_in_the_costs():
    settings = {"prompts_per_step": 4, "group_size": 8, "max_completion_tokens": 100, "kl_coefficient": 0.0}
    tiny = Tiny(unit={"train_completion": 0.5, "extra_pass": 0.125})
    assert tiny.train("plain", settings, 10, "shared") == tiny.train("grpo", settings, 10, "shared")
    assert tiny.train("thorough", settings, 10, "shared") == 280  # 320 x (0.5 + three extra passes of 0.125)
    plain, thorough = (large().train(name, settings, 3, "shared") for name in ("plain", "thorough"))
    assert plain == large().train("grpo", settings, 3, "shared")
    # 3 x 32 completions of 50 tokens, and three extra passes of 2 N each: 6e9 operations at 0.5e15 per second
    assert thorough - plain == pytest.approx(96 * (READ + 50) * 12e-6)


def test_a_backbone_is_tiny_or_large():
    checkpoint = {"source": {"hub": "a/b"}, "settings": {"min_pixels": 1, "max_pixels": 2}}
    config = {
        "backbones": {
            "made": {"source": {"pretrain": {}}},
            "whole": {**checkpoint, "size": SIZE},
            "unknown": checkpoint,
        },
        "generation": {"engine": "fast", "settings": {"batch_size": 7}},
    }
    costs = {"tiny": {}, "gpu": GPU, "text": TEXT}
    assert model_of(config, "made", costs).device == "cpu"
    whole = model_of(config, "whole", costs)
    assert isinstance(whole, Large)
    assert (whole.device, whole.at_once, whole.least_step, whole.least_training_step) == ("gpu", 7, 0.001, 0.01)
    with pytest.raises(ConfigError, match=r"backbones.unknown.size: missing"):
        model_of(config, "unknown", costs)
