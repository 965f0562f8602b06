"""Seconds computed by hand for a model of 1e9 parameters on a machine with round numbers."""

import pytest

from dualread import plugins
from dualread.commands.plan.models import Large, Tiny, encoding, longest_of, model_of, reading
from dualread.declared.answers import Choices
from dualread.errors import ConfigError
from dualread.models import prompts, training
from dualread.models.training.settings import TrainingSettings
from tests import specs, tiny

GPU = {
    "flops": 1e15, "float32_flops": 1e14, "flops_share": 0.5, "bandwidth": 4e12, "bandwidth_share": 0.5,
    "least_step_seconds": {"fast": 0.001, "other": 0.01}, "sequences": 256, "start": 60, "train_passes": 4,
}  # fmt: skip
# Images of one size, so that prompts are padded to the length that all of them have.
TEXT = {
    "characters_per_token": 4, "question_tokens": 30, "image_pixels": 400_000, "largest_image_pixels": 400_000,
    "completion_share": 0.5,
}  # fmt: skip
SIZE = {
    "parameters": 1e9,
    "hidden_size": 1000,
    "feed_forward": 2000,
    "layers": 10,
    "attention_width": 1000,
    "key_value_width": 500,
    "vocabulary": 100_000,
    "pixels_per_token": 1000,
    "patches_per_token": 4,
    "values_per_pixel": 3,
    "vision_width": 100,
    "vision_feed_forward": 200,
    "vision_layers": 5,
    "vision_rotary": True,
}
# tokens of the shared prompt: its text / 4 + 30, and 400,000 / 1,000 pixels
SAID = len(prompts.template("shared")) / 4 + 30
READ = SAID + 400
# 5 layers x 1,600 patches x (2 x (4 x 100 x 100 + 2 x 100 x 200) weights + 4 x 100 x 1,600 of attention)
ENCODED = 5 * 1600 * (2 * 80_000 + 640_000)
RATE = 0.5e15


def read(tokens, columns):
    """10 layers x (2 x (2 x 1,000 x 1,500 + 3 x 1,000 x 2,000) weights + 4 x 1,000 x columns of attention)."""
    return 10 * tokens * (2 * 9_000_000 + 4000 * columns)


def trained_with(**changes):
    return TrainingSettings(**{**tiny.GRPO, **GRPO, **changes})


def large(**changes):
    fields = {
        "size": SIZE, "dtype": "bfloat16", "pixels": (1, 10**9), "at_once": 10, "padded": True, "replayed": 10,
        "committed": 100, "least_step": 0.001, "least_training_step": 0.001, "gpu": GPU, "text": TEXT,
    }  # fmt: skip
    return Large(**{**fields, **changes})


def asked(n_samples=1, budget=100, **changes):
    decoding = specs.decoding(n_samples=n_samples, max_completion_tokens=budget)
    return specs.shard(**{"decoding": decoding} | changes)


def test_a_prompt_has_its_text_and_its_image():
    assert large().prompt_tokens("shared") == READ
    assert large(pixels=(1, 256_000)).prompt_tokens("shared") == READ - 400 + 256  # images are made smaller ...
    assert large(pixels=(800_000, 900_000)).prompt_tokens("shared") == READ + 400  # ... or larger


def test_operations_of_a_row_and_of_an_image():
    assert reading(SIZE, 7, 90) == read(7, 90)
    assert encoding(SIZE, 400_000) == ENCODED


def test_the_longest_of_some_rows():
    assert longest_of(1, 50, 100) == 50
    assert longest_of(3, 50, 100) == 75  # of three numbers between 0 and 100, the largest is 75 on average
    assert longest_of(9, 50, 100) == 90
    assert longest_of(10**9, 50, 100) == pytest.approx(100)


def test_generation_pads_prompts_and_completions():
    # ten answers at once: the longest of ten takes 100 - 50 x 2 / 11 steps, and the rows that are computed are 7 / 6 of
    # those that go on. A step moves 2e9 bytes of weights, and of each row 10 layers x 500 numbers x 4 bytes a token.
    steps, tokens = 100 - 100 / 11, 10 * 50 * 7 / 6
    moved = (steps * 2e9 + tokens * (READ + 25) * 10 * 500 * 4) / 2e12
    assert moved > steps * 0.001
    seconds = (10 * read(READ, READ) + distinct(10, 1000) * ENCODED) / RATE + moved
    assert large().generate("answers", asked(), 1000, 1000) == pytest.approx(100 * seconds)


