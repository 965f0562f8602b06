import polars as pl
import pytest

from dualread.artifacts.tables import read_table
from dualread.errors import ArtifactError
from dualread.readers.artifact import save_reader
from dualread.readers.base import FittedReader, Weights
from dualread.schema.base import NoSettings
from dualread.schema.columns import COSTS
from dualread.schema.metrics import MeasureCostsSpec
from dualread.stages import measure_costs
from tests.specs import changed
from tests.stages import shards

RUN = {"backbone": "tiny", "actor": "rlvr", "seed": 17, "method": "sc2"}
SPEC = MeasureCostsSpec(**RUN, dataset="slake", split="test", samples={})
IDS = ("slake/test/0", "slake/test/1")


def completions(folder, lengths, *, n_prompt_tokens=10):
    """Write completions with these numbers of tokens, one list an answer."""
    rows = [
        {
            **shards.generation(name, "", image_id="i", sample_index=k),
            "n_prompt_tokens": n_prompt_tokens,
            "token_ids": [7] * n,
        }
        for name, of_answer in zip(IDS, lengths, strict=True)
        for k, n in enumerate(of_answer)
    ]
    return shards.write(folder, "generations", rows)


def reader(folder, features, **changes):
    folder.mkdir(parents=True)
    provenance = {**RUN, "features": features, **changes}
    fitted = FittedReader(module="readers.verbalized", settings=NoSettings(), weights=Weights(), provenance=provenance)
    save_reader(folder / "reader.safetensors", fitted)
    return folder


def choices(folder):
    """Write the log-probabilities of two words for each answer."""
    folder.mkdir()
    rows = [
        {"sample_id": name, "condition": "p_true", "choice": choice, "log_prob": -1.0, "n_prompt_tokens": 12}
        for name in IDS
        for choice in ("Yes", "No")
    ]
    pl.DataFrame(rows).write_parquet(folder / "choices.parquet")
    return folder


def measure(root, *, features=(), read=None, states=None, **views):
    inputs = {
        "generations": completions(root / "generations", [[3], [5]]),
        "reader": reader(root / "reader", list(features)),
        **{f"view/{name}": view for name, view in views.items()},
    }
    (root / "out").mkdir()
    line = measure_costs.compute(changed(SPEC, samples=read or {}, states=states), inputs, root / "out")
    return line, read_table(root / "out" / "costs.parquet", COSTS)


NAMES = ("completions", "prompt_passes", "prompt_only_passes", "replay_passes", "read_tokens", "generated_tokens")
STATES = {"features": ["h_close", "h_pre"]}
# What a method reads, and its costs per answer: of prompts of 10 tokens and answers of 3 and 5, which are 4 on average.
CASES = {
    "states cost a replay": (STATES, lambda root: {}, (1, 1, 0, 1, 10 + 10 + 4, 4)),
    "states of the pass that answers cost nothing": (
        {**STATES, "states": "generation"},
        lambda root: {"samples": completions(root / "samples", [[2, 4], [6, 8]])},
        (3, 2, 0, 0, 20, 14),  # (3 + 5 + 2 + 4 + 6 + 8) / 2
    ),
    "a method pays for the samples that it uses": (
        {"read": {"samples": 2}},
        lambda root: {"samples": completions(root / "samples", [[2, 4, 99], [6, 8, 99]])},
        (3, 2, 0, 0, 20, 14),
    ),
    "views add up, and choices generate nothing": (
        {},
        lambda root: {
            "p_true": choices(root / "choices"),
            **{f"e{k}": completions(root / f"e{k}", [[1], [1]], n_prompt_tokens=11) for k in (1, 2)},
        },
        (3, 4, 1, 0, 10 + 12 + 11 + 11, 4 + 1 + 1),
    ),
}


@pytest.mark.parametrize(("told", "views", "expected"), CASES.values(), ids=CASES)
def test_costs_by_hand(tmp_path, told, views, expected):
    assert measure(tmp_path, **told, **views(tmp_path))[1].select(NAMES).row(0) == expected


def test_the_stated_confidence_costs_the_answer_alone(tmp_path):
    line, found = measure(tmp_path)
    assert found.select(*RUN, "dataset", "split", "answers").row(0) == (*RUN.values(), "slake", "test", 2)
    assert found.select(NAMES).row(0) == (1, 1, 0, 0, 10, 4)
    assert line.startswith("read 2 answers of tiny/rlvr/17/sc2; each: completions 1.0, prompt passes 1.0")


def test_what_does_not_fit_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match=r"tiny/rlvr/17/sc2: view/x: .*no generations, choices or features"):
        measure(tmp_path / "a", x=tmp_path / "empty")
    with pytest.raises(ArtifactError, match=r"view/samples: 4 completions of 2 answers, expected 8 of each"):
        measure(tmp_path / "b", read={"samples": 8}, samples=completions(tmp_path / "s", [[1, 1], [1, 1]]))
