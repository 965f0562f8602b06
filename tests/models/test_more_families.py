"""The families of tests/more_families.py: read as transformers alone reads single rows, or refused in one sentence."""

import dataclasses
import types

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText

from dualread.errors import ArtifactError, TrainingError
from dualread.models import own_pass
from dualread.models.actor import ReadSpec, SeededDecoding, read_states
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.backbones.encode import Encoder
from dualread.models.generation.choices import choices_of, score_choices
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.probe import probe
from dualread.schema.answers import Choices
from dualread.schema.recorded import Facts
from dualread.training import grpo
from tests import more_families
from tests.families import SETTINGS, requests
from tests.models.test_families import alone, job
from tests.specs import changed

pytestmark = pytest.mark.rest

# The indicators that follow the image in Ovis2 are read with it; so a prompt is read as a whole.
EXPECTED = {"ovis2": Facts(shared="prompt")}
NEWLINES = {"llava_next"}  # among the image tokens are some that no image changes


@pytest.fixture(scope="module", params=list(more_families.MORE))
def family(request, tmp_path_factory):
    torch.set_num_threads(1)
    folder = more_families.build(request.param, tmp_path_factory.mktemp(request.param) / "checkpoint")
    probed = probe(open_checkpoint(folder, SETTINGS), request.param)
    opened = open_checkpoint(folder, SETTINGS, probed.facts)
    plain = AutoModelForImageTextToText.from_pretrained(folder).eval()
    return types.SimpleNamespace(name=request.param, folder=folder, probed=probed, opened=opened, plain=plain)


def test_facts_are_those_of_the_architecture(family):
    assert family.probed.facts == EXPECTED.get(family.name, Facts())
    found = family.probed.found
    assert (found["image_tokens_that_images_change"] < found["image_tokens"]) == (family.name in NEWLINES)


def test_generation_and_replay_are_the_models_own(family):
    asked, engine = requests(), TransformersEngine(family.opened, 16)
    decoding = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=4, max_completion_tokens=8, seed=1)
    made = [(request, one) for request, of in zip(asked, engine.answer(asked, decoding), strict=True) for one in of]
    ids = [list(one.token_ids) for _, one in made]
    replayed = read_states(family.opened, [request for request, _ in made], ids, ReadSpec(kappa=0.1), batch_size=5)
    for (request, one), found in zip(made, replayed, strict=True):
        own, states, is_image, n = alone(family, request, list(one.token_ids))
        assert np.abs(np.array(one.token_log_probs) - own).max() < 2e-5
        assert np.abs(found.token_log_probs - own).max() < 2e-5
        assert np.allclose(found.vectors["h_global"], states[-1][:n][is_image].mean(dim=0).numpy(), atol=1e-4)


@pytest.mark.parametrize(
    "wanted", [Choices(words=["yes", "no"]), Choices(integers=[0, 100])], ids=["words", "integers"]
)
def test_choices_are_the_models_own(family, wanted):
    asked, engine = requests()[1:3], TransformersEngine(family.opened, 16)
    committed = [[40, 41, 42]] * len(asked)
    for request, found in zip(asked, score_choices(engine, asked, committed, wanted), strict=True):
        choices = choices_of(wanted, engine.encoder.tokenizer, committed[0], engine.encoder.stop)
        for choice in list(choices.variants)[-2:]:
            own = [alone(family, request, [*choices.prefix, *ids])[0] for ids in choices.variants[choice]]
            summed = np.logaddexp.reduce([of_ids[len(choices.prefix) :].sum() for of_ids in own])
            assert found.log_probs[choice] == pytest.approx(summed, abs=2e-5)


def test_no_answer_contains_what_stands_for_an_image(family):
    """Ovis2 lists such tokens; read beside pixels, they would not be what was sampled."""
    config, forbidden = family.plain.config, set(family.opened.encoder.forbidden)
    assert {config.image_token_id, *getattr(config, "visual_indicator_token_ids", ())} <= forbidden
    assert family.opened.encoder.stop.isdisjoint(forbidden)
    assert len(forbidden) < 10


def test_training_starts_or_is_refused_in_one_sentence(family, tmp_path):
    if (
        family.name in more_families.UNTRAINED
    ):  # TRL counts the tiles of an image in a way that only InternVL's processor answers
        with pytest.raises(
            TrainingError, match=r"^training: trl cannot make the inputs .* \(KeyError: 'num_patches'\)"
        ):
            grpo.train(job(family, tmp_path, family.probed.facts))
    else:
        assert grpo.train(job(family, tmp_path, family.probed.facts))


@pytest.mark.parametrize("family", ["llava_next"], indirect=True)
def test_the_reason_is_named_where_a_model_cannot_be_read_at_all(family, monkeypatch):
    """Attention that a model lacks is left out; what its pass raises is not."""

    def read(*arguments, **named):
        raise ValueError("Image features and image tokens do not match")

    monkeypatch.setattr(own_pass, "read", read)
    with pytest.raises(ArtifactError, match=r"^mine: experiments with it fail \(ValueError: Image features and image"):
        probe(open_checkpoint(family.folder, SETTINGS), "mine")


@pytest.mark.parametrize("family", ["llava_next"], indirect=True)
def test_an_image_that_depends_on_others_in_its_pass_is_read_alone(family, monkeypatch):
    """In HunYuan-VL, positions depend on how many images come before in the pass. Here, pixels do."""
    right = Encoder.shared_images

    def mixed(self, model, prompts):
        return right(self, model, [dataclasses.replace(prompt, image=prompts[0].image) for prompt in prompts])

    monkeypatch.setattr(Encoder, "shared_images", mixed)
    facts = probe(open_checkpoint(family.folder, SETTINGS), "mine").facts
    assert facts == changed(family.probed.facts, images_once=False)


@pytest.mark.parametrize("family", ["llava_next"], indirect=True)
def test_a_model_that_knows_one_attention_keeps_it(family, monkeypatch):
    """Gemma 2, the language model of PaliGemma 2, has no torch function for its attention with a soft cap."""
    model, chosen = family.opened.model, []

    def choose(attention):
        chosen.append(attention)
        if attention == "sdpa":
            raise ValueError("it does not support sdpa yet")

    monkeypatch.setattr(model.config, "_attn_implementation_internal", "eager")
    monkeypatch.setattr(model, "set_attn_implementation", choose)
    with parts.in_attention(model, "sdpa"):
        pass
    assert chosen == ["sdpa", "eager"]


@pytest.mark.parametrize("family", ["llava_next"], indirect=True)
def test_refusals_list_what_was_tried_in_words(family, monkeypatch):
    right = parts.head
    monkeypatch.setattr(parts, "head", lambda model, dtype=None: lambda states: 2 * right(model, dtype)(states))
    with pytest.raises(ArtifactError, match=r"own; own generation, completion of type 0: \d\.\de-0\d; head: \d\.\de"):
        probe(open_checkpoint(family.folder, SETTINGS), "mine")
