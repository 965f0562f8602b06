"""The settings that several readers share. This file is read without importing them, so it imports nothing slow."""

from typing import Annotated

from dualread.schema.base import AS_GIVEN, Above0, AtLeast0, Listed, Positive, Section


class NetworkSettings(Section):
    """How a network is trained; see `_network`."""

    hidden: Listed[Positive]
    """Width of each hidden layer; an empty list makes the network a linear map."""
    learning_rate: Annotated[Above0, AS_GIVEN]
    """Step size of the optimizer."""
    weight_decay: Annotated[AtLeast0, AS_GIVEN]
    """Decoupled weight decay in AdamW, an L2 penalty in Adam."""
    batch_size: Positive
    """Answers per optimizer step."""
    max_epochs: Positive
    """Most passes over the fit partition."""
    patience: Positive
    """Epochs without a new lowest loss on the stop partition, after which training ends."""


class LinearSettings(Section):
    """How a logistic regression is fitted; see `linear`."""

    steps: Positive
    """Steps of Adam, each over all answers."""
    learning_rate: Annotated[Above0, AS_GIVEN]
    """Step size of Adam."""
    l2: Annotated[AtLeast0, AS_GIVEN]
    """Weight of the squared norm of the weights in the loss."""


class PriorSettings(Section):
    """How an observed accuracy is smoothed; see `question_prior`."""

    pseudo_counts: Annotated[AtLeast0, AS_GIVEN]
    """How many answers with the accuracy of the whole are added to those of a question."""
