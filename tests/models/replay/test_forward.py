import copy

import numpy as np
import pytest
import torch
from tests.architectures import both
from tests.models.plain import plain_pass
from tests.tiny import image

from dualread.errors import ReplayDisagreementError
from dualread.models import prompts
from dualread.models.actor import ReadSpec, Request, read_states
from dualread.models.backbones.checkpoint import Opened
from dualread.models.backbones.encode import prompt_sha256
from dualread.models.replay.forward import (
    VECTORS,
    evidence_state,
    layer_vector,
    middle_layer,
    replay_batch,
    vectors_of,
)
from dualread.models.replay.positions import Positions
from dualread.models.replay.replayed import stacked_optional


def completion(encoder, text):
    return [*encoder.tokenizer(text, add_special_tokens=False)["input_ids"], encoder.tokenizer.eos_token_id]


@pytest.fixture
def scene(tiny):
    model, encoder = tiny.load()
    questions = [("Is this a CT scan?", 0), ("What is the size of the lesion?", 1), ("Where is it?", 0)]
    encoded = [encoder.prompt(prompts.render("shared", question=q), images=[image(i)], row=q) for q, i in questions]
    texts = [
        "<reasoning>axial ct</reasoning>\n<answer>upper left</answer>\n<confidence>77</confidence>",
        "<answer>yes</answer>",
        "no block at all",
    ]
    return model, encoder, encoded, [completion(encoder, text) for text in texts]


def replay(model, encoder, encoded, tokens, forbidden=None, **changes):
    encoder = copy.copy(encoder)
    encoder.forbidden = encoder.forbidden if forbidden is None else tuple(forbidden)
    opened = Opened(model=model, encoder=encoder)
    return replay_batch(opened, encoded, tokens, ReadSpec(**({"kappa": 0.1} | changes)))


@both
def test_against_one_row_at_a_time_with_all_layers(scene):
    """Reference: batches of one row, all hidden states, and positions found by hand."""
    model, encoder, encoded, completions = scene
    depths = (0.0, 0.3, 0.625, 1.0)  # of four layers: 0, floor(1.2 + .5) = 1, floor(2.5 + .5) = 3, 4
    fast = replay(model, encoder, encoded, completions, entropies=True, depths=depths)
    for prompt, tokens, got in zip(encoded, completions, fast, strict=True):
        out = plain_pass(model, prompt, tokens, output_hidden_states=True)
        final, n = out.hidden_states[-1][0], len(prompt.token_ids)
        h_ans = final[[n + t for t in got.positions.answer]].mean(0)
        image_states = final[:n][torch.tensor(prompt.token_ids) == encoder.image_token_id]
        expected = {
            "h_pre": final[n - 1],
            "h_close": final[n + got.positions.close],
            "h_ans": h_ans,
            "h_global": image_states.mean(0),
            "h_evid": evidence_state(h_ans, image_states, 0.1),
            "h_mid": out.hidden_states[middle_layer(4)][0][n + got.positions.last],
        }
        of_answer = [n + t for t in got.positions.answer]
        for depth, layer in zip(depths, (0, 1, 3, 4), strict=True):
            expected[f"h_ans_at_{depth:g}"] = out.hidden_states[layer][0][of_answer].mean(0)
        for name in (*VECTORS, *map(layer_vector, depths)):
            np.testing.assert_allclose(got.vectors[name], expected[name].numpy(), atol=2e-5)
        log_probs = torch.log_softmax(out.logits[0, n - 1 : -1].float(), -1)
        np.testing.assert_allclose(got.token_log_probs, log_probs[range(len(tokens)), tokens].numpy(), atol=2e-5)
        entropies = torch.distributions.Categorical(logits=out.logits[0, n - 1 : -1].double()).entropy()
        np.testing.assert_allclose(got.token_entropies, entropies.numpy(), atol=2e-5)
        assert got.n_image_tokens == len(image_states)
    padded = stacked_optional(fast, "token_entropies")
    assert padded.dtype == np.float32
    for row, got in zip(padded, fast, strict=True):
        n = len(got.token_entropies)
        np.testing.assert_array_equal(row[:n], got.token_entropies.astype(np.float32))
        assert np.isnan(row[n:]).all()


def test_vectors_of_bfloat16_states_are_those_of_the_same_states_in_float32():
    rng = torch.Generator().manual_seed(0)
    final, middle, image = (torch.randn(n, 16, generator=rng).bfloat16() for n in (7, 6, 9))
    at = Positions(close=4, answer=(1, 2, 3), last=5, has_answer_block=True)
    rounded = vectors_of(final, middle, image, at, 0.1)
    exact = vectors_of(final.float(), middle.float(), image.float(), at, 0.1)
    for name in VECTORS:
        assert rounded[name].float().equal(exact[name]), name


def test_a_completion_of_another_prompt_is_refused(scene):
    model, encoder, encoded, completions = scene
    opened = Opened(model=model, encoder=encoder)
    text = prompts.render("shared", question="Is this a CT scan?")
    request = Request(row="q", text=text, images=[image(0)], image_name="a")
    own = encoded[0].token_ids

    def replayed(*ids):
        return read_states(
            opened, [request], completions[:1], ReadSpec(kappa=0.1), batch_size=1, prompts=[prompt_sha256(ids)]
        )

    assert replayed(*own)[0].n_prompt_tokens == len(own)
    for other in (own[:-1], (own[0] + 2**16, *own[1:])):
        with pytest.raises(ReplayDisagreementError, match="q: the prompt's tokens differ"):
            replayed(*other)


def test_the_argmax_gap_ignores_forbidden_ids(scene):
    model, encoder, encoded, completions = scene
    got = replay(model, encoder, encoded[:1], completions[:1], forbidden=())[0]
    every_other = [i for i in range(model.get_input_embeddings().num_embeddings) if i not in completions[0]]
    barred = replay(model, encoder, encoded[:1], completions[:1], forbidden=every_other)[0]
    assert (got.argmax_gap >= barred.argmax_gap).all()
    assert got.argmax_gap.sum() > barred.argmax_gap.sum()
    assert (barred.argmax_gap >= 0).all()
    np.testing.assert_array_equal(got.token_log_probs, barred.token_log_probs)  # raw: before ids are forbidden


@both
def test_what_prompts_about_one_image_share_is_read_once(scene, monkeypatch):
    """Three prompts about two images: no pass reads an image token twice."""
    model, encoder, encoded, completions = scene
    n_image_tokens = []
    forward = type(model.model).forward

    def counted(self, *args, **kwargs):
        n_image_tokens.append(int((kwargs["input_ids"] == encoder.image_token_id).sum()))
        return forward(self, *args, **kwargs)

    monkeypatch.setattr(type(model.model), "forward", counted)
    replay(model, encoder, encoded, completions)
    assert sum(n_image_tokens) == 2 * encoded[0].token_ids.count(encoder.image_token_id)
