"""How confidences are judged and compared: what a study says of it, and what the stages of metrics are told."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dualread.schema.base import AtLeastOne, Distinct, Listed, Name, Names, RunSpec, Section
from dualread.schema.readers import AppliedReader

# What others report besides (`evaluation.answer_metrics.FURTHER_METRICS`): with intervals, and the others.
FurtherCompared = Literal["log_loss", "aupr_errors", "fpr_at_95_tpr", "e_aurc"]
_WithoutReplicates = Literal[
    "error_rate", "ece15_equal_mass", "auarc", "prediction_rejection_ratio", "confidence_entropy"
]
_BrierPart = Literal["brier_reliability", "brier_resolution", "brier_uncertainty"]
FurtherMetric = Literal[FurtherCompared, _BrierPart, _WithoutReplicates]


# By these, methods can be compared.
Metric = Literal["auroc", "brier", "squared_calibration_error", "natural_ccg_auc", "strict_ccg_auc", FurtherCompared]


# With fewer, no resample is beyond a 95% interval on a side, and no p-value is .05 or less: 2 / (39 + 1) = .05.
FEWEST_REPLICATES = 39
ENOUGH_REPLICATES = f"0 (no intervals) or at least {FEWEST_REPLICATES}, which a 95% interval and a p-value of .05 need"


def _enough(replicates: int) -> int:
    if 0 < replicates < FEWEST_REPLICATES:
        raise ValueError(f"{replicates} resamples, expected {ENOUGH_REPLICATES}")
    return replicates


class Bootstrap(Section):
    """Confidence intervals."""

    replicates: Annotated[int, Field(ge=0), AfterValidator(_enough)]
    """Resamples: 0 for no intervals, or at least 39, which a 95% interval and a p-value of .05 need."""


class Metrics(Section):
    """How confidences are judged."""

    bootstrap: Bootstrap
    """Confidence intervals."""
    target_risk_percent: Distinct[Annotated[int, Field(ge=0, le=99)]]
    """Risks for which the coverage is reported."""
    miss_percent: Annotated[Distinct[Annotated[int, Field(ge=1, le=99)]], Field(min_length=1)] | None = None
    """How often answer sets, of methods that read a view of `choices: {options: true}`, may miss the right choice;
    without it, there are no such sets. Validation questions choose their thresholds."""
    further: Distinct[FurtherMetric] | None = None
    """Metrics that are computed besides; the tables estimators, field, intervals and paired have columns for them."""
    changed_from: Name | None = None
    """An actor with whose answers those of every actor are compared, seed by seed: the metric answers_changed."""

    @property
    def named(self) -> list[str]:
        """The metrics that are computed because the study names them, or an actor to compare with."""
        return [*(self.further or ()), *(["answers_changed"] if self.changed_from else [])]


class Contrast(Section):
    """A comparison of two methods."""

    method: Name
    """The method."""
    baseline: Name
    """What it is compared with."""
    datasets: Names | None = None
    """Data sets, and the means ood6 and ood_ccg."""
    split: Literal["validation", "test"] | None = None
    """The split; without it, test."""
    metrics: AtLeastOne[Metric] | None = None
    """The metrics; without it, all. Some have to be named in `metrics.further`, too."""


class MethodSpec(RunSpec):
    """A method on the answers of one actor."""

    method: str
    # Whether its confidences are ranks of scores, of which only the order counts.
    uncalibrated: Literal[True] | None = None

    @property
    def run(self) -> dict[str, str | int]:
        """What identifies the confidences: backbone, actor, seed, method."""
        return {"backbone": self.backbone, "actor": self.actor, "seed": self.seed, "method": self.method}


class ComputeMetricsSpec(MethodSpec):
    """The metrics of a method."""

    study: str  # the study's name, which seeds the resamples
    splits: dict[str, Listed[str]]  # the splits of each data set
    metrics: Metrics
    # The view that has the probabilities of each question's choices; None for no answer sets.
    choices: str | None = None
    # The columns of questions by whose values answer sets are counted, too; None for none.
    subgroups: Listed[str] | None = None
    thresholds_from: str  # one of `splits`, as "<dataset>/<split>", on which the thresholds are chosen


class MeasureSubgroupsSpec(MethodSpec):
    """The metrics of groups of the test answers."""

    study: str  # the study's name, which seeds the resamples
    subgroups: Listed[str]  # the columns of questions whose values are groups
    datasets: Listed[str]
    metrics: Metrics
    # The one of `datasets` whose validation answers choose certified thresholds, which are for its test answers.
    thresholds_from: str


class MeasureCostsSpec(MethodSpec):
    """The costs of a method on the answers to one split."""

    dataset: str
    split: str
    samples: dict[str, int]  # how many completions of a view are read, of views of which not all are
    # How often each view draws its image, each time for one prompt; of views that draw several.
    draws: dict[str, int] | None = None
    passes: dict[str, int] | None = None  # how many passes over an answer each view takes; of views with a measure
    # Where the states that it reads come from: the pass that made the answers; None if from a replay, or for none.
    states: Literal["generation"] | None = None
    transfer: AppliedReader | None = None  # the reader, if it is fitted on the answers of another actor or seed


class OodMeans(Section):
    """The means over OOD data sets."""

    ood: Listed[str]  # the members of ood6, the mean over metrics of answers
    ood_ccg: Listed[str]  # the members of ood_ccg, the mean over metrics of donor pairs

    @property
    def members(self) -> dict[str, Listed[str]]:
        """The members by the name of the mean."""
        return {"ood6": self.ood, "ood_ccg": self.ood_ccg}


class CollectMetricsSpec(OodMeans):
    """All metrics of the study."""


class ContrastSpec(Section):
    """A comparison of one method with baselines."""

    name: str
    method: str
    baselines: Listed[str]  # the methods with which it is compared
    datasets: Listed[str]  # data sets, or means over data sets
    split: str
    metrics: Listed[str] | None = None  # the metrics that are compared; None for all that have replicates


class CompareMethodsSpec(OodMeans):
    """The contrasts of a study."""

    study: str
    contrasts: Listed[ContrastSpec]


class MeasureDifficultySpec(Section):
    """The true difficulty of the images of a data set, and the methods that judge one actor's answers to them."""

    study: str  # the study's name, which seeds the resamples
    dataset: str
    split: str
    actor: str
    seeds: dict[str, Listed[int]]  # the seeds of each backbone
    methods: Listed[str]  # all methods, with the nulls
    nulls: Listed[str]  # the methods that see no image
    replicates: int  # the number of resamples


class ExportRecordsSpec(Section):
    """The two records that the reported numbers rest on."""

    domains: Listed[str]  # the data sets of the study
    ccg_domains: Listed[str]  # the data sets with donor pairs


class ExportAnswersSpec(RunSpec):
    """The answers of one run, as tables that `dualread evaluate` reads."""

    study: str  # the study's name, which seeds the resamples
    methods: Listed[str]  # the methods whose confidences are in the tables
    splits: dict[str, Listed[str]]  # the splits of each data set
    replicates: int  # the number of resamples behind the study's intervals
    uncalibrated: Listed[str] | None = None  # those of them that have scores, and no confidences
    # Further columns of the table of questions, whose values are groups of answers.
    subgroups: Listed[str] | None = None


class CompareWithPaperSpec(OodMeans):
    """The comparison of a study's tables with the paper's."""

    study: str
    backbones: Listed[str]
    actors: dict[str, str]  # the actor of each method
