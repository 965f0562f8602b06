"""The battery tells an actor that looks at the image from one that does not, from the question to the metrics.

Two actors are played. One knows the images of the split by their pixels, and the right answer about each: what it does
not recognize it calls unclear, with a confidence of 10. The other has the question alone, and always says the same to
it. All images that the conditions show come from the stages themselves.
"""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from dualread.artifacts.tables import read_table
from dualread.data.images import open_image, pixel_sha256
from dualread.evaluation.conditions import condition_rows
from dualread.evaluation.join import join
from dualread.evaluation.statistics.bootstrap import ClusterDraws
from dualread.grading.canonical import question_key
from dualread.models.actor import Completion
from dualread.schema.answers import GradeSpec
from dualread.schema.columns import GRADED, MANIFEST, PAIRS
from dualread.stages import generate, grade
from tests import specs

CONDITIONS = {
    **{"original": "original", "donor": "donor", "no_image": "none", "black": "black"},
    **{"other_image": "shuffled", "blurred": specs.image("blur", strength=1.0)},
    **{"hidden": specs.image("hidden_patches", strength=0.75), "misled": "original"},
}
SAID = "<answer>{}</answer><confidence>{}</confidence>"
UNCLEAR = ("unclear", 10)


class Looks:
    """Recognizes an image by its pixels, and knows the answers about it."""

    encoder = SimpleNamespace(tokenizer=None)

    def __init__(self, manifest: Path, rows: pl.DataFrame):
        self._known = {}
        for key, file, [answer, *_] in rows.select(
            "question_key", pl.col("image_files").list.first(), "reference_answers"
        ).iter_rows():
            self._known[key, pixel_sha256(open_image(manifest / file))] = (answer, 90)

    def answer(self, requests, decoding, **more):
        return [[self._completion(*self.said(request))] for request in requests]

    def said(self, request):
        if not request.images:
            return UNCLEAR
        [image] = [image() if callable(image) else image for image in request.images]
        shown = open_image(image) if isinstance(image, Path) else image
        return self._known.get((asked(request.text), pixel_sha256(shown)), UNCLEAR)

    @staticmethod
    def _completion(answer, confidence):
        text = SAID.format(answer, confidence)
        return Completion(
            prompt_token_ids=[1], token_ids=[2], token_log_probs=[-0.1], text=text, finish_reason="stop", states=None
        )


class DoesNotLook(Looks):
    """Gives the most frequent answer to the question."""

    def __init__(self, manifest: Path, rows: pl.DataFrame):
        found = {}
        for key, [answer, *_] in rows.select("question_key", "reference_answers").iter_rows():
            found.setdefault(key, Counter())[answer] += 1
        self._usual = {key: answers.most_common(1)[0][0] for key, answers in found.items()}

    def said(self, request):
        key = asked(request.text)
        return self._usual[key], 60 + len(key) % 30


def asked(text):
    """The question in a prompt."""
    question = text.rpartition("Question: ")[2].partition("\n")[0]
    return question_key(question)


@pytest.fixture
def battery(hospital, tmp_path, monkeypatch):
    rows = read_table(hospital["manifest"] / "manifest.parquet", MANIFEST)

    def of(actor):
        engine = actor(hospital["manifest"], rows)
        monkeypatch.setattr(generate, "loaded_engine", lambda *arguments: engine)
        monkeypatch.setattr(generate, "refuse_control_tokens", lambda *arguments: None)
        graded = {name: under(name, image) for name, image in CONDITIONS.items()}
        joined = join(
            where="slake/test",
            manifest=rows,
            pairs=read_table(hospital["pairs"] / "pairs.parquet", PAIRS),
            predictions={
                name: frame.select("sample_id", confidence="verbalized_confidence", imputed=pl.lit(False))
                for name, frame in graded.items()
            },
            graded=graded,
        )
        draws = ClusterDraws(names=(), cluster_ids=tuple(sorted(rows["image_id"].unique())), replicates=200)
        found = condition_rows(joined.conditions, draws)
        return {(row["subset"].removeprefix("condition:"), row["metric"]): row for row in found}

    def under(name, image):
        shard = specs.shard(name, image=image, **({"prompt": specs.prompt("misled")} if name == "misled" else {}))
        inputs = {**hospital, "actor": tmp_path, "facts": specs.facts()}
        made = {stage: tmp_path / f"{name}-{stage}" for stage in ("generations", "graded")}
        for folder in made.values():
            folder.mkdir(exist_ok=True)
        generate.compute(specs.generate(shard), inputs, made["generations"])
        how = GradeSpec(backbone="tiny", actor="base", seed=0, contract=specs.contract(), dataset="slake", split="test",
                        condition=name, image=specs.image(image))  # fmt: skip
        grade.compute(how, {**hospital, "generations": made["generations"]}, made["graded"])
        return read_table(made["graded"] / "graded.parquet", GRADED)

    return of


def test_an_actor_that_looks_loses_accuracy_and_confidence_where_there_is_less_to_see(battery):
    found = battery(Looks)
    assert found["original", "accuracy"]["estimate"] == 1.0
    for name in ("no_image", "black", "blurred", "hidden"):
        # From all right with .9 to none right with .1; confidence is higher on the own image in every pair.
        values = {metric: found[name, metric]["estimate"] for metric in ("accuracy_drop", "confidence_drop", "ccg_auc")}
        assert values == pytest.approx({"accuracy_drop": 1.0, "confidence_drop": 0.8, "ccg_auc": 1.0}), name
    # Some questions are known about the other image, too: there it is wrong with .9, and the pair is a tie.
    drop, ccg = (found["other_image", metric]["estimate"] for metric in ("accuracy_drop", "ccg_auc"))
    assert drop > 0.5
    assert 0.5 < ccg < 1
    # It is right about the donor's image as well, and a hint does not move it.
    for name in ("donor", "misled"):
        assert (found[name, "accuracy_drop"]["estimate"], found[name, "confidence_drop"]["estimate"]) == (0.0, 0.0)
        assert "decisive" in found[name, "ccg_auc"]["reason"]


def test_an_actor_that_does_not_look_changes_nothing_whatever_is_shown(battery):
    found = battery(DoesNotLook)
    assert 0 < found["original", "accuracy"]["estimate"] < 1  # the same answer to a question is right about some images
    for name in set(CONDITIONS) - {"original", "donor"}:
        assert (found[name, "accuracy_drop"]["estimate"], found[name, "confidence_drop"]["estimate"]) == (0.0, 0.0)
        assert found[name, "ccg_auc"]["estimate"] is None  # no answer became wrong
    # On the donor's image, the reference answer is another one: what was right becomes wrong, with equal confidence.
    assert found["donor", "ccg_auc"]["estimate"] == 0.5
    assert found["donor", "confidence_drop"]["estimate"] == 0.0
    assert found["donor", "decisive_pairs"]["estimate"] > 0
