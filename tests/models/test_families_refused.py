"""Wrong facts about checkpoints of other architectures, and wrong inputs, are caught; others are refused at once."""

import dataclasses

import pytest

from dualread.errors import ArtifactError, ReplayDisagreementError
from dualread.models import own_pass, prefixes
from dualread.models import probe as probing
from dualread.models.actor import ReadSpec, read_states
from dualread.models.backbones import parts
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.backbones.encode import Encoder
from dualread.models.probe import probe
from dualread.models.replay import agreement, forward
from dualread.schema.recorded import Facts
from dualread.schema.replay import Agreement
from tests import families
from tests.specs import changed
from tests.tiny import image

pytestmark = pytest.mark.rest
# What is refused is refused in code that all families share: of these, one has positions and the other types of tokens.
few = pytest.mark.parametrize("family", ["qwen2_5_vl", "paligemma"], indirect=True)
newlines = pytest.mark.parametrize("family", ["llava_next"], indirect=True)
one = pytest.mark.parametrize("family", ["qwen2_5_vl"], indirect=True)


def _judged(opened):
    asked = families.requests()
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
        _judged(open_checkpoint(family.folder, families.SETTINGS, facts))


@few
def test_another_rows_image_is_refused(family, monkeypatch):
    right = Encoder.prompt

    def swapped(self, text, *, images, row, before=()):
        turned = [image.rotate(180) for image in images]
        prompt, other = (right(self, text, images=of, row=row, before=before) for of in (images, turned))
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
def test_a_shifted_span_is_refused(family, monkeypatch):
    """Log-probabilities do not depend on which states are taken for those of the image; the probe compares states."""
    model = open_checkpoint(family.folder, families.SETTINGS)
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
def test_a_second_image_that_changes_no_answer_is_noticed(family, monkeypatch):
    right = Encoder.inputs

    def with_one_second(self, text, images, *before):
        return right(self, text, [images[0], *[image(5)] * (len(images) - 1)], *before)

    monkeypatch.setattr(Encoder, "inputs", with_one_second)
    first, second = probe(family.opened, family.name).by_each_image
    assert (first > family.probed.allowed, second) == (True, 0.0)


@one
def test_another_token_is_not_taken_for_the_images(family):
    model = open_checkpoint(family.folder, families.SETTINGS)
    model.encoder.image_token_id = model.encoder.tokenizer.get_vocab()["CT"]
    with pytest.raises(ArtifactError, match=r"changes \d+ tokens of the prompt, [1-9]\d* of them no CT"):
        probe(model, "mine")


@few
def test_a_second_bos_is_refused(family, monkeypatch):
    right = Encoder.prompt

    def twice(self, text, *, images, row, before=()):
        prompt = right(self, text, images=images, row=row, before=before)
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
    model = open_checkpoint(family.folder, families.SETTINGS)
    inputs = model.encoder.inputs
    blank = image(0).point(lambda value: 0)
    size = {}

    def same(text, pictures, before=()):
        return inputs(text, [size.setdefault(picture.size, blank.resize(picture.size)) for picture in pictures])

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
        probe(open_checkpoint(family.folder, families.SETTINGS), "mine")


@few
def test_settings_stand_for_code(family, tmp_path):
    import shutil

    folder = shutil.copytree(family.folder, tmp_path / "mine")
    word = family.opened.encoder.tokenizer.convert_ids_to_tokens(60)
    opened = open_checkpoint(folder, {**families.SETTINGS, "forbidden_tokens": [word]})
    assert set(opened.encoder.forbidden) == {*family.opened.encoder.forbidden, 60}
    if family.name != "paligemma":
        file = folder / "chat_template.jinja"
        file.write_text(
            file.read_text() + "{%- if thinking is defined and not thinking -%}{{- 'Short.' -}}{%- endif -%}"
        )
        for thinking, ends in ((True, False), (False, True)):
            opened = open_checkpoint(folder, {**families.SETTINGS, "chat_template": {"thinking": thinking}})
            prompt = opened.encoder.prompt("Where?", images=[image(0)], row="1")
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
        probe(open_checkpoint(folder, families.SETTINGS), name)


@newlines
def test_the_reason_is_named_where_a_model_cannot_be_read_at_all(family, monkeypatch):
    """Attention that a model lacks is left out; what its pass raises is not."""

    def read(*arguments, **named):
        raise ValueError("Image features and image tokens do not match")

    monkeypatch.setattr(own_pass, "read", read)
    with pytest.raises(ArtifactError, match=r"^mine: experiments with it fail \(ValueError: Image features and image"):
        probe(open_checkpoint(family.folder, families.SETTINGS), "mine")


@newlines
def test_an_image_that_depends_on_others_in_its_pass_is_read_alone(family, monkeypatch):
    """In HunYuan-VL, positions depend on how many images come before in the pass. Here, pixels do."""
    right = Encoder.shared_images

    def mixed(self, model, prompts):
        return right(self, model, [dataclasses.replace(prompt, image=prompts[0].image) for prompt in prompts])

    monkeypatch.setattr(Encoder, "shared_images", mixed)
    facts = probe(open_checkpoint(family.folder, families.SETTINGS), "mine").facts
    assert facts == changed(family.probed.facts, images_once=False)


@newlines
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


@newlines
def test_refusals_list_what_was_tried_in_words(family, monkeypatch):
    right = parts.head
    monkeypatch.setattr(parts, "head", lambda model, dtype=None: lambda states: 2 * right(model, dtype)(states))
    with pytest.raises(ArtifactError, match=r"own; own generation, completion of type 0: \d\.\de-0\d; head: \d\.\de"):
        probe(open_checkpoint(family.folder, families.SETTINGS), "mine")
