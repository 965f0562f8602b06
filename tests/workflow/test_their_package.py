"""A method, a prompt and a contract of somebody else's installed package: keyed by their code and texts."""

import json
import os
import shutil
import textwrap

import numpy as np
import polars as pl
import pytest

from dualread.artifacts.tensors import read_tensors
from dualread.models import own_pass, prompts
from dualread.models.backbones.checkpoint import open_checkpoint
from tests.workflow.checkout import Checkout

pytestmark = pytest.mark.rest

STUDY = "workflow/studies/micro.yaml theirs.yaml"
FILES = {
    "__init__.py": "",
    "length.py": '''
        """How short an answer is: a method of somebody else."""

        from typing import Annotated

        import numpy as np
        from pydantic import Field

        from dualread.schema.base import Section
        from dualread.readers.base import Answers, FittedReader, Scores
        from their_package.shape import falling


        class Settings(Section):
            """How confidence falls."""

            half: Annotated[int, Field(ge=1)]
            """The number of characters with confidence one half."""


        def score(reader: FittedReader, answers: Answers) -> Scores:
            lengths = answers.table["canonical_answer"].fill_null("").str.len_chars().to_numpy()
            confidence = falling(lengths, reader.settings.half)
            return Scores(score=confidence, confidence=confidence, imputed=np.zeros(len(confidence), dtype=bool))
    ''',
    "shape.py": """
        def falling(length, half):
            return 1 / (1 + length / half)


        def unused():
            return 1
    """,
}
METHOD = """
only: {methods: [rlvr, dualread, length]}
methods:
  length: {label: Length, group: baseline, actor: rlvr, reader: their_package.length, cost: $t$, settings: {half: 3}}
"""


@pytest.fixture(scope="module")
def theirs(micro, tmp_path_factory):
    """The finished micro study with the method, and a function that runs it again."""
    folder = tmp_path_factory.mktemp("theirs")
    for name, text in FILES.items():
        (folder / "site/their_package").mkdir(parents=True, exist_ok=True)
        (folder / "site/their_package" / name).write_text(textwrap.dedent(text))
    shutil.copytree(micro.folder, folder / "checkout", symlinks=True)
    checkout = Checkout(folder=folder / "checkout")
    (checkout.folder / "theirs.yaml").write_text(METHOD)

    def run(*arguments: str):
        path = os.pathsep.join([str(checkout.folder / "lib"), str(folder / "site")])
        words = ["--cores", "2", *arguments, "--configfile", *STUDY.split()]
        return checkout.forked(words, {**os.environ, "PYTHONPATH": path, "HF_HUB_OFFLINE": "1"})

    return folder / "site/their_package", checkout, run


def test_only_its_own_jobs_run_and_an_edit_of_its_package_runs_them_again(theirs):
    package, checkout, run = theirs
    done = run()
    assert done.returncode == 0, done.text
    own = {
        ("fit_readers", "readers/qwen3-vl-tiny/rlvr/17/length"),
        ("score_answers", "predictions/qwen3-vl-tiny/rlvr/17/length"),
    }
    computed = done.entries("computed")
    assert own <= computed
    assert not {stage for stage, _ in computed} & {"train_actor", "generate", "replay", "grade"}
    assert {path for stage, path in computed if stage in ("fit_readers", "score_answers")} == {path for _, path in own}
    row = pl.read_csv(checkout.folder / "tables/main.csv", infer_schema=False).filter(method="length")
    assert len(row)
    predictions = pl.read_parquet(
        checkout.folder / "results/micro/predictions/qwen3-vl-tiny/rlvr/17/length/predictions.parquet"
    )
    assert predictions["confidence"].is_between(0, 1).all()
    assert predictions["confidence"].n_unique() > 1
    assert run().did_nothing()

    shape = package / "shape.py"
    shape.write_text(shape.read_text().replace("return 1\n", "return 2\n"))  # nothing reaches it
    assert not run().computed()
    shape.write_text(shape.read_text().replace("length / half", "2 * length / half"))
    again = run()
    assert again.returncode == 0, again.text
    assert own <= again.entries("computed")
    assert {path for stage, path in again.entries("computed") if stage == "score_answers"} == {
        "predictions/qwen3-vl-tiny/rlvr/17/length"
    }


def test_what_is_not_there_is_named_before_anything_runs(theirs):
    """tests/test_plugins.py has other cases."""
    _, checkout, run = theirs
    wrong = METHOD.replace("their_package.length", "their_package.lenght")
    for text, message in (
        (wrong, "readers: no module 'their_package.lenght' in the packages of"),
        (METHOD.replace("half: 3", "half: 0"), "methods.length.settings.half: 0 is less than the minimum of 1"),
    ):
        (checkout.folder / "theirs.yaml").write_text(text)
        done = run("-n")
        assert done.returncode == 1
        assert message in done.text
    (checkout.folder / "theirs.yaml").write_text(METHOD)


