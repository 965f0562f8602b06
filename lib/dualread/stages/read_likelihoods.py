"""Stage read_likelihoods: the log-probabilities in a service's responses to one shard -> the likelihood of each answer.

It gives features.safetensors and features.parquet as a replay does, with the tensor `answer_log_prob` alone: there are
no hidden states. The log-probabilities are those of the answer itself, so that they differ from it by 0, and of the
prompt, 0 image tokens were seen.

Inputs: `generations`, the completions and their tokens, as the stage read_answers writes them; `actor`, whose digest
is recorded.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dualread.artifacts.tables import each_part, from_many_rows, write_table
from dualread.artifacts.tensors import write_tensors
from dualread.digests import artifact_digest
from dualread.errors import ArtifactError
from dualread.models import prompts
from dualread.models.replay.rules import rules
from dualread.models.service.replies import Likelihood, Token, likelihood_of
from dualread.schema.answers import ReadLikelihoodsSpec, ShardSpec
from dualread.schema.columns import FEATURES, GENERATIONS, TOKENS
from dualread.schema.recorded import PromptText, ShardStates

_READ = ("sample_id", "sample_index", "n_prompt_tokens", "text")  # of a completion


def compute(spec: ReadLikelihoodsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write the likelihood of every answer of the shard."""
    shard = spec.shard
    values: list[np.ndarray] = []
    n_without = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal n_without
        for row, completion in enumerate(_completions(inputs["generations"])):
            likelihood = _likelihood(completion, shard)
            values.append(likelihood.answer_log_prob)
            n_without += not likelihood.positions.has_answer_block
            yield _row(row, shard.condition, completion, likelihood)

    table = from_many_rows(rows(), FEATURES)
    tensor = np.stack(values) if values else np.zeros((0, 1), dtype=np.float32)
    states = ShardStates(
        **spec.model_dump(include={"backbone", "actor", "seed"}),
        **shard.model_dump(include={"dataset", "split", "condition"}),
        **dict.fromkeys(("kappa", "final_layer", "middle_layer", "example")),  # there are no states
        prompt=PromptText(name=shard.prompt.name, sha256=prompts.template_sha256(shard.prompt.name)),
        positions=rules(shard.thinking_ends),
        actor_digest=artifact_digest(inputs["actor"]),
    )
    write_tensors(out / "features.safetensors", {"answer_log_prob": tensor}, states.model_dump())
    write_table(out / "features.parquet", table, FEATURES)
    return f"read the log-probabilities of {table.height} completions ({n_without} without an answer block)"


def _completions(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield each committed completion with its tokens."""
    completions, tokens = each_part(folder, GENERATIONS, _READ), each_part(folder, TOKENS)
    for texts, listed in zip(completions, tokens, strict=True):  # their parts have the same rows
        for completion, likelihoods in zip(texts.iter_rows(named=True), listed.iter_rows(named=True), strict=True):
            if completion["sample_index"] == 0:
                yield completion | likelihoods


def _likelihood(completion: Mapping[str, Any], shard: ShardSpec) -> Likelihood:
    if not completion["n_bytes"]:
        raise ArtifactError(
            f"{shard.name}: the completion of {completion['sample_id']} has no token, so its likelihood is undefined."
            " Leave out the methods that read it (sequence likelihood), or ask again."
        )
    text, ends = completion["text"].encode(), np.cumsum(completion["n_bytes"]).tolist()
    pieces = zip([0, *ends], ends, completion["log_probs"], strict=False)
    tokens = [Token(content=text[start:end], log_prob=value, top=()) for start, end, value in pieces]
    return likelihood_of(tokens, shard.thinking_ends)


def _row(row: int, condition: str, completion: Mapping[str, Any], likelihood: Likelihood) -> dict[str, Any]:
    at: Sequence[int] = likelihood.positions.answer
    return {
        "sample_id": completion["sample_id"],
        "condition": condition,
        "sample_index": 0,
        "row": row,
        "n_prompt_tokens": completion["n_prompt_tokens"],
        "t_close": likelihood.positions.close,
        "answer_positions": list(at),
        "has_answer_block": likelihood.positions.has_answer_block,
        "n_image_tokens": 0,
        "token_log_probs": likelihood.token_log_probs.tolist(),
        "log_prob_mean_difference": 0.0,
        "log_prob_max_difference": 0.0,
        "argmax_mismatches": 0,
    }
