import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest

from dualread.artifacts.tensors import read_header
from dualread.errors import ArtifactError, ReaderError
from dualread.models.prompts import template_sha256
from dualread.readers import psr
from dualread.readers.artifact import load_reader
from dualread.readers.base import fit
from dualread.readers.labels import labels_by
from dualread.readers.requirements import ScoringReader
from dualread.schema.answers import Choices
from dualread.schema.base import DatasetSplit
from dualread.schema.readers import AskedView, FitReadersSpec
from dualread.stages import fit_readers
from dualread.stages._views import read_examples
from tests import specs
from tests.readers import synthetic
from tests.specs import changed
from tests.stages import shards

RUN = {"backbone": "tiny", "actor": "rlvr", "seed": 17, "views": ()}
STATE = specs.method("p_state")
METHODS = {
    "rlvr": (specs.method("rlvr", "verbalized"), {}),
    "question_prior": (specs.method("question_prior"), synthetic.PRIOR),
    "question_answer_prior": (specs.method("question_answer_prior"), synthetic.PRIOR),
    "psr": (specs.method("psr"), synthetic.PSR),
    "p_state": (STATE, synthetic.P_STATE),
    "per": (specs.method("per", "p_visual", state=STATE), synthetic.P_VISUAL),
    "dualread": (
        specs.method("dualread", pre=specs.method("psr"), post=specs.method("per", "p_visual", state=STATE)),
        {},
    ),
}
ROLES = ("fit",) * 7 + ("stop",) + ("calibration",) * 2


def spec_of(method: str, **changes) -> FitReadersSpec:
    reader, settings = METHODS[method]
    given = {
        **RUN,
        "reader": reader,
        "settings": dict(settings),
        "examples": DatasetSplit(dataset="slake", split="train"),
    }
    given |= {"scoring": shards.SCORING}
    return FitReadersSpec(**given | changes)


def training_inputs(folder, labels_seed: int = 0) -> dict:
    rows = shards.manifest_rows(200, split="train", roles=ROLES)
    correct = np.random.default_rng(0).random(200) < 0.6
    graded = shards.graded_rows(rows, correct)
    return {
        "actor": shards.write_actor(folder / "a"),
        "facts": specs.facts(),
        "manifest": shards.write(folder / "m", "manifest", rows),
        "graded": shards.write(folder / "g", "graded", graded),
        "features": shards.write_features(folder / "f", graded, correct),
    }


def fit_all(folder, inputs) -> dict:
    """Fit every method in order; return their folders."""
    fitted = {}
    for method in METHODS:
        spec = spec_of(method)
        parents = {f"parent/{role}": fitted[parent.method] for role, parent in spec.reader.parents.items()}
        (out := folder / method).mkdir(parents=True)
        fit_readers.compute(spec, {**inputs, **parents}, out)
        fitted[method] = shards.seal(out)
    return fitted


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return training_inputs(tmp_path_factory.mktemp("train"))


@pytest.fixture(scope="module")
def fitted(inputs, tmp_path_factory):
    return fit_all(tmp_path_factory.mktemp("readers"), inputs)


def test_the_head_of_an_actor_is_a_reader_and_an_actor_without_one_has_none(inputs, tmp_path):
    synthetic.write_head(actor := shards.write_actor(tmp_path / "actor"))
    spec, readers = spec_of("rlvr", reader=specs.method("head", "state_head")), {}
    only = {name: inputs[name] for name in ("facts", "features")}
    for name, folder in (("with", actor), ("without", inputs["actor"])):
        (out := tmp_path / name).mkdir()
        said = fit_readers.compute(spec, {**only, "actor": folder}, out)
        readers[name] = load_reader(out / "reader.safetensors")
    assert readers["with"].weights.tensors["bias"].tolist() == [0.5, -1.0]
    assert readers["with"].provenance["features"] == ["h_close", "h_pre"]
    assert readers["without"].unfitted == "the actor has no state_head.safetensors: it was trained without such a head"
    assert said.endswith(f"its values will be dashes: {readers['without'].unfitted}")


