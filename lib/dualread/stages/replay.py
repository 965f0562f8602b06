"""Stage replay: teacher-forced replay of a shard -> features.safetensors (float32 vectors), features.parquet (index).

The replay reads exactly the generated tokens and compares its log-probabilities with those of the generation. A replay
that does not reproduce its generation is refused, because its states would not be those of the answer.

`completions` of a shard names the condition whose committed completions are forced with another image (for a control,
or a view with an image change). Such a replay has no generation of its own: differences are recorded but not judged.
Where no image is shown, the vectors of image tokens are left out. A view with `layers` has the answer's states in these
layers, and nothing else; a view with a `measure` has what that measures, and nothing else. Where completions are
reports, each claim has a row, with the states at its own tokens; `spans` is the table that names them, if any.
"""

import dataclasses
import functools
import importlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from dualread import plugins
from dualread.artifacts.tables import from_rows, read_parts, write_table
from dualread.artifacts.tensors import write_tensors
from dualread.digests import artifact_digest
from dualread.errors import ArtifactError
from dualread.models import prompts
from dualread.models.actor import ReadSpec, Request, read_states, take_measure
from dualread.models.backbones.checkpoint import Opened, open_checkpoint
from dualread.models.conditions import Asked
from dualread.models.replay import agreement
from dualread.models.replay.forward import TENSORS, layer_vector, middle_layer
from dualread.models.replay.replayed import Replayed, stacked, stacked_optional
from dualread.models.replay.rules import read_of_example, rules
from dualread.schema.answers import ReplaySpec
from dualread.schema.columns import FEATURES, GENERATIONS
from dualread.schema.recorded import Facts, PromptText, ShardStates
from dualread.schema.replay import OF_IMAGE, OF_ONE_IMAGE, Agreement
from dualread.stages._asked import forced, frozen, read_asked
from dualread.stages._claims import claims_in, claims_index


