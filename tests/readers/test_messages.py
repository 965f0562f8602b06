"""What readers say about answers, views and files that they refuse: messages.txt has one message per case."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from dualread.artifacts.tensors import read_header, write_tensors
from dualread.readers import dualread, expected_confidence, p_true, prompt_ensemble, self_consistency, self_probing
from dualread.readers.artifact import load_reader, save_reader
from dualread.readers.base import Examples, FittedReader, ViewAnswers, Weights
from dualread.readers.calibration.platt import fit_platt
from dualread.readers.calibration.temperature import fit_temperature
from dualread.schema.base import NoSettings
from tests import golden
from tests.readers import synthetic
from tests.readers.synthetic import PLATT, flat, percents, sampled

CHOICES = {"Yes": np.zeros(3), "No": np.zeros(3)}
INTEGERS = flat()
ONE_CLASS = {"all correct": [True, True], "all wrong": [False, False], "no rows": []}


def read(reader, *views: ViewAnswers) -> object:
    """Score three answers with views, by a reader that is not fitted."""
    answers = replace(synthetic.examples(3).answers, views=views)
    return reader.score(synthetic.reader(reader.__name__.removeprefix("dualread."), Weights()), answers)


def stated(log_probs) -> object:
    reader = synthetic.reader("readers.expected_confidence", Weights())
    return expected_confidence.score(reader, percents(log_probs))


def texts(name: str, *of_answer: str) -> ViewAnswers:
    return ViewAnswers(name=name, texts=(of_answer,) * 3)


def without_a_map():
    answers = sampled(*[("liver", ["liver", "liver"])] * 3, *[("liver", ["lung", ""])] * 2)
    examples = Examples(answers=answers, correct=np.array([True] * 3 + [False] * 2))
    return self_consistency.fit(examples, self_consistency.Settings(k=2), {}, 0)


def without_log_odds():
    one, two = (synthetic.reader(f"readers.{name}", Weights()) for name in ("verbalized", "self_probing"))
    both = synthetic.reader("readers.dualread", Weights(), parents={"pre": one, "post": two})
    return dualread.score(both, synthetic.examples(4).answers)


CASES = {
    "p_true: a choice is missing": lambda: read(p_true, ViewAnswers(name="yes_no", log_probs={"Yes": np.zeros(3)})),
    "p_true: texts": lambda: read(p_true, texts("samples", "a")),
    "p_true: two views": lambda: read(p_true, *(ViewAnswers(name=name, log_probs=CHOICES) for name in ("a", "b"))),
    "self_probing: two views": lambda: read(self_probing, texts("asked_0", "1"), texts("asked_1", "2")),
    "self_probing: two replies": lambda: read(self_probing, texts("samples", "1", "2")),
    "prompt_ensemble: choices": lambda: read(prompt_ensemble, ViewAnswers(name="yes_no", log_probs=CHOICES)),
    "expected_confidence: two integers are missing": lambda: stated(
        {name: value for name, value in INTEGERS.items() if name not in ("7", "100")}
    ),
    "expected_confidence: one integer is there": lambda: stated({"100": INTEGERS["100"]}),
    "expected_confidence: no view": lambda: read(expected_confidence),
    "self_consistency: too few samples": lambda: self_consistency.score(
        synthetic.reader("readers.self_consistency", PLATT, {"k": 4}),
        sampled(("liver", ["liver"] * 8), ("liver", ["liver"] * 3)),
    ),
    "self_consistency: samples that separate": without_a_map,
    "dualread: parents without log-odds": without_log_odds,
    **{f"platt: {name}": lambda z=z: fit_platt([1.0] * len(z), z) for name, z in ONE_CLASS.items()},
    "platt: separated": lambda: fit_platt([0.1, 0.2, 0.8, 0.9], [False, False, True, True]),
    "platt: a NaN": lambda: fit_platt([np.nan, 1.0], [True, False]),
    "platt: a score that is too large": lambda: fit_platt([1e200, 1.0], [True, False]),
    **{f"temperature: {name}": lambda z=z: fit_temperature([1.0] * len(z), z) for name, z in ONE_CLASS.items()},
    "temperature: infinite log-odds": lambda: fit_temperature([np.inf, 1.0], [True, False]),
}


def test_the_messages(tmp_path):
    found = {name: golden.message_of(case) for name, case in CASES.items()}
    write_tensors(tmp_path / "x", {"a": np.zeros(1)}, {})
    found["a file of another program"] = golden.message_of(lambda: load_reader(tmp_path / "x"), tmp_path)
    weights = Weights(tensors={"w": np.zeros(1)})
    save_reader(tmp_path / "y", FittedReader(module="m", settings=NoSettings(), weights=weights))
    write_tensors(tmp_path / "y", {}, read_header(tmp_path / "y"))
    found["a tensor is missing"] = golden.message_of(lambda: load_reader(tmp_path / "y"), tmp_path)
    golden.check(Path(__file__).with_name("messages.txt"), found)
