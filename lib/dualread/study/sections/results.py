"""Methods, metrics, tables, contrasts, figures, and the tuning of methods."""

from typing import Annotated, Literal

from pydantic import Field

from dualread.study.sections.kinds import COST, AtLeastOne, Distinct, Name, Names, Positive, Section, Seeds, Settings

# By these, methods can be compared.
Metric = Literal["auroc", "brier", "squared_calibration_error", "natural_ccg_auc", "strict_ccg_auc"]


class TunedOn(Section):
    """Which tuning study found the settings of a method. The table hparams prints it; nothing else reads it."""

    study: str = Field(description="The study.")
    data: str = Field(description="Its data.")
    backbone: str = Field(description="The backbone.")
    actor: str = Field(description="The actor.")
    seed: Annotated[int, Field(ge=0)] = Field(description="The seed of the actor.")
    trials: Positive = Field(description="The number of trials.")
    settings: Annotated[str, Field(pattern="^[0-9a-f]{16}$")] = Field(description="Digest of the settings found.")


class Method(Section):
    """A confidence method: which reader reads the answers of which actor."""

    label: str = Field(description="Its name in tables and figures.")
    group: str = Field(description="The heading of its rows in tables.")
    actor: Name = Field(description="The actor whose answers it reads.")
    reader: Name = Field(description="The plugin that reads: lib/dualread/readers/<reader>.py.")
    parents: dict[str, Name] = Field(default_factory=dict, description="Methods that the reader builds on, by role.")
    views: Names | None = Field(None, description="The views that the reader reads.")
    cost: Annotated[str, Field(pattern=COST)] | None = Field(
        None, description="The paper's notation: t one answer, rho one pass over a prompt, tau one replay."
    )
    settings: Settings = Field(default_factory=dict, description="Settings of the reader.")
    tuned_on: TunedOn | None = Field(None, description="Which tuning study found the settings.")


class Bootstrap(Section):
    """Confidence intervals."""

    replicates: Annotated[int, Field(ge=0)] = Field(description="Resamples.")


class Metrics(Section):
    """How confidences are judged."""

    bootstrap: Bootstrap = Field(description="Confidence intervals.")
    target_risk_percent: Distinct[Annotated[int, Field(ge=0, le=99)]] = Field(
        description="Risks for which the coverage is reported."
    )


class Table(Section):
    """What a table shows. Its rows are all methods, all `without` some, or exactly `methods`."""

    methods: Names | None = Field(None, description="Its rows, in this order.")
    without: Names | None = Field(None, description="Methods that are not shown.")
    datasets: Names | None = Field(None, description="The data sets that are shown; without it, all.")
    seeds: Seeds | None = Field(None, description="The seeds that means run over; without it, all.")
    method: Name | None = Field(None, description="The method that is compared with every other row.")


class Contrast(Section):
    """A comparison of two methods."""

    method: Name = Field(description="The method.")
    baseline: Name = Field(description="What it is compared with.")
    datasets: Names | None = Field(None, description="Data sets, and the means ood6 and ood_ccg.")
    split: Literal["validation", "test"] | None = Field(None, description="The split; without it, test.")
    metrics: AtLeastOne[Metric] | None = Field(None, description="The metrics; without it, all.")


class Figure(Section):
    """What a figure shows. READS of the figure's plugin says which of the keys it has."""

    actors: Names | None = Field(None, description="Actors whose training is drawn.")
    methods: Names | None = Field(None, description="Methods whose confidences are drawn.")
    datasets: Names | None = Field(None, description="The data sets that are drawn.")


class Tuning(Section):
    """A search for the settings of a method, run on request only."""

    backbone: Name | None = Field(None, description="The backbone; without it, the first.")
    seed: Positive = Field(description="The seed of the actor.")
    trials: Positive = Field(description="The number of trials.")
