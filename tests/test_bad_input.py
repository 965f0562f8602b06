"""Bad input, drawn by hypothesis: a clear error or a defined result, never a traceback from deep inside."""

import copy
import json
import math
import re
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualread.artifacts.tensors import read_header, read_tensors, write_tensors
from dualread.calibration.log_odds import CalibrationError, sigmoid
from dualread.calibration.platt import fit_platt
from dualread.calibration.temperature import fit_temperature
from dualread.config import resolve
from dualread.datasets._files import read_json, read_json_lines
from dualread.errors import ArtifactError, ConfigError, DataError, UndefinedMetricError
from dualread.grading.canonical import canonical, is_correct, question_key
from dualread.grading.parse import STATUSES, answer_span, parse, stated_probability
from dualread.metrics import calibration_error, discrimination, grounding, selective
from dualread.stages.download_dataset import unpack
from dualread.stats.bootstrap import ImageDraws, image_cluster_replicates, interval
from dualread.stats.kernels import aurc_kernel, auroc_kernel, ece_kernel, mean_kernel
from dualread.store.manifest import MANIFEST_NAME, Action, Manifest, read_manifest
from dualread.tables._latex import escape

few = settings(max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])


def attempt(function, *kinds):
    """Return what `function` returns, and the error of one of these kinds that it raises instead."""
    try:
        return function(), None
    except kinds as error:
        return None, error


# --- Text

_PIECES = ["<answer>", "</answer>", "<confidence>", "</confidence>", "<vision_confidence>", "</vision_confidence>"]
_PIECES += [
    "<reasoning_confidence>",
    "</reasoning_confidence>",
    "100",
    "007",
    "-5",
    "101",
    "0.8",
    "yes",
    " ",
    "\n",
    "٣",
]
texts = st.text(st.characters(), max_size=40)  # surrogates and control characters, too
completions = st.one_of(texts, st.lists(st.one_of(st.sampled_from(_PIECES), texts), max_size=12).map("".join))


@few
@given(completions, st.sampled_from(["single", "dual"]))
def test_any_completion_is_parsed(text, contract):
    parsed = parse(text, contract)
    assert parsed.status in STATUSES
    assert (parsed.answer is None) == (parsed.status in ("invalid_answer", "invalid_both"))
    assert (parsed.confidence is None) == (parsed.status in ("invalid_confidence", "invalid_both"))
    assert parsed.confidence is None or 0.0 <= parsed.confidence <= 1.0
    if parsed.answer is not None:
        start, end, close = answer_span(text)
        assert text[start:end] == parsed.answer == parsed.answer.strip() != ""
        assert text[:close].endswith("</answer>")
    stated = stated_probability(text)
    assert stated is None or stated * 100 == pytest.approx(round(stated * 100))


@few
@given(texts, texts)
def test_any_text_is_graded_and_grades_are_an_equivalence(one, other):
    form = canonical(one)
    assert is_correct(one, [one]) == (form != "")
    assert is_correct(one, [other]) == is_correct(other, [one])
    assert not is_correct(None, [one])
    assert not is_correct(one, [])
    assert question_key(one) == question_key(f" {one.upper().lower() if one.isascii() else one}\t")


