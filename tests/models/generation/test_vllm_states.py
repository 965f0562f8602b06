"""Which states are kept while somebody else's runner computes them: a runner of our own tells what it was given."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from dualread.errors import ConfigError
from dualread.models.backbones.encode import EncodedPrompt
from dualread.models.generation._vllm_states import AnswerStates, image_spans

IMAGE = 9


def prompt(*ids, image="a"):
    return EncodedPrompt(token_ids=ids, n_turn=len(ids), types={}, image_sha256=image, image={}, row="x")


class Runner:
    """Computes the states of some requests at once, as vLLM's runner does, into one tensor that it uses again."""

    def __init__(self):
        self.buffer = torch.zeros(64, 2)
        self.query_start_loc = SimpleNamespace(np=np.zeros(8, int))
        self.input_batch = SimpleNamespace(num_reqs=0, req_ids=[], num_computed_tokens_cpu=np.zeros(8, int))

    def _model_forward(self):
        batch = self.input_batch
        for i in range(batch.num_reqs):
            start, end = self.query_start_loc.np[i : i + 2]
            position = torch.arange(int(end - start)) + int(batch.num_computed_tokens_cpu[i])
            self.buffer[start:end] = torch.stack([position, torch.full_like(position, int(batch.req_ids[i]))], dim=1)
        return self.buffer

    def step(self, *parts):
        """Compute (request, first token, number of tokens) of each part."""
        ids, firsts, counts = zip(*parts, strict=True)
        self.input_batch.num_reqs, self.input_batch.req_ids = len(ids), [*ids, None]
        self.input_batch.num_computed_tokens_cpu[: len(ids)] = firsts
        self.query_start_loc.np[: len(ids) + 1] = np.cumsum([0, *counts])
        self._model_forward()


@pytest.fixture
def runner():
    return Runner()


@pytest.fixture
def states(runner):
    return AnswerStates(runner, IMAGE)


def test_spans_are_the_runs_of_image_tokens():
    assert image_spans(prompt(1, 9, 9, 2, 9, 3), IMAGE) == [(1, 2), (4, 1)]
    assert image_spans(prompt(9, 9), IMAGE) == [(0, 2)]
    assert image_spans(prompt(1, 2), IMAGE) == []


def test_the_image_the_last_token_of_the_prompt_and_all_that_follow_are_kept(runner, states):
    states.keep("1", prompt(1, 9, 9, 9, 5, 6))
    runner.step(("7", 0, 3), ("1", 0, 3))  # the prompt in two parts, beside a request that nobody watches
    assert not states.has_image("1")
    runner.step(("1", 3, 3), ("7", 3, 1))
    runner.step(("7", 4, 1), ("1", 6, 1))
    assert states._kept["1"].image.tolist() == [[1, 1], [2, 1], [3, 1]]
    assert [states.state("1", at).tolist() for at in (5, 6)] == [[5, 1], [6, 1]]
    assert states.state("1", 4) is None  # of a prompt, only the last token is wanted
    assert states.state("1", 7) is None


def test_the_states_of_an_image_serve_other_requests_about_it_whose_prefix_is_the_same(runner, states):
    first, same = prompt(1, 9, 9, 5, 6), prompt(1, 9, 9, 7, 8, 8)
    assert not states.will_have_image(first)
    states.keep("1", first)
    runner.step(("1", 0, 5))
    states.forget("1")
    assert states.will_have_image(same)
    assert not states.will_have_image(prompt(1, 9, 9, 5, 6, image="b"))
    assert not states.will_have_image(prompt(2, 9, 9, 5, 6))
    states.keep("2", same)
    runner.step(("2", 4, 2))  # the cache has the image's prefix
    assert states._kept["2"].image.tolist() == [[1, 1], [2, 1]]
    assert states.state("2", 5).tolist() == [5, 2]


def test_a_request_that_is_computed_again_keeps_the_same_states(runner, states):
    """vLLM takes a request back when memory is short, and reads it again from its first token."""
    states.keep("1", prompt(1, 9, 5))
    runner.step(("1", 0, 3))
    runner.step(("1", 3, 1))
    runner.step(("1", 0, 4))
    runner.step(("1", 4, 1))
    assert [states.state("1", at).tolist() for at in (2, 3, 4)] == [[2, 1], [3, 1], [4, 1]]
    assert states._kept["1"].image.tolist() == [[1, 1]]


