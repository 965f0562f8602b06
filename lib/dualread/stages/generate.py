"""Stage generate: an actor's answers to one (data set, split) under one condition, or one view of these answers.

A shard with `decoding` asks for completions and gives generations.parquet, or its parts. A shard with `choices` asks
for the log-probabilities of choices and gives choices.parquet. Inputs: `actor`, `manifest`; `pairs` where a donor's
image is shown; `generations`, the committed completions, for a view of them.
"""

import functools
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from dualread import plugins
from dualread.artifacts.tables import from_rows, write_rows, write_table
from dualread.errors import ArtifactError, ConfigError
from dualread.grading.parse import text_after_thinking
from dualread.models.actor import AnsweringActor, SeededDecoding
from dualread.models.backbones.encode import prompt_sha256
from dualread.models.conditions import Asked
from dualread.models.generation.choices import score_choices
from dualread.schema.answers import Choices, GenerateSpec, ShardSpec
from dualread.schema.columns import CHOICES, GENERATIONS
from dualread.schema.recorded import Facts
from dualread.seeding import derive_seed
from dualread.stages._asked import frozen, read_asked, read_committed, refuse_control_tokens
from dualread.stages._choices import read_named


def compute(spec: GenerateSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Generate the actor's completions for every question of the shard, or score the choices that the spec names."""
    questions = list(read_asked(spec.shard, inputs))
    settings = frozen(spec.model), frozen(spec.engine.settings)
    actor = loaded_engine(inputs["actor"], spec.engine.module, *settings, inputs["facts"] / "facts.json")
    refuse_control_tokens(inputs["manifest"], actor.encoder.tokenizer)
    tag = spec.shard.thinking_ends
    if tag and tag not in actor.encoder.decode(actor.encoder.tokenizer(tag, add_special_tokens=False)["input_ids"]):
        raise ConfigError(
            f"backbones.{spec.backbone}.settings.shown_tokens: answers would lack {tag!r}, because special tokens of it"
            " are not shown. Expected them among these tokens. Add them."
        )
    if spec.shard.choices is not None:
        return _score_choices(spec.shard.choices, spec.shard, questions, actor, inputs, out)
    return _complete(spec, questions, actor, inputs["manifest"], out)


@functools.lru_cache(maxsize=1)  # a job has one actor, which is loaded once for all shards
def loaded_engine(actor: Path, engine: str, settings: str, engine_settings: str, facts: Path) -> AnsweringActor:
    """Return the engine `engine` with the checkpoint of `actor`, which stays in memory."""
    open_engine = plugins.load_module(engine).open_engine
    return open_engine(actor / "checkpoint", json.loads(settings), json.loads(engine_settings), Facts.read(facts))


def _complete(spec: GenerateSpec, questions: Sequence[Asked], actor: AnsweringActor, manifest: Path, out: Path) -> str:
    shard = spec.shard
    assert shard.decoding is not None, "a shard has decoding or choices"
    seed = derive_seed("generate", spec.backbone, spec.actor, spec.seed, shard.dataset, shard.split)
    decoding = SeededDecoding(**shard.decoding.model_dump(), seed=derive_seed(seed, shard.condition))
    # The spec names the module that collects states, so that only these results depend on it.
    kept = importlib.import_module(f"dualread.{spec.states.module}") if spec.states else None
    is_answer = "/" not in shard.condition  # of a view, readers see what follows the thinking
    collected = kept and kept.Collected(spec=spec.states, thinking_ends=shard.thinking_ends)
    collecting = {"collecting": collected} if collected else {}
    results = actor.answer([question.request(manifest) for question in questions], decoding, **collecting)
    rows = [
        {
            "sample_id": question.sample_id,
            "condition": shard.condition,
            "sample_index": question.draw * shard.decoding.n_samples + index,
            "image_id": question.image_id,
            "prompt_sha256": prompt_sha256(completion.prompt_token_ids),
            "n_prompt_tokens": len(completion.prompt_token_ids),
            "token_ids": completion.token_ids,
            "token_log_probs": completion.token_log_probs,
            "text": completion.text if is_answer else text_after_thinking(completion.text, shard.thinking_ends) or "",
            "finish_reason": completion.finish_reason,
        }
        for question, completions in zip(questions, results, strict=True)
        for index, completion in enumerate(completions)
    ]
    write_rows(out, rows, GENERATIONS)
    if kept:
        kept.write(out, [completion.states for completions in results for completion in completions])
    n_tokens = sum(len(row["token_ids"]) for row in rows)
    n_cut = sum(row["finish_reason"] == "length" for row in rows)
    return (
        f"read {len(questions)} questions, wrote {len(rows)} completions, {n_tokens} tokens, {n_cut} cut at the limit"
    )


def _score_choices(
    wanted: Choices,
    shard: ShardSpec,
    questions: Sequence[Asked],
    actor: AnsweringActor,
    inputs: Mapping[str, Path],
    out: Path,
) -> str:
    committed = dict(read_committed(inputs["generations"]).select("sample_id", "token_ids").iter_rows())
    if missing := [q.sample_id for q in questions if q.sample_id not in committed]:
        raise ArtifactError(f"{shard.condition}: {len(missing)} questions without an answer, such as {missing[0]}.")
    named = read_named(inputs["manifest"]) if wanted.options else {}
    questions = [question for question in questions if question.sample_id in named or not wanted.options]
    requests = [question.request(inputs["manifest"]) for question in questions]
    ids = [committed[question.sample_id] for question in questions]
    of_each = [named.get(question.sample_id) for question in questions]
    rows = [
        {
            "sample_id": question.sample_id,
            "condition": shard.condition,
            "choice": choice,
            "log_prob": log_prob,
            "n_prompt_tokens": scored.n_prompt_tokens,
        }
        for question, scored in zip(
            questions, score_choices(actor, requests, ids, wanted, shard.thinking_ends, of_each), strict=True
        )
        for choice, log_prob in scored.log_probs.items()
    ]
    write_table(out / "choices.parquet", from_rows(rows, CHOICES), CHOICES)
    return f"read {len(questions)} questions, scored {len(rows)} choices"
