"""Checkpoints of architectures that the library does not know, through all that it does, against transformers alone."""

import dataclasses
import re
import types

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText

from dualread.errors import ArtifactError, ReplayDisagreementError, TrainingError
from dualread.models import prefixes, prompts
from dualread.models import probe as probing
from dualread.models.actor import ReadSpec, Request, SeededDecoding, read_states, take_measure
from dualread.models.backbones import parts
from dualread.models.backbones.encode import Encoder
from dualread.models.backbones.opened import open_checkpoint
from dualread.models.conditions import Asked
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.probe import probe
from dualread.models.replay import agreement, forward
from dualread.models.replay.of_generation import Collected
from dualread.schema.recorded import READS, Facts
from dualread.schema.replay import Agreement, PassReading
from dualread.training import grpo
from dualread.training.job import Job
from tests import families
from tests.specs import changed, measure
from tests.tiny import GRPO, image

SETTINGS = {"dtype": "float32", "attention": "sdpa", "max_prompt_tokens": 500}
# By transformers' documentation: PaliGemma was trained with a prefix that sees itself in both directions, and a suffix
# of token type 1. Three of four layers of Qwen3.5 keep a state in place of keys and values. All others read from left
# to right and cache keys and values.
EXPECTED = {
    "paligemma": Facts(completion_type=1, shared="prompt"),
    "qwen3_5": Facts(shared="nothing", images_once=False),
}
CHOICES = [[40, 41], [40, 42, 43], [50]]
# What is refused is refused in code that all families share: of these, one has positions and the other types of tokens.
few = pytest.mark.parametrize("family", ["qwen2_5_vl", "paligemma"], indirect=True)
one = pytest.mark.parametrize("family", ["qwen2_5_vl"], indirect=True)


@pytest.fixture(scope="module", params=list(families.FAMILIES))
def family(request, tmp_path_factory):
    torch.set_num_threads(1)
    folder = families.build(request.param, tmp_path_factory.mktemp(request.param) / "checkpoint")
    probed = probe(open_checkpoint(folder, SETTINGS), request.param)
    opened = open_checkpoint(folder, SETTINGS, probed.facts)
    plain = AutoModelForImageTextToText.from_pretrained(folder).eval()
    return types.SimpleNamespace(name=request.param, folder=folder, probed=probed, opened=opened, plain=plain)


def requests():
    asked = [
        ("Is this a CT scan?", 0),
        ("What is the size of the lesion?", 0),
        ("Is this a CT scan?", 1),
        ("Where?", 2),
    ]
    shown = [image(seed).resize(size) for seed, size in ((0, (40, 52)), (1, (90, 36)), (2, (40, 52)))]
    return [
        Request(text=prompts.render("shared", question=text), image=shown[k], image_name=str(k), row=f"{i}")
        for i, (text, k) in enumerate(asked)
    ]


def alone(family, request, completion):
    """Return (log-probability of each id, final states, middle states, image tokens) of one row, by transformers."""
    content = [{"type": "image", "image": request.image}, {"type": "text", "text": request.text}]
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


def test_facts_are_those_of_the_architecture(family):
    assert family.probed.facts == EXPECTED.get(family.name, Facts())
    assert family.probed.found["layers"] == 4
    assert family.probed.found["image_tokens"] == family.probed.found["image_tokens_that_images_change"]


def test_a_prompt_has_the_ids_of_the_processor_and_bos_once(family):
    encoder, tokenizer = family.opened.encoder, family.opened.encoder.tokenizer
    for request in (*requests(), *requests()):  # the second time, images are in memory
        prompt = encoder.prompt(request.text, image=request.image, row="1")
        inputs = encoder.inputs(request.text, request.image)
        assert list(prompt.token_ids) == inputs["input_ids"][0].tolist()
        for name, of_prompt in prompt.types.items():
            assert list(of_prompt) == inputs[name][0].tolist()
        if tokenizer.bos_token not in (None, "<|im_start|>"):
            assert prompt.token_ids.count(tokenizer.bos_token_id) == 1


