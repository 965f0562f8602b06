"""What every reader keeps, whatever it is: parametrized over all of them."""

import functools
import importlib.util
import inspect
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dualread import plugins
from dualread.errors import ConfigError, DualReadError
from dualread.plugins import module_of
from dualread.readers.answers import TOKENS
from dualread.readers.base import Answers, Examples, FittedReader, Weights, fit, load, score, settings_of
from dualread.readers.declarations import declared
from dualread.schema.base import settings_class
from dualread.schema.replay import OPTIONAL_TENSORS
from tests.readers import synthetic

# Readers of a package of its own, which needs LM-Polygraph to fit and to score.
PACKAGE = Path(plugins.file_of("readers", "dualread_lm_polygraph.density")).parent
LM_POLYGRAPH = tuple(
    f"{PACKAGE.name}.{path.stem}" for path in sorted(PACKAGE.glob("*.py")) if "\ndef score(" in path.read_text()
)
KNOWN = (*plugins.known("readers"), *LM_POLYGRAPH)
ELSEWHERE = LM_POLYGRAPH if importlib.util.find_spec("lm_polygraph") is None else ()
NAMES = [name for name in KNOWN if name not in ELSEWHERE]
EVERY = [
    *NAMES,
    *(
        pytest.param(name, marks=pytest.mark.skip("LM-Polygraph is not installed (make test-estimators)"))
        for name in ELSEWHERE
    ),
]
FEW_EPOCHS = {**synthetic.PSR, "max_epochs": 10}
SETTINGS = {
    "verbalized": {},
    "question_prior": synthetic.PRIOR,
    "question_answer_prior": synthetic.PRIOR,
    "psr": FEW_EPOCHS,
    "p_state": synthetic.P_STATE,
    "p_visual": synthetic.P_VISUAL,
    "dualread": {},
    "saplma": {**FEW_EPOCHS, "hidden": [16, 8, 4]},
    "bicr": {**synthetic.BICR, "max_epochs": 10},
    "sequence_likelihood": {},
    "p_true": {},
    "choice_probability": {},
    "self_probing": {},
    "prompt_ensemble": {},
    "self_consistency": {"k": 4},
    "semantic_uncertainty": {"k": 8, "t": None},
    "expected_confidence": {},
    "vase": {"k": 8, "alpha": 1.0, "weights": "likelihood"},
    "vauq": {"alpha": 0.6},
    "radflag": {"k": 4},
    "isotonic": {},
    "histogram_binning": {"bins": 5},
    "platt_scaling": {},
    "temperature_scaling": {},
    "hac": {"form": "regression"},
    "layer_probe": {**synthetic.P_STATE, "layer": 0.5},
    "after_thinking": synthetic.P_STATE,
    "linear_probe": {**synthetic.P_STATE, "state": "h_close"},
    "state_head": {},
    "dualread_lm_polygraph.likelihood": {"estimator": "Perplexity", "tokens": "answer"},
    "dualread_lm_polygraph.entropy": {"estimator": "MeanTokenEntropy", "tokens": "completion"},
    "dualread_lm_polygraph.sampling": {"estimator": "SemanticEntropy", "k": 8, "parameters": {}},
    "dualread_lm_polygraph.density": {"estimator": "MahalanobisDistanceSeq"},
    "dualread_lm_polygraph.relative_density": {"estimator": "RelativeMahalanobisDistanceSeq"},
}
_OF_STATED = ("isotonic", "histogram_binning", "platt_scaling", "temperature_scaling")
PARENTS = {
    "p_visual": {"state": "p_state"},
    "dualread": {"pre": "psr", "post": "p_visual"},
    **{name: {"of": "verbalized"} for name in _OF_STATED},
    "hac": {"confidence": "verbalized", "hallucination": "verbalized"},
}
VIEWS = {
    "bicr": ("black",),
    "p_true": ("yes_no",),
    "choice_probability": ("yes_no",),
    "self_probing": ("asked_1",),
    "prompt_ensemble": ("asked_1", "asked_2", "asked_3"),
    "self_consistency": ("samples",),
    "semantic_uncertainty": ("samples",),
    "expected_confidence": ("integers",),
    "vase": ("samples", "distorted"),
    "vauq": ("core",),
    "radflag": ("samples",),
    "layer_probe": ("layers",),
    "dualread_lm_polygraph.sampling": ("samples",),
}
STOPPED_EARLY = ("psr", "saplma", "bicr", "dualread")  # the last one by its parent
MAPS = (*_OF_STATED, "hac")  # fitted on validation answers as a whole
ON_CALIBRATION = (
    "linear_probe",
    "dualread_lm_polygraph.density",
    "dualread_lm_polygraph.relative_density",
)  # their Platt maps
ON_VALIDATION = [name for name in NAMES if declared(module_of("readers", name), "FITTED_ON") == "validation"]


def training(name: str, n: int = 300, *, seed: int = 0, role: str | None = None) -> Examples:
    """Answers as the stage fit_readers gives them to the reader `name`."""
    role = role or ("validation" if name in ON_VALIDATION else None)
    return synthetic.with_views(synthetic.examples(n, seed=seed, role=role), VIEWS.get(name, ()))


