"""What every reader keeps, whatever it is: parametrized over all of them."""

import inspect

import numpy as np
import pytest

from dualread import plugins
from dualread.errors import ConfigError, DualReadError
from dualread.readers._interface import FittedReader, load, score
from tests.readers import synthetic

NAMES = plugins.known("readers")
SETTINGS = {
    "verbalized": {},
    "question_prior": synthetic.PRIOR,
    "question_answer_prior": synthetic.PRIOR,
    "psr": synthetic.PSR,
    "p_state": synthetic.P_STATE,
    "p_visual": synthetic.P_VISUAL,
    "dualread": {},
}
PARENTS = {"p_visual": {"state": "p_state"}, "dualread": {"pre": "psr", "post": "p_visual"}}


def fitted(name: str, examples, seed: int = 17) -> FittedReader:
    parents = {role: fitted(parent, examples, seed) for role, parent in PARENTS.get(name, {}).items()}
    module = f"readers.{name}"
    weights = load(module).fit(examples, SETTINGS[name], parents, seed)
    return FittedReader(module=module, settings=SETTINGS[name], weights=weights, parents=parents)


@pytest.fixture(scope="module")
def readers():
    examples = synthetic.examples()
    return {name: fitted(name, examples) for name in NAMES}


@pytest.fixture(scope="module")
def held_out():
    return synthetic.examples(200, seed=1, role="test")


def bytes_of(reader: FittedReader) -> dict[str, bytes]:
    own = {name: array.tobytes() for name, array in reader.weights.tensors.items()}
    nested = {f"{role}.{k}": v for role, parent in reader.parents.items() for k, v in bytes_of(parent).items()}
    return own | nested


def test_every_reader_is_tested():
    assert set(NAMES) == set(SETTINGS)


@pytest.mark.parametrize("name", NAMES)
def test_signatures(name):
    module = load(f"readers.{name}")
    assert list(inspect.signature(module.fit).parameters) == ["examples", "settings", "parents", "seed"]
    assert list(inspect.signature(module.score).parameters) == ["reader", "answers"]
    assert set(module.PARENTS) == set(PARENTS.get(name, {}))
    assert set(module.FEATURES) <= set(synthetic.TENSORS)


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_finite_float64_probabilities(name, readers, held_out):
    scores = score(readers[name], held_out.answers)
    assert scores.score.dtype == scores.confidence.dtype == np.float64
    assert scores.imputed.dtype == np.bool_
    assert scores.score.shape == scores.confidence.shape == scores.imputed.shape == (200,)
    assert np.isfinite(scores.score).all()
    assert ((scores.confidence >= 0) & (scores.confidence <= 1)).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_score_does_not_depend_on_the_other_rows(name, readers, held_out):
    whole = score(readers[name], held_out.answers)
    order = np.random.default_rng(0).permutation(200)
    shuffled = score(readers[name], held_out.answers.take(order))
    alone = score(readers[name], held_out.answers.take(np.array([7])))
    assert (shuffled.confidence == whole.confidence[order]).all()
    assert (shuffled.score == whole.score[order]).all()
    assert alone.confidence[0] == whole.confidence[7]


@pytest.mark.parametrize("name", NAMES)
def test_fitting_twice_gives_the_same_bytes(name, readers):
    again = fitted(name, synthetic.examples())
    assert bytes_of(again) == bytes_of(readers[name])
    assert again.weights.notes == readers[name].weights.notes


@pytest.mark.parametrize("name", NAMES)
def test_calibration_labels_change_the_temperature_only(name, readers):
    other = fitted(name, synthetic.relabeled(synthetic.examples(), "calibration"))
    assert bytes_of(other) == bytes_of(readers[name])
    changed = {key for key, value in other.weights.notes.items() if value != readers[name].weights.notes[key]}
    assert changed == ({"temperature"} if "temperature" in other.weights.notes else set())


@pytest.mark.parametrize("name", NAMES)
def test_stop_labels_reach_psr_only(name, readers):
    other = fitted(name, synthetic.relabeled(synthetic.examples(), "stop"))
    contains_psr = name in ("psr", "dualread")
    assert (bytes_of(other) != bytes_of(readers[name])) == contains_psr
    if name == "psr":
        assert other.weights.notes["epoch_restored"] != readers[name].weights.notes["epoch_restored"]
        assert (other.weights.tensors["mean"] == readers[name].weights.tensors["mean"]).all()


@pytest.mark.parametrize("name", NAMES)
def test_other_roles_are_never_seen(name, readers):
    given = synthetic.examples()
    foreign = synthetic.examples(50, seed=3, role="test")
    tensors = {t: np.concatenate([given.answers.source(t), foreign.answers.source(t)]) for t in synthetic.TENSORS}
    table = given.answers.table.vstack(foreign.answers.table)
    answers = type(given.answers)(table=table, source=tensors.__getitem__, rows=np.arange(len(table)))
    both = type(given)(answers=answers, correct=np.concatenate([given.correct, foreign.correct]))
    assert bytes_of(fitted(name, both)) == bytes_of(readers[name])


@pytest.mark.parametrize("name", NAMES)
def test_unknown_and_missing_settings_are_named(name):
    module = load(f"readers.{name}")
    with pytest.raises(ConfigError, match="unknown settings bananas"):
        module.fit(synthetic.examples(), {**SETTINGS[name], "bananas": 1}, {}, 0)
    for missing in list(SETTINGS[name])[:1]:
        with pytest.raises(ConfigError, match=f"settings lack {missing}"):
            module.fit(synthetic.examples(), {k: v for k, v in SETTINGS[name].items() if k != missing}, {}, 0)


def test_an_unknown_reader_is_answered_with_the_known_ones():
    with pytest.raises(ConfigError, match=r"no plugin named 'psrr'. Known: dualread, p_state"):
        load("readers.psrr")
    with pytest.raises(ConfigError, match="not in the family readers"):
        load("rewards.rlvr")


@pytest.mark.parametrize(
    ("name", "role", "labels", "message"),
    [
        ("psr", "fit", True, r"partition 'fit': 210 correct of 210 answers"),
        ("psr", "calibration", False, r"partition 'calibration': 0 correct of 60 answers"),
        ("p_state", "fit", False, r"partition 'fit': 0 correct of 210 answers"),
        ("p_state", "calibration", True, r"partition 'calibration': 60 correct of 60 answers"),
    ],
)
def test_one_class_partitions_are_named_with_their_counts(name, role, labels, message):
    given = synthetic.examples()
    correct = np.where((given.answers.table["role"] == role).to_numpy(), labels, given.correct)
    with pytest.raises(DualReadError, match=message):
        fitted(name, type(given)(answers=given.answers, correct=correct))


def test_an_empty_stop_partition_is_named():
    given = synthetic.examples()
    kept = np.flatnonzero((given.answers.table["role"] != "stop").to_numpy())
    with pytest.raises(DualReadError, match=r"partition 'stop': 0 correct of 0 answers"):
        fitted("psr", type(given)(answers=given.answers.take(kept), correct=given.correct[kept]))
