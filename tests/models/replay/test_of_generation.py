"""States from the pass that makes answers: they are those of a replay, and a sample finds wrong ones."""

import dataclasses

import numpy as np
import polars as pl
import pytest
from tests import specs
from tests.architectures import both
from tests.stages import shards
from tests.tiny import MODEL, image

from dualread.artifacts.tables import from_rows, write_rows
from dualread.artifacts.tensors import read_tensors, write_tensors
from dualread.errors import ArtifactError, ReplayDisagreementError
from dualread.models.actor import ReadSpec, Request, SeededDecoding, read_states
from dualread.models.backbones.checkpoint import open_checkpoint
from dualread.models.backbones.encode import prompt_sha256
from dualread.models.generation.transformers_engine import TransformersEngine
from dualread.models.replay import of_generation
from dualread.schema.columns import GENERATIONS
from dualread.schema.recorded import Facts
from dualread.schema.replay import Agreement, PassReading

WHOLE = PassReading(kappa=0.1, middle=True, entropies=True)
BOUNDS = Agreement(argmax_tolerance=1e-3, max_mean_log_prob_difference=1e-3, max_argmax_mismatch_share=0.0)
QUESTIONS = ["Is this a CT scan?", "What is the size of the lesion?", "Where?", "Where is it? " * 3, "Why?"]
REQUESTS = [
    Request(text=text, images=[image(i % 2)], image_name=str(i % 2), row=f"row {i}") for i, text in enumerate(QUESTIONS)
]


def decoded(n_tokens=12, temperature=0.0):
    return SeededDecoding(temperature=temperature, top_p=1.0, n_samples=1, max_completion_tokens=n_tokens, seed=0)


def answers(opened, n_tokens=12, *, batch_size=3, spec=WHOLE, asked=REQUESTS, temperature=0.0):
    """Answers with the states of their pass."""
    decoding = decoded(n_tokens, temperature)
    made = TransformersEngine(opened, batch_size).answer(asked, decoding, of_generation.Collected(spec=spec))
    return [one for [one] in made]


def replayed(opened, made, asked=REQUESTS):
    ids = [list(one.token_ids) for one in made]
    return read_states(opened, asked, ids, ReadSpec(kappa=0.1, entropies=True), batch_size=2)


def differences(one, other):
    """The largest difference of every vector and number; everything else has to be the same."""
    assert one.positions == other.positions
    assert (one.n_prompt_tokens, one.n_image_tokens) == (other.n_prompt_tokens, other.n_image_tokens)
    assert one.vectors.keys() == other.vectors.keys()
    numbers = [(getattr(one, name), getattr(other, name)) for name in ("token_log_probs", "token_entropies")]
    return [np.abs(a - b).max() for a, b in (*((one.vectors[k], other.vectors[k]) for k in one.vectors), *numbers)]


@pytest.fixture(scope="module")
def opened(tiny):
    """A checkpoint that ends some answers and not others: the token that it says most often ends a turn."""
    plain = tiny.open()
    said = [token for one in answers(plain) for token in one.token_ids]
    often = max(set(said), key=said.count)
    plain.encoder.stop |= {often}
    return plain


@both
@pytest.mark.parametrize("n_tokens", [1, 2, 12])
@pytest.mark.parametrize("shared", [None, "nothing"])
def test_each_state_of_the_pass_is_that_of_the_replay(opened, n_tokens, shared):
    if shared:
        opened = opened.with_facts(Facts(shared=shared, images_once=False))
    made = answers(opened, n_tokens)
    assert n_tokens < 12 or {one.finish_reason for one in made} == {"stop", "length"}
    for one, found in zip(made, replayed(opened, made), strict=True):
        assert max(differences(one.states, found)) < 2e-5


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_answers_are_the_same_whether_states_are_collected(opened, temperature):
    plain = [one for [one] in TransformersEngine(opened, 3).answer(REQUESTS, decoded(temperature=temperature))]
    kept = answers(opened, temperature=temperature)
    assert [one.token_ids for one in plain] == [one.token_ids for one in kept]
    assert {one.states for one in plain} == {None}


def test_where_no_image_is_shown_there_are_no_states_of_one(opened):
    asked = [dataclasses.replace(one, images=[]) for one in REQUESTS[:2]]
    made = answers(opened, asked=asked)
    for one, found in zip(made, replayed(opened, made, asked), strict=True):
        assert max(differences(one.states, found)) < 2e-5
        assert "h_global" not in one.states.vectors


def test_only_what_is_asked_for_is_read(opened):
    [one, *_] = answers(opened, spec=PassReading(kappa=0.1, middle=False, entropies=False))
    assert set(one.states.vectors) == {"h_pre", "h_close", "h_ans", "h_global", "h_evid", "answer_log_prob"}
    assert one.states.token_entropies is None


