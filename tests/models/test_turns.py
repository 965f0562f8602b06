"""Prompts of several turns: their files, and what models of both families are shown and read, row by row."""

import dataclasses
import sys

import numpy as np
import pytest
from transformers import AutoModelForImageTextToText

from dualread.apps.serve.vectors import ReadersVectors
from dualread.errors import ConfigError
from dualread.models import prompts
from dualread.models.actor import ReadSpec, Request, SeededDecoding, read_states
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.prompts import Turn
from dualread.models.replay import of_generation
from dualread.models.replay.agreement import ReferenceLogProbs
from dualread.schema.replay import PassReading
from tests.architectures import both
from tests.models import released
from tests.models.plain import plain_pass
from tests.tiny import MODEL, image

SYSTEM = Turn("system", "You read images with care.")
EARLIER = (SYSTEM, Turn("user", "Is this a CT scan?"), Turn("assistant", "<answer>yes</answer>"))
ENDS = "</think>"
THOUGHT = "Maybe <answer>no</answer>? Or upper left.</think>\n<answer>upper left</answer>\n<confidence>77</confidence>"


@pytest.fixture
def put(tmp_path, monkeypatch, request):
    """Put a prompt into a package of somebody else; return its name."""
    package = f"ward{abs(hash(request.node.name))}"
    (tmp_path / package / "prompts").mkdir(parents=True)
    (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    count = iter(range(100))

    def write(text):
        name = f"asked_{next(count)}"
        (tmp_path / package / "prompts" / f"{name}.txt").write_bytes(text.encode())
        return f"{package}.prompts.{name}"

    return write


@pytest.fixture
def asking(tiny):
    """A checkpoint whose chat template does what that of its family does, and the same model of transformers alone."""
    opened = tiny.open()
    opened.encoder.processor.chat_template = released.OF_FAMILY[tiny.family]
    return opened, AutoModelForImageTextToText.from_pretrained(tiny.checkpoint).eval()


def whole(opened, turns, text, pictures):
    """What transformers makes of the whole conversation, in one call."""
    said = [{"role": role, "content": [{"type": "text", "text": words}]} for role, words in turns]
    shown = [{"type": "image", "image": picture} for picture in pictures]
    last = {"role": "user", "content": [*shown, {"type": "text", "text": text}]}
    return opened.encoder.processor.apply_chat_template(
        [*said, last], tokenize=True, return_dict=True, add_generation_prompt=True, return_tensors="pt"
    )


def requests(*turns):
    asked = [("Where?", 0), ("What is the size of the lesion?", 1), ("Why?", 0)]
    return [Request(text=q, images=[image(i)], image_name=str(i), row=q, before=turns) for q, i in asked]


def test_the_parts_of_a_file_are_turns_and_a_file_without_parts_is_one(put):
    name = put(
        "[system]\nBe brief.\n\nAlways.\n\n[user] \r\nA {ANSWER}?\n[assistant]\nYes: {QUESTION}\n[user]\n{QUESTION}!\n"
    )
    assert prompts.rendered_turns(name, question="[user]\nWhy", answer="{QUESTION}") == (
        ("system", "Be brief.\n\nAlways."),
        ("user", "A {QUESTION}?"),
        ("assistant", "Yes: [user]\nWhy"),
        ("user", "[user]\nWhy!"),
    )
    assert prompts.render(name, question="Why", answer="") == "Why!"
    plain = put("A list:\n[left]\n[SYSTEM] {QUESTION}\n")
    assert prompts.rendered_turns(plain, question="?") == (("user", "A list:\n[left]\n[SYSTEM] ?\n"),)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[sistem]\nx\n[user]\n{QUESTION}", "[sistem] is unknown"),
        ("Be brief.\n[user]\n{QUESTION}", "'Be brief.' stands before"),
        ("[system]\n \n[user]\n{QUESTION}", "[system] is empty"),
        ("[system]\nx\n[system]\ny\n[user]\n{QUESTION}", "[system] comes after"),
        ("[user]\nx\n[system]\ny\n[user]\n{QUESTION}", "[system] comes after"),
        ("[user]\n{QUESTION}\n[assistant]\nx", "last part is [assistant]"),
        ("[system]\n{QUESTION}\n[user]\nWhy?", "{QUESTION} 0 times"),
        ("[system]\nx\n[user]\n{QUESTION} {QUESTION}", "{QUESTION} 2 times"),
    ],
)
def test_a_file_whose_parts_are_no_conversation_is_refused_in_a_sentence(put, text, what):
    with pytest.raises(ConfigError) as refused:
        prompts.turns(name := put(text))
    assert name in str(refused.value)
    assert what in str(refused.value)
    assert "\n" not in str(refused.value)


