"""The plan of a study beside the records of its results."""

import pytest

from dualread.commands.plan.measured import comparison
from dualread.errors import ConfigError
from dualread.store.store import Store
from dualread.study.config import resolve
from tests.commands.plan.test_report import row
from tests.store.entries import publish
from tests.study.embedded import EMBEDDED, merged

# One backbone and one actor, of three seeds.
ONLY = {"only": {"backbones": ["qwen3-vl-tiny"], "actors": ["rlvr"], "methods": ["rlvr"]}}


@pytest.fixture
def lines(tmp_path):
    """Return the lines after some artifacts were made: {name: (stage, spec, what the record has)}."""

    def of(made):
        config, store = resolve(merged(EMBEDDED, ONLY)), Store(tmp_path / "results/store")
        for name, (stage, spec, record) in made.items():
            output = tmp_path / "results/embedded" / name
            publish(store, stage, {"a": name}, spec={**spec, "of": name}, output=output, **record)
        return list(comparison(config, root=tmp_path))

    return of


def test_times_are_those_of_all_gpus_and_a_part_is_compared_with_its_part_of_the_plan(lines):
    settings = {"processes": 2, "rollout_gpus": 2}
    found = lines(
        {
            "a": (
                "train_actor",
                {"settings": settings},
                {"seconds": 10.0, "peak_memory_mb": 700.0, "peak_gpu_memory_mb": 9e3},
            ),
            "b": ("train_actor", {"settings": {}}, {"seconds": 5.0, "peak_memory_mb": 600.0}),
            "c": ("grade", {}, {"seconds": 4.0}),
            "d": ("grade", {}, {"seconds": 0.0}),
        }
    )
    # 10 s on 2 x (1 + 2) GPUs and 5 s on one. Each of three trainings is planned with 6 s to start and 8 steps of 4 x 8
    # completions of 0.024 s, 12.144 s: 65 / (2 x 12.144) = 2.68
    assert row(found, "train_actor") == ["3", "2", "36.4", "s", "65.0", "s", "2.68", "700", "MB", "9,000", "MB"]
    assert row(found, "grade")[1] == "2"
    assert row(found, "grade")[4:6] == ["4.0", "s"]
    assert row(found, "grade")[-2:] == ["-", "-"]  # nobody recorded its memory
    assert row(found, "score_answers")[1] == "-"
    assert row(found, "score_answers")[-4:] == ["-"] * 4
    planned = 2 * 12.144 + float(row(found, "grade")[2])
    assert row(found, "what", "was", "measured") == [f"{planned:.1f}", "s", "69.0", "s", f"{69 / planned:.2f}"]


def test_a_study_without_results_is_refused(lines):
    with pytest.raises(ConfigError, match="results/embedded: no results"):
        lines({})
