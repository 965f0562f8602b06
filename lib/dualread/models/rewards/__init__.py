"""Actor rewards: one file a reward, plain functions of (completions, reference answers, other columns).

Entry points of a plugin:
    CONTRACT: The contract of `dualread.grading.parse` that its completions follow.
    reward(completions, reference_answers, **columns) -> list[float]: What GRPO maximizes, one value a completion.
    terms(completions, reference_answers, **columns) -> dict[str, list[float]]: What the train log keeps.
"""
