"""However a log is damaged or written by another version, it is evaluated, or refused in one sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import dualread
from dualread.errors import DualReadError
from tests.data.logs.archive import HEADER, sample

MADE = Path(__file__).parents[1] / "data/logs/made"
VALUES = st.one_of(
    *(st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.text(max_size=5), st.just("<answer>yes</answer>")),
    st.just("\ud800"),
    *(st.just([]), st.just({}), st.just([["1", "True"]]), st.just([None]), st.just({"a": {"b": None}})),
)


def lines(name: str) -> list[Any]:
    return [json.loads(line) for line in (MADE / name).read_text().splitlines()]


LOGS: dict[str, tuple[str, str, list[Any]]] = {
    "inspect": (
        *("a.json", "match"),
        [
            sample(
                *(name, f"<answer>{name}</answer><confidence>80</confidence>"),
                scores={"match": {"value": "C", "answer": name}},
                input=[
                    {"role": "user", "content": [{"type": "image", "image": "a.png"}, {"type": "text", "text": "?"}]}
                ],
            )
            for name in ("yes", "no")
        ],
    ),
    "lm-eval": ("a.jsonl", "acc", lines("samples_organs.jsonl")),
    "lmms-eval": ("a.jsonl", "exact", lines("20261124_samples_lesions.jsonl")),
    "vlmevalkit": (
        *("a.json", "hit"),
        [
            {"index": k, "prediction": "<answer>a</answer><confidence>9</confidence>", "hit": k, "answer": "a"}
            for k in (0, 1)
        ],
    ),
}


def places(value: Any, path: tuple = ()) -> list[tuple]:
    """The path of every value inside `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def replaced(value: Any, path: tuple, other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


@pytest.mark.parametrize("harness", LOGS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_log_with_any_value_is_evaluated_or_refused(tmp_path, harness, data):
    name, score, records = LOGS[harness]
    path = data.draw(st.sampled_from(places(records)))
    changed = replaced(records, path, data.draw(VALUES))
    whole = {**HEADER, "samples": changed} if harness == "inspect" else changed
    is_lines = name.endswith("l") and isinstance(whole, list)
    text = "".join(json.dumps(one) + "\n" for one in whole) if is_lines else json.dumps(whole)
    (tmp_path / name).write_text(text)
    try:
        found = dualread.evaluate(tmp_path / name, log_format=harness, score=score, replicates=0)
    except DualReadError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017
    else:
        answers = sum(len(evaluated.answers) for cells in found.parts for evaluated in cells.methods.values())
        assert answers > 0
