"""Engines that sample the completions of a training in place of the trained model's own loop: one file per engine.

Entry points of a plugin:
    open_rollouts(checkpoint, model, settings, gpus) -> base.Rollouts: Opens the checkpoint that a training starts from.
        `model` are the settings with which it is opened, `settings` what `Settings` declares, `gpus` the GPUs that
        do nothing else, as CUDA_VISIBLE_DEVICES names them; without them, the engine shares the trainer's.
    Settings: What `rollout_settings` may set. `dualread plan` reads its `max_num_seqs`, `gpu_memory_utilization` and
        `sleep`.
    ENVIRONMENT: The environment in which the training runs, if that is not the workflow's own: the name of a lock file.
    prepare(): What a process of that environment does before it imports anything else of it.
"""