def test_a_target_takes_the_place_of_correctness_in_fitting_and_is_no_part_of_the_reader(inputs, fitted, tmp_path):
    settings = {**synthetic.P_STATE, "state": "h_close"}
    probe = specs.method("probe", "linear_probe", target=specs.method("rlvr", "verbalized"))
    fit_readers.compute(
        spec_of("p_state", reader=probe, settings=settings), {**inputs, "parent/target": fitted["rlvr"]}, tmp_path
    )
    reader = load_reader(tmp_path / "reader.safetensors")
    assert (dict(reader.parents), reader.provenance["features"]) == ({}, ["h_close"])
    assert (
        reader.provenance["partitions"]["fit"]
        == read_header(fitted["p_state"] / "reader.safetensors")["provenance"]["partitions"]["fit"]
    )  # the counts are of correct answers
    teacher = load_reader(fitted["rlvr"] / "reader.safetensors")
    examples = read_examples(DatasetSplit(dataset="slake", split="train"), (), (), inputs, "here")
    expected = fit("readers.linear_probe", labels_by(teacher, examples)[0], settings, {}, 0)
    assert (reader.weights.tensors["weight"] == expected.tensors["weight"]).all()
    assert (
        reader.weights.tensors["weight"] != fit("readers.linear_probe", examples, settings, {}, 0).tensors["weight"]
    ).any()


def test_the_header_says_how_to_score_a_new_image(fitted, inputs):
    header = read_header(fitted["dualread"] / "reader.safetensors")
    known = header["provenance"]
    assert header["module"] == "readers.dualread"
    assert known["replay"].items() <= shards.REPLAY.items()
    assert known["features"] == ["h_ans", "h_close", "h_evid", "h_global", "h_pre"]
    # 200 rows in blocks of ten: 140, 20 and 40
    counts = {role: count["n"] for role, count in known["partitions"].items()}
    assert counts == {"fit": 140, "stop": 20, "calibration": 40}
    assert set(known["fitted_on"]) == {"manifest", "graded", "features", "parent/pre", "parent/post"}
    assert known["fitted_on"]["graded"] == json.loads((inputs["graded"] / "MANIFEST.json").read_text())["digest"]
    psr = header["parents"]["pre"]
    assert psr["settings"] == dict(synthetic.PSR)
    assert psr["notes"]["temperature"] > 0
    assert psr["notes"]["temperature_at_bound"] in (True, False)
    assert psr["notes"]["epochs_run"] >= 1
    assert psr["provenance"]["method"] == "psr"
    assert header["parents"]["post"]["parents"]["state"]["weights"] == ["bias", "mean", "scale", "weight"]


def test_a_reader_says_what_scoring_the_next_image_depends_on(tmp_path, inputs):
    words = Choices(words=["Yes", "No"])
    view = AskedView(name="p_true", asked=specs.shard(prompt=specs.prompt("p_true"), decoding=None, choices=words))
    spec = spec_of("rlvr", scoring=changed(shards.SCORING, views=(view,)))
    fit_readers.compute(spec, {"actor": inputs["actor"], "facts": inputs["facts"]}, tmp_path)
    found = ScoringReader.from_fitted(load_reader(tmp_path / "reader.safetensors"), where="here").requirements
    assert found.checkpoint == {"config.json": hashlib.sha256(b"{}").hexdigest()}  # and not the log beside it
    assert found.model == shards.SCORING.model
    assert (found.contract, found.decoding) == ("single", specs.decoding())
    assert (found.prompt.name, found.prompt.sha256) == ("shared", template_sha256("shared"))
    [asked] = found.views
    assert (asked.name, asked.forced) == ("p_true", False)
    assert asked.choices == words
    assert asked.prompt.sha256 == template_sha256("p_true")


