"""Hyperparameters that no config entry changes, under TRL's names; for the trainer and the table of hyperparameters."""

LOSS = "grpo"  # mean over the tokens of each completion, then over completions
ADVANTAGE_SCALE = "group"  # advantages are divided by the standard deviation within a prompt's completions
OPTIMIZER = "adamw_torch_fused"
SCHEDULE = "constant_with_warmup"
WEIGHTS = "float32"  # whatever the dtype of the forward pass: an update of 1e-6 is lost in bfloat16
