import contextlib
import types
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
import torch
from PIL import Image
from tests.architectures import second_in_rest
from tests.tiny import MODEL, image

from dualread.models import prompts
from dualread.models.backbones.processor import load_processor
from dualread.training import _grpo_trainer, vl_calibration
from dualread.training.rewards import vl_calibration as reward
from dualread.training.vl_calibration import Block, VLCalibration, blacken, measure, vision_tokens

SEEN = "axial ct of the upper left lung"


def completion(answer, vision, reasoning, seen=SEEN):
    return (
        f"<vision>{seen}</vision>\n<reasoning>large lesion</reasoning>\n<answer>{answer}</answer>\n"
        f"<analysis>clear</analysis>\n<confidence><vision_confidence>{vision}</vision_confidence>"
        f"<reasoning_confidence>{reasoning}</reasoning_confidence></confidence>"
    )


# Completions that an untrained model would never generate; the last one has no vision block.
SAID = [
    completion("yes", 9, 8),
    completion("no", 9, 9, seen="What is the size?"),
    completion("yes", 1, 2, seen=" mr \n"),
    completion("large", 5, 5).removeprefix(f"<vision>{SEEN}</vision>"),
]


def encode(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.fixture
def speak(monkeypatch):
    """Return the four texts in turn instead of sampling."""

    def roll_out(opened, rows, *_, **__):
        tokenizer = opened.encoder.tokenizer
        said = [[*encode(tokenizer, text), tokenizer.eos_token_id] for text in SAID]
        return [said[i % len(said)] for i in range(len(rows))]

    monkeypatch.setattr(_grpo_trainer, "roll_out", roll_out)


@pytest.fixture
def run(job):
    def run(name, **changes):
        settings = {"group_size": 4, "completions_per_pass": 8, "patch_pixels": 14} | changes
        log = vl_calibration.train(job(name, reward=reward, prompt="vl_calibration", **settings))
        return pl.DataFrame(log)

    return run


def logged(log, name):
    return log.filter(pl.col("name") == f"terms/{name}")["value"].to_list()


@second_in_rest
def test_training_logs_every_term(run, speak):
    log = run("actor", kl_coefficient=1e-4)
    assert logged(log, "valid/mean") == [1, 1]
    assert logged(log, "five_parts/mean") == [0.75, 0.75]
    assert logged(log, "no_vision_block/mean") == [0.25, 0.25]
    # (9 + 9 + 1 + 5) / 4 / 10
    assert logged(log, "vision_confidence/mean") == pytest.approx([0.6, 0.6])
    assert all(value > 0 for value in logged(log, "confidence/std"))
    assert logged(log, "visual_certainty/mean") == pytest.approx([0.5, 0.5], abs=0.2)
    assert all(value > 1e-4 for value in logged(log, "visual_certainty/std"))
    assert all(0 < value < 10 for value in logged(log, "visual_kl/mean"))
    assert all(0 < value < np.log(400) for value in logged(log, "visual_entropy/mean"))
    assert len(logged(log, "correct/mean")) == 2
    assert log.filter(pl.col("name") == "kl").height == 2
    assert (log.filter(pl.col("name") == "gradient_norm")["value"] > 0).all()


def test_training_also_works_without_any_vision_block(run, speak, monkeypatch):
    monkeypatch.setitem(globals(), "SAID", ["left lung", "<answer>yes</answer>", SAID[3], "<vision>"])
    log = run("actor")
    assert logged(log, "no_vision_block/mean") == [1, 1]
    assert logged(log, "visual_certainty/mean") == []  # undefined is not logged as a number


def held(decode, ids):
    """Return for each token whether it holds a character of the stripped vision block, by decoding every prefix."""
    prefixes = [decode(ids[:t], skip_special_tokens=True) for t in range(len(ids) + 1)]
    seen = prefixes[-1].partition("<vision>")[2].partition("</vision>")[0]
    start = prefixes[-1].find(seen.strip()) if seen else len(prefixes[-1])
    return [
        max(len(before), start) < min(len(after), start + len(seen.strip())) for before, after in pairwise(prefixes)
    ]


@second_in_rest
def test_negative_advantages_are_weighted_in_the_loss_at_exactly_the_vision_tokens(run, speak, monkeypatch):
    from trl.trainer.grpo_trainer import GRPOTrainer

    kept = {}
    scores, loss = GRPOTrainer._get_per_token_logps_and_entropies, GRPOTrainer._compute_loss

    def keep_log_probs(self, *args, **kwargs):
        found = scores(self, *args, **kwargs)
        found[0].retain_grad()
        kept.update(log_probs=found[0], entropy=found[1].detach())
        return found

    def keep_inputs(self, model, inputs):
        kept.update(inputs, decode=self._tokenizer.decode)
        return loss(self, model, inputs)

    monkeypatch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", keep_log_probs)
    monkeypatch.setattr(GRPOTrainer, "_compute_loss", keep_inputs)
    log = run("actor", steps=1)
    n_blamed, entropies = 0, []
    for padded, mask, gradient, entropy in zip(
        kept["completion_ids"].tolist(),
        kept["completion_mask"],
        kept["log_probs"].grad,
        kept["entropy"],
        strict=True,
    ):
        n = int(mask.sum())
        inside = np.array(held(kept["decode"], padded[:n]))
        # The ratio is 1, the loss a mean over 8 completions of means over n tokens: its derivative by a token's
        # log-probability is -advantage / n / 8.
        advantages = -gradient[:n].numpy() * n * 8
        base = advantages[~inside][0]
        entropies += [entropy[:n][inside].mean()] if inside.any() else []
        weights = advantages / base
        assert weights[~inside] == pytest.approx(1, abs=1e-5)
        if base > 0:
            assert weights == pytest.approx(1, abs=1e-5)
        elif inside.any():
            n_blamed += 1
            assert (abs(weights[inside] - 1) > 1e-4).all()
            assert ((weights[inside] > 0.9) & (weights[inside] < 1.1)).all()
    assert n_blamed >= 2
    # The clean pass has the same input as TRL's own pass.
    assert logged(log, "visual_entropy/mean") == [pytest.approx(np.mean(entropies), abs=1e-5)]


@pytest.fixture
def views(tiny):
    """(opened checkpoint, clean and blackened prompt)."""
    opened, rng = tiny.open(), np.random.default_rng(0)
    text, pictures = prompts.render("vl_calibration", question="Where?"), (image(0), blacken(image(0), 14, rng))
    return opened, tuple(opened.encoder.prompt(text, images=[picture], row="0") for picture in pictures)


@second_in_rest
def test_divergences_are_those_of_two_plain_forward_passes(views):
    opened, both = views
    model, encoder = opened.model, opened.encoder
    ids, shorter = (encode(encoder.tokenizer, text) for text in SAID[::2])
    block = measure(opened, [both] * 2, [ids, shorter], temperature=2.0, rows_per_pass=2)[0]
    assert [t in block.tokens for t in range(len(ids))] == held(encoder.tokenizer.decode, ids)
    log_p, log_q = [], []
    for prompt, log_probs in zip(both, (log_p, log_q), strict=True):
        with torch.no_grad():
            logits = model(**encoder.batch([prompt], [ids]), **prompt.image).logits[0]
        # The state at position i predicts the token at i + 1.
        first = len(prompt.token_ids) - 1
        log_probs.extend(torch.log_softmax(logits[first + t].double() / 2, dim=-1).numpy() for t in block.tokens)
    kl = [sum(np.exp(p) * (p - q)) for p, q in zip(log_p, log_q, strict=True)]
    assert block.kl == pytest.approx(kl, rel=1e-3, abs=1e-6)
    assert block.entropy == pytest.approx([-sum(np.exp(p) * p) for p in log_p], abs=1e-4)


def test_the_size_of_a_pass_does_not_change_the_result(views):
    opened, both = views
    completions = [encode(opened.encoder.tokenizer, text) for text in SAID]
    one, four = (measure(opened, [both] * 4, completions, temperature=1.0, rows_per_pass=rows) for rows in (1, 4))
    assert [block is None for block in one] == [False, False, False, True]
    for left, right in zip(one[:3], four[:3], strict=True):
        assert left.tokens == right.tokens
        assert left.kl == pytest.approx(right.kl, abs=1e-6)


def test_vision_tokens_exclude_tags_and_outer_white_space():
    vocabulary = ["<vision>", " \n", "a", " mass", "</vi", "sion>", "<vision>a b", "x</vision>y", "</vision>"]

    def decode(ids):
        return "".join(vocabulary[i] for i in ids)

    assert vision_tokens([0, 1, 2, 3, 4, 5], decode) == (2, 3)
    assert vision_tokens([6, 7], decode) == (0, 1)  # both straddle a tag
    assert vision_tokens([0, 1, 8], decode) == ()
    assert vision_tokens([0, 2, 3], decode) == ()  # never closed
    assert vision_tokens([0, 2, 8, 0, 2, 8], decode) == ()  # twice


@second_in_rest
def test_black_is_black_after_the_processor(tiny, monkeypatch):
    processor = load_processor(tiny.checkpoint, MODEL)
    monkeypatch.setattr(vl_calibration, "BLACK_SHARE", 1.0)
    black = blacken(image(0), 14, np.random.default_rng(0))
    # A pixel of 0 with mean .5 and standard deviation .5: (0 - .5) / .5 = -1
    assert (processor.image_processor(images=[black], return_tensors="pt")["pixel_values"] == -1).all()


def test_four_of_five_patches_are_black():
    white = Image.fromarray(np.full((1400, 1400, 3), 255, np.uint8))
    pixels = np.asarray(blacken(white, 14, np.random.default_rng(1)))
    # 100 x 100 patches; the standard deviation of the share is sqrt(.8 * .2 / 10000) = .004
    assert (pixels == 0).mean() == pytest.approx(0.8, abs=0.016)


def test_patches_are_whole_and_reach_the_edges():
    original = Image.fromarray(np.random.default_rng(0).integers(1, 255, (20, 33, 3)).astype(np.uint8))
    fates = set()
    for seed in range(20):
        pixels = np.asarray(blacken(original, 14, np.random.default_rng(seed)))
        assert pixels.shape == (20, 33, 3)
        for top, left in [(y, x) for y in (0, 14) for x in (0, 14, 28)]:
            patch = pixels[top : top + 14, left : left + 14]
            kept = np.array_equal(patch, np.asarray(original)[top : top + 14, left : left + 14])
            assert kept or not patch.any()
            fates.add((top, left, kept))
    assert len(fates) == 12  # each of the 2 x 3 patches is black in one image and kept in another


def test_weights_are_applied_to_the_vision_tokens():
    # log KL - log H is 1 and 0, so w = 1.1 - .2 sigmoid(1) = .9537883 and 1.1 - .2 sigmoid(-1) = 1.0462117
    block = Block(tokens=(1, 3), kl=np.array([np.e, 2.0]), entropy=np.array([1.0, 2.0]))
    algorithm = VLCalibration(types.SimpleNamespace())
    algorithm._blocks = [block, block, None, block]
    output = {"advantages": torch.tensor([-2.0, 3.0, -1.0, 0.0]), "completion_ids": torch.zeros(4, 5)}
    shaped = algorithm.advantages(output)
    expected = [[-2, -1.9075766, -2, -2.0924234, -2], [3] * 5, [-1] * 5, [0] * 5]
    assert shaped.tolist() == [pytest.approx(row, abs=1e-6) for row in expected]


def test_a_process_standardizes_over_all_completions(monkeypatch):
    def block(kl):
        return Block(tokens=(0,), kl=np.array([kl]), entropy=np.array([1.0]))

    def certainty(blocks, process):
        monkeypatch.setattr(vl_calibration, "measure", lambda *_, **__: blocks)
        monkeypatch.setattr(vl_calibration, "_views", lambda *_: {"a": None})
        opened = types.SimpleNamespace(model=torch.nn.Module(), encoder=None)
        accelerator = types.SimpleNamespace(process_index=process, autocast=contextlib.nullcontext)
        arguments = types.SimpleNamespace(per_device_train_batch_size=1)
        trainer = types.SimpleNamespace(
            **{"opened": opened, "accelerator": accelerator, "args": arguments, "temperature": 1.0},
            **{"rows": [{"sample_id": "a"}], "state": types.SimpleNamespace(global_step=0)},
        )
        return VLCalibration(types.SimpleNamespace()).columns(trainer, [])["visual_certainty"]

    everyone = [block(0.1), None, block(0.2), block(0.9)]
    whole = certainty(everyone, 0)
    others = {0.2: [0.1, None], 1.0: [1.0, None]}  # of process 0, by what process 1 brings first
    monkeypatch.setattr("accelerate.utils.gather_object", lambda mine: others[mine[0]] + mine)
    assert certainty(everyone[2:], 1) == whole[2:]


def test_the_blackened_image_depends_on_seed_step_and_question(tiny):
    def view(seed, step, sample_id, among):
        job = types.SimpleNamespace(seed=seed, settings=types.SimpleNamespace(patch_pixels=14))
        rows = [
            {"sample_id": name, "images": [image(0)], "prompt": [{"role": "user", "content": "Where?"}]}
            for name in among
        ]
        return vl_calibration._views(tiny.load()[1], rows, job, step)[sample_id][1].image["pixel_values"]

    one = view(1, 5, "a", "ab")
    assert torch.equal(one, view(1, 5, "a", "baa"))
    assert not torch.equal(one, view(1, 6, "a", "ab"))
    assert not torch.equal(one, view(2, 5, "a", "ab"))
    assert not torch.equal(one, view(1, 5, "b", "ab"))