def test_a_training_free_reader_needs_no_replay_and_one_without_labels_no_answers(tmp_path, inputs):
    without = {name: path for name, path in inputs.items() if name != "features"}
    said = fit_readers.compute(spec_of("rlvr"), without, tmp_path)
    assert read_header(tmp_path / "reader.safetensors")["provenance"]["replay"] is None
    assert said.startswith("read 200 answers: fit 140 (")
    actor = {name: inputs[name] for name in ("actor", "facts")}
    assert "read no answers, it needs none" in fit_readers.compute(spec_of("rlvr"), actor, tmp_path)
    assert load_reader(tmp_path / "reader.safetensors").provenance["fitted_on"] == {}


def test_answers_that_no_reader_may_see_are_refused(tmp_path, inputs):
    rows = shards.manifest_rows(200, split="train", roles=(*ROLES, "test"))
    manifest = shards.write(tmp_path / "m", "manifest", rows)
    with pytest.raises(ArtifactError, match=r"answers of role test\. Expected only fit, stop, calibration"):
        fit_readers.compute(spec_of("psr"), {**inputs, "manifest": manifest}, tmp_path)


def test_answers_without_a_row_elsewhere_are_named(tmp_path, inputs):
    graded = shards.read(inputs["graded"], "graded").to_dicts()
    few = shards.write_features(tmp_path / "f", graded[1:], np.ones(199))
    with pytest.raises(ArtifactError, match=r"features.parquet lacks 1 graded answers, such as slake/train/0000"):
        fit_readers.compute(spec_of("psr"), {**inputs, "features": few}, tmp_path)
    twice = shards.write(tmp_path / "g", "graded", [*graded, graded[3]])
    with pytest.raises(ArtifactError, match="1 answers occur twice"):
        fit_readers.compute(spec_of("psr"), {**inputs, "graded": twice}, tmp_path)


FULL = {value: np.full(200, value) for value in (np.inf, np.nan, 1.5)}


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"score": -FULL[np.inf]}, r"psr: score of slake/train/\d+ is -inf, and 200 of 200 .* a finite number"),
        ({"score": FULL[np.nan]}, r"psr: score of slake/train/\d+ is nan, .* such as log-odds"),
        ({"confidence": FULL[np.nan]}, r"psr: confidence of slake/train/\d+ is nan, .* probability in \[0, 1\]"),
        ({"confidence": FULL[1.5]}, r"psr: confidence of slake/train/\d+ is 1\.5, .* probability in \[0, 1\]"),
        ({"score": np.where(np.arange(200) == 7, np.nan, 0)}, r"psr: score of .* is nan, and 1 of 200 values"),
        ({"score": np.zeros(199)}, r"psr: score has shape \(199,\), expected \(200,\)"),
        ({"score": np.linspace(-900.0, 900.0, 200)}, None),  # any finite number
    ],
)
def test_a_reader_that_gives_no_scores_is_refused_as_soon_as_it_is_fitted(
    tmp_path, inputs, monkeypatch, broken, message
):
    score = psr.score
    monkeypatch.setattr(psr, "score", lambda reader, answers: replace(score(reader, answers), **broken))
    if message is None:
        fit_readers.compute(spec_of("psr"), inputs, tmp_path)
        return
    with pytest.raises(ReaderError, match=r"^tiny/rlvr/17/psr: .*" + message) as error:
        fit_readers.compute(spec_of("psr"), inputs, tmp_path)
    assert ("[0, 1]" in str(error.value)) == ("confidence" in broken)
    assert not (tmp_path / "reader.safetensors").exists()


@pytest.mark.parametrize(("function", "expected"), [("fit", "Weights"), ("score", "Scores")])
def test_a_reader_that_returns_an_object_of_another_type_is_refused(tmp_path, inputs, monkeypatch, function, expected):
    monkeypatch.setattr(psr, function, lambda *arguments: np.zeros(200))
    message = f"psr: {function} returned an object of type ndarray. Expected `{expected}`"
    with pytest.raises(ReaderError, match=message):
        fit_readers.compute(spec_of("psr"), inputs, tmp_path)
