"""Actor rewards: one file per reward, with pure functions of graded completions and other columns.

Entry points of a plugin:
    CONTRACT: The contract (`dualread.grading.contracts`) that completions have to follow.
    reward(verdicts, **columns) -> list[float]: The reward of each completion; higher is better. `verdicts` are the ones
        on the completions (`base.Verdict`), `columns` what the training's rows hold.
    terms(verdicts, **columns) -> dict[str, list[float]]: More quantities for the train log than those of every reward
        (`base.terms`), with one value per completion; none by default.
    EXTRA_PASSES: As of an algorithm (`dualread.training`), of passes that the columns take which the reward reads.
"""
