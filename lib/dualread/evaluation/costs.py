"""What a confidence costs: passes and tokens per answer, counted from the artifacts (paper, "Comparison costs").

Every answer costs its greedy generation; the rest is what the method does besides. Samples of one answer share one
encoded prompt. All counts are whole numbers until they are divided by the number of answers.
"""

from collections.abc import Collection
from dataclasses import astuple, dataclass, fields

import polars as pl

from dualread.artifacts.schemas.metrics import METRICS
from dualread.artifacts.tables import from_rows
from dualread.errors import ArtifactError

# The columns of the costs table that are counts: in the metrics table they are cost_completions, ...
METRIC_PREFIX = "cost_"

# Tensors of a replay that are there without it: generation knows the log-probability of its own answer, and a pass over
# the prompt alone ends in the state before the answer.
FREE = frozenset({"answer_log_prob"})
OF_THE_PROMPT = frozenset({"h_pre"})

_RUN = ("backbone", "actor", "seed", "dataset", "split", "method")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Totals over the answers of a shard; a sum is what is done for the same answers together. See schema `costs`."""

    completions: int = 0
    prompt_passes: int = 0
    prompt_only_passes: int = 0
    replay_passes: int = 0
    read_tokens: int = 0
    generated_tokens: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        names = [field.name for field in fields(Cost)]
        return Cost(**{name: a + b for name, a, b in zip(names, astuple(self), astuple(other), strict=True)})

    def per_answer(self, n_answers: int) -> dict[str, float]:
        """Return the mean of each total over `n_answers` > 0."""
        return {field.name: getattr(self, field.name) / n_answers for field in fields(Cost)}


def generation_cost(
    generations: pl.DataFrame, answers: Collection[str], *, n_samples: int | None = None, where: str
) -> Cost:
    """Return the cost of completions: one pass over each answer's prompt, and every generated token.

    Args:
        generations: A generations table of one shard or view; a view may leave answers out (an invalid one is not asked
            about), which cost nothing.
        answers: sample_id of the committed answers.
        n_samples: How many completions of each answer are used (sample_index below it); None for all.
        where: Names the shard or view in errors.

    Raises:
        ArtifactError: The rows are not completions 0..K-1 of some of these answers, or prompts of one answer differ.
    """
    used = generations if n_samples is None else generations.filter(pl.col("sample_index") < n_samples)
    n_asked, prompt_tokens = _prompts(used, answers, where)
    expected = n_samples or used["sample_index"].n_unique()
    if used.select("sample_id", "sample_index").is_duplicated().any() or len(used) != expected * n_asked:
        raise ArtifactError(
            f"{where}: {len(used)} completions of {n_asked} answers, expected {expected} of each. "
            "Generate this shard again, with as many samples as the method uses."
        )
    return Cost(
        completions=len(used),
        prompt_passes=n_asked,
        read_tokens=prompt_tokens,
        generated_tokens=int(used["token_ids"].list.len().sum()),
    )


def scoring_cost(choices: pl.DataFrame, answers: Collection[str], *, where: str) -> Cost:
    """Return the cost of choices that are scored at the end of one prompt: a pass over it, nothing generated.

    Args:
        choices: A choices table; answers that are not in it cost nothing.
        answers: sample_id of the committed answers.
        where: Names the view in errors.

    Raises:
        ArtifactError: These are choices of other answers, or prompts of one answer differ.
    """
    n_asked, prompt_tokens = _prompts(choices, answers, where)
    return Cost(prompt_passes=n_asked, prompt_only_passes=n_asked, read_tokens=prompt_tokens)


def reading_cost(committed: pl.DataFrame, tensors: Collection[str]) -> Cost:
    """Return the cost of the `tensors` that a reader reads: nothing, a pass over the prompt, or one replay for all.

    Args:
        committed: The generations table of the committed answers, one row each.
        tensors: Names as in features.safetensors.
    """
    needed = set(tensors) - FREE
    prompt_tokens = int(committed["n_prompt_tokens"].sum())
    if not needed:
        return Cost()
    if needed <= OF_THE_PROMPT:
        return Cost(prompt_passes=len(committed), prompt_only_passes=len(committed), read_tokens=prompt_tokens)
    answer_tokens = int(committed["token_ids"].list.len().sum())
    return Cost(replay_passes=len(committed), read_tokens=prompt_tokens + answer_tokens)


def as_metrics(costs: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """Return `costs` (a costs table) as rows of a metrics table, so that one table holds all that tables print.

    Args:
        costs: One row a run; a run given twice comes back twice.
        estimates: Metrics of the same runs; study and sizes are those of their accuracy.

    Raises:
        ArtifactError: A run has no accuracy, or one of another number of answers.
    """
    accuracy = estimates.filter(subset="all", metric="accuracy").select("study", *_RUN, "n", "n_clusters")
    joined = costs.join(accuracy, on=_RUN, how="left")
    if not (other := joined.filter(pl.col("n").ne_missing(pl.col("answers")))).is_empty():
        row = other.row(0, named=True)
        raise ArtifactError(
            f"collect_metrics: costs of {'/'.join(str(row[name]) for name in _RUN)} are of {row['answers']} answers, "
            f"its accuracy is of {row['n'] or 'none'}. Measure the answers that the metrics are of."
        )
    rows = [
        {
            **{key: row[key] for key in ("study", *_RUN, "n", "n_clusters")},
            "subset": "all",
            "metric": METRIC_PREFIX + field.name,
            "estimate": row[field.name],
        }
        for row in joined.iter_rows(named=True)
        for field in fields(Cost)
    ]
    return from_rows(rows, METRICS)


def _prompts(rows: pl.DataFrame, answers: Collection[str], where: str) -> tuple[int, int]:
    """Return how many answers are asked about, and the tokens of their prompts; all rows of an answer have the same."""
    if unknown := sorted(set(rows["sample_id"]) - set(answers)):
        raise ArtifactError(
            f"{where}: {len(unknown)} answers that are not among the {len(answers)} committed ones, such as "
            f"{unknown[0]}. Make this artifact again from the same manifest."
        )
    prompts = rows.select("sample_id", "n_prompt_tokens").unique()
    if not (several := prompts.filter(pl.col("sample_id").is_duplicated())).is_empty():
        first = several["sample_id"].sort()[0]
        raise ArtifactError(f"{where}: {first} has prompts of different lengths; expected one prompt an answer.")
    return len(prompts), int(prompts["n_prompt_tokens"].sum())
