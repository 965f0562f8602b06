"""Stage measure_costs: the passes and tokens that one method of one actor needs, counted from its artifacts.

inputs:  generations of the committed answers (original images); reader; view/<name> for every view that the reader or
         a parent reads to score, a folder with generations.parquet, choices.parquet or features.parquet
output:  costs.parquet
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import from_rows, read_parts, read_table, write_table
from dualread.artifacts.tensors import read_header
from dualread.errors import ArtifactError
from dualread.evaluation.costs import Cost, generation_cost, reading_cost, scoring_cost, states_cost
from dualread.schema.columns import COSTS, FEATURES, GENERATIONS
from dualread.schema.metrics import MeasureCostsSpec


def compute(spec: MeasureCostsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write costs.parquet, and return one line about it.

    Raises:
        ArtifactError: There is no committed answer, or a view has answers that are not committed.
    """
    where = "/".join(map(str, spec.run.values()))
    committed = read_parts(inputs["generations"], GENERATIONS).filter(pl.col("sample_index") == 0)
    answers = committed["sample_id"].to_list()
    if not answers:
        raise ArtifactError(f"{where}: {inputs['generations']} holds no committed answer. Generate this shard again.")
    cost = generation_cost(committed, answers, n_samples=1, where=where)
    if spec.states is None:
        provenance = read_header(inputs["reader"] / "reader.safetensors")["provenance"]
        cost += reading_cost(committed, provenance["features"])  # what the reader and its parents read
    for name in sorted(name for name in inputs if name.startswith("view/")):
        view = name.removeprefix("view/")
        k, draws = spec.samples.get(view), (spec.draws or {}).get(view, 1)
        passes = (spec.passes or {}).get(view, 1)
        cost += _view_cost(inputs[name], answers, k, draws, passes, f"{where}: {name}")
    row = {**spec.run, "dataset": spec.dataset, "split": spec.split}
    means = cost.per_answer(len(answers))
    write_table(out / "costs.parquet", from_rows([{**row, "answers": len(answers), **means}], COSTS), COSTS)
    text = ", ".join(f"{name.replace('_', ' ')} {value:.1f}" for name, value in means.items())
    return f"read {len(answers)} answers of {where}; each: {text}"


def _view_cost(view: Path, answers: list[str], k: int | None, draws: int, passes: int, where: str) -> Cost:
    if (choices := view / "choices.parquet").exists():
        return scoring_cost(pl.read_parquet(choices), answers, where=where)
    if list(view.glob("generations*.parquet")):
        return generation_cost(read_parts(view, GENERATIONS), answers, n_samples=k, draws=draws, where=where)
    if (index := view / "features.parquet").exists():
        return states_cost(read_table(index, FEATURES, ("n_prompt_tokens", "token_log_probs")), passes)
    if (view / "groups.parquet").exists():  # the actor does nothing for it
        return Cost()
    raise ArtifactError(f"{where}: {view} has no generations, choices or features (.parquet). Expected one of them.")