def distinct(n, images):
    return images * (1 - (1 - 1 / images) ** n)


def test_images_of_several_sizes_are_padded():
    text = {**TEXT, "image_pixels": 300_000, "largest_image_pixels": 500_000}
    words = asked(choices=Choices(words=["Yes", "No"]), decoding=None)
    # the longest of ten has 500 - 200 x 2 / 11 image tokens, and images are encoded at their own size
    columns = SAID + 500 - 400 / 11
    seconds = (10 * read(columns, columns) + distinct(10, 50) * encoding(SIZE, 300_000)) / RATE
    assert large(text=text).generate("words", words, 100, 50) == pytest.approx(10 * seconds)


def test_vllm_pads_nothing_and_reads_each_image_once():
    moved = (100 * 50 / 10 * 2e9 + 100 * 50 * (READ + 25) * 10 * 500 * 4) / 2e12
    seconds = (100 * read(SAID, READ) + 20 * (read(400, 400) + ENCODED)) / RATE + moved
    assert large(padded=False).generate("answers", asked(), 100, 20) == pytest.approx(seconds)


@pytest.mark.parametrize("padded", [True, False])
def test_samples_share_their_prompt(padded):
    model = large(padded=padded, at_once=80)
    one, eight = (model.generate("samples", asked(n), 100, 100) for n in (1, 8))
    assert eight < 8 * one
    assert eight > one


def test_a_generation_step_has_a_minimum_time():
    slow, fast = (large(least_step=least).generate("answers", asked(), 10, 10) for least in (0.5, 0.001))
    steps = 100 - 100 / 11
    assert slow - fast == pytest.approx(steps * 0.5 - (steps * 2e9 + 10 * 50 * 7 / 6 * (READ + 25) * 20_000) / 2e12)


def test_integers_are_read_behind_the_answer():
    integers = asked(choices=Choices(integers=[0, 100]), decoding=None)
    columns = READ + 50 + 101
    seconds = (10 * read(columns, columns) + distinct(10, 10) * ENCODED) / RATE
    assert large().generate("integers", integers, 10, 10) == pytest.approx(seconds)


def test_a_replay_reads_each_image_once_per_batch_and_the_head_in_float32():
    # 20 images, of which 10 occur in two batches
    shared = 30 * (read(400, 400) + ENCODED)
    seconds = (shared + 100 * read(SAID + 50, READ + 50)) / RATE + 100 * 50 * 2e8 / 0.5e14
    # and 32 answers in whole batches of ten, in both precisions
    columns = READ + 100 - 100 / 11
    whole = 32 * (read(columns, columns) + 50 * 2e8) + distinct(32, 20) * ENCODED
    assert large().replay(asked(), 100, 20) == pytest.approx(seconds + whole / RATE + whole / 0.5e14)
    exact = (shared + 100 * read(SAID + 50, READ + 50) + 100 * 50 * 2e8) / 0.5e14
    assert large(dtype="float32").replay(asked(), 100, 20) == pytest.approx(exact)


GRPO = {
    "prompts_per_step": 4, "group_size": 5, "max_completion_tokens": 100, "kl_coefficient": 0.0, "processes": 2,
    "completions_per_pass": 5,
}  # fmt: skip


