"""The measure of VAUQ, against two passes of transformers alone, and what is true of any such measure."""

import types
from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoModelForImageTextToText

from dualread.errors import ConfigError
from dualread.models import measures, prompts
from dualread.models.actor import Request, take_measure
from dualread.models.measures import hidden_core
from dualread.models.measures.hidden_core import Settings, core_of
from dualread.schema.recorded import Facts
from tests import specs
from tests.architectures import both
from tests.models.plain import plain_pass
from tests.tiny import image

ANSWERED = "<reasoning>ct</reasoning>\n<answer>upper left</answer>\n<confidence>77</confidence>"
HALF = {"share": 0.5, "from_depth": 0.25, "to_depth": 0.75}  # of four layers: those numbered 1 and 2 from 0


@pytest.fixture(scope="module")
def scene(tiny):
    opened = tiny.open()
    encoder = opened.encoder
    prompt = encoder.prompt(prompts.render("shared", question="Where is it?"), images=[image(0)], row="here")
    ids = [*encoder.tokenizer(ANSWERED, add_special_tokens=False)["input_ids"], encoder.tokenizer.eos_token_id]
    plain = AutoModelForImageTextToText.from_pretrained(tiny.checkpoint, attn_implementation="eager").eval()
    return types.SimpleNamespace(opened=opened, prompt=prompt, ids=ids, plain=plain)


def measured(scene, **changes):
    with torch.inference_mode():
        [found] = hidden_core.measure(scene.opened, [scene.prompt], [scene.ids], Settings(**{**HALF, **changes}))
    return {name: float(value[0]) for name, value in found.items()}


def literal(scene, share):
    """Every attention of every layer from transformers, loops over numbers, and a mask of all pairs of tokens."""
    prompt, n = scene.prompt, len(scene.prompt.token_ids)
    ids = torch.tensor([[*prompt.token_ids, *scene.ids]])
    decoded = [scene.opened.encoder.decode(scene.ids[: t + 1]) for t in range(len(scene.ids))]
    first = next(t for t, text in enumerate(decoded) if len(text) > ANSWERED.index("upper"))
    last = next(t for t, text in enumerate(decoded) if len(text) >= ANSWERED.index("</answer>"))
    answer = range(n + first, n + last + 1)
    of_image = [i for i, token in enumerate(prompt.token_ids) if token == scene.plain.config.image_token_id]
    whole = plain_pass(scene.plain, prompt, scene.ids, output_attentions=True)
    attended = []
    for i in of_image:
        heads = [
            whole.attentions[layer][0, head, t, i]
            for layer in (1, 2)
            for head in range(whole.attentions[layer].shape[1])
            for t in answer
        ]
        attended.append(float(np.mean([float(value) for value in heads])))
    order = sorted(range(len(of_image)), key=lambda k: -attended[k])
    core = [of_image[k] for k in order[: int(share * len(of_image))]]
    mask = torch.ones_like(ids)
    mask[0, core] = 0
    fixed = {"position_ids": torch.arange(ids.shape[1])[None]}
    if hasattr(scene.plain.model, "get_rope_index"):
        types_of = {name: torch.tensor([[*of, *[0] * len(scene.ids)]]) for name, of in prompt.types.items()}
        grid = {"image_grid_thw": prompt.image["image_grid_thw"], "attention_mask": torch.ones_like(ids)}
        fixed["position_ids"] = scene.plain.model.get_rope_index(ids, **types_of, **grid)[0]
    hidden = plain_pass(scene.plain, prompt, scene.ids, attention_mask=mask, **fixed)
    entropies = []
    for logits in (whole.logits[0], hidden.logits[0]):
        of_tokens = [torch.distributions.Categorical(logits=logits[t - 1].double()).entropy() for t in answer]
        entropies.append(float(np.mean(of_tokens)))
    return dict(zip(("entropy", "entropy_hidden"), entropies, strict=True))


