"""Readers of an untrained actor, laid out as a study lays them out; the states that they are fitted on are random."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
import polars as pl
import pytest

from dualread.apps.score.bundle_writer import export
from dualread.apps.score.loading import checkpoint_digests
from dualread.artifacts.tables import from_rows, write_table
from dualread.models.prompts import template_sha256
from dualread.models.replay.rules import RULES, read_of_example
from dualread.readers.artifact import features_read, save_reader
from dualread.readers.base import Answers, Examples, FittedReader, fit, settings_of
from dualread.readers.requirements import NAME
from dualread.schema.answers import Choices, Decoding, Measure
from dualread.schema.columns import METRICS
from dualread.schema.recorded import Facts, PromptText, RequiredView, Requirements
from tests.readers import synthetic
from tests.specs import changed
from tests.tiny import ARCHITECTURE, MODEL, Tiny, image

RUN = {"backbone": "tiny", "actor": "rlvr", "seed": 17}
LAYERS = ARCHITECTURE["layers"]
SHARED = PromptText(name="shared", sha256=template_sha256("shared"))
DECODING = {"temperature": 0.0, "top_p": 1.0, "n_samples": 1, "max_completion_tokens": 10}
INTEGERS = RequiredView(name="stated_integer", image="original", prompt=SHARED, choices=Choices(integers=[0, 100]))
CHOICES = RequiredView(name="choices", image="original", prompt=SHARED, choices=Choices(options=True))
HIDDEN = {"share": 0.5, "from_depth": 0.25, "to_depth": 0.75}
CORE = RequiredView(
    name="core", image="original", prompt=SHARED, forced=True, measure=Measure(name="hidden_core", settings=HIDDEN)
)
SAMPLES = RequiredView(
    name="samples",
    image="original",
    prompt=SHARED,
    decoding=Decoding(**DECODING | {"temperature": 1.0, "n_samples": 3}),
)
REPLAY = {
    **{"kappa": 0.1, "final_layer": LAYERS, "middle_layer": 3, "positions": RULES, "example": read_of_example()},
    **{**RUN, "actor_digest": "0" * 64, "prompt": SHARED.model_dump()},
}
# The reader's module, its settings, the methods that it builds on by role, and the views that it reads.
METHODS = {
    "rlvr": ("verbalized", {}, {}, []),
    "question_prior": ("question_prior", synthetic.PRIOR, {}, []),
    "expected": ("expected_confidence", {}, {}, [INTEGERS]),
    "choices": ("choice_probability", {}, {}, [CHOICES]),
    "sequence_likelihood": ("sequence_likelihood", {}, {}, []),
    "psr": ("psr", {**synthetic.PSR, "max_epochs": 3}, {}, []),
    "p_state": ("p_state", {**synthetic.P_STATE, "steps": 20}, {}, []),
    "per": ("p_visual", {**synthetic.P_VISUAL, "steps": 20}, {"state": "p_state"}, []),
    "dualread": ("dualread", {}, {"pre": "psr", "post": "per"}, []),
}


@pytest.fixture(autouse=True)
def answers_exist(monkeypatch):
    """What an untrained actor says has no valid form; here it counts as an answer, so that readers judge it."""
    monkeypatch.setattr("dualread.apps.score.readings.why_no_answer", lambda *given: None)


@dataclass(frozen=True, kw_only=True)
class Study:
    """The folders of a study."""

    folder: Path
    tiny: Tiny

    @property
    def actor(self) -> Path:
        return self.folder / "actors" / "tiny" / "rlvr" / "17"

    def reader(self, method: str) -> Path:
        return self.folder / "readers" / "tiny" / "rlvr" / "17" / method

    def image(self, seed: int) -> Path:
        path = self.folder / f"{seed}.png"
        if not path.exists():
            image(seed).save(path)
        return path


def requirements(checkpoint: Path | None = None, **changes) -> Requirements:
    """What readers of a checkpoint say that they need."""
    needs = {"model": MODEL, "facts": Facts().model_dump(), "prompt": SHARED, "decoding": Decoding(**DECODING)}
    digests = {} if checkpoint is None else checkpoint_digests(checkpoint)
    return Requirements(**{**needs, "contract": "single", "checkpoint": digests, **changes})


def build(tiny: Tiny, folder: Path, **provenance) -> Study:
    """Write the study; `provenance` overrides what the readers say."""
    study = Study(folder=folder, tiny=tiny)
    shutil.copytree(tiny.checkpoint, study.actor / "checkpoint")
    required = requirements(tiny.checkpoint)
    width = json.loads((tiny.checkpoint / "config.json").read_text())["text_config"]["hidden_size"]
    made: dict[str, FittedReader] = {}
    for method, (name, settings, roles, views) in METHODS.items():
        parents = {role: made[parent] for role, parent in roles.items()}
        features = features_read(f"readers.{name}", settings, parents.values())
        weights = fit(f"readers.{name}", _examples(width), dict(settings), parents, seed=0)
        made[method] = FittedReader(
            module=f"readers.{name}",
            settings=settings_of(f"readers.{name}", settings),
            weights=weights,
            parents=parents,
            provenance={
                **{**RUN, "method": method, "examples": {"dataset": "slake", "split": "train"}, "views": []},
                **{"features": features, "replay": REPLAY if features else None},
                "partitions": {"fit": {"n": 40, "n_correct": 20}},
                NAME: changed(required, views=tuple(views)).model_dump(),
                **provenance,
            },
        )
        study.reader(method).mkdir(parents=True)
        save_reader(study.reader(method) / "reader.safetensors", made[method])
    return study


def _examples(width: int, n: int = 60) -> Examples:
    rng = np.random.default_rng(0)
    states = {name: rng.normal(size=(n, width)).astype(np.float32) for name in synthetic.TENSORS}
    states["answer_log_prob"] = -rng.exponential(size=(n, 1)).astype(np.float32)
    whole = synthetic.examples(n)
    table = whole.answers.table.with_columns(question_key=pl.lit("is there a lesion"))
    answers = Answers(table=table, source=states.__getitem__, rows=np.arange(n))
    return Examples(answers=answers, correct=np.arange(n) % 2 == 0)


def exported(
    study: Study,
    out: Path,
    *methods: str,
    thresholds: Mapping[str, float | None] = MappingProxyType({}),
    sets: Mapping[int, float | None] = MappingProxyType({}),
) -> Path:
    """Export the reader of `dualread`, and those of `methods`, with the actor.

    `thresholds` are for a risk of 10%, and `sets` those of the answer sets of `choices`, by how often they may miss.
    """
    run = {"study": "small", **RUN, "dataset": "slake", "split": "test", "subset": "all"}
    rows = [
        {**run, "method": method, "metric": f"{rule}threshold_at_risk_10", "estimate": value, "n": 40, "n_clusters": 12}
        | {"reason": "validation: none" if value is None else None}
        for method, value in thresholds.items()
        for rule in ("", "certified_")
    ]
    rows += [
        {**run, "split": split, "method": "choices", "metric": f"set_threshold_at_miss_{percent:02d}"}
        | {"estimate": value, "reason": "too few" if value is None else None, "n": 40, "n_clusters": n_clusters}
        for percent, value in sets.items()
        for split, n_clusters in (("validation", 20), ("test", 12))
    ]
    rows.append({**run, "method": "dualread", "metric": "accuracy", "estimate": 0.5, "n": 40, "n_clusters": 12})
    file = study.folder / "metrics" / "metrics.parquet"
    file.parent.mkdir(exist_ok=True)
    write_table(file, from_rows(rows, METRICS), METRICS)
    run_of = tuple(RUN.values())
    export(study.folder, run_of, out, method="dualread", methods=methods, with_checkpoint=True, license="other")
    return out