@pytest.fixture
def stored(opened, tmp_path):
    """(folder of a generation with states, its table, its completions)."""
    made = answers(opened)
    rows = [
        {
            **shards.generation(request.row, one.text, image_id=request.image_name, sample_index=0),
            "prompt_sha256": prompt_sha256(one.prompt_token_ids),
            "n_prompt_tokens": len(one.prompt_token_ids),
            "token_ids": list(one.token_ids),
            "token_log_probs": list(one.token_log_probs),
        }
        for request, one in zip(REQUESTS, made, strict=True)
    ]
    table = from_rows(rows, GENERATIONS)
    write_rows(tmp_path, rows, GENERATIONS)
    of_generation.write(tmp_path, [one.states for one in made])
    return tmp_path, table, made


def check(opened, found, table):
    spec = specs.replay(specs.shard(), batch_size=2)
    return of_generation.check(found, opened, REQUESTS, table, spec, BOUNDS)


def test_what_is_stored_is_what_was_collected_in_whatever_order_it_is_read(opened, stored):
    folder, table, made = stored
    for order in (table, table.reverse()):
        states = {request.row: one.states for request, one in zip(REQUESTS, made, strict=True)}
        for name, one in zip(order["sample_id"], of_generation.read(folder, opened, order), strict=True):
            assert max(differences(one, states[name])) < 1e-6
            np.testing.assert_allclose(one.argmax_gap, states[name].argmax_gap, atol=1e-6)
    assert check(opened, of_generation.read(folder, opened, table), table) == 5


def of_another_answer(states):
    """Row 1 has the state of row 2."""
    states[1] = states[2]
    return states


VECTORS = ("h_pre", "h_close", "h_ans", "h_global", "h_evid", "h_mid")
# By the tensor that is changed: how, and what the check says.
WRONG = [
    *((name, of_another_answer, rf"slake/test/original: .* {name} differs .* Worst: row 1, ") for name in VECTORS),
    ("h_close", lambda states: states * np.nan, "h_close differs"),
    ("n_image_tokens", lambda n: n + 1, "row 0 has another number of image tokens"),
    ("token_log_probs", lambda found: found - 0.01, r"log-probabilities differ by 1\.00e-02 on average over 5"),
]


@pytest.mark.parametrize(("name", "change", "said"), WRONG)
def test_a_state_or_number_that_is_not_of_the_answer_is_refused_by_name(opened, stored, name, change, said):
    folder, table, _ = stored
    tensors = read_tensors(folder / of_generation.FILE)
    write_tensors(folder / of_generation.FILE, tensors | {name: change(tensors[name].copy())}, {})
    with pytest.raises(ReplayDisagreementError, match=said):
        check(opened, of_generation.read(folder, opened, table), table)


def test_answers_about_another_image_are_refused(opened, stored):
    """All about the generation is consistent, but the image that it has shown is not that of the replay."""
    folder, table, _ = stored
    asked = [dataclasses.replace(request, images=[image(7)]) for request in REQUESTS]
    spec = specs.replay(specs.shard(), batch_size=2)
    with pytest.raises(ReplayDisagreementError, match="are not those of a replay"):
        of_generation.check(of_generation.read(folder, opened, table), opened, asked, table, spec, BOUNDS)


def test_states_that_are_not_of_these_answers_are_refused(opened, stored):
    folder, table, made = stored
    with pytest.raises(ArtifactError, match="not about the 5 answers beside it"):
        of_generation.read(folder, opened, table.head(3))
    of_generation.write(folder, [one.states for one in made[:3]])
    with pytest.raises(ArtifactError, match="Generate the shard again"):
        of_generation.read(folder, opened, table)


def test_no_answers_have_no_states(opened, tmp_path):
    write_rows(tmp_path, [], GENERATIONS)
    of_generation.write(tmp_path, [])
    assert of_generation.read(tmp_path, opened, from_rows([], GENERATIONS)) == []


@both
def test_in_bfloat16_the_rounding_decides(tiny):
    """States of the right model agree, and those of one whose weights have changed do not."""
    opened = open_checkpoint(tiny.checkpoint, {**MODEL, "dtype": "bfloat16"})
    made = answers(opened)
    table = pl.DataFrame(
        {
            "token_ids": [list(one.token_ids) for one in made],
            "prompt_sha256": [prompt_sha256(one.prompt_token_ids) for one in made],
        }
    )
    states = [one.states for one in made]
    bounds = BOUNDS.model_copy(update={"max_mean_log_prob_difference": 1.0})
    spec = specs.replay(specs.shard(), batch_size=2)
    assert of_generation.check(states, opened, REQUESTS, table, spec, bounds) == 5
    shifted = [dataclasses.replace(one, vectors={**one.vectors, "h_close": one.vectors["h_pre"]}) for one in states]
    with pytest.raises(ReplayDisagreementError, match="h_close differs"):
        of_generation.check(shifted, opened, REQUESTS, table, spec, bounds)
