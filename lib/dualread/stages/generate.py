"""Completions of one actor for one shard (data set, split, condition). Output: generations.parquet, or its parts."""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dualread import plugins
from dualread.artifacts.schemas.generations import GENERATIONS
from dualread.artifacts.schemas.manifest import MANIFEST
from dualread.artifacts.schemas.pairs import PAIRS
from dualread.artifacts.tables import from_rows, read_table, write_parts
from dualread.backbones.encode import prompt_sha256
from dualread.conditions import asked
from dualread.generation._interface import Decoding, Engine, Request
from dualread.seeding import derive_seed


def compute(spec: Mapping[str, Any], inputs: Mapping[str, Path], out: Path) -> str:
    """Complete every question of the shard with the actor."""
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    pairs = read_table(inputs["pairs"] / "pairs.parquet", PAIRS) if "pairs" in inputs else None
    questions = asked(manifest, spec, pairs)
    requests = [
        Request(text=q.text, image=inputs["manifest"] / q.image_file, image_key=q.image_id, row=q.sample_id)
        for q in questions
    ]
    seed = derive_seed("generate", *(spec[name] for name in ("backbone", "actor", "seed", "dataset", "split")))
    decoding = Decoding(**spec["decoding"], seed=derive_seed(seed, spec["condition"]))
    results = _engine(inputs["actor"], *_frozen(spec)).generate(requests, decoding)
    rows = [
        {
            "sample_id": question.sample_id,
            "condition": spec["condition"],
            "sample_index": index,
            "image_id": question.image_id,
            "prompt_sha256": prompt_sha256(completion.prompt_token_ids),
            "n_prompt_tokens": len(completion.prompt_token_ids),
            "token_ids": completion.token_ids,
            "token_log_probs": completion.token_log_probs,
            "text": completion.text,
            "finish_reason": completion.finish_reason,
        }
        for question, completions in zip(questions, results, strict=True)
        for index, completion in enumerate(completions)
    ]
    write_parts(out, from_rows(rows, GENERATIONS), GENERATIONS)
    n_tokens = sum(len(row["token_ids"]) for row in rows)
    n_cut = sum(row["finish_reason"] == "length" for row in rows)
    return f"read {len(requests)} questions, wrote {len(rows)} completions, {n_tokens} tokens, {n_cut} cut at the limit"


def _frozen(spec: Mapping[str, Any]) -> tuple[str, str, tuple, tuple]:
    """Return what an engine depends on in a form that can be a cache key."""
    return (
        spec["engine"]["module"],
        spec["family"]["module"],
        tuple(sorted(spec["model"].items())),
        tuple(sorted(spec["engine"].items())),
    )


@functools.lru_cache(maxsize=1)  # a job has one actor; it is loaded once for all its shards
def _engine(actor: Path, engine: str, family: str, settings: tuple, engine_settings: tuple) -> Engine:
    backbone = plugins.load_module(family)
    return plugins.load_module(engine).open_engine(
        actor / "checkpoint", backbone, dict(settings), dict(engine_settings)
    )
