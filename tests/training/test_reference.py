"""A training ends in its first step if its log-probabilities are not those of the plain model."""

import dataclasses
import shutil
import types

import numpy as np
import pytest
from tests.architectures import second_in_rest
from tests.models.backbones.damage import edit_json
from transformers import AutoTokenizer

from dualread.errors import DataError, TrainingError
from dualread.models.backbones.encode import Encoder
from dualread.training._reference import FLOAT32, RATIO, check
from dualread.training.grpo import train


def of(*values):
    return np.array(values, dtype=float)


def test_the_bound_is_rounding_by_hand():
    # rounding (.1 + .3) / 2 = .2 nats, so that a mean difference of FLOAT32 + RATIO * .2 is accepted
    exact, rounded = [of(-1.0, -2.0)], [of(-1.1, -2.3)]
    check([of(-1.0, -2.0 - 2 * RATIO * 0.2)], exact, rounded)
    with pytest.raises(TrainingError, match=r"by 0\.61 nats on average over 2 tokens of 1 completions"):
        check([of(-1.0, -2.0 - 2 * RATIO * 0.2 - 0.02)], exact, rounded)
    check([of(-1.0 - 0.9 * FLOAT32)], [of(-1.0)], [of(-1.0)])
    for wrong in (-1.0 - 1.1 * FLOAT32, np.nan, -np.inf):
        with pytest.raises(TrainingError):
            check([of(wrong)], [of(-1.0)], [of(-1.0)])


def _without(types):
    return 0 * types


def _shifted(types):
    return types.roll(1, dims=1)


@second_in_rest
@pytest.mark.parametrize("wrong", [_without, _shifted])
def test_wrong_token_types_end_the_training(job, monkeypatch, wrong):
    right = Encoder.batch

    def changed(self, *rows, **named):
        batch = right(self, *rows, **named)
        return {name: wrong(of) if name.endswith("token_type_ids") else of for name, of in batch.items()}

    monkeypatch.setattr(Encoder, "batch", changed)
    monkeypatch.setattr("dualread.training._grpo_trainer.roll_out", _made_without_a_model)
    with pytest.raises(TrainingError, match=r"^training: the trainer's log-probabilities differ .* by [\d.e-]+ nats"):
        train(job("actor"))


def test_another_image_ends_the_training(job, monkeypatch):
    from trl.trainer.grpo_trainer import GRPOTrainer

    right = GRPOTrainer._get_per_token_logps_and_entropies

    def swapped(self, *arguments, pixel_values, **named):
        return right(self, *arguments, pixel_values=pixel_values.flip(0), **named)

    monkeypatch.setattr(GRPOTrainer, "_get_per_token_logps_and_entropies", swapped)
    with pytest.raises(TrainingError, match="differ from those of the plain model"):
        train(job("actor"))


def test_the_error_of_a_reward_is_not_taken_for_one_of_the_inputs(job):
    def reward(found, **columns):
        raise KeyError("my_column")

    failing = types.SimpleNamespace(CONTRACT="single", reward=reward)
    with pytest.raises(KeyError, match="my_column"):
        train(dataclasses.replace(job("actor"), reward=failing))


def test_the_models_own_generation_is_not_rounded(job):
    """accelerate wraps the `forward` of a model that is trained in bfloat16 in autocast; rounding is over FLOAT32."""
    before = job("actor")
    assert train(dataclasses.replace(before, backbone_settings={**before.backbone_settings, "dtype": "bfloat16"}))


def test_a_prompt_that_the_processor_encodes_otherwise_ends_the_training(job, monkeypatch):
    right = Encoder.prompt

    def without_its_last_id(self, text, **named):
        prompt = right(self, text, **named)
        types = {name: of[:-1] for name, of in prompt.types.items()}
        return dataclasses.replace(prompt, token_ids=prompt.token_ids[:-1], types=types, n_turn=prompt.n_turn - 1)

    monkeypatch.setattr(Encoder, "prompt", without_its_last_id)
    with pytest.raises(DataError, match=r"the trainer encodes the prompt as \d+ ids that differ from the \d+ of its"):
        train(job("actor"))


def _pads_with_the_end_of_a_turn(folder):
    edit_json(folder / "tokenizer_config.json", lambda entries: entries.update(pad_token=entries["eos_token"]))


def _has_a_system_turn(folder):
    file = folder / "chat_template.jinja"
    turn = "{{- bos_token or '' -}}You are a helpful assistant.\n"
    file.write_text(turn + file.read_text().replace("{{- bos_token -}}", ""))


def _has_an_added_word(folder):
    word = AutoTokenizer.from_pretrained(folder).convert_ids_to_tokens(60)
    flags = {"special": False, "normalized": True, "single_word": False, "lstrip": True, "rstrip": False}
    edit_json(
        folder / "tokenizer.json",
        lambda entries: entries["added_tokens"].append({"id": 60, "content": word, **flags}),
    )


@pytest.mark.parametrize("vary", [_pads_with_the_end_of_a_turn, _has_a_system_turn, _has_an_added_word])
def test_tokenizers_may_differ_from_ours(tiny, job, tmp_path, vary):
    folder = shutil.copytree(tiny.checkpoint, tmp_path / "base")
    vary(folder)
    tokenizers = [AutoTokenizer.from_pretrained(where) for where in (tiny.checkpoint, folder)]
    assert len({str((of.pad_token, of.chat_template, of.added_tokens_decoder)) for of in tokenizers}) == 2
    assert train(dataclasses.replace(job("actor"), checkpoint=folder))


def _made_without_a_model(opened, prompts, job, **_):
    return [[40 + i, 50, 60, 70] for i in range(len(prompts))]