def compute(spec: ReplaySpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Replay every completion of the shard."""
    shard, optional = spec.shard, spec.optional_tensors or ()
    questions = list(read_asked(shard, inputs))
    completions = read_parts(inputs["generations"], GENERATIONS)
    if shard.completions is not None:  # those of another condition, which this one forces
        completions = forced(completions, {q.sample_id: q.image_id for q in questions}, shard.condition)
    completions = completions.sort("sample_id", "sample_index")
    token_ids = completions["token_ids"].to_list()
    of_claims = spec.spans and claims_in(spec.spans, completions, inputs, shard.thinking_ends, where=shard.name)
    requests = _requests(inputs, completions, questions)
    batch_size = spec.replay.settings.batch_size
    actor = loaded_actor(inputs["actor"], frozen(spec.model), inputs["facts"] / "facts.json")
    actor = dataclasses.replace(actor, thinking_ends=shard.thinking_ends)
    # The spec names the module that takes states from the generation, so that only these results depend on it.
    kept = importlib.import_module(f"dualread.{spec.states.module}") if spec.states else None
    if kept:
        replayed = kept.read(inputs["generations"], actor, completions)
    else:
        besides = {"entropies": "token_entropies" in optional, "images": any(OF_ONE_IMAGE in name for name in optional)}
        what = ReadSpec(kappa=spec.replay.kappa, depths=shard.layers or (), **besides)
        own_prompts = completions["prompt_sha256"].to_list() if shard.completions is None else None
        arguments = {"batch_size": batch_size, "prompts": own_prompts, "claims": of_claims}
        replayed = read_states(actor, requests, token_ids, what, **arguments)
    reference = agreement.ReferenceLogProbs.of(actor, requests, token_ids)
    bounds = agreement.allowed(spec.replay.agreement, reference.rounding)
    is_greedy = shard.decoding is not None and shard.decoding.temperature == 0
    index = _index(completions, replayed, bounds, greedy=is_greedy)
    if shard.completions is None:
        agreement.check(index, bounds, where=shard.name)
    reference.check(replayed, bounds, where=shard.name)
    n_replayed = kept.check(replayed, actor, requests, completions, spec, bounds) if kept else index.height
    n_without = index.height - index["has_answer_block"].sum()
    n_endless = sum(answer.positions.think == -1 for answer in replayed)
    mean, largest = index["log_prob_mean_difference"].mean(), index["log_prob_max_difference"].max()
    if of_claims is not None:
        index, replayed = claims_index(index, replayed), [claim for report in replayed for claim in report.claims]
    without_image = any(getattr(plugins.load_module(image.module), "NO_IMAGE", False) for image in shard.images)
    names = [layer_vector(depth) for depth in shard.layers] if shard.layers else TENSORS
    left_out = {*(OF_IMAGE if without_image else ()), *(["h_mid"] if spec.states and not spec.states.middle else ())}
    tensors = {name: stacked(replayed, name) for name in names if name not in left_out}
    if shard.measure is not None:
        tensors = take_measure(actor, requests, token_ids, shard.measure, batch_size=batch_size)
    tensors |= {name: stacked_optional(replayed, name) for name in optional}
    n_layers = actor.model.config.get_text_config().num_hidden_layers
    states = ShardStates(
        **spec.model_dump(include={"backbone", "actor", "seed"}),
        **shard.model_dump(include={"dataset", "split", "condition"}),
        final_layer=n_layers,
        middle_layer=middle_layer(n_layers),
        kappa=spec.replay.kappa,
        prompt=PromptText(name=shard.prompt.name, sha256=prompts.template_sha256(shard.prompt.name)),
        positions=rules(shard.thinking_ends, of_claims=of_claims is not None),
        example=read_of_example(shard.thinking_ends),
        actor_digest=artifact_digest(inputs["actor"]),
    )
    write_tensors(out / "features.safetensors", tensors, states.model_dump())
    write_table(out / "features.parquet", index, FEATURES)
    endless = f", {n_endless} of which never end thinking" if n_endless else ""
    claims = "" if of_claims is None else f", read {index.height} claims"
    return (
        f"replayed {n_replayed} of {len(completions)} completions ({n_without} without an answer block{endless})"
        f"{claims}; log-probabilities "
        f"differ from the generation's by {mean:.1e} on average, {largest:.1e} at most"
    )


def _requests(inputs: Mapping[str, Path], completions: pl.DataFrame, asked: Sequence[Asked]) -> list[Request]:
    """Return what was asked for each completion."""
    questions = {question.sample_id: question for question in asked}
    if unknown := sorted(set(completions["sample_id"]) - questions.keys()):
        raise ArtifactError(
            f"{inputs['generations']}: has completions of unknown questions {unknown[:5]}. Generate the shard again."
        )
    return [questions[sample_id].request(inputs["manifest"]) for sample_id in completions["sample_id"]]


@functools.lru_cache(maxsize=1)  # a job has one actor, which is loaded once for all shards
def loaded_actor(actor: Path, settings: str, facts: Path) -> Opened:
    """Return the checkpoint of `actor`, which stays in memory."""
    return open_checkpoint(actor / "checkpoint", json.loads(settings), Facts.read(facts))


def _index(completions: pl.DataFrame, replayed: Sequence[Replayed], bounds: Agreement, *, greedy: bool) -> pl.DataFrame:
    rows = []
    for row, (completion, replay) in enumerate(zip(completions.iter_rows(named=True), replayed, strict=True)):
        difference = np.abs(replay.token_log_probs - np.asarray(completion["token_log_probs"], np.float32))
        n_mismatches = int((replay.argmax_gap > bounds.argmax_tolerance).sum()) if greedy else 0
        rows.append(
            {
                **{name: completion[name] for name in ("sample_id", "condition", "sample_index")},
                "row": row,
                "n_prompt_tokens": replay.n_prompt_tokens,
                "t_close": replay.positions.close,
                "answer_positions": list(replay.positions.answer),
                "has_answer_block": replay.positions.has_answer_block,
                "n_image_tokens": replay.n_image_tokens,
                "token_log_probs": replay.token_log_probs.tolist(),
                "log_prob_mean_difference": float(difference.mean()),
                "log_prob_max_difference": float(difference.max()),
                "argmax_mismatches": n_mismatches,
            }
        )
    return from_rows(rows, FEATURES)