def held_out(name: str) -> Answers:
    """Answers as the stage score_answers gives them: without views where only the fit reads them."""
    given = synthetic.examples(200, seed=1, role="test")
    views = VIEWS.get(name, ()) if declared(module_of("readers", name), "VIEWS") == "score" else ()
    return synthetic.with_views(given, views).answers


def fitted(name: str, examples: Examples, seed: int = 17) -> FittedReader:
    parents = {role: fitted(parent, examples, seed) for role, parent in PARENTS.get(name, {}).items()}
    module = module_of("readers", name)
    with tempfile.TemporaryDirectory() as actor:
        synthetic.write_head(Path(actor))
        weights = fit(module, examples, SETTINGS[name], parents, seed, Path(actor))
    return FittedReader(module=module, settings=settings_of(module, SETTINGS[name]), weights=weights, parents=parents)


@functools.cache
def fitted_once(name: str) -> FittedReader:
    return fitted(name, training(name))


def bytes_of(reader: FittedReader) -> dict[str, bytes]:
    own = {name: array.tobytes() for name, array in reader.weights.tensors.items()}
    nested = {f"{role}.{k}": v for role, parent in reader.parents.items() for k, v in bytes_of(parent).items()}
    return own | nested


def test_every_reader_is_tested():
    assert set(KNOWN) == set(SETTINGS)


@pytest.mark.parametrize("name", KNOWN)
def test_signatures(name):
    module = load(module_of("readers", name))
    features, parents, fitted_on, views = (
        declared(module_of("readers", name), constant) for constant in ("FEATURES", "PARENTS", "FITTED_ON", "VIEWS")
    )
    if hasattr(module, "fit"):
        assert list(inspect.signature(module.fit).parameters) == ["examples", "settings", "parents", "seed"]
    assert list(inspect.signature(module.score).parameters) == ["reader", "answers"]
    assert set(parents) == set(PARENTS.get(name, {}))
    assert {text.format_map(SETTINGS[name]) for text in features} <= {
        *synthetic.TENSORS,
        "answer_log_prob",
        *OPTIONAL_TENSORS,
        *TOKENS,
    }
    assert fitted_on in (None, "train", "validation")
    assert hasattr(module, "fit") == (fitted_on is not None)
    assert views in (None, "fit", "score")
    assert (views is not None) == (name in VIEWS)
    assert set(settings_class("readers", name).model_fields) == set(SETTINGS[name])


@pytest.mark.parametrize("name", EVERY)
def test_scores_are_finite_float64_probabilities(name):
    scores = score(fitted_once(name), held_out(name))
    assert scores.score.dtype == scores.confidence.dtype == np.float64
    assert scores.imputed.dtype == np.bool_
    assert scores.score.shape == scores.confidence.shape == scores.imputed.shape == (200,)
    assert np.isfinite(scores.score).all()
    assert ((scores.confidence >= 0) & (scores.confidence <= 1)).all()


@pytest.mark.parametrize("name", [name for name in NAMES if declared(module_of("readers", name), "SCORES_UNFITTED")])
def test_a_reader_that_scores_unfitted_has_the_score_and_no_confidence_of_its_own(name):
    answers = held_out(name)
    scores = score(replace(fitted_once(name), weights=Weights()), answers)
    assert np.array_equal(scores.score, score(fitted_once(name), answers).score)
    assert scores.imputed.all()


@pytest.mark.parametrize("name", NAMES)
def test_a_score_does_not_depend_on_the_other_rows(name):
    answers = held_out(name)
    whole = score(fitted_once(name), answers)
    order = np.random.default_rng(0).permutation(200)
    shuffled = score(fitted_once(name), answers.take(order))
    alone = score(fitted_once(name), answers.take(np.array([7])))
    copies = score(fitted_once(name), answers.take(np.full(67, 7)))  # at the end of a vector register and past it
    assert (shuffled.confidence == whole.confidence[order]).all()
    assert (shuffled.score == whole.score[order]).all()
    assert (shuffled.imputed == whole.imputed[order]).all()
    assert alone.confidence[0] == whole.confidence[7]
    assert (copies.confidence == whole.confidence[7]).all()


@pytest.mark.parametrize("name", NAMES)
def test_calibration_labels_change_the_map_only(name):
    other = fitted(name, synthetic.relabeled(training(name), "calibration"))
    assert bytes_of(other) == bytes_of(fitted_once(name))
    changed = {key for key, value in other.weights.notes.items() if value != fitted_once(name).weights.notes[key]}
    if name in ON_CALIBRATION:
        assert changed
        assert changed <= {"platt_slope", "platt_intercept", "platt_clipped"}
        return
    # Without a signal in the labels the best temperature may be a bound.
    assert changed - {"temperature_at_bound"} == ({"temperature"} if "temperature" in other.weights.notes else set())