def test_training_samples_in_pieces_and_learns_from_padded_rows():
    # on each of two processes 10 completions in two pieces of 5, each about one image; keys take 4 bytes, values 2
    steps, tokens = 100 - 100 / 6, 5 * 50 * 7 / 6
    moved = (steps * 2e9 + tokens * (READ + 25) * 10 * 500 * 6) / 2e12
    piece = (read(READ, READ) + ENCODED) / RATE + max(moved, steps * 0.001)
    # as long as the longest of ten; the head reads the 50 tokens that a completion has on average
    columns, head = READ + 100 - 100 / 11, 50 * 2e8
    once = read(columns, columns) + ENCODED + head
    expected = 3 * 2 * (2 * piece + 10 * 4 * once / RATE)
    assert large().train("grpo", trained_with(), 3, "shared") == pytest.approx(expected)
    with_penalty = large().train("grpo", trained_with(kl_coefficient=0.1), 3, "shared")
    assert with_penalty - expected == pytest.approx(3 * 2 * 10 * once / RATE)
    # two more passes, in which the completions of a prompt share its image
    extra = read(columns, columns) + ENCODED / 5 + head
    two_more = large().train("vl_calibration", trained_with(), 3, "shared") - expected
    assert two_more == pytest.approx(3 * 2 * 10 * 2 * extra / RATE)


def test_larger_pieces_take_less_time():
    small, whole = (large().train("grpo", trained_with(completions_per_pass=rows), 3, "shared") for rows in (1, 10))
    assert whole < small


def test_rollouts_have_pieces_of_their_own():
    def seconds(algorithm="grpo", **changes):
        return large(least_training_step=0.1).train(algorithm, trained_with(**changes), 3, "shared")

    # on each of two processes, instead of two pieces of 5 one of 10, which is as long as the longest of ten
    two, one = 2 * (100 - 100 / 6) * 0.1, (100 - 100 / 11) * 0.1
    assert seconds() - seconds(rollouts_per_pass=10) == pytest.approx(3 * 2 * (two - one))
    assert seconds(rollouts_per_pass=1000) == seconds(rollouts_per_pass=10)  # a process has only 10
    assert seconds(rollouts_per_pass=5) == seconds()
    assert seconds(rollouts_per_pass=1) > seconds()
    # learning, and the passes in which completions share an image, are as before
    extra_passes = seconds("vl_calibration") - seconds()
    assert seconds("vl_calibration", rollouts_per_pass=10) - seconds(rollouts_per_pass=10) == pytest.approx(
        extra_passes
    )


def test_an_engine_gets_the_weights_and_samples_all_completions_of_a_step_together():
    by_vllm = {"rollouts": "vllm", "rollout_settings": {"max_num_seqs": 8}}
    # On each of two processes, 10 completions of two prompts, each about one image. 8 go on together, so that the 500
    # tokens take 62.5 steps, but the longest of 8 takes 100 - 50 x 2 / 9. Keys and values are bfloat16.
    steps = 100 - 100 / 9
    moved = (steps * 2e9 + 500 * (READ + 25) * 10 * 500 * 4) / 2e12
    pushed = 1e9 * (4 + 2) / 2e12
    sampled = 2 * (read(READ, READ) + ENCODED) / RATE + moved + pushed
    steps, tokens = 100 - 100 / 6, 5 * 50 * 7 / 6
    own = (read(READ, READ) + ENCODED) / RATE + (steps * 2e9 + tokens * (READ + 25) * 10 * 500 * 6) / 2e12
    alone = large().train("grpo", trained_with(), 3, "shared")
    with_vllm = large().train("grpo", trained_with(**by_vllm), 3, "shared")
    saved = alone - with_vllm
    assert saved == pytest.approx(3 * 2 * (2 * own - sampled))
    # more than go on together wait for each other: 500 tokens in 125 steps of 4
    four = trained_with(rollouts="vllm", rollout_settings={"max_num_seqs": 4})
    slower = large().train("grpo", four, 3, "shared") - with_vllm
    assert slower == pytest.approx(3 * 2 * (125 - 100 + 100 / 9) * 2e9 / 2e12)
    # Two GPUs of their own have 5 completions each, of one prompt. Learning takes as long, and all three wait for it.
    steps = 100 - 100 / 6
    sampled_apart = (read(READ, READ) + ENCODED) / RATE + pushed
    sampled_apart += (steps * 2e9 + 250 * (READ + 25) * 10 * 500 * 4) / 2e12
    learned = with_vllm / (3 * 2) - sampled
    apart = large().train("grpo", trained_with(**by_vllm, rollout_gpus=2), 3, "shared")
    assert apart == pytest.approx(3 * 2 * 3 * (sampled_apart + learned))


