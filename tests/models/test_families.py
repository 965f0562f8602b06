"""Checkpoints of architectures that the library does not know, through all that it does, against transformers alone."""

import dataclasses
import re
import types
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from dualread.errors import TrainingError
from dualread.models import prefixes
from dualread.models.actor import ReadSpec, SeededDecoding, read_states, take_measure
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.generation.choices import choices_of, score_choices
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.replay.of_generation import Collected
from dualread.schema.answers import Choices
from dualread.schema.recorded import READS, Facts
from dualread.schema.replay import PassReading
from dualread.training import grpo
from tests import families, jobs
from tests.more_families import MORE, UNTRAINED
from tests.specs import changed, measure
from tests.tiny import GRPO

pytestmark = pytest.mark.rest

# By transformers' documentation: PaliGemma was trained with a prefix that sees itself in both directions, and a suffix
# of token type 1. Three of four layers of Qwen3.5 keep a state in place of keys and values. All others read from left
# to right and cache keys and values.
EXPECTED = {
    "paligemma": Facts(completion_type=1, shared="prompt"),
    "qwen3_5": Facts(shared="nothing", images_once=False),
    "ovis2": Facts(shared="prompt"),  # the indicators that follow the image are read with it
}
NEWLINES = {"llava_next"}  # among the image tokens are some that no image changes
CHOICES = [[40, 41], [40, 42, 43], [50]]
every = pytest.mark.parametrize("family", [*families.FAMILIES, *MORE], indirect=True)
compact = pytest.mark.parametrize("family", [*MORE], indirect=True)
few = pytest.mark.parametrize("family", ["qwen2_5_vl", "paligemma"], indirect=True)


def alone(family, request, completion):
    """Return (log-probability of each id, final states, middle states, image tokens) of one row, by transformers."""
    content = [*({"type": "image", "image": image} for image in request.images), {"type": "text", "text": request.text}]
    inputs = family.opened.encoder.processor.apply_chat_template(
        [{"role": "user", "content": content}],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
    )
    ids = torch.cat([inputs.pop("input_ids"), torch.tensor([completion])], dim=1)
    n = ids.shape[1] - len(completion)
    kind = 1 if family.name == "paligemma" else 0
    given = {name: value for name, value in inputs.items() if name not in ("labels", "attention_mask")}
    for name in ("token_type_ids", "mm_token_type_ids"):
        if name in given:
            given[name] = torch.cat([given[name], torch.full((1, len(completion)), kind)], dim=1)
    with torch.inference_mode():
        output = family.plain(input_ids=ids, **given, output_hidden_states=True)
    log_probs = torch.log_softmax(output.logits[0, n - 1 : -1].double(), dim=-1)[range(len(completion)), completion]
    is_image = ids[0, :n] == family.plain.config.image_token_id
    return log_probs.numpy(), [states[0] for states in output.hidden_states], is_image, n


@every
def test_facts_are_those_of_the_architecture(family):
    assert family.probed.facts == EXPECTED.get(family.name, Facts())
    assert family.probed.found["layers"] == 4
    n_changed = family.probed.found["image_tokens_that_images_change"]
    assert (n_changed < family.probed.found["image_tokens"]) == (family.name in NEWLINES)
    ways = {"refused": 0.1, "one": 1e-6, "another": 3e-6, "impossible": "an error"}
    assert dataclasses.replace(family.probed, differences=ways, allowed=1e-5).largest == 3e-6
    by_each = family.probed.by_each_image  # PaliGemma's template has one place
    assert (len(by_each), min(by_each, default=1.0) > family.probed.allowed) == (2 * (family.name != "paligemma"), True)


def test_a_prompt_has_the_ids_of_the_processor_and_bos_once(family):
    encoder, tokenizer = family.opened.encoder, family.opened.encoder.tokenizer
    for request in (*families.requests(), *families.requests()):  # the second time, images are in memory
        prompt = encoder.prompt(request.text, images=request.images, row="1")
        inputs = encoder.inputs(request.text, request.images)
        assert list(prompt.token_ids) == inputs["input_ids"][0].tolist()
        for name, of_prompt in prompt.types.items():
            assert list(of_prompt) == inputs[name][0].tolist()
        if tokenizer.bos_token not in (None, "<|im_start|>"):
            assert prompt.token_ids.count(tokenizer.bos_token_id) == 1