@pytest.mark.parametrize("name", NAMES)
def test_stop_labels_reach_the_networks_only(name):
    other = fitted(name, synthetic.relabeled(training(name), "stop"))
    assert (bytes_of(other) != bytes_of(fitted_once(name))) == (name in STOPPED_EARLY)
    if name in STOPPED_EARLY and not PARENTS.get(name):
        assert other.weights.notes["epoch_restored"] != fitted_once(name).weights.notes["epoch_restored"]
        assert (other.weights.tensors["mean"] == fitted_once(name).weights.tensors["mean"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_validation_labels_change_the_platt_map_only(name):
    other = fitted(name, synthetic.relabeled(training(name), "validation"))
    if name in MAPS:
        before = (bytes_of(fitted_once(name)), fitted_once(name).weights.notes)
        # Without a signal in the labels the best temperature may be a bound.
        assert (bytes_of(other), other.weights.notes) != before or other.weights.notes.get("divisor_at_bound")
        return
    assert bytes_of(other) == bytes_of(fitted_once(name))
    changed = {key for key, value in other.weights.notes.items() if value != fitted_once(name).weights.notes[key]}
    assert changed <= {"platt_slope", "platt_intercept", "platt_clipped"}
    assert (len(changed) > 0) == (name in ON_VALIDATION)
    answers = held_out(name)
    assert (score(other, answers).score == score(fitted_once(name), answers).score).all()


@pytest.mark.parametrize("name", NAMES)
def test_other_roles_are_never_seen(name):
    whole = synthetic.with_views(synthetic.examples(600, seed=3), VIEWS.get(name, ()))
    own = training(name).answers.table["role"].to_list()
    foreign = sorted({"fit", "stop", "calibration", "validation", "test"} - set(own))
    roles = pl.Series("role", [*own, *(foreign[i % len(foreign)] for i in range(300))])
    whole = replace(whole, answers=replace(whole.answers, table=whole.answers.table.with_columns(roles)))
    first = np.arange(300)
    alone = fitted(name, Examples(answers=whole.answers.take(first), correct=whole.correct[first]))
    both = fitted(name, whole)
    assert bytes_of(both) == bytes_of(alone)
    assert both.weights.notes == alone.weights.notes


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_reaches_the_networks_only(name):
    other = fitted(name, training(name), seed=18)
    assert (bytes_of(other) != bytes_of(fitted_once(name))) == (name in STOPPED_EARLY)


@pytest.mark.parametrize("name", [name for name in NAMES if name in VIEWS])
def test_a_missing_view_is_named(name):
    given = synthetic.with_views(training(name), ())

    def read():
        return (
            fitted(name, given)
            if declared(module_of("readers", name), "VIEWS") == "fit"
            else score(fitted_once(name), given.answers)
        )

    with pytest.raises(ConfigError, match=r"views: none; this reader needs"):
        read()


@pytest.mark.parametrize("name", KNOWN)
def test_unknown_and_missing_settings_are_named(name):
    module = module_of("readers", name)
    with pytest.raises(ConfigError, match=f"{module}: settings.bananas: 1: extra inputs are not permitted"):
        fit(module, synthetic.examples(), {**SETTINGS[name], "bananas": 1}, {}, 0)
    for missing in list(SETTINGS[name])[:1]:
        with pytest.raises(ConfigError, match=f"{module}: settings.{missing}: field required"):
            fit(module, synthetic.examples(), {k: v for k, v in SETTINGS[name].items() if k != missing}, {}, 0)


def test_an_unknown_reader_is_answered_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"no plugin named 'psrr'. Known: after_thinking, bicr, choice_probability"):
        load("readers.psrr")
    with pytest.raises(ConfigError, match="not in the family readers"):
        load("training.rewards.rlvr")


@pytest.mark.parametrize(
    ("name", "role", "labels", "message"),
    [
        ("psr", "fit", True, r"partition 'fit': 210 correct of 210 answers"),
        ("psr", "calibration", False, r"partition 'calibration': 0 correct of 60 answers"),
        ("p_state", "fit", False, r"partition 'fit': 0 correct of 210 answers"),
        ("p_state", "calibration", True, r"partition 'calibration': 60 correct of 60 answers"),
        ("bicr", "fit", True, r"partition 'fit': 210 correct of 210 answers"),
        ("sequence_likelihood", "calibration", True, r"partition 'calibration': 60 correct of 60 answers"),
        ("self_consistency", "validation", True, r"partition 'validation': 300 correct of 300 answers"),
        ("semantic_uncertainty", "validation", False, r"partition 'validation': 0 correct of 300 answers"),
    ],
)
def test_one_class_partitions_are_named_with_their_counts(name, role, labels, message):
    given = training(name)
    correct = np.where((given.answers.table["role"] == role).to_numpy(), labels, given.correct)
    with pytest.raises(DualReadError, match=message):
        fitted(name, type(given)(answers=given.answers, correct=correct))


def test_an_empty_stop_partition_is_named():
    given = synthetic.examples()
    kept = np.flatnonzero((given.answers.table["role"] != "stop").to_numpy())
    with pytest.raises(DualReadError, match=r"partition 'stop': 0 correct of 0 answers"):
        fitted("psr", type(given)(answers=given.answers.take(kept), correct=given.correct[kept]))
