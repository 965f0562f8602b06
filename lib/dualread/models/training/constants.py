"""What no setting of an actor changes, in TRL's words; the table of hyperparameters reads it here too."""

LOSS = "grpo"  # a mean over the tokens of a completion, then over completions
ADVANTAGE_SCALE = "group"  # divided by the standard deviation of the completions of one prompt
OPTIMIZER = "adamw_torch_fused"
SCHEDULE = "constant_with_warmup"
WEIGHTS = "float32"  # kept so whatever dtype the forward pass has: an update of 1e-6 is lost in bfloat16