@both
@pytest.mark.parametrize("share", [0.5, 1.0])
def test_it_is_what_transformers_gives(scene, share):
    found, expected = measured(scene, share=share), literal(scene, share)
    assert found == pytest.approx(expected, abs=2e-6)
    assert abs(found["entropy_hidden"] - found["entropy"]) > 2e-5  # so that the comparison says something


def test_without_a_core_nothing_changes_and_one_token_is_the_least(scene):
    none = measured(scene, share=0.0)
    assert none["entropy"] == none["entropy_hidden"] == measured(scene)["entropy"]
    one = measured(scene, share=1e-9)
    assert one["entropy_hidden"] != one["entropy"] == none["entropy"]


def test_the_core_by_hand():
    # Of five tokens, .5 is 2.5, so 2: those with .4 and .3. Of equal ones the first.
    assert core_of(torch.tensor([0.1, 0.3, 0.1, 0.4, 0.1]), 0.5).tolist() == [3, 1]
    assert core_of(torch.tensor([0.2, 0.2, 0.2]), 0.4).tolist() == [0]
    assert core_of(torch.tensor([0.2, 0.8]), 0.0).tolist() == []
    assert core_of(torch.tensor([0.2, 0.8]), 1.0).tolist() == [1, 0]


def test_the_model_is_left_as_it_was(scene):
    model = scene.opened.model
    before = model.config._attn_implementation
    measured(scene)
    assert model.config._attn_implementation == before
    assert not any(module._forward_hooks for module in model.modules())


def test_of_a_shard_each_row_is_that_of_its_own_answer(scene):
    """In the order of the requests, whatever the batches are."""
    ids, tokenizer = scene.ids, scene.opened.encoder.tokenizer
    other = tokenizer("<answer>yes</answer>", add_special_tokens=False)["input_ids"]
    texts = ("Where?", "Where?", "Where is it? And what is it?")
    asked = [
        Request(text=text, images=[image(k % 2)], image_name=f"{k % 2}", row=f"row {k}") for k, text in enumerate(texts)
    ]
    plugin = specs.measure("hidden_core", **HALF)
    found = take_measure(scene.opened, asked, [ids, other, other], plugin, batch_size=3)
    alone = [
        take_measure(scene.opened, [one], [of], plugin, batch_size=1)
        for one, of in zip(asked, [ids, other, other], strict=True)
    ]
    for name in ("entropy", "entropy_hidden"):
        assert found[name].dtype == np.float32
        np.testing.assert_allclose(found[name], [of[name][0] for of in alone], atol=2e-6)
    assert np.ptp(found["entropy_hidden"] - found["entropy"]) > 1e-5
    assert take_measure(scene.opened, [], [], plugin, batch_size=2) == {}


def test_a_pass_has_prompts_of_one_length_and_is_no_larger_than_others(scene):
    """700 and 600 tokens: two rows of 700 are one pass of 1,400, and a third would be 2,100, above 1,536."""
    encoded = [replace(scene.prompt, token_ids=(7,) * n) for n in (690, 590, 690, 690)]
    assert list(measures._passes(scene.opened, encoded, [[1] * 10] * 4)) == [[1], [0, 2], [3]]
    alone = scene.opened.with_facts(Facts(images_once=False))
    assert list(measures._passes(alone, encoded, [[1] * 10] * 4)) == [[1], [0], [2], [3]]


def test_what_it_cannot_measure_is_refused(scene):
    blind = scene.opened.encoder.prompt("Where?", images=[], row="blind")
    with pytest.raises(ConfigError, match="blind: no image is shown, so there is none to hide"):
        hidden_core.measure(scene.opened, [blind], [scene.ids], Settings(**HALF))
    with pytest.raises(ConfigError, match=r"has from_depth 0\.5 and to_depth 0\.5"):
        Settings.from_spec({**HALF, "from_depth": 0.5, "to_depth": 0.5}, "settings")
