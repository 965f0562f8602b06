"""bundle.json and thresholds.json of others: no NaN, no type and no name that was not expected (D8)."""

import json
from dataclasses import replace

import pytest

from dualread.apps.score.bundle import Bundle, read_bundle, write_bundle
from dualread.errors import ArtifactError
from dualread.evaluation.thresholds import Threshold
from tests.specs import changed

GOOD = Threshold(method="psr", rule="empirical", target_risk_percent=10, value=0.5, reason=None)
BUNDLE = Bundle(
    format=1,
    **{"study": "s", "backbone": "b", "actor": "a", "seed": 1, "method": "psr"},
    readers={"psr": "0"},
    scoring={},
    thresholds=[GOOD],
)


@pytest.fixture
def folder(tmp_path):
    write_bundle(tmp_path, BUNDLE)
    return tmp_path


def test_what_was_written_is_read(folder):
    assert (list(read_bundle(folder).thresholds), read_bundle(folder).method) == ([GOOD], "psr")
    ends = [replace(GOOD, value=0.0), replace(GOOD, value=1.0)]
    write_bundle(folder, changed(BUNDLE, thresholds=ends))
    assert list(read_bundle(folder).thresholds) == ends


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[", "7", "null", '"text"', "[" * 100_000, "[1]", "[{}]", "[null]", "\xff"),
        *(
            json.dumps([{**vars(GOOD), name: value}])
            for name, value in (
                *(("value", value) for value in (float("nan"), float("inf"), -0.1, 1.1, "0.5", True, [], 10**400)),
                *(("target_risk_percent", value) for value in ("10", None, 1.5)),
                *(("method", value) for value in (None, 1, [])),
                *(("reason", value) for value in (1, [])),
                ("more", 1),
            )
        ),
    ],
)
def test_a_wrong_threshold_is_refused_in_a_sentence(folder, text):
    (folder / "thresholds.json").write_text(text, encoding="latin-1")
    with pytest.raises(ArtifactError, match=r"bundle.json or thresholds.json cannot be read"):
        read_bundle(folder)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("readers", {"../../x": "0"}),
        ("readers", {"/etc/passwd": "0"}),
        ("readers", []),
        ("readers", {"psr": 1}),
        ("seed", "1"),
        ("method", None),
        ("scoring", "x"),
        ("format", 9),
        ("more", 1),
    ],
)
def test_a_wrong_bundle_is_refused_in_a_sentence(folder, name, value):
    file = folder / "bundle.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), name: value}))
    with pytest.raises(ArtifactError, match=r"bundle.json or thresholds.json cannot be read"):
        read_bundle(folder)
