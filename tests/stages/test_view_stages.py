"""Views, from the actor to what a reader gets, on phantoms and an untrained checkpoint."""

import shutil

import numpy as np
import polars as pl
import pytest
import torch

from dualread.artifacts.tables import read_table, write_table
from dualread.artifacts.tensors import read_tensors
from dualread.errors import ArtifactError, ConfigError
from dualread.models import prompts
from dualread.readers.base import COLUMNS, Answers
from dualread.schema.answers import Choices
from dualread.schema.columns import CHOICES, FEATURES, GENERATIONS, MANIFEST, PAIRS
from dualread.stages import generate, replay
from dualread.stages._views import read_views
from tests import specs
from tests.stages.test_model_stages import answer

P_TRUE = {
    **{"prompt": specs.prompt("p_true"), "answer_contract": specs.contract()},
    **{"choices": Choices(words=["a", "b"]), "decoding": None},
}
INTEGERS = {"choices": Choices(integers=[0, 100]), "decoding": None}
SAMPLED = specs.decoding(temperature=1.0, n_samples=3, max_completion_tokens=6)


@pytest.fixture(scope="module")
def tiny(study):
    return study.tiny


@pytest.fixture
def answered(tiny, hospital, tmp_path):
    """Inputs of a view of the donor answers; every other completion holds a valid answer, the others hold none."""
    shutil.copytree(tiny.checkpoint, tmp_path / "actor" / "checkpoint")
    inputs = answer(tiny, tmp_path / "actor", hospital, tmp_path, "donor")
    path = tmp_path / "generations" / "generations.parquet"
    rows = read_table(path, GENERATIONS).to_dicts()
    tokenizer = tiny.load()[1].tokenizer
    for i, row in enumerate(rows):
        answer_of_row = f"<answer>left {row['sample_id'][-1]}</answer><confidence>42</confidence>"
        row["text"] = "no answer" if i % 2 else answer_of_row
        row["token_ids"] = tokenizer(row["text"], add_special_tokens=False)["input_ids"]
        row["token_log_probs"] = [0.0] * len(row["token_ids"])
    write_table(path, pl.DataFrame(rows, schema={k: c.dtype for k, c in GENERATIONS.columns.items()}), GENERATIONS)
    return inputs


@pytest.fixture
def view(tiny, answered, tmp_path):
    def make(stage, name, **changes):
        shard = specs.shard(**{"condition": f"donor/{name}", "image": "donor"} | changes)
        spec_of = {generate: specs.generate, replay: specs.replay}[stage]
        (tmp_path / name).mkdir()
        stage.compute(spec_of(shard), answered, tmp_path / name)
        return tmp_path / name

    return make


def answers_of(inputs):
    ids = read_table(inputs["generations"] / "generations.parquet", GENERATIONS)["sample_id"]
    values = {"sample_id": ids, "condition": "donor"}
    table = pl.DataFrame({name: values.get(name, pl.Series([""] * len(ids))) for name in COLUMNS})
    return Answers(table=table, source={}.__getitem__, rows=np.arange(len(ids)))


def test_p_true_against_a_direct_forward_pass(tiny, answered, view, hospital):
    """The first token behind the prompt with the committed answer and the donor's image; spellings are added."""
    made = view(generate, "p_true", **P_TRUE)
    found = read_table(made / "choices.parquet", CHOICES)
    committed = read_table(answered["generations"] / "generations.parquet", GENERATIONS)
    valid = committed.filter(pl.col("text").str.contains("<answer>left"))
    assert found["sample_id"].unique(maintain_order=True).to_list() == valid["sample_id"].to_list()  # others: not asked
    model, encoder = tiny.load()
    manifest = read_table(hospital["manifest"] / "manifest.parquet", MANIFEST)
    files = dict(manifest.select("image_id", pl.col("image_files").list.first()).iter_rows())
    questions = dict(manifest.select("sample_id", "question").iter_rows())
    single = {
        word: [encoder.tokenizer(w, add_special_tokens=False)["input_ids"] for w in words]
        for word, words in {"a": ["a", "A", " a", " A"], "b": ["b", "B", " b", " B"]}.items()
    }
    for row in valid.iter_rows(named=True):
        text = prompts.render("p_true", question=questions[row["sample_id"]], answer=f"left {row['sample_id'][-1]}")
        image = hospital["manifest"] / files[row["image_id"]]
        prompt = encoder.prompt(text, images=[image], row="")
        with torch.inference_mode():
            states = model.model(**encoder.batch([prompt]), **encoder.shared_images(model, [prompt])).last_hidden_state
            first = torch.softmax(model.lm_head(states[0, -1]).double(), -1)
        expected = {word: sum(float(first[ids[0]]) for ids in of if len(ids) == 1) for word, of in single.items()}
        got = dict(found.filter(pl.col("sample_id") == row["sample_id"]).select("choice", "log_prob").iter_rows())
        for word, probability in expected.items():
            assert got[word] == pytest.approx(np.log(probability), abs=1e-4)
    assert found["condition"].unique().to_list() == ["donor/p_true"]