def test_a_tiny_model_takes_the_measured_time():
    model = Tiny(unit={"train_completion": 0.5, "extra_pass": 0.125, "generate": {"samples": 0.25},
                       "replay_answer": 2.0, "start": {"model": 3, "training": 4}})  # fmt: skip
    settings = trained_with(prompts_per_step=4, group_size=8)
    assert model.train("grpo", settings, 10, "shared") == 160  # 320 completions
    assert model.train("vl_calibration", settings, 10, "shared") == 240  # 320 x (0.5 + two extra passes of 0.125)
    assert model.generate("samples", asked(8), 10, 10) == 20
    assert model.replay(asked(), 10, 10) == 20
    assert (model.start(training=False), model.start(training=True)) == (3, 4)


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
    model = Tiny(unit={"train_completion": 0.5, "extra_pass": 0.125})
    assert model.train("plain", trained_with(), 10, "shared") == model.train("grpo", trained_with(), 10, "shared")
    assert model.train("thorough", trained_with(), 10, "shared") == 175  # 200 x (0.5 + three extra passes of 0.125)
    grpo, plain, thorough = (large().train(name, trained_with(), 3, "shared") for name in ("grpo", "plain", "thorough"))
    assert plain == grpo
    vl_calibration = large().train("vl_calibration", trained_with(), 3, "shared")
    assert thorough - plain == pytest.approx(1.5 * (vl_calibration - plain))  # three extra passes to two


def test_a_backbone_is_tiny_or_large():
    settings = {"min_pixels": 1, "max_pixels": 2, "dtype": "bfloat16"}
    checkpoint = {"source": {"hub": "a/b"}, "settings": settings}
    config = {
        "backbones": {
            "made": {"source": {"pretrain": {}}},
            "whole": {**checkpoint, "size": SIZE},
            "unknown": checkpoint,
        },
        "generation": {
            "engine": "fast",
            "settings": {"batch_size": 7},
            "decoding": {"max_completion_tokens": 100},
        },
        "replay": {"settings": {"batch_size": 3}},
    }
    costs = {"tiny": {}, "gpu": GPU, "text": TEXT}
    assert model_of(config, "made", costs).device == "cpu"
    whole = model_of(config, "whole", costs)
    assert isinstance(whole, Large)
    assert (whole.padded, whole.replayed, whole.committed) == (True, 3, 100)
    assert (whole.device, whole.at_once, whole.least_step, whole.least_training_step) == ("gpu", 7, 0.001, 0.01)
    with pytest.raises(ConfigError, match=r"backbones.unknown.size: missing"):
        model_of(config, "unknown", costs)


def test_a_sharded_training_waits_for_what_is_sent():
    """4 GB of weights twice and of gradients once, at half of 6e10 bytes a second: .4 s per pass, 4 passes of 2."""
    of = large(gpu={**GPU, "flops": 1e30, "link": 6e10, "network": 6e9})

    def seconds(steps=1, **changes):
        given = {"processes": 2, "prompts_per_step": 4, "group_size": 4, "completions_per_pass": 2, **changes}
        return of.train("grpo", trained_with(**given), steps, "shared")

    alone = seconds()
    assert seconds(shard="full") - alone == pytest.approx(2 * 4 * 0.4)
    assert seconds(shard="optimizer") - alone == pytest.approx(2 * 4 * 0.4 * 2 / 3)
    assert seconds(shard="full", kl_coefficient=0.1) - alone == pytest.approx(2 * 4 * 0.4 * 4 / 3)
    assert seconds(shard="full", nodes=2) - alone == pytest.approx(2 * 4 * 4.0)
    # of an adapter, two bytes of each weight of the base, and hardly any gradients
    adapted = {"lora": {"rank": 2, "alpha": 4}}
    assert seconds(shard="full", **adapted) - seconds(**adapted) == pytest.approx(2 * 4 * 0.4 / 3)
    # it overlaps with what is computed
    slow = large(gpu={**GPU, "flops": 1e12, "link": 6e10})
    given = trained_with(processes=2, prompts_per_step=4, group_size=4, completions_per_pass=2)
    assert slow.train("grpo", given.model_copy(update={"shard": "full"}), 1, "shared") == slow.train(
        "grpo", given, 1, "shared"
    )
