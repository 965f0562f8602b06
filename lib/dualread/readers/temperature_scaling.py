"""Temperature scaling on any method: the log-odds of its confidence divided by a temperature of validation answers."""

from collections.abc import Mapping

from dualread.readers._post_hoc import log_odds_of, mapped, validation_scores
from dualread.readers.base import Answers, Examples, FittedReader, Scores, Weights
from dualread.readers.calibration.log_odds import sigmoid
from dualread.readers.calibration.temperature import fit_temperature
from dualread.schema.base import Section

FITTED_ON = "validation"
PARENTS: tuple[str, ...] = ("of",)


def fit(examples: Examples, settings: Section, parents: Mapping[str, FittedReader], seed: int) -> Weights:
    """Fit the temperature on `validation`."""
    scores, correct = validation_scores(examples, parents)
    temperature = fit_temperature(log_odds_of(scores["of"]), correct)
    return Weights(notes={"divisor": temperature.value, "divisor_at_bound": temperature.at_bound})


def score(reader: FittedReader, answers: Answers) -> Scores:
    """Return the scaled confidence as score and as confidence."""
    divisor = reader.weights.notes["divisor"]
    return mapped(reader, answers, lambda scores: sigmoid(log_odds_of(scores["of"]) / divisor))
