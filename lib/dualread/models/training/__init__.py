"""Actor training: one file per algorithm.

Entry points of a plugin:
    train(job) -> list[dict]: Trains the actor of a `job.Job`, saves it, and returns the train log.
    SETTINGS: What an actor's config entry may set, a JSON schema per name.
    EXTRA_PASSES: Forward passes over each completion beyond those of GRPO, for the forecast of costs; 0 by default.
"""
