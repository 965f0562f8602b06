"""What a method's confidence costs on the in-distribution test answers, counted token by token."""

from typing import Any

import polars as pl

from tests.workflow.recount.study import Run, Study

# What each reader needs besides the committed answer (the paper's baselines and its section on DualRead): views that
# are generated, views whose choices are scored, and whether the prompt alone, or prompt and answer, are read again.
_NEEDS: dict[str, dict[str, Any]] = {
    **{reader: {} for reader in ("verbalized", "sequence_likelihood", "question_prior", "question_answer_prior")},
    "expected_confidence": {"scored": ["stated_integer"]},
    "p_true": {"scored": ["p_true"]},
    "self_probing": {"generated": ["self_probing"]},
    "prompt_ensemble": {"generated": ["self_probing", "ensemble_2", "ensemble_3", "ensemble_4"]},
    "self_consistency": {"generated": ["samples"]},
    "semantic_uncertainty": {"generated": ["samples"]},
    **{reader: {"prompt": True} for reader in ("psr", "bicr")},
    **{reader: {"replay": True} for reader in ("saplma", "linear_probe", "p_state", "p_visual", "dualread")},
}


def passes_and_tokens(study: Study, run: Run) -> dict[str, float | None]:
    """Return every cost per answer, or per claim with a confidence, under its name among the metrics."""
    committed = study.generations(run)
    n, prompt = len(committed), int(committed["n_prompt_tokens"].sum())
    answer = sum(len(ids) for ids in committed["token_ids"])
    needs = _NEEDS[_reader(study, run.method)]
    passes, prompt_only, replays, read, generated, completions = n, 0, 0, prompt, answer, n
    for view in needs.get("generated", []):
        rows = study.generations(run, view)
        if run.method.startswith("sc"):  # SC@K reads the first K of eight
            rows = rows.filter(pl.col("sample_index") < int(run.method.removeprefix("sc")))
        prompts = dict(rows.select("sample_id", "n_prompt_tokens").iter_rows())
        passes, read = passes + len(prompts), read + sum(prompts.values())
        generated += sum(len(ids) for ids in rows["token_ids"])
        completions += len(rows)
    for view in needs.get("scored", []):
        prompts = dict(study.choices(run, view).select("sample_id", "n_prompt_tokens").iter_rows())
        passes, prompt_only, read = passes + len(prompts), prompt_only + len(prompts), read + sum(prompts.values())
    if needs.get("prompt") and not study.of_claims:
        passes, prompt_only, read = passes + n, prompt_only + n, read + prompt
    if needs.get("replay") or (needs.get("prompt") and study.of_claims):  # what is before a claim is in the report
        replays, read = n, read + prompt + answer
    n = len(study.said(run, study.in_distribution, "test", "original")) if study.of_claims else n
    return {
        "cost_completions": completions / n,
        "cost_prompt_passes": passes / n,
        "cost_prompt_only_passes": prompt_only / n,
        "cost_replay_passes": replays / n,
        "cost_read_tokens": read / n,
        "cost_generated_tokens": generated / n,
    }


def _reader(study: Study, method: str) -> str:
    """Return the reader of a method: of those that it builds on, the one that no other of them is made of."""
    readers = next(entry["readers"] for entry in study.layout("costs")["methods"] if entry["name"] == method)
    made_of = {"p_visual": {"p_state"}, "dualread": {"psr", "p_visual", "p_state"}}
    (outermost,) = [name for name in readers if not any(name in made_of.get(other, ()) for other in readers)]
    return outermost