_COMMAND = re.compile(r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater)\{\}|\\[&%$#_{}]")


@few
@given(texts)
def test_any_text_in_latex_is_plain_and_can_be_written(text):
    shown = escape(text)
    shown.encode()  # as every table is written
    assert not re.search(r"[\\&%$#_{}~^<>]", _COMMAND.sub("", shown))
    assert not [character for character in shown if ord(character) < 32 or 127 <= ord(character) < 160]


# --- Confidences

numbers = st.one_of(
    st.floats(), st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 0.0, 1.0, 1 + 1e-9, 5e-324, 0.5])
)
METRICS = {
    "ece": (calibration_error.ece, 0, 1),
    "brier": (calibration_error.brier, 0, 1),
    "calibration_in_the_large": (calibration_error.calibration_in_the_large, -math.inf, math.inf),
    "calibration_slope": (calibration_error.calibration_slope, -math.inf, math.inf),
    "auroc": (discrimination.auroc, 0, 1),
    "aurc": (selective.aurc, 0, 1),
    "hce": (selective.hce, 0, 1),
    "one question": (lambda c, z: discrimination.within_question_auroc(c, z, ["q"] * len(z)), 0, 1),
    "a question a row": (lambda c, z: discrimination.within_question_auroc(c, z, list(map(str, range(len(z))))), 0, 1),
    "natural": (lambda c, z: grounding.natural_ccg_auc(c, c[::-1], z, ~z[::-1]), 0, 1),
    "strict": (lambda c, z: grounding.strict_ccg_auc(c, c[::-1], z, ~z[::-1], ["a"] * len(z), ["a"] * len(z)), 0, 1),
}


@pytest.mark.parametrize("name", METRICS)
@few
@given(st.lists(st.tuples(numbers, st.booleans()), max_size=8), st.booleans(), st.booleans())
def test_any_confidences_give_a_number_in_range_or_a_reason(name, rows, constant, one_class):
    metric, low, high = METRICS[name]
    confidence = np.array([rows[0][0] if constant else c for c, _ in rows], dtype=float)
    correct = np.array([rows[0][1] if one_class else z for _, z in rows], dtype=bool)
    valid = bool(((confidence >= 0) & (confidence <= 1)).all())
    value, error = attempt(lambda: metric(confidence, correct), ValueError)
    if not valid:
        assert re.match(r"confidence\w*: row \d+ is .*, expected a probability", str(error))
    elif error is not None:
        assert isinstance(error, UndefinedMetricError)
        assert str(error)
    else:
        assert math.isfinite(value)
        assert low <= value <= high


@few
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=8), st.booleans())
def test_one_cluster_and_none_give_the_estimate_in_every_replicate_or_nothing(rows, constant):
    c = np.array([0.5 if constant else confidence for confidence, _ in rows], dtype=float)
    z = np.array([label for _, label in rows], dtype=bool)
    cluster, draws = np.zeros(len(rows), dtype=int), ImageDraws(names=("one",), image_ids=("a",), replicates=3)
    kernels = {
        "brier": mean_kernel((c - z) ** 2, cluster, 1),
        "ece": ece_kernel(c, z, calibration_error.bins(c), cluster, 1),
        "auroc": auroc_kernel(c, z, cluster, 1),
        "aurc": aurc_kernel(c, z, cluster, 1),
    }
    for name, replicates in image_cluster_replicates(kernels, draws).items():
        value, _ = attempt(lambda name=name: METRICS[name][0](c, z), UndefinedMetricError)
        found = interval(replicates)
        if value is None:
            assert (found.low, found.high, found.n_undefined) == (None, None, 3)
        else:
            assert (found.low, found.high) == pytest.approx((value, value), abs=1e-12)


@few
@given(st.lists(st.tuples(numbers, st.booleans()), max_size=8), st.sampled_from([fit_platt, fit_temperature]))
def test_any_scores_are_calibrated_or_refused(rows, fit):
    scores = np.array([score for score, _ in rows], dtype=float)
    correct = np.array([z for _, z in rows], dtype=bool)
    fitted, error = attempt(lambda: fit(scores, correct), CalibrationError, ValueError)
    assert error is None or str(error)
    if fitted is not None:
        assert np.isfinite(scores).all()
        confidence = fitted.confidence(scores) if fit is fit_platt else sigmoid(scores / fitted.value)
        assert ((confidence >= 0) & (confidence <= 1)).all()


# --- Files

anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=5,
)
_ACTION = Action(stage="grade", code="c0", spec={"n": 1}, inputs={"a": "0" * 64}, packages={"numpy": "2"})
_MANIFEST = Manifest(action=_ACTION, files={"a.txt": {"sha256": "0" * 64, "size": 1}}, input_keys={"a": "1" * 64})


