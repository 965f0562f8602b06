"""What generation and replay both read: the questions of a shard, and the committed completions."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.artifacts.tables import read_parts, read_table
from dualread.data.questions.markup import Markup, control_tokens
from dualread.errors import ArtifactError, refuse
from dualread.models.conditions import Asked, asked
from dualread.schema.answers import ShardSpec
from dualread.schema.base import Wire
from dualread.schema.columns import GENERATIONS, MANIFEST, PAIRS
from dualread.store.batches import read_by_row


def read_asked(shard: ShardSpec, inputs: Mapping[str, Path]) -> Iterator[Asked]:
    """Yield what the shard asks, sorted by sample_id and draw; of its inputs, batches read their own rows alone.

    Inputs: `manifest`; `pairs` for donor images; `generations`, for a prompt that contains the committed answer.
    """
    read_by_row("manifest", "pairs", "generations")
    manifest = read_table(inputs["manifest"] / "manifest.parquet", MANIFEST)
    pairs = read_table(inputs["pairs"] / "pairs.parquet", PAIRS) if "pairs" in inputs else None
    answers = None
    if shard.answer_contract is not None:
        parse = plugins.load_module(shard.answer_contract.module).parse
        texts = read_committed(inputs["generations"]).select("sample_id", "text")
        parsed = ((sample_id, parse(text).answer) for sample_id, text in texts.iter_rows())
        answers = {sample_id: answer for sample_id, answer in parsed if answer is not None}
    return asked(
        manifest,
        prompt=shard.prompt.name,
        hints=shard.prompt.hints,
        images=shard.images,
        draws=shard.draws or 1,
        pairs=pairs,
        answers=answers,
    )


def refuse_control_tokens(manifest: Path, tokenizer: Any) -> None:
    """Refuse questions and options that contain control tokens of the model, before any is asked.

    Those of known models were refused when the table of questions was built; a tokenizer may have others.
    """
    markup = Markup(control_tokens(tokenizer))
    rows = read_table(manifest / "manifest.parquet", MANIFEST).select("sample_id", "question", "options")
    problems = (markup.problem(name, [question, *options]) for name, question, options in rows.iter_rows())
    refuse(problem for problem in problems if problem is not None)


def read_committed(folder: Path) -> pl.DataFrame:
    """Return the committed completions (sample_index 0) of a generations artifact, sorted by sample_id."""
    return read_parts(folder, GENERATIONS).filter(pl.col("sample_index") == 0).sort("sample_id")


def forced(completions: pl.DataFrame, images: Mapping[str, str], condition: str) -> pl.DataFrame:
    """Return completions of another condition, relabeled as of `condition`; `images` has the image shown, by sample_id.

    Teacher-forced controls and views read the same completion with another image. Other questions are left out.
    """
    if missing := sorted(images.keys() - set(completions["sample_id"])):
        raise ArtifactError(
            f"{condition}: {len(missing)} questions have no committed completion, such as {missing[0]}. Expected one"
            " each. Generate the condition again that the completions come from."
        )
    rows = completions.filter(pl.col("sample_id").is_in(list(images)))
    image_ids = pl.col("sample_id").replace_strict(dict(images), return_dtype=pl.String)
    return rows.with_columns(condition=pl.lit(condition), image_id=image_ids)


def frozen(settings: Wire) -> str:
    """Return settings in a form that can be the key of a cache, and that `json.loads` reads."""
    return json.dumps(settings, sort_keys=True)
