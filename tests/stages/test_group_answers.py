"""Stage group_answers, from samples to the groups that readers see."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from dualread.artifacts.tables import read_table
from dualread.models.meaning import embeddings, entailments
from dualread.readers.groups import sample_groups
from dualread.readers.join import join_answers
from dualread.schema.base import Place
from dualread.schema.columns import GRADED, GROUPS, MANIFEST
from dualread.schema.groups import GroupAnswersSpec, Groups
from dualread.stages import group_answers
from dualread.stages._views import read_views
from tests import meaning
from tests.stages import shards

WORDS = ("left lung", "upper left lung", "liver", "heart")
TABLES = {"manifest": MANIFEST, "graded": GRADED}
VALUES = {"entailment": 1.0, "neutral": 0.5, "contradiction": 0.0}


@pytest.fixture
def inputs(tmp_path):
    rows = shards.manifest_rows(3, split="test", roles=("test",))
    ids = [row["sample_id"] for row in rows]
    samples = {ids[0]: [*WORDS, "left lung", None], ids[1]: [WORDS[2], WORDS[3]] * 3, ids[2]: [WORDS[0]] * 6}
    texts = {i: [f"<answer>{text}</answer>" if text else "" for text in samples[i]] for i in ids}
    made = [
        shards.generation(i, text, image_id="image", condition="original/samples", sample_index=k)
        for i in ids
        for k, text in enumerate(texts[i])
    ]
    graded = [row | {"canonical_answer": "heart"} for row in shards.graded_rows(rows, np.ones(3))]
    return {
        "manifest": shards.write(tmp_path / "manifest", "manifest", rows),
        "graded": shards.write(tmp_path / "graded", "graded", graded),
        "view/samples": shards.write(tmp_path / "samples", "generations", made),
    }


def made(inputs, folder, out, **grouping):
    groups = Groups(of=["samples"], source=Place(folder=str(folder)), **grouping)
    spec = GroupAnswersSpec(dataset="slake", split="test", condition="original/meaning", groups=groups)
    out.mkdir()
    summary = group_answers.compute(spec, {**inputs, "source": folder}, out)
    return read_table(out / "groups.parquet", GROUPS), summary


@pytest.mark.parametrize(("neutral", "with_question"), [(False, True), (True, False)])
def test_by_entailment_in_both_directions(inputs, tmp_path, neutral, with_question):
    folder = meaning.classifier(tmp_path / "nli")
    found, summary = made(
        inputs, folder, tmp_path / "out", by="entailment", neutral=neutral, with_question=with_question
    )
    questions = [row["question"] for row in shards.manifest_rows(3, split="test", roles=("test",))]
    answers = [[*WORDS], ["heart", "liver"], ["heart", "left lung"]]  # with the committed one
    expected = []
    for number, (question, of_one) in enumerate(zip(questions, answers, strict=True)):
        before = f"{question} " if with_question else ""
        for one, other in itertools.combinations(sorted(of_one), 2):
            both = [(before + one, before + other), (before + other, before + one)]
            classes = [entailments(folder, [pair])[0] for pair in both]
            same = "contradiction" not in classes and classes.count("neutral") < (2 if neutral else 1)
            expected.append((f"slake/test/{number:04d}", one, other, sum(map(VALUES.get, classes)) / 2, same))
    assert found.rows() == expected
    assert f"{found['same'].sum()} of 8 are the same" in summary


def test_by_embedding_and_what_a_reader_sees(inputs, tmp_path):
    folder = meaning.encoder(tmp_path / "encoder")
    vectors = embeddings(folder, ["liver", "heart"])
    cosine = round(float(vectors[0] @ vectors[1]), 5)
    for threshold, groups in ((cosine, ["liver"] * 6), (cosine + 1e-5, ["liver", "heart"] * 3)):
        grouping = {"by": "embedding", "threshold": threshold, "with_question": False}
        found, _ = made(inputs, folder, tmp_path / f"out {threshold}", **grouping)
        assert found.filter(sample_id="slake/test/0001")["similarity"].to_list() == [cosine]
        tables = (read_table(inputs[name] / f"{name}.parquet", schema) for name, schema in TABLES.items())
        answers = join_answers(*(table.drop("correct", strict=False) for table in tables), None, {}.get, where="here")
        folders = {"samples": inputs["view/samples"], "meaning": tmp_path / f"out {threshold}"}
        seen = replace(answers, views=read_views(("samples", "meaning"), folders, answers, where="here"))
        assert sample_groups(seen, 6)[1:] == [groups, ["left lung"] * 6]
