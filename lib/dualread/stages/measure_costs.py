"""Stage measure_costs: the passes and tokens that one method of one actor needs, counted from its artifacts.

inputs:  generations of the committed answers (original images); reader; view/<name> for every view that the reader or
         a parent reads to score, a folder with generations.parquet, choices.parquet or features.parquet; of reports,
         claims, the table of what has a confidence
output:  costs.parquet; of reports, what all of them cost is divided by the number of claims that have a confidence
"""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from dualread.artifacts.tables import empty_table, from_rows, read_parts, read_table, write_table
from dualread.artifacts.tensors import read_header
from dualread.errors import ArtifactError
from dualread.evaluation.costs import Cost, generation_cost, reading_cost, scoring_cost, states_cost
from dualread.grading.claim_labels.base import question_of
from dualread.schema.columns import COSTS, FEATURES, GENERATIONS, MANIFEST
from dualread.schema.metrics import MeasureCostsSpec


def compute(spec: MeasureCostsSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Read the inputs, write costs.parquet, and return one line about it."""
    where = "/".join(map(str, spec.run.values()))
    committed = read_parts(inputs["generations"], GENERATIONS).filter(pl.col("sample_index") == 0)
    answers = committed["sample_id"].to_list()
    if not answers:
        raise ArtifactError(f"{where}: {inputs['generations']} holds no committed answer. Generate this shard again.")
    cost = generation_cost(committed, answers, n_samples=1, where=where)
    if spec.states is None:
        provenance = read_header(inputs["reader"] / "reader.safetensors")["provenance"]
        features = set(provenance["features"])  # what the reader and its parents read
        if "claims" in inputs and "h_pre" in features:
            features.add("h_close")  # the state before a claim is one within the report, which is read again
        cost += reading_cost(committed, features)
    for name in sorted(name for name in inputs if name.startswith("view/")):
        view = name.removeprefix("view/")
        k, draws = spec.samples.get(view), (spec.draws or {}).get(view, 1)
        passes = (spec.passes or {}).get(view, 1)
        cost += _view_cost(inputs[name], answers, k, draws, passes, f"{where}: {name}")
    row = {**spec.run, "dataset": spec.dataset, "split": spec.split}
    n = (
        read_table(inputs["claims"] / "manifest.parquet", MANIFEST, ("sample_id",)).height
        if "claims" in inputs
        else len(answers)
    )
    if n == 0:
        reason = "no claim of these reports has a label"
        write_table(out / "costs.parquet", empty_table(COSTS), COSTS, reason=reason)
        return f"read {len(answers)} reports of {where}, wrote no costs: {reason}"
    means = cost.per_answer(n)
    write_table(out / "costs.parquet", from_rows([{**row, "answers": n, **means}], COSTS), COSTS)
    text = ", ".join(f"{name.replace('_', ' ')} {value:.1f}" for name, value in means.items())
    return f"read {len(answers)} answers of {where}; each: {text}"


def _view_cost(view: Path, answers: list[str], k: int | None, draws: int, passes: int, where: str) -> Cost:
    if (choices := view / "choices.parquet").exists():
        return scoring_cost(pl.read_parquet(choices), answers, where=where)
    if list(view.glob("generations*.parquet")):
        return generation_cost(read_parts(view, GENERATIONS), answers, n_samples=k, draws=draws, where=where)
    if (index := view / "features.parquet").exists():
        read = read_table(index, FEATURES, ("sample_id", "n_prompt_tokens", "token_log_probs"))
        of_claims = set(read["sample_id"]).isdisjoint(answers)  # whose report was read once for all of them
        name = question_of(pl.col("sample_id")) if of_claims else pl.col("sample_id")
        return states_cost(read.unique(name, maintain_order=True), passes)
    if (view / "groups.parquet").exists():  # the actor does nothing for it
        return Cost()
    raise ArtifactError(f"{where}: {view} has no generations, choices or features (.parquet). Expected one of them.")