@every
@pytest.mark.parametrize("n_samples", [1, 3])
def test_generation_and_replay_are_the_models_own(family, n_samples):
    asked, engine = families.requests(), TransformersEngine(family.opened, 16)
    temperature = 0.0 if n_samples == 1 else 1.0
    decoding = SeededDecoding(temperature=temperature, top_p=1.0, n_samples=n_samples, max_completion_tokens=8, seed=1)
    # The states of a greedy answer are also those of the pass that made it.
    kept = [Collected(spec=PassReading(kappa=0.1, middle=True, entropies=False))] if n_samples == 1 else []
    found = engine.answer(asked, decoding, *kept)
    made = [(request, one) for request, of in zip(asked, found, strict=True) for one in of]
    ids = [list(one.token_ids) for _, one in made]
    replayed = read_states(family.opened, [request for request, _ in made], ids, ReadSpec(kappa=0.1), batch_size=5)
    for (request, one), found in zip(made, replayed, strict=True):
        own, states, is_image, n = alone(family, request, list(one.token_ids))
        assert np.abs(np.array(one.token_log_probs) - own).max() < 1e-5
        assert np.abs(found.token_log_probs - own).max() < 1e-5
        expected = {
            "h_pre": states[-1][n - 1],
            "h_global": states[-1][:n][is_image].mean(dim=0),
            "h_mid": states[3][n + found.positions.last],  # layer 3 of 4: floor(.625 * 4 + .5)
        }
        for name, state in expected.items():
            assert np.allclose(found.vectors[name], state.numpy(), atol=1e-4)
        for name, vector in found.vectors.items() if kept else ():
            assert np.allclose(one.states.vectors[name], vector, atol=1e-4), name
        assert not set(one.token_ids) & set(family.opened.encoder.forbidden)
        assert found.n_image_tokens == int(is_image.sum())


def test_rows_that_are_read_in_one_pass_are_what_they_are_alone(family, monkeypatch):
    """With the limit of a GPU in place of a limit of one token, with which every row has a pass of its own."""
    asked, engine = families.requests(), TransformersEngine(family.opened, 16)
    ids = [[40, 41, 42, 43], [44, 45], [46], [47, 48, 49]]
    n_passes = []
    forward_of = type(family.opened.model.model).forward

    def counted(self, *arguments, **named):
        n_passes[-1] += 1
        return forward_of(self, *arguments, **named)

    def read(most):
        monkeypatch.setitem(prefixes.PASS_TOKENS, False, most)
        n_passes.append(0)
        scores = [found.values for found in engine.loglikelihoods(asked, [CHOICES] * len(asked))]
        return scores, read_states(family.opened, asked, ids, ReadSpec(kappa=0.1), batch_size=4)

    monkeypatch.setattr(type(family.opened.model.model), "forward", counted)
    (scores, rows), (alone_scores, alone_rows) = read(prefixes.PASS_TOKENS[True]), read(1)
    assert np.abs(np.array(scores) - alone_scores).max() < 1e-5
    for row, of in zip(rows, alone_rows, strict=True):
        assert np.abs(row.token_log_probs - of.token_log_probs).max() < 1e-5
        for name, vector in row.vectors.items():
            assert np.allclose(vector, of.vectors[name], atol=1e-4), name
    shares = family.probed.facts.shared != READS[-1]
    assert n_passes[0] < n_passes[1] if shares else n_passes[0] == n_passes[1]


@pytest.mark.parametrize("change", [{}, {"tree": False}, {"shared": "nothing", "images_once": False}])
def test_choices_are_the_models_own_on_every_path(family, change):
    facts = changed(family.probed.facts, **change)
    engine = TransformersEngine(open_checkpoint(family.folder, families.SETTINGS, facts), 3)
    asked = [dataclasses.replace(request, prefix=(60, 61)) for request in families.requests()]
    for request, found in zip(asked, engine.loglikelihoods(asked, [CHOICES] * len(asked)), strict=True):
        for ids, value in zip(CHOICES, found.values, strict=True):
            own, *_ = alone(family, request, [60, 61, *ids])
            assert abs(own[2:].sum() - value) < 1e-5


@pytest.mark.parametrize("shared", ["image prefix", "prompt", "nothing"])
def test_slower_paths_are_the_models_own(family, shared):
    if READS.index(shared) < READS.index(family.probed.facts.shared):
        return  # wrong for it, see EXPECTED
    facts = changed(family.probed.facts, shared=shared, images_once=False)
    opened = open_checkpoint(family.folder, families.SETTINGS, facts)
    decoding = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=2, max_completion_tokens=6, seed=1)
    for request, of in zip(
        families.requests(), TransformersEngine(opened, 8).answer(families.requests(), decoding), strict=True
    ):
        for one in of:
            own, *_ = alone(family, request, list(one.token_ids))
            assert np.abs(np.array(one.token_log_probs) - own).max() < 1e-5


