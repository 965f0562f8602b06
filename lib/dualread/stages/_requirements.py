"""What scoring the next image needs besides a reader's weights, as stage fit_readers writes it into the reader."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from dualread.models.prompts import template_sha256
from dualread.readers.requirements import Prompt, Requirements, View
from dualread.specs.generation import ShardSpec
from dualread.specs.readers import ScoringSpec
from dualread.store.digest import MANIFEST_NAME, read_json
from dualread.store.manifest import read_manifest


def requirements_for(scoring: ScoringSpec, inputs: Mapping[str, Path]) -> Requirements:
    """Return what scoring with a reader needs; `inputs` are the artifacts `actor` and `facts`."""
    files = read_manifest(inputs["actor"] / MANIFEST_NAME).files
    assert scoring.answer.decoding is not None, "an answer is a completion"
    return Requirements(
        model=dict(scoring.model),
        facts=read_json(inputs["facts"] / "facts.json")["facts"],
        contract=scoring.contract,
        checkpoint={Path(name).name: of["sha256"] for name, of in files.items() if name.startswith("checkpoint/")},
        prompt=_prompt(scoring.answer),
        decoding=asdict(scoring.answer.decoding),
        views=[
            View(
                name=view.name,
                image=view.asked.image,
                prompt=_prompt(view.asked),
                decoding=None if view.asked.decoding is None else asdict(view.asked.decoding),
                choices=None if view.asked.choices is None else asdict(view.asked.choices),
                forced=view.asked.completions is not None,
            )
            for view in scoring.views
        ],
    )


def _prompt(asked: ShardSpec) -> Prompt:
    return Prompt(name=asked.prompt.name, sha256=template_sha256(asked.prompt.name))