@pytest.mark.parametrize("n_samples", [1, 3])
def test_generation_and_replay_are_the_models_own(family, n_samples):
    asked, engine = requests(), TransformersEngine(family.opened, 16)
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
        assert not set(one.token_ids) & set(family.opened.forbidden)
        assert found.n_image_tokens == int(is_image.sum())


def test_rows_that_are_read_in_one_pass_are_what_they_are_alone(family, monkeypatch):
    """With the limit of a GPU in place of a limit of one token, with which every row has a pass of its own."""
    asked, engine = requests(), TransformersEngine(family.opened, 16)
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
    engine = TransformersEngine(open_checkpoint(family.folder, SETTINGS, facts), 3)
    asked = [dataclasses.replace(request, prefix=(60, 61)) for request in requests()]
    for request, found in zip(asked, engine.loglikelihoods(asked, [CHOICES] * len(asked)), strict=True):
        for ids, value in zip(CHOICES, found.values, strict=True):
            own, *_ = alone(family, request, [60, 61, *ids])
            assert abs(own[2:].sum() - value) < 1e-5


@pytest.mark.parametrize("shared", ["image prefix", "prompt", "nothing"])
def test_slower_paths_are_the_models_own(family, shared):
    if READS.index(shared) < READS.index(family.probed.facts.shared):
        return  # wrong for it, see EXPECTED
    facts = changed(family.probed.facts, shared=shared, images_once=False)
    opened = open_checkpoint(family.folder, SETTINGS, facts)
    decoding = SeededDecoding(temperature=1.0, top_p=1.0, n_samples=2, max_completion_tokens=6, seed=1)
    for request, of in zip(requests(), TransformersEngine(opened, 8).answer(requests(), decoding), strict=True):
        for one in of:
            own, *_ = alone(family, request, list(one.token_ids))
            assert np.abs(np.array(one.token_log_probs) - own).max() < 1e-5


def test_the_entropies_of_vauq_are_the_models_own_and_rest_on_the_image(family):
    """All tokens are the answer here. Of Qwen3.5's four layers, one alone has attention."""
    asked, ids = requests(), [[40, 41, 42], [43, 44], [45], [46, 47, 48, 49]]
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
    for i in range(2):
        image(i).resize((40, 52)).save(folder / f"{i}.png")
    questions = [
        Asked(sample_id=str(i), text=prompts.render("shared", question=text), image_file=f"{i}.png", image_id=str(i))
        for i, text in enumerate(["Is this a CT scan?", "What is the size of the lesion?"])
    ]
    reward = types.SimpleNamespace(
        CONTRACT="single", reward=lambda found, **columns: [float(len(verdict.completion)) for verdict in found]
    )
    return Job(
        checkpoint=family.folder,
        facts=facts,
        questions=questions,
        references=[["yes"], ["large"]],
        images=folder,
        backbone_settings=SETTINGS,
        reward=reward,
        settings=grpo.Settings(**{**GRPO, "steps": 1, "warmup_fraction": 0.0}),
        seed=1,
        out=folder / "actor",
        scratch=folder / "scratch",
    )


def test_one_step_of_grpo_learns_from_the_models_own_log_probabilities(family, tmp_path):
    """The training compares them itself, and refuses others."""
    assert grpo.train(job(family, tmp_path, family.probed.facts))
    trained = open_checkpoint(tmp_path / "actor", SETTINGS, family.probed.facts)
    before, after = family.plain.state_dict(), trained.model.state_dict()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    names = {path.name for path in family.folder.iterdir()} - {"model.safetensors"}
    for name in names - {"config.json", "generation_config.json"}:
        assert (tmp_path / "actor" / name).read_bytes() == (family.folder / name).read_bytes()


# --- Wrong facts and wrong inputs are caught


def _judged(opened):
    asked = requests()
    completions = [[40, 41, 42, 43]] * len(asked)
    replayed = read_states(opened, asked, completions, ReadSpec(kappa=0.1), batch_size=4)
    bounds = Agreement(max_mean_log_prob_difference=1e-3, argmax_tolerance=1e-3, max_argmax_mismatch_share=1e-3)
    agreement.ReferenceLogProbs.of(opened, asked, completions).check(replayed, bounds, where="here")


@few
def test_what_agrees_is_accepted(family):
    _judged(family.opened)


