"""Actor rewards: one file per reward, with pure functions of completions, reference answers and other columns.

Entry points of a plugin:
    CONTRACT: The contract of `dualread.grading.parse` that completions have to follow.
    reward(completions, reference_answers, **columns) -> list[float]: The reward of each completion; higher is better.
    terms(completions, reference_answers, **columns) -> dict[str, list[float]]: Quantities for the train log, with one
        value per completion.
"""
