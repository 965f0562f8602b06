"""The specs of given answers: a service is described, and its responses become answers, views and likelihoods."""

from collections.abc import Mapping
from dataclasses import dataclass

from dualread.specs.generation import ShardSpec
from dualread.specs.parts import Settings


@dataclass(frozen=True, kw_only=True)
class Service:
    """The service that answers.

    Attributes:
        model: The name by which it knows the model.
        log_probs: Whether it is asked for the log-probabilities of the tokens of its answers.
        body: What is laid over the body of every request.
        max_choices: The most completions that it gives per request; None if one request gives all.
    """

    model: str
    log_probs: bool
    body: Settings
    max_choices: int | None = None


@dataclass(frozen=True, kw_only=True)
class GivenSpec:
    """A stage that reads given answers."""

    backbone: str
    actor: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class DescribeServiceSpec(GivenSpec):
    """An actor whose answers are given.

    Attributes:
        model: The name by which the service knows the model.
        left_out: The reason for each method that the study leaves out, because given answers lack what it reads.
    """

    model: str
    left_out: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ReadAnswersSpec(GivenSpec):
    """The given answers to a shard, or a view of them."""

    service: Service
    shard: ShardSpec


@dataclass(frozen=True, kw_only=True)
class ReadLikelihoodsSpec(GivenSpec):
    """The likelihood of each given answer of a shard."""

    shard: ShardSpec