@pytest.mark.parametrize("family", ["paligemma"], indirect=True)
@pytest.mark.parametrize("facts", [Facts(completion_type=0, shared="prompt"), Facts(completion_type=1)])
def test_a_wrong_type_of_completions_or_way_to_read_rows_is_refused_in_replay(family, facts):
    with pytest.raises(ReplayDisagreementError, match="differ from those of transformers alone by"):
        _judged(open_checkpoint(family.folder, SETTINGS, facts))


@few
def test_a_wrong_type_of_completions_ends_the_training(family, tmp_path):
    """Trainer and reference are both told the type; the model's own generation is not."""
    wrong = changed(family.probed.facts, completion_type=1 - family.probed.facts.completion_type)
    with pytest.raises((TrainingError, StopIteration, RuntimeError)) as raised:  # Qwen misses an image
        grpo.train(job(family, tmp_path, wrong))
    if raised.type is TrainingError:
        assert re.search(r"with completions of token type 0, .* by [\d.e+-]+ nats on average", str(raised.value))


@few
def test_another_rows_image_is_refused(family, monkeypatch):
    right = Encoder.prompt

    def swapped(self, text, *, image, row):
        prompt, other = right(self, text, image=image, row=row), right(self, text, image=image.rotate(180), row=row)
        return dataclasses.replace(prompt, image=other.image)

    monkeypatch.setattr(Encoder, "prompt", swapped)
    with pytest.raises(ReplayDisagreementError, match="differ from those of transformers alone by"):
        _judged(family.opened)


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_5"], indirect=True)
def test_dropped_token_types_are_refused(family, monkeypatch):
    """Qwen2.5-VL computes positions from them, and goes on without; Qwen3.5 refuses."""
    right = Encoder.batch

    def dropped(self, *rows, **named):
        return {name: of for name, of in right(self, *rows, **named).items() if not name.endswith("token_type_ids")}

    monkeypatch.setattr(Encoder, "batch", dropped)
    with pytest.raises((ReplayDisagreementError, ValueError), match=r"transformers alone by|`mm_token_type_ids`"):
        _judged(family.opened)


@few
def test_an_image_that_is_not_shown_is_refused(family, monkeypatch):
    right = Encoder.shared_images

    def white(self, model, prompts):
        without = [
            {**prompt.image, "pixel_values": torch.ones_like(prompt.image["pixel_values"])} for prompt in prompts
        ]
        shown = [dataclasses.replace(prompt, image=of) for prompt, of in zip(prompts, without, strict=True)]
        return right(self, model, shown)

    monkeypatch.setattr(Encoder, "shared_images", white)
    with pytest.raises(ReplayDisagreementError, match="differ from those of transformers alone by"):
        _judged(family.opened)


@few
def test_a_shifted_span_is_refused(family, monkeypatch):
    """Log-probabilities do not depend on which states are taken for those of the image; the probe compares states."""
    model = open_checkpoint(family.folder, SETTINGS)
    right = prefixes.read_rows

    def shifted(*arguments, **named):
        for read in right(*arguments, **named):
            moved = [states.roll(1, dims=0) * (len(states) > 1) for states in read.image_states]
            yield dataclasses.replace(read, image_states=[states[1:] for states in moved])

    monkeypatch.setattr(forward, "read_rows", shifted)
    with pytest.raises(ArtifactError, match="no way to read rows agrees with the model's own pass"):
        probe(model, family.name)


@one
def test_vectors_that_are_read_at_other_positions_do_not_fail_the_probe(family, monkeypatch):
    right = forward.vectors_of

    def elsewhere(final, middle, image, at, kappa):
        read = right(final, middle, image, at, kappa)
        return {**read, "h_pre": final[1], "h_global": image[0], "h_mid": middle[at.close]}

    for module in (forward, probing):  # what an edit of the source does
        monkeypatch.setattr(module, "vectors_of", elsewhere)
    assert probe(family.opened, family.name).facts == family.probed.facts


@one
def test_another_token_is_not_taken_for_the_images(family):
    model = open_checkpoint(family.folder, SETTINGS)
    model.encoder.image_token_id = model.encoder.tokenizer.get_vocab()["CT"]
    with pytest.raises(ArtifactError, match=r"changes \d+ tokens of the prompt, [1-9]\d* of them no CT"):
        probe(model, "mine")


