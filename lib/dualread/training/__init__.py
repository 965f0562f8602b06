"""Actor training: one file per algorithm.

Entry points of a plugin:
    train(job) -> list[dict]: Trains the actor of a `job.Job`, saves it, and returns the train log.
    Settings: What an actor's config entry may set, a class derived from `settings.TrainingSettings`.
    EXTRA_PASSES: Forward passes over each completion beyond those of GRPO, for the forecast of costs; 0 by default.
"""