def test_states_go_on_under_another_name_and_are_dropped(runner, states):
    states.keep("1", prompt(1, 9, 5))
    runner.step(("1", 0, 3))
    states.go_on("1", "2")
    runner.step(("2", 3, 2))
    assert [states.state("2", at).tolist() for at in (2, 3, 4)] == [[2, 1], [3, 2], [4, 2]]
    states.forget("2")
    states.forget("2")
    with pytest.raises(KeyError):
        states.state("2", 2)


def test_not_more_images_are_kept_than_memory_is_meant_for(runner, states, monkeypatch):
    monkeypatch.setattr("dualread.models.generation._vllm_states._IMAGES", 2)
    for k, name in enumerate("abc"):
        states.keep(str(k), prompt(1, 9, 5, image=name))
        runner.step((str(k), 0, 3))
    assert states._kept["0"].image.tolist() == [[1, 0]]  # a request that is being answered keeps its own
    states.forget("0")
    assert [states.will_have_image(prompt(1, 9, 5, image=name)) for name in "abc"] == [False, True, True]


def test_an_image_that_is_being_read_serves_requests_about_it_that_have_begun(runner, states):
    """vLLM reads it for the first of them and takes it from its cache for the second."""
    first, second = prompt(1, 9, 9, 5), prompt(1, 9, 9, 6)
    states.keep("1", first)
    assert states.will_have_image(second)
    assert not states.will_have_image(prompt(1, 9, 9, 6, image="b"))
    states.keep("2", second)
    runner.step(("1", 0, 4), ("2", 3, 1))
    assert states._kept["2"].image.tolist() == [[1, 1], [2, 1]]
    assert states.has_image("2")


def test_the_states_of_a_pass_begin_with_the_last_token_of_the_prompt(runner, states):
    states.keep("1", prompt(1, 9, 5))
    runner.step(("1", 0, 3))
    runner.step(("1", 3, 1))
    found = states.of_pass("1", 3, 2)  # the second token of the completion was chosen, and not read
    assert (found.final.tolist(), found.image.tolist(), found.layers) == ([[2, 1], [3, 1]], [[1, 1]], {})
    runner.step(("1", 4, 1))
    assert states.of_pass("1", 3, 2).final.tolist() == [[2, 1], [3, 1], [4, 1]]
    states.keep("2", prompt(1, 5))  # without an image
    runner.step(("2", 0, 2))
    runner.step(("2", 2, 1))
    assert states.has_image("2")
    assert states.of_pass("2", 2, 1).image.shape == (0, 2)


def layered(*, eager):
    """A runner whose model has two layers, which give what they add, and what it is added to."""
    runner = Runner()
    runner.model_config = SimpleNamespace(enforce_eager=eager)
    layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.Identity()])
    language = SimpleNamespace(model=SimpleNamespace(layers=layers))
    runner.get_model = lambda: SimpleNamespace(get_language_model=lambda: language)
    forward = runner._model_forward

    def through_layers():
        states = forward()
        layers[0]((10 * states, states))
        layers[1]((20 * states, states))
        return states

    runner._model_forward = through_layers
    return runner


def test_the_states_of_an_inner_layer_are_kept_beside_those_of_the_last():
    runner = layered(eager=True)
    states = AnswerStates(runner, IMAGE)
    states.keep_layer(2)
    states.keep("1", prompt(1, 9, 5))
    runner.step(("1", 0, 3))
    runner.step(("1", 3, 1))
    runner.step(("1", 4, 1))
    found = states.of_pass("1", 3, 2)
    assert found.final.tolist() == [[2, 1], [3, 1], [4, 1]]
    assert {layer: of.tolist() for layer, of in found.layers.items()} == {2: [[63, 21], [84, 21]]}  # 20 x + x


def test_an_inner_layer_cannot_be_seen_in_cuda_graphs():
    with pytest.raises(ConfigError, match=r"generation\.settings\.eager: is not set, but .*h_mid"):
        AnswerStates(layered(eager=False), IMAGE).keep_layer(2)