@few
def test_a_second_bos_is_refused(family, monkeypatch):
    right = Encoder.prompt

    def twice(self, text, *, image, row):
        prompt = right(self, text, image=image, row=row)
        types_ = {name: (0, *of) for name, of in prompt.types.items()}
        return dataclasses.replace(prompt, token_ids=(1, *prompt.token_ids), types=types_, n_turn=prompt.n_turn + 1)

    monkeypatch.setattr(Encoder, "prompt", twice)
    with pytest.raises(ReplayDisagreementError, match="differ from those of transformers alone by"):
        _judged(family.opened)
    with pytest.raises(ArtifactError, match=r"^there: a prompt is encoded otherwise .* Expected the same ids\."):
        probe(family.opened, "there")


@few
def test_a_shifted_position_changes_the_path(family, monkeypatch):
    """With wrong positions after the image, rows are read alone, which needs none."""
    right = parts.position_offsets
    monkeypatch.setattr(parts, "position_offsets", lambda seen, like: right(seen, like) + 1)
    assert probe(family.opened, family.name).facts.shared == "nothing"


# --- Refusals, before anything is computed


@one
def test_an_image_that_changes_nothing_is_refused(family, monkeypatch):
    model = open_checkpoint(family.folder, SETTINGS)
    inputs = model.encoder.inputs
    blank = image(0).point(lambda value: 0)
    size = {}

    def same(text, picture):
        return inputs(text, size.setdefault(picture.size, blank.resize(picture.size)))

    monkeypatch.setattr(model.encoder, "inputs", same)
    with pytest.raises(ArtifactError, match=r"^mine: another image changes 0 tokens of the prompt"):
        probe(model, "mine")


@one
def test_a_head_that_is_not_the_models_is_refused(family, monkeypatch):
    right = parts.head
    monkeypatch.setattr(parts, "head", lambda model, dtype=None: lambda states: 0.5 * right(model, dtype)(states))
    with pytest.raises(
        ArtifactError, match=r"^mine: it gives 5 states, and its head makes logits of the last one that"
    ):
        probe(open_checkpoint(family.folder, SETTINGS), "mine")


@few
def test_a_template_that_is_missing_is_named_unless_the_processor_needs_none(family, tmp_path):
    import shutil

    folder = shutil.copytree(family.folder, tmp_path / "mine")
    if family.name == "paligemma":
        assert not (folder / "chat_template.jinja").exists()
        return
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ArtifactError, match="no chat template"):
        open_checkpoint(folder, SETTINGS)


@few
def test_settings_stand_for_code(family, tmp_path):
    import shutil

    folder = shutil.copytree(family.folder, tmp_path / "mine")
    word = family.opened.encoder.tokenizer.convert_ids_to_tokens(60)
    opened = open_checkpoint(folder, {**SETTINGS, "forbidden_tokens": [word]})
    assert set(opened.forbidden) == {*family.opened.forbidden, 60}
    if family.name != "paligemma":
        file = folder / "chat_template.jinja"
        file.write_text(
            file.read_text() + "{%- if thinking is defined and not thinking -%}{{- 'Short.' -}}{%- endif -%}"
        )
        for thinking, ends in ((True, False), (False, True)):
            opened = open_checkpoint(folder, {**SETTINGS, "chat_template": {"thinking": thinking}})
            prompt = opened.encoder.prompt("Where?", image=image(0), row="1")
            assert opened.encoder.decode(prompt.token_ids).endswith("Short.") == ends


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mllama", r"another image changes 0 tokens of the prompt.* which readers need and cross attention has not"),
        ("blip2", r"no chat template"),
        ("instructblip", r"InstructBlipProcessor: its prompts need qformer_tokenizer"),
    ],
)
def test_models_without_a_visual_span_are_refused(name, said, tmp_path):
    """Real classes: cross attention, and transformers whose queries stand for the image."""
    folder = families.build(name, tmp_path / "mine")
    with pytest.raises(ArtifactError, match=said):
        probe(open_checkpoint(folder, SETTINGS), name)
