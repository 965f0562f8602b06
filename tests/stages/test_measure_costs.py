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


def measure(root, *, features=(), read=None, states=None, **views):
    inputs = {
        "generations": completions(root / "generations", [[3], [5]]),
        "reader": reader(root / "reader", list(features)),
        **{f"view/{name}": view for name, view in views.items()},
    }
    (root / "out").mkdir()
    line = measure_costs.compute(changed(SPEC, samples=read or {}, states=states), inputs, root / "out")
    return line, read_table(root / "out" / "costs.parquet", COSTS)


def counts(table):
    names = ("completions", "prompt_passes", "prompt_only_passes", "replay_passes", "read_tokens", "generated_tokens")
    return table.select(names).row(0)


def test_the_stated_confidence_costs_the_answer_alone(tmp_path):
    line, found = measure(tmp_path)
    assert found.select(*RUN, "dataset", "split", "answers").row(0) == (*RUN.values(), "slake", "test", 2)
    assert counts(found) == (1, 1, 0, 0, 10, 4)  # (3 + 5) / 2 tokens
    assert line.startswith("read 2 answers of tiny/rlvr/17/sc2; each: completions 1.0, prompt passes 1.0")


def test_states_cost_a_replay(tmp_path):
    # prompt 10, then 10 + (3 + 5) / 2 again
    assert counts(measure(tmp_path, features=["h_close", "h_pre"])[1]) == (1, 1, 0, 1, 24, 4)


def test_states_of_the_pass_that_answers_cost_nothing_and_views_cost_what_they_did(tmp_path):
    samples = completions(tmp_path / "samples", [[2, 4], [6, 8]])
    _, found = measure(tmp_path, features=["h_close", "h_pre"], states="generation", samples=samples)
    assert counts(found) == (3, 2, 0, 0, 20, 14)  # prompts of 10 for answer and samples; (3 + 5 + 2 + 4 + 6 + 8) / 2


def test_a_method_pays_for_the_samples_that_it_uses_and_for_the_greedy_answer(tmp_path):
    samples = completions(tmp_path / "samples", [[2, 4, 99], [6, 8, 99]])
    _, found = measure(tmp_path, read={"samples": 2}, samples=samples)
    assert counts(found) == (3, 2, 0, 0, 20, 14)  # (3 + 5 + 2 + 4 + 6 + 8) / 2


def test_views_add_up_and_choices_generate_nothing(tmp_path):
    choices = tmp_path / "choices"
    choices.mkdir()
    rows = [
        {"sample_id": name, "condition": "p_true", "choice": choice, "log_prob": -1.0, "n_prompt_tokens": 12}
        for name in IDS
        for choice in ("Yes", "No")
    ]
    pl.DataFrame(rows).write_parquet(choices / "choices.parquet")
    views = {f"ensemble_{k}": completions(tmp_path / f"e{k}", [[1], [1]], n_prompt_tokens=11) for k in (1, 2)}
    _, found = measure(tmp_path, p_true=choices, **views)
    assert counts(found) == (3, 4, 1, 0, 10 + 12 + 11 + 11, 4 + 1 + 1)


def test_what_does_not_fit_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match=r"tiny/rlvr/17/sc2: view/x: .*no generations, choices or features"):
        measure(tmp_path / "a", x=tmp_path / "empty")
    with pytest.raises(ArtifactError, match=r"view/samples: 4 completions of 2 answers, expected 8 of each"):
        measure(tmp_path / "b", read={"samples": 8}, samples=completions(tmp_path / "s", [[1, 1], [1, 1]]))