WARD = """
only: {actors: [rlvr, ward], methods: [rlvr, dualread, ward, ward_pre, ward_thought]}
actors:
  ward: {label: Ward, same_as: rlvr, prompt: their_package.prompts.ward, contract: their_package.reasoned}
methods:
  ward: {label: Ward, group: baseline, actor: ward, reader: verbalized, cost: $t$}
  ward_pre: {label: Ward PSR, group: baseline, actor: ward, reader: psr, cost: $t+\\rho$,
             settings: {hidden: [8], learning_rate: 0.01, weight_decay: 0.0, batch_size: 32, max_epochs: 3,
                        patience: 2}}
  ward_thought: {label: Thought, group: baseline, actor: ward, reader: after_thinking, cost: $t+\\rho$,
                 settings: {steps: 20, learning_rate: 0.001, l2: 0.0001}}
"""
PROMPT = "[system]\nYou read images of a hospital.\n\n[user]\n{}"
REASONED = """
from dualread.grading.contracts.single import read_confidence
from dualread.grading.parse import parse_blocks

THINKING_ENDS = "</reasoning>"


def parse(text):
    return parse_blocks(text, read_confidence, THINKING_ENDS)
"""


def test_a_prompt_with_a_system_message_and_thinking_goes_from_generation_to_a_table(theirs):
    package, checkout, run = theirs
    (package / "prompts").mkdir()
    prompt, shared = package / "prompts/ward.txt", prompts.template("shared")
    prompt.write_text(PROMPT.format(shared))
    (package / "reasoned.py").write_text(REASONED)
    (checkout.folder / "theirs.yaml").write_text(WARD)
    done = run()
    assert done.returncode == 0, done.text
    assert not done.computed() & {"train_actor", "pretrain_base"}
    results = checkout.folder / "results/micro"
    shard = "qwen3-vl-tiny/ward/17/slake/test/original"
    completions = pl.read_parquet(results / f"generations/{shard}/generations.parquet")
    features = read_tensors(results / f"features/{shard}/features.safetensors")
    index = pl.read_parquet(results / f"features/{shard}/features.parquet")
    graded = pl.read_parquet(results / f"graded/{shard}/graded.parquet")
    ended = completions["text"].str.contains("</reasoning>")
    assert ended.any()
    assert completions["sample_id"].to_list() == index["sample_id"].to_list() == graded["sample_id"].to_list()
    assert ((graded["parse_status"] == "no_end_of_thinking") == ~ended).all()
    assert (np.isfinite(features["h_think"]).all(axis=1) == ended.to_numpy()).all()
    opened = open_checkpoint(
        results / "actors/qwen3-vl-tiny/rlvr/17/checkpoint",
        json.loads((results / f"features/{shard}/MANIFEST.json").read_text())["spec"]["model"],
    )
    manifest = results / "manifests/slake/test"
    questions = pl.read_parquet(manifest / "manifest.parquet").select("sample_id", "question", "image_files")
    asked = completions.join(questions, on="sample_id", maintain_order="left").iter_rows(named=True)
    rows = zip(asked, features["h_think"], strict=True)
    for row, state in [(row, state) for row, state in rows if np.isfinite(state).all()][:3]:
        last = [{"type": "image", "image": str(manifest / row["image_files"][0])}]
        last.append({"type": "text", "text": shared.replace("{QUESTION}", row["question"])})
        said = [{"type": "text", "text": "You read images of a hospital."}]
        inputs = opened.encoder.processor.apply_chat_template(
            [{"role": "system", "content": said}, {"role": "user", "content": last}],
            **{"tokenize": True, "return_dict": True, "add_generation_prompt": True, "return_tensors": "pt"},
        )
        output = own_pass.read(opened.model, inputs, row["token_ids"], 0, output_hidden_states=True)
        n = inputs["input_ids"].shape[1]
        texts = [opened.encoder.decode(row["token_ids"][: t + 1]) for t in range(len(row["token_ids"]))]
        at = next(t for t, text in enumerate(texts) if text.count("</reasoning>") == texts[-1].count("</reasoning>"))
        np.testing.assert_allclose(state, output.hidden_states[-1][0, n + at].detach().numpy(), atol=1e-4)
    table = pl.read_csv(checkout.folder / "tables/main.csv", infer_schema=False)
    assert {"ward", "ward_pre", "ward_thought"} <= set(table["method"])
    predictions = pl.read_parquet(results / "predictions/qwen3-vl-tiny/ward/17/ward_thought/predictions.parquet")
    assert predictions.height == 0 or predictions["confidence"].n_unique() > 1
    assert run().did_nothing()

    prompt.write_text(PROMPT.format(shared).replace("hospital", "clinic"))
    again = " ".join(run("-n").jobs())
    assert "generate" in again
    assert not any(stage in again for stage in ("train_actor", "pretrain_base", "build_manifest"))
    prompt.write_text("[system]\n[user]\n{QUESTION}")
    assert "the part [system] is empty" in run("-n").text
