"""A method of somebody else's installed package: keyed by its code, and known by the name of its module."""

import os
import shutil
import textwrap

import polars as pl
import pytest

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