def test_views_reach_a_reader_in_the_order_of_its_answers(answered, view):
    folders = {
        "stated": view(generate, "stated", **INTEGERS),
        "samples": view(generate, "samples", decoding=SAMPLED),
        "p_true": view(generate, "p_true", **P_TRUE),
    }
    answers = answers_of(answered)
    order = np.random.default_rng(0).permutation(len(answers))
    stated, samples, p_true = read_views(("stated", "samples", "p_true"), folders, answers.take(order), where="here")
    ids = answers.table["sample_id"].gather(order).to_list()
    generations = read_table(folders["samples"] / "generations.parquet", GENERATIONS)
    for i, texts in zip(ids, samples.completions(), strict=True):
        assert list(texts) == generations.filter(pl.col("sample_id") == i).sort("sample_index")["text"].to_list()
    for i, log_probs in zip(ids, samples.completion_log_probs(), strict=True):
        own = generations.filter(pl.col("sample_id") == i).sort("sample_index")["token_log_probs"].to_list()
        assert [of.tolist() for of in log_probs] == own
    choices = read_table(folders["stated"] / "choices.parquet", CHOICES)
    seven = dict(choices.filter(pl.col("choice") == "7").select("sample_id", "log_prob").iter_rows())
    assert stated.choices()["7"].tolist() == [seven[i] for i in ids]
    assert set(stated.choices()) == {str(n) for n in range(101)}
    asked = set(read_table(folders["p_true"] / "choices.parquet", CHOICES)["sample_id"])
    assert np.isnan(p_true.choices()["a"]).tolist() == [i not in asked for i in ids]
    assert 0 < len(asked) < len(ids)
    with pytest.raises(ConfigError, match=r"views\.samples: gives no choices"):
        samples.choices()


def test_a_black_view_differs_where_the_image_counts(answered, view, monkeypatch):
    monkeypatch.setattr(replay, "artifact_digest", lambda path: "digest of the actor")
    black = view(replay, "black", image="black", shows="donor", completions="donor")
    (state,) = read_views(("black",), {"black": black}, answers_of(answered), where="here")
    real = view(replay, "real", completions="donor")
    own = read_tensors(real / "features.safetensors")
    assert state.features("h_pre").shape == own["h_pre"].shape
    assert np.abs(state.features("h_pre") - own["h_pre"]).max() > 1e-3
    # One size of images: every black one is the same, so what the image tokens hold is too.
    assert np.ptp(state.features("h_global"), axis=0).max() < 1e-4 < np.ptp(own["h_global"], axis=0).max()


def test_a_view_of_layers_or_with_a_measure_has_these_alone(answered, view, monkeypatch):
    monkeypatch.setattr(replay, "artifact_digest", lambda path: "digest of the actor")
    shown = {"image": "original", "shows": "donor", "completions": "donor"}
    layers = view(replay, "layers", **shown, layers=(0.5, 1.0))
    (state,) = read_views(("layers",), {"layers": layers}, answers_of(answered), where="here")
    real = read_tensors(view(replay, "real", completions="donor") / "features.safetensors")
    assert set(read_tensors(layers / "features.safetensors")) == {"h_ans_at_0.5", "h_ans_at_1"}
    np.testing.assert_allclose(state.features("h_ans_at_1"), real["h_ans"], atol=1e-5)
    assert np.abs(state.features("h_ans_at_0.5") - real["h_ans"]).max() > 1e-2
    measure = specs.measure("hidden_core", share=0.5, from_depth=0.25, to_depth=0.75)
    core = view(replay, "core", **shown, measure=measure)
    (found,) = read_views(("core",), {"core": core}, answers_of(answered), where="here")
    assert set(read_tensors(core / "features.safetensors")) == {"entropy", "entropy_hidden"}
    entropies = read_table(core / "features.parquet", FEATURES)  # the index is that of every replay
    assert len(entropies) == len(found.features("entropy")) > 0
    assert (found.features("entropy") > 0).all()
    assert np.abs(found.features("entropy_hidden") - found.features("entropy")).max() > 0


def test_a_view_of_other_answers_is_refused(answered, view):
    folder = view(generate, "samples", decoding=SAMPLED)
    answers = answers_of(answered)
    with pytest.raises(ArtifactError, match=r"here: view samples: has \d+ rows without an answer"):
        read_views(("samples",), {"samples": folder}, answers.take(np.array([0])), where="here")
    with pytest.raises(ConfigError, match="here: the reader reads the view samples, but there is no input for it"):
        read_views(("samples",), {}, answers, where="here")


def test_the_choices_of_a_question_without_an_answer_cannot_be_scored(answered, view, hospital):
    path = answered["generations"] / "generations.parquet"
    pairs = read_table(hospital["pairs"] / "pairs.parquet", PAIRS)
    write_table(path, read_table(path, GENERATIONS).head(1), GENERATIONS)
    with pytest.raises(ArtifactError, match=rf"donor/stated: {len(pairs) - 1} questions without an answer"):
        view(generate, "stated", **INTEGERS)


def test_each_draw_is_asked_about_a_picture_of_its_own(answered, view, hospital):
    """Three draws of two samples each: the same prompts, other pictures, and other samples."""
    noise = specs.image("noise", strength=1.0)
    asked = {"image": noise, "shows": "donor", "decoding": specs.decoding(temperature=1.0, n_samples=2)}
    drawn = read_table(view(generate, "drawn", **asked, draws=3) / "generations.parquet", GENERATIONS)
    once = read_table(view(generate, "once", **asked) / "generations.parquet", GENERATIONS)
    names = read_table(hospital["pairs"] / "pairs.parquet", PAIRS)["sample_id"]
    assert drawn.sort("sample_id", "sample_index").select("sample_id", "sample_index").rows() == [
        (name, index) for name in sorted(names) for index in range(6)
    ]
    assert once.group_by("sample_id").len()["len"].to_list() == [2] * len(names)
    prompts_of = drawn.group_by("sample_id").agg(pl.col("prompt_sha256").n_unique())
    assert set(prompts_of["prompt_sha256"]) == {1}
    first, second = (drawn.filter(pl.col("sample_index") == index).sort("sample_id") for index in (0, 2))
    assert first["token_log_probs"].to_list() != second["token_log_probs"].to_list()
