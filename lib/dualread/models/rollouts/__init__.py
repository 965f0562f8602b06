"""Engines that sample the completions of a training in place of the trained model's own loop: one file per engine.

Entry points of a plugin:
    open_rollouts(checkpoint, model, settings, gpus) -> base.Rollouts: Opens the checkpoint that a training starts from.
        `model` are the settings with which it is opened, `settings` those that `SETTINGS` names, `gpus` the GPUs that
        do nothing else, as CUDA_VISIBLE_DEVICES names them; without them, the engine shares the trainer's.
    SETTINGS: What `rollout_settings` may set, a JSON schema per name.
    DEFAULTS: The settings where `rollout_settings` has none; `dualread plan` reads them.
    ENVIRONMENT: The environment in which the training runs, if that is not the workflow's own: the name of a lock file.
    prepare(): What a process of that environment does before it imports anything else of it.
"""