def test_what_is_no_prompt_of_a_package_is_refused(put):
    package = put("x").partition(".")[0]
    for name in (f"{package}.prompts.other", f"{package}..prompts.asked_0", "no_such_package.asked"):
        with pytest.raises(ConfigError):
            prompts.turns(name)
    assert package not in sys.modules  # a text is read, and nothing is imported


@both
@pytest.mark.parametrize("turns", [(), (SYSTEM,), EARLIER])
def test_each_prompt_and_each_state_is_that_of_transformers_alone(asking, turns):
    """The second and third rows go the fast way: an image that is in memory, and texts that are put together."""
    opened, plain = asking
    opened = dataclasses.replace(opened, thinking_ends=ENDS)
    tokenizer, asked = opened.encoder.tokenizer, requests(*turns)
    texts = (THOUGHT, f"x{ENDS} no block", "It never ends <answer>no</answer>")
    completions = [[*tokenizer(text, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id] for text in texts]
    read = read_states(opened, asked, completions, ReadSpec(kappa=0.1), batch_size=3)
    for request, completion, row in zip(asked, completions, read, strict=True):
        inputs = whole(opened, turns, request.text, request.images)
        prompt = request.encoded(opened.encoder)
        assert list(prompt.token_ids) == inputs["input_ids"][0].tolist()
        assert all(values == tuple(inputs[name][0].tolist()) for name, values in prompt.types.items())
        n = len(prompt.token_ids)
        own = dataclasses.replace(prompt, image={name: inputs[name] for name in prompt.image if name != "num_crops"})
        final = plain_pass(plain, own, completion, output_hidden_states=True).hidden_states[-1][0].numpy()
        np.testing.assert_allclose(row.vectors["h_pre"], final[n - 1], atol=2e-5)
        np.testing.assert_allclose(row.vectors["h_close"], final[n + row.positions.close], atol=2e-5)
        spelled = [tokenizer.decode(completion[: t + 1]) for t in range(len(completion))]
        ended = [t for t, text in enumerate(spelled) if ENDS in text]
        if ended:
            np.testing.assert_allclose(row.vectors["h_think"], final[n + ended[0]], atol=2e-5)
            assert min(row.positions.answer) >= ended[0]
        else:
            assert np.isnan(row.vectors["h_think"]).all()
            assert row.positions.answer == (len(completion) - 1,)
    assert [row.positions.has_answer_block for row in read] == [True, False, False]
    answer = tokenizer.decode([completions[0][t] for t in read[0].positions.answer])
    assert "upper left" in answer
    assert "no" not in answer
    reference = ReferenceLogProbs.of(opened, asked, completions)
    np.testing.assert_allclose(read[0].token_log_probs, reference.exact[0], atol=2e-5)


@both
def test_states_at_the_end_of_thinking_are_those_of_the_pass_that_answers(asking):
    """What ends the thinking here is something that the untrained model says."""
    opened, _ = asking
    asked = requests(SYSTEM)
    decoding = SeededDecoding(temperature=0.0, top_p=1.0, n_samples=1, max_completion_tokens=12, seed=0)
    plain = [made for [made] in TransformersEngine(opened, 3).answer(asked, decoding)]
    ends = next(text for t in plain[0].token_ids[4:] if (text := opened.encoder.decode([t])).strip())
    opened = dataclasses.replace(opened, thinking_ends=ends)
    collecting = of_generation.Collected(spec=PassReading(kappa=0.1, middle=True, entropies=False), thinking_ends=ends)
    made = [one for [one] in TransformersEngine(opened, 3).answer(asked, decoding, collecting)]
    again = read_states(opened, asked, [list(one.token_ids) for one in made], ReadSpec(kappa=0.1), batch_size=2)
    assert made[0].states.positions.think >= 0
    for one, other in zip((row.states for row in made), again, strict=True):
        assert one.positions == other.positions
        for name in one.vectors:
            np.testing.assert_allclose(one.vectors[name], other.vectors[name], atol=2e-5, err_msg=name)
    served = TransformersEngine(opened, 3).answer(asked, decoding, ReadersVectors(kappa=0.1, thinking_ends=ends))
    for [one], other in zip(served, again, strict=True):
        [(span, vectors)] = one.states
        assert span is None
        assert "h_think" in vectors
        for name, vector in vectors.items():
            np.testing.assert_allclose(vector, other.vectors[name], atol=2e-5, err_msg=name)


@pytest.mark.parametrize("tiny", ["gemma3"], indirect=True)
@pytest.mark.parametrize(
    ("template", "turns", "what"),
    [
        (released.REFUSING, (SYSTEM,), "System role not supported"),
        (released.SILENT, (SYSTEM,), "leaves out or changes [system]"),
        (released.FOLDED, (Turn("user", "x"),), "must alternate"),
    ],
)
def test_a_template_that_refuses_a_turn_is_reported_in_a_sentence(tiny, template, turns, what):
    _, encoder = tiny.load()
    encoder.processor.chat_template = template
    for pictures in ([image(0)], [], [image(0), image(1)]):
        with pytest.raises(ConfigError) as refused:
            encoder.prompt("Where?", images=pictures, row="1", before=turns)
        assert what in str(refused.value)
        assert "\n" not in str(refused.value)
    assert encoder.prompt("Where?", images=[image(0)], row="1").token_ids


def test_thinking_of_an_earlier_answer_that_a_template_leaves_out_is_reported(tiny):
    _, encoder = tiny.load()
    encoder.processor.chat_template = released.THINKING
    turns = (Turn("user", "Why?"), Turn("assistant", "x</think>\nBecause."))
    with pytest.raises(ConfigError):
        encoder.prompt("Where?", images=[image(0)], row="1", before=turns)


def test_special_tokens_that_are_shown_stay_in_texts(tiny):
    """As `<|channel|>final<|message|>` would have to, which ends the thinking of some models."""
    tag = "<|im_start|>final"
    plain = tiny.open()
    ids = plain.encoder.tokenizer(f"so{tag}yes", add_special_tokens=False)["input_ids"]
    assert plain.encoder.decode(ids) == "sofinalyes"
    opened = open_checkpoint(tiny.checkpoint, {**MODEL, "shown_tokens": ["<|im_start|>"]})
    assert opened.encoder.tokenizer(f"so{tag}yes", add_special_tokens=False)["input_ids"] == ids
    assert opened.encoder.decode([*ids, *opened.encoder.stop]) == f"so{tag}yes"
    assert (
        opened.encoder.prompt("?", images=[image(0)], row="1").token_ids
        == plain.encoder.prompt("?", images=[image(0)], row="1").token_ids
    )
    at = dataclasses.replace(opened, thinking_ends=tag).locate(ids).think
    assert opened.encoder.decode(ids[: at + 1]) == f"so{tag}"
    with pytest.raises(ConfigError, match="shown_tokens"):
        open_checkpoint(tiny.checkpoint, {**MODEL, "shown_tokens": ["<|channel|>"]})
