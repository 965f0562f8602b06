"""Stage score_answers: a fitted reader and an actor's answers on every shard -> confidences. No label is read.

Inputs: `reader`; per shard `manifest/<dataset>/<split>` and `graded/<dataset>/<split>/<condition>`; for a reader of
hidden states also `features/<dataset>/<split>/<condition>`, and per view `view/<name>/<dataset>/<split>/<condition>`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import empty_table, read_table, write_table
from dualread.artifacts.tensors import lazy_tensors
from dualread.errors import ArtifactError, ReaderError
from dualread.evaluation.decimals import as_float64
from dualread.readers.answers import OF_FEATURES, OF_GRADED, OF_MANIFEST, committed, join_answers
from dualread.readers.artifact import load_reader
from dualread.readers.base import Answers, FittedReader, score
from dualread.readers.requirements import states_of, states_of_shard
from dualread.schema.answers import Shard
from dualread.schema.columns import FEATURES, GRADED, MANIFEST, PREDICTIONS
from dualread.schema.readers import ScoreAnswersSpec
from dualread.schema.recorded import ShardStates
from dualread.stages._views import read_views


def compute(spec: ScoreAnswersSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write predictions.parquet, sorted by sample_id and condition; without rows where there is no reader, and why."""
    where = spec.name
    reader = load_reader(inputs["reader"] / "reader.safetensors", plugins=spec.reader.modules)
    if reader.unfitted is not None:
        write_table(
            out / "predictions.parquet", empty_table(PREDICTIONS), PREDICTIONS, reason=f"no reader: {reader.unfitted}"
        )
        return f"wrote no confidences of {where}: {reader.unfitted}"
    shards = [_score_shard(reader, spec, shard, inputs, where) for shard in spec.shards]
    predictions = pl.concat([empty_table(PREDICTIONS), *shards]).sort("sample_id", "condition")
    if spec.uncalibrated:
        ranks = predictions["score"].rank("dense") / (predictions["score"].n_unique() + 1)
        predictions = predictions.with_columns(confidence=ranks, imputed=False)
    write_table(out / "predictions.parquet", predictions, PREDICTIONS)
    n_imputed = predictions["imputed"].sum()
    return f"read {len(shards)} shards, wrote {len(predictions)} confidences of {where}, {n_imputed} imputed"


def _score_shard(
    reader: FittedReader, spec: ScoreAnswersSpec, shard: Shard, inputs: Mapping[str, Path], where: str
) -> pl.DataFrame:
    answers = _answers(reader, spec, shard, inputs, f"{where}: {shard.name}")
    try:
        scores = score(reader, answers)
    except ReaderError as error:
        raise ReaderError(f"{where}: {shard.name}: {error}") from error
    return answers.table.select(
        "sample_id",
        "dataset",
        "split",
        "condition",
        *(pl.lit(value, pl.Int64 if name == "seed" else pl.String).alias(name) for name, value in spec.run.items()),
        pl.Series("score", scores.score, pl.Float64).fill_nan(None),
        pl.Series("confidence", as_float64(scores.confidence), pl.Float64),
        pl.Series("imputed", scores.imputed, pl.Boolean),
    )


def _answers(
    reader: FittedReader, spec: ScoreAnswersSpec, shard: Shard, inputs: Mapping[str, Path], where: str
) -> Answers:
    name, names, of_parents = shard.name, spec.views, spec.of_parents or ()
    path = None
    if reader.provenance["features"]:
        path = inputs[f"features/{name}"] / "features.safetensors"
        _check_states(reader, states_of_shard(path, where), where, of_another=bool(spec.transfer))
    manifest = inputs[f"manifest/{shard.dataset}/{shard.split}"] / "manifest.parquet"
    answers = _without_states(name, manifest, inputs[f"graded/{name}"] / "graded.parquet", path)
    folders = {view: inputs[f"view/{view}/{name}"] for view in (*names, *of_parents) if f"view/{view}/{name}" in inputs}
    views, others = (read_views(group, folders, answers, where=where) for group in (names, of_parents))
    return replace(answers, source=lazy_tensors(path or Path()), views=views, others=others)


def _check_states(reader: FittedReader, states: ShardStates, where: str, *, of_another: bool) -> None:
    fitted = states_of(reader, where=where)
    assert fitted is not None, "a reader of states says how they were read"
    for name in states.others(fitted, of_another=of_another):
        raise ArtifactError(
            f"{where}: the replay's {name} is {getattr(states, name)!r}, the reader was fitted on "
            f"{getattr(fitted, name)!r}. Replay the shard as the training answers were replayed."
        )


# One process scores with all methods of an actor, one after the other, and what they read does not change meanwhile.
@lru_cache(maxsize=128)
def _without_states(name: str, manifest: Path, graded: Path, features: Path | None) -> Answers:
    """Return the answers of a shard, without tensors and views; `features` are the tensors of a replay."""
    index = None if features is None else read_table(features.with_name("features.parquet"), FEATURES, OF_FEATURES)
    return join_answers(
        read_table(manifest, MANIFEST, OF_MANIFEST),
        committed(read_table(graded, GRADED, OF_GRADED)),
        index,
        lazy_tensors(Path()),
        where=name,
    )
