"""Every reader on answers that are hard to fit on: it is fitted and scores, or it says why it cannot be."""

from dataclasses import replace

import numpy as np
import pytest

from dualread.errors import ReaderError, UnfittedError
from dualread.readers import _network
from dualread.readers.artifact import load_reader, save_reader
from dualread.readers.base import Examples, FittedReader, Weights, fit, score, settings_of
from dualread.readers.settings import NetworkSettings
from tests.readers import synthetic
from tests.readers.test_contract import EVERY, PARENTS, SETTINGS, held_out, training


def all_of(kind: bool):
    return lambda given: replace(given, correct=np.full(len(given), kind))


def one_row(given: Examples) -> Examples:
    return Examples(answers=given.answers.take(np.array([0])), correct=given.correct[:1])


HARD = {
    "all right": all_of(True),
    "one row": one_row,
    "no row": lambda given: Examples(answers=given.answers.take(np.zeros(0, dtype=int)), correct=given.correct[:0]),
}


def reader_of(name: str, examples: Examples) -> FittedReader:
    """Fit as the stage does: what cannot be fitted holds the reason, and so does what builds on it."""
    parents = {role: reader_of(parent, examples) for role, parent in PARENTS.get(name, {}).items()}
    given = {
        "module": f"readers.{name}",
        "settings": settings_of(f"readers.{name}", SETTINGS[name]),
        "parents": parents,
    }
    try:
        return FittedReader(**given, weights=fit(given["module"], examples, SETTINGS[name], parents, 17))
    except UnfittedError as error:
        return FittedReader(**given, weights=Weights(), unfitted=str(error))


@pytest.mark.parametrize("hard", HARD.values(), ids=HARD)
@pytest.mark.parametrize("name", EVERY)
def test_a_reader_scores_or_says_why_it_cannot(name, hard, tmp_path):
    found = reader_of(name, hard(training(name)))
    save_reader(tmp_path / "reader.safetensors", found)
    again = load_reader(tmp_path / "reader.safetensors")
    assert again.unfitted == found.unfitted
    if found.unfitted is None:
        assert np.isfinite(score(again, held_out(name)).confidence).all()
    else:
        assert len(found.unfitted) > 20
        with pytest.raises(ReaderError, match="no fitted reader"):
            score(again, held_out(name))


def test_the_reason_of_a_parent_is_that_of_what_builds_on_it():
    given = training("dualread")
    calibration = (given.answers.table["role"] == "calibration").to_numpy()
    found = reader_of("dualread", replace(given, correct=given.correct | calibration))
    assert found.unfitted is not None
    assert found.unfitted.startswith("pre (readers.psr): partition 'calibration': ")


def test_a_network_that_never_has_a_loss_does_not_keep_its_first_weights():
    x, labels = np.full((8, 2), np.nan), np.arange(8) % 2 == 0
    loss = _network.cross_entropy(1.0)
    with pytest.raises(UnfittedError, match="no finite number in any of"):
        _network.train((x, labels), (x, labels), NetworkSettings(**synthetic.PSR), 0, loss=loss, stop_loss=loss)


@pytest.mark.parametrize("name", ["psr", "p_state"])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_loss_that_is_not_a_number_is_a_reason(name):
    found = reader_of(name, without_states(training(name)))
    assert found.unfitted is not None


def without_states(given: Examples) -> Examples:
    """States as an overflow leaves them."""
    source = given.answers.source
    return replace(given, answers=replace(given.answers, source=lambda name: np.full_like(source(name), np.inf)))
