"""What a confidence costs: passes and tokens per answer, counted from the artifacts (paper, "Comparison costs").

Every answer costs its greedy generation, and whatever else the method does. All samples of an answer share one encoded
prompt. Counts are whole numbers until they are divided by the number of answers.
"""

from collections.abc import Collection
from dataclasses import astuple, dataclass, fields
from math import ceil

import polars as pl

from dualread.artifacts.tables import from_rows
from dualread.errors import ArtifactError
from dualread.evaluation.metric import Metric
from dualread.schema.columns import METRICS

# Before the names of the counts in the metrics table: cost_completions, ...
METRIC_PREFIX = "cost_"
# What a table prints of them. Every answer needs equally many passes, so their mean is a whole number.
PROMPT_PASSES = Metric(name="cost_prompt_passes", head="Prompts", digits=0)
REPLAY_PASSES = Metric(name="cost_replay_passes", head="Replays", digits=0)
READ_TOKENS = Metric(name="cost_read_tokens", head="Read", digits=1)
GENERATED_TOKENS = Metric(name="cost_generated_tokens", head="Gen.", digits=1)

# Tensors that need no replay of the answer: generation gives the log-probability of its own answer, and a pass over the
# prompt alone gives the state before the answer.
FREE = frozenset({"answer_log_prob"})
OF_THE_PROMPT = frozenset({"h_pre"})

_RUN = ("backbone", "actor", "seed", "dataset", "split", "method")


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Totals over the answers of a shard, as in the schema `costs`; costs of the same answers can be added."""

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
    generations: pl.DataFrame, answers: Collection[str], *, n_samples: int | None = None, draws: int = 1, where: str
) -> Cost:
    """Return the cost of completions: a pass over each answer's prompt and every draw of its image, and all tokens.

    A view may lack answers, because the actor is not asked about invalid ones; these cost nothing. Of the completions
    0..K-1 of each answer, the first `n_samples` are used (None for all), of `draws` images with equally many of them.

    Raises:
        ArtifactError: The rows are not such completions of some of these answers, or an answer has several prompts.
    """
    n_all = generations["sample_index"].n_unique()
    used = generations if n_samples is None else generations.filter(pl.col("sample_index") < n_samples)
    n_asked, prompt_tokens = _prompts(used, answers, where)
    expected = n_samples or used["sample_index"].n_unique()
    if used.select("sample_id", "sample_index").is_duplicated().any() or len(used) != expected * n_asked:
        raise ArtifactError(
            f"{where}: {len(used)} completions of {n_asked} answers, expected {expected} of each. "
            "Generate this shard again, with as many samples as the method uses."
        )
    n_shown = ceil(expected * draws / n_all) if n_all else 0  # the first samples are of the first draws
    return Cost(
        completions=len(used),
        prompt_passes=n_asked * n_shown,
        read_tokens=prompt_tokens * n_shown,
        generated_tokens=int(used["token_ids"].list.len().sum()),
    )


def scoring_cost(choices: pl.DataFrame, answers: Collection[str], *, where: str) -> Cost:
    """Return the cost of scoring choices at the end of one prompt: a pass over the prompt, and no generated token."""
    n_asked, prompt_tokens = _prompts(choices, answers, where)
    return Cost(prompt_passes=n_asked, prompt_only_passes=n_asked, read_tokens=prompt_tokens)


def states_cost(index: pl.DataFrame, passes: int = 1) -> Cost:
    """Return the cost of a view of states, some `passes` over each answer; `index` is its features table."""
    tokens = int(index["n_prompt_tokens"].sum()) + int(index["token_log_probs"].list.len().sum())
    return Cost(replay_passes=passes * len(index), read_tokens=passes * tokens)


def reading_cost(committed: pl.DataFrame, tensors: Collection[str]) -> Cost:
    """Return the cost of the `tensors` that a reader reads: nothing, a pass over the prompt, or one replay."""
    needed = set(tensors) - FREE
    prompt_tokens = int(committed["n_prompt_tokens"].sum())
    if not needed:
        return Cost()
    if needed <= OF_THE_PROMPT:
        return Cost(prompt_passes=len(committed), prompt_only_passes=len(committed), read_tokens=prompt_tokens)
    answer_tokens = int(committed["token_ids"].list.len().sum())
    return Cost(replay_passes=len(committed), read_tokens=prompt_tokens + answer_tokens)


def as_metrics(costs: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """Return a costs table as rows of a metrics table, so that one table holds everything that is printed.

    The study and the numbers of answers and images come from the accuracy of the same run in `estimates`.

    Raises:
        ArtifactError: A run has no accuracy, or its accuracy has another number of answers.
    """
    accuracy = estimates.filter(subset="all", metric="accuracy").select("study", *_RUN, "n", "n_clusters")
    joined = costs.join(accuracy, on=_RUN, how="left")
    if not (other := joined.filter(pl.col("n").ne_missing(pl.col("answers")))).is_empty():
        row = other.row(0, named=True)
        raise ArtifactError(
            f"collect_metrics: costs of {'/'.join(str(row[name]) for name in _RUN)} are of {row['answers']} answers, "
            f"its accuracy is of {row['n'] or 'none'}. Measure the costs of the same answers."
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
    """Return the number of answers in `rows`, and the number of tokens of their prompts, one prompt per answer."""
    if unknown := sorted(set(rows["sample_id"]) - set(answers)):
        raise ArtifactError(
            f"{where}: {len(unknown)} answers are not among the {len(answers)} committed ones, such as "
            f"{unknown[0]}. Make this artifact again from the same manifest."
        )
    prompts = rows.select("sample_id", "n_prompt_tokens").unique()
    if not (several := prompts.filter(pl.col("sample_id").is_duplicated())).is_empty():
        first = several["sample_id"].sort()[0]
        raise ArtifactError(
            f"{where}: {first} has prompts of different lengths, expected one prompt. Make this artifact again."
        )
    return len(prompts), int(prompts["n_prompt_tokens"].sum())