def test_the_entropies_of_vauq_are_the_models_own_and_rest_on_the_image(family):
    """All tokens are the answer here. Of Qwen3.5's four layers, one alone has attention."""
    asked, ids = families.requests(), [[40, 41, 42], [43, 44], [45], [46, 47, 48, 49]]
    settings = {"share": 0.5, "from_depth": 0.0, "to_depth": 1.0}
    found = take_measure(family.opened, asked, ids, measure("hidden_core", **settings), batch_size=4)
    for i, request in enumerate(asked):
        _, states, _, n = alone(family, request, ids[i])
        with torch.inference_mode():
            logits = parts.head(family.plain)(states[-1][n - 1 : -1])
        entropy = torch.distributions.Categorical(logits=logits.double()).entropy().mean()
        assert found["entropy"][i, 0] == pytest.approx(float(entropy), abs=1e-4)
    assert np.abs(found["entropy_hidden"] - found["entropy"]).max() > 1e-4


def job(family, folder, facts):
    reward = types.SimpleNamespace(CONTRACT="single", reward=jobs.by_length)
    settings = grpo.Settings(**{**GRPO, "steps": 1, "warmup_fraction": 0.0})
    given = {"facts": facts, "backbone_settings": families.SETTINGS, "reward": reward, "settings": settings}
    asked = ["Is this a CT scan?", "What is the size of the lesion?"]
    return jobs.job(folder, family.folder, asked, size=(40, 52), **given)


def test_one_step_of_grpo_learns_from_the_models_own_log_probabilities(family, tmp_path):
    """The training compares them itself, and refuses others."""
    assert grpo.train(job(family, tmp_path, family.probed.facts))
    trained = open_checkpoint(tmp_path / "actor", families.SETTINGS, family.probed.facts)
    before, after = family.plain.state_dict(), trained.model.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    names = {path.name for path in family.folder.iterdir()} - {"model.safetensors"}
    for name in names - {"config.json", "generation_config.json"}:
        assert (tmp_path / "actor" / name).read_bytes() == (family.folder / name).read_bytes()


@few
def test_a_wrong_type_of_completions_ends_the_training(family, tmp_path):
    """Trainer and reference are both told the type; the model's own generation is not."""
    wrong = changed(family.probed.facts, completion_type=1 - family.probed.facts.completion_type)
    with pytest.raises((TrainingError, StopIteration, RuntimeError)) as raised:  # Qwen misses an image
        grpo.train(job(family, tmp_path, wrong))
    if raised.type is TrainingError:
        assert re.search(r"with completions of token type 0, .* by [\d.e+-]+ nats on average", str(raised.value))


@compact
@pytest.mark.parametrize(
    "wanted", [Choices(words=["yes", "no"]), Choices(integers=[0, 100])], ids=["words", "integers"]
)
def test_words_and_integers_are_the_models_own(family, wanted):
    asked, engine = families.requests()[1:3], TransformersEngine(family.opened, 16)
    committed = [[40, 41, 42]] * len(asked)
    for request, found in zip(asked, score_choices(engine, asked, committed, wanted), strict=True):
        choices = choices_of(wanted, engine.encoder.tokenizer, committed[0], engine.encoder.stop)
        for choice in list(choices.variants)[-2:]:
            own = [alone(family, request, [*choices.prefix, *ids])[0] for ids in choices.variants[choice]]
            summed = np.logaddexp.reduce([of_ids[len(choices.prefix) :].sum() for of_ids in own])
            assert found.log_probs[choice] == pytest.approx(summed, abs=2e-5)


@compact
def test_no_answer_contains_what_stands_for_an_image(family):
    """Ovis2 lists such tokens; read beside pixels, they would not be what was sampled."""
    config, forbidden = family.plain.config, set(family.opened.encoder.forbidden)
    assert {config.image_token_id, *getattr(config, "visual_indicator_token_ids", ())} <= forbidden
    assert family.opened.encoder.stop.isdisjoint(forbidden)
    assert len(forbidden) < 10


@compact
def test_training_starts_or_is_refused_in_one_sentence(family, tmp_path):
    refused = pytest.raises(
        TrainingError, match=r"^training: trl cannot make the inputs .* \(KeyError: 'num_patches'\)"
    )
    # TRL counts the tiles of an image in a way that only InternVL's processor answers.
    with refused if family.name in UNTRAINED else nullcontext():
        assert grpo.train(job(family, tmp_path, family.probed.facts))
