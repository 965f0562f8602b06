"""Actor rewards: one file per reward, with pure functions of graded completions and other columns.

Entry points of a plugin:
    CONTRACT: The contract (`dualread.grading.contracts`) that completions have to follow.
    reward(found, **columns) -> list[float]: The reward of each completion; higher is better. `found` are the verdicts
        on the completions (`base.Verdict`), `columns` what the training's rows hold.
    terms(found, **columns) -> dict[str, list[float]]: More quantities for the train log than those of every reward
        (`base.terms`), with one value per completion; none by default.
"""
