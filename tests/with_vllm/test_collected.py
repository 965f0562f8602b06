"""vLLM keeps the states of its answers: they are those of a replay, which checks a sample of them."""

import numpy as np
import pytest

from dualread.artifacts.tables import read_parts, read_table
from dualread.artifacts.tensors import read_tensors
from dualread.schema.columns import FEATURES, GENERATIONS
from dualread.schema.replay import PassReading
from tests import specs
from tests.specs import changed
from tests.tiny import MODEL
from tests.with_vllm.conftest import AGREEMENT, TRANSFORMERS, VLLM

KEPT = PassReading(kappa=0.1, middle=True, entropies=True)


@pytest.mark.parametrize("engine", [VLLM, TRANSFORMERS], ids=["vllm", "transformers"])
@pytest.mark.parametrize("n_tokens", [16, 1])
def test_states_of_the_pass_that_answers_are_those_of_the_replay(qwen, tmp_path, engine, n_tokens):
    asked = {"decoding": specs.decoding(max_completion_tokens=n_tokens)}
    of_pass, optional = changed(qwen.answers(engine, **asked), states=KEPT), {"optional_tensors": ("token_entropies",)}
    answers = qwen.make("generate", tmp_path / "answers", of_pass)
    whole, kept = changed(qwen.states(**asked), **optional), changed(qwen.states(**asked), states=KEPT, **optional)
    folders = [
        qwen.make("replay", tmp_path / name, spec, generations=answers)
        for name, spec in (("replayed", whole), ("kept", kept))
    ]
    replayed, found = (read_tensors(folder / "features.safetensors") for folder in folders)
    assert replayed.keys() == found.keys()
    for name, values in replayed.items():
        np.testing.assert_allclose(found[name], values, atol=5e-5, err_msg=name)
    indexes = [read_table(folder / "features.parquet", FEATURES) for folder in folders]
    same = ["sample_id", "row", "n_prompt_tokens", "t_close", "answer_positions", "has_answer_block", "n_image_tokens"]
    assert indexes[0].select(same).equals(indexes[1].select(same))


def test_in_bfloat16_the_head_is_in_float32_as_that_of_a_replay(qwen, tmp_path):
    """vLLM's own head is in bfloat16, and log-probabilities of its answers are those of rounded logits."""
    model = {"model": {**MODEL, "dtype": "bfloat16"}}
    answers = qwen.make("generate", tmp_path / "answers", changed(qwen.answers(VLLM), states=KEPT, **model))
    whole = changed(qwen.states(), **model, optional_tensors=("token_entropies",))
    agreement = AGREEMENT.model_copy(update={"max_argmax_mismatch_share": 0.1})  # in bfloat16, ties are frequent
    whole = changed(whole, replay=whole.replay.model_copy(update={"agreement": agreement}))
    folders = [
        qwen.make("replay", tmp_path / name, spec, generations=answers)
        for name, spec in (("replayed", whole), ("kept", changed(whole, states=KEPT)))
    ]
    replayed, kept = (read_tensors(folder / "features.safetensors")["token_entropies"] for folder in folders)
    np.testing.assert_allclose(kept, replayed, atol=2e-3)
    ours = read_tensors(answers / "states.safetensors")["token_log_probs"]
    theirs = read_parts(answers, GENERATIONS)["token_log_probs"].to_list()
    of_rounding = np.concatenate([row[: len(said)] - said for row, said in zip(ours, theirs, strict=True)])
    assert 5e-4 < np.abs(of_rounding).mean() < 5e-3


def test_states_of_gemma_3_with_causal_attention_are_refused(gemma, tmp_path):
    """On CPUs, vLLM has no bidirectional attention over image tokens, and gives no warning."""
    answers = gemma.make("generate", tmp_path / "answers", changed(gemma.answers(VLLM), states=KEPT))
    done = gemma.run("replay", tmp_path / "features", changed(gemma.states(), states=KEPT), generations=answers)
    assert done.returncode == 1
    assert "slake/test/original: " in done.stderr
