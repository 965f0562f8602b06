"""The specs of metrics: of one method, its costs, all together, and differences between methods."""

from collections.abc import Mapping
from dataclasses import dataclass

from dualread.specs.parts import Settings


@dataclass(frozen=True, kw_only=True)
class MethodSpec:
    """A method on the answers of one actor."""

    backbone: str
    actor: str
    seed: int
    method: str

    @property
    def run(self) -> dict[str, str | int]:
        """What identifies the confidences: backbone, actor, seed, method."""
        return {"backbone": self.backbone, "actor": self.actor, "seed": self.seed, "method": self.method}


@dataclass(frozen=True, kw_only=True)
class ComputeMetricsSpec(MethodSpec):
    """The metrics of a method.

    Attributes:
        study: The study's name, which seeds the resamples.
        splits: The splits of each data set.
        replicates: The number of resamples.
        target_risk_percent: Risks for which the coverage is reported.
        thresholds_from: "<dataset>/<split>" of `splits`, on which the thresholds are chosen.
    """

    study: str
    splits: Mapping[str, tuple[str, ...]]
    replicates: int
    target_risk_percent: tuple[int, ...]
    thresholds_from: str


@dataclass(frozen=True, kw_only=True)
class MeasureCostsSpec(MethodSpec):
    """The costs of a method on the answers to one split; of its `settings` only k matters."""

    dataset: str
    split: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class OodMeans:
    """The means over OOD data sets.

    Attributes:
        ood: The members of ood6, the mean over metrics of answers.
        ood_ccg: The members of ood_ccg, the mean over metrics of donor pairs.
    """

    ood: tuple[str, ...]
    ood_ccg: tuple[str, ...]

    @property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The members by the name of the mean."""
        return {"ood6": self.ood, "ood_ccg": self.ood_ccg}


@dataclass(frozen=True, kw_only=True)
class CollectMetricsSpec(OodMeans):
    """All metrics of the study."""


@dataclass(frozen=True, kw_only=True)
class Contrast:
    """A comparison of one method with baselines.

    Attributes:
        baselines: The methods with which it is compared.
        datasets: Data sets, or means over data sets.
        metrics: The metrics that are compared; None for all that have replicates.
    """

    name: str
    method: str
    baselines: tuple[str, ...]
    datasets: tuple[str, ...]
    split: str
    metrics: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class CompareMethodsSpec(OodMeans):
    """The contrasts of a study."""

    study: str
    contrasts: tuple[Contrast, ...]


@dataclass(frozen=True, kw_only=True)
class MeasureDifficultySpec:
    """The true difficulty of the images of a data set, and the methods that judge one actor's answers to them.

    Attributes:
        study: The study's name, which seeds the resamples.
        seeds: The seeds of each backbone.
        methods: All methods, with the nulls.
        nulls: The methods that see no image.
        replicates: The number of resamples.
    """

    study: str
    dataset: str
    split: str
    actor: str
    seeds: Mapping[str, tuple[int, ...]]
    methods: tuple[str, ...]
    nulls: tuple[str, ...]
    replicates: int