def uses(manifest: Manifest, folder: Path) -> None:
    """Do what the runner does with a manifest that was read."""
    assert isinstance(manifest.key, str)
    list(manifest.wrong_sizes(folder))
    list(manifest.wrong_bytes(folder))
    assert all((folder / name).resolve().is_relative_to(folder.resolve()) for name in manifest.files)


@few
@given(st.one_of(st.binary(max_size=60), anything.map(lambda value: json.dumps(value).encode())))
def test_what_is_no_manifest_is_refused_by_name(tmp_path, content):
    path = tmp_path / MANIFEST_NAME
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=re.escape(str(path))):
        read_manifest(path)


@few
@given(st.sampled_from(["stage", "code", "spec", "inputs", "python", "packages", "files", "input_keys"]), anything)
def test_a_manifest_with_any_field_is_used_or_refused_by_name(tmp_path, field, value):
    """Even where whoever wrote it made the digests agree."""
    path = tmp_path / MANIFEST_NAME
    parts = {**_MANIFEST.action.fields(), "files": _MANIFEST.files, "input_keys": _MANIFEST.input_keys, field: value}
    action = {name: parts[name] for name in _MANIFEST.action.fields()}
    try:
        forged = Manifest(action=Action(**action), files=parts["files"], input_keys=parts["input_keys"]).to_bytes()
    except ConfigError:
        forged = json.dumps({**json.loads(_MANIFEST.to_bytes()), field: value}).encode()
    path.write_bytes(forged)
    manifest, error = attempt(lambda: read_manifest(path), ArtifactError)
    if manifest is not None:
        uses(manifest, tmp_path)
    else:
        assert str(path) in str(error)


def test_a_manifest_that_names_files_elsewhere_or_is_a_bomb_is_refused(tmp_path):
    path = tmp_path / MANIFEST_NAME
    for name in ("../a.txt", "/etc/passwd", "a/../../b", ""):
        path.write_bytes(Manifest(action=_ACTION, files={name: {"sha256": "0" * 64, "size": 1}}).to_bytes())
        with pytest.raises(ArtifactError, match=re.escape(str(path))):
            read_manifest(path)
    path.write_bytes(b"[" * 100_000)
    with pytest.raises(ArtifactError, match=re.escape(str(path))):
        read_manifest(path)


@pytest.fixture
def tensors(tmp_path):
    path = tmp_path / "reader.safetensors"
    write_tensors(path, {"weight": np.arange(6.0).reshape(2, 3), "bias": np.zeros(1)}, {"layer": 2})
    return path


def reads(path):
    """Read a file of tensors, or be refused by its name."""
    found, error = attempt(lambda: (read_header(path), read_tensors(path)), ArtifactError)
    assert error is None or str(path) in str(error)
    assert found is None or all(isinstance(part, dict) for part in found)


@few
@given(st.data())
def test_broken_safetensors_are_refused_by_name(tensors, data):
    """Where only values were flipped, sha256 tells; nothing else may be read from what is broken."""
    whole = tensors.read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    cut = data.draw(st.booleans())
    flipped = whole[:position] + bytes([whole[position] ^ data.draw(st.integers(1, 255))]) + whole[position + 1 :]
    tensors.write_bytes(whole[:position] if cut else flipped)
    reads(tensors)
    tensors.write_bytes(whole)


@few
@given(st.one_of(st.binary(max_size=80), anything.map(lambda value: json.dumps(value).encode())))
def test_any_header_of_safetensors_is_refused_by_name(tmp_path, header):
    path = tmp_path / "reader.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 16)
    reads(path)


_HOSTILE = [b'["\\ud800"]', b'{"a": "\\uDC00"}', b"[" * 5000, b"\xff\xfe[\0", b"[1e999, NaN]", b'{"a": 1, "a": 2}']


