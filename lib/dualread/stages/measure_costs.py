"""Stage measure_costs: the passes and tokens that one method of one actor needs, counted from its artifacts.

inputs:  generations of the committed answers (original images); reader; view/<name> for every view that the reader or
         a parent reads to score, a folder with generations.parquet or choices.parquet
output:  costs.parquet
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import from_rows, read_parts, write_table
from dualread.artifacts.tensors import read_header
from dualread.declared.columns import COSTS, GENERATIONS
from dualread.declared.metrics import MeasureCostsSpec
from dualread.errors import ArtifactError
from dualread.evaluation.costs import Cost, generation_cost, reading_cost, scoring_cost


def compute(spec: MeasureCostsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write costs.parquet, and return one line about it.

    Raises:
        ArtifactError: An input is missing or belongs to another run, or a view has answers that are not committed.
    """
    where = "/".join(map(str, spec.run.values()))
    if missing := [name for name in ("generations", "reader") if name not in inputs]:
        raise ArtifactError(f"{where}: no input {missing[0]!r}. Given: {', '.join(sorted(inputs))}. Add it.")
    committed = read_parts(inputs["generations"], GENERATIONS).filter(pl.col("sample_index") == 0)
    answers = committed["sample_id"].to_list()
    if not answers:
        raise ArtifactError(f"{where}: {inputs['generations']} holds no committed answer. Generate this shard again.")
    cost = generation_cost(committed, answers, n_samples=1, where=where)
    cost += reading_cost(committed, _tensors(inputs["reader"], spec, where))
    for name in sorted(name for name in inputs if name.startswith("view/")):
        cost += _view_cost(inputs[name], answers, spec.settings.get("k"), f"{where}: {name}")
    row = {**spec.run, "dataset": spec.dataset, "split": spec.split}
    means = cost.per_answer(len(answers))
    write_table(out / "costs.parquet", from_rows([{**row, "answers": len(answers), **means}], COSTS), COSTS)
    said = ", ".join(f"{name.replace('_', ' ')} {value:.1f}" for name, value in means.items())
    return f"read {len(answers)} answers of {where}; each: {said}"


def _tensors(reader: Path, spec: MeasureCostsSpec, where: str) -> list[str]:
    """Return the tensors of a replay that the reader and its parents read."""
    known = read_header(reader / "reader.safetensors")["provenance"]
    for name, expected in spec.run.items():
        if known[name] != expected:
            raise ArtifactError(f"{where}: the reader belongs to {name} {known[name]!r}, expected {expected!r}.")
    return known["features"]


def _view_cost(view: Path, answers: list[str], k: int | None, where: str) -> Cost:
    if (choices := view / "choices.parquet").exists():
        return scoring_cost(pl.read_parquet(choices), answers, where=where)
    if list(view.glob("generations*.parquet")):
        return generation_cost(read_parts(view, GENERATIONS), answers, n_samples=k, where=where)
    raise ArtifactError(f"{where}: {view} has neither generations.parquet nor choices.parquet. Expected one of them.")