@few
@given(st.one_of(st.binary(max_size=40), anything.map(lambda v: json.dumps(v).encode()), st.sampled_from(_HOSTILE)))
def test_any_official_file_is_read_or_refused_by_name(tmp_path, content):
    path = tmp_path / "test.json"
    path.write_bytes(content)
    for read in (lambda: read_json(path, list), lambda: read_json_lines(path)):
        found, error = attempt(read, DataError)
        assert error is None or str(path) in str(error)
        json.dumps(found, ensure_ascii=False).encode()  # as it is written to a table


# --- Archives


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as content:
        for name, data in members.items():
            content.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    return path


@few
@given(st.data())
def test_a_damaged_archive_is_refused_by_name(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("archive")
    whole = archive(folder / "a.zip", {"a/b.txt": b"text " * 20, "c.txt": b"more"}).read_bytes()
    position = data.draw(st.integers(0, len(whole) - 1))
    flipped = whole[:position] + bytes([whole[position] ^ data.draw(st.integers(1, 255))]) + whole[position + 1 :]
    (folder / "a.zip").write_bytes(flipped)
    _, error = attempt(lambda: unpack(folder / "a.zip"), DataError)
    assert error is None or "a.zip" in str(error)
    assert not [path for path in folder.parent.iterdir() if path.name in ("b.txt", "c.txt")]


@pytest.mark.parametrize(
    "names",
    [["../x"], ["/tmp/x"], ["a", "a/b"], ["a/b", "a"], ["a", "a"], ["x" * 300], ["..\\x", "../x"], ["a/../../x"]],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_hostile_archive_is_refused_by_name(tmp_path, names):
    path = tmp_path / "inside" / "a.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as content:
        for name in names:
            content.writestr(name, b"x")
    with pytest.raises(DataError, match=r"a\.zip"):
        unpack(path)
    assert [found.name for found in tmp_path.rglob("*")] == ["inside", "a.zip"]


def test_an_encrypted_archive_and_one_of_an_unknown_compression_are_refused_by_name(tmp_path):
    path = archive(tmp_path / "a.zip", {"a.txt": b"text"})
    whole = path.read_bytes()
    central = whole.index(b"PK\1\2")
    for offset, value in ((8, 1), (10, 99)):  # the flag of encryption; the method
        changed = bytearray(whole)
        changed[central + offset] = value
        path.write_bytes(changed)
        with pytest.raises(DataError, match=r"a\.zip"):
            unpack(path)


# --- Config files

ROOT = Path(__file__).parents[1]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
SCHEMA = yaml.safe_load((ROOT / "workflow/schemas/config.schema.yaml").read_text())
wrong = st.one_of(
    anything, st.sampled_from([[], {}, {1: 2}, [[1]], "nan", math.nan, -1, 10**400, "../x", {"null": None}, b"x", True])
)


def places(value, at=()):
    yield at
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(member, (*at, key))


PLACES = [at for at in places(CONFIG) if at]


@pytest.mark.parametrize("section", sorted(CONFIG))
@pytest.mark.parametrize("value", [3, [], [[1]], True, math.nan])
def test_a_section_of_another_type_is_refused(section, value):
    with pytest.raises(ConfigError, match=rf"^study\.yaml: {section}"):
        resolve({**CONFIG, section: value}, SCHEMA, source="study.yaml")


@settings(few, max_examples=150)
@given(st.sampled_from(PLACES), wrong)
def test_any_value_anywhere_in_a_config_is_taken_or_refused(at, value):
    config = copy.deepcopy(CONFIG)
    inner = config
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = value
    _, error = attempt(lambda: resolve(config, SCHEMA, source="study.yaml"), ConfigError)
    assert error is None or str(error).startswith("study.yaml: ")


@few
@given(anything)
def test_any_config_is_refused(value):
    with pytest.raises(ConfigError, match=r"^study\.yaml: "):
        resolve(value, SCHEMA, source="study.yaml")
