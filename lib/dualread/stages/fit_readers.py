"""Stage fit_readers: labels, hidden states and views of an actor's answers to one split -> one fitted reader.

Where answers allow no fit, as a Platt map if all are right, the file holds the reason. This ends the method alone.

Inputs: `actor`; `manifest` and `graded` for a reader that reads labels, `features` for a reader of hidden states,
`view/<name>` per view, `parent/<role>` per parent, and `parent/target` for the one that gives labels.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dualread.digests import artifact_digest
from dualread.errors import ReaderError
from dualread.readers.artifact import features_read, load_reader, save_reader
from dualread.readers.base import Examples, FittedReader, Weights, fit_or_reason, score, settings_of
from dualread.readers.declarations import declared
from dualread.readers.labels import labels_by
from dualread.readers.requirements import NAME, STATES, states_of_shard
from dualread.schema.readers import FitReadersSpec
from dualread.schema.recorded import States
from dualread.seeding import derive_seed
from dualread.stages._requirements import requirements
from dualread.stages._views import PARTITIONS, read_examples


def compute(spec: FitReadersSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write reader.safetensors."""
    module, where = spec.reader.module, spec.name
    parents = {
        role: load_reader(inputs[f"parent/{role}"] / "reader.safetensors", plugins=parent.modules)
        for role, parent in spec.reader.parents.items()
    }
    teacher = parents.pop("target", None)
    features = features_read(module, spec.settings, parents.values())
    arguments = (spec.examples, spec.views, spec.of_parents or ())
    examples = read_examples(*arguments, inputs, where) if "graded" in inputs else Examples.none()
    seed = derive_seed("fit_readers", spec.backbone, spec.actor, spec.seed, module)
    labeled, weights, unfitted = examples, Weights(), None
    if teacher is not None:
        labeled, unfitted = labels_by(teacher, examples)
    if unfitted is None and not spec.uncalibrated:
        weights, unfitted = fit_or_reason(module, labeled, spec.settings, parents, seed, inputs["actor"])
    states = None
    if "features" in inputs:
        header = states_of_shard(inputs["features"] / "features.safetensors", where)
        states = header.model_dump(include=set(States.model_fields))
    parts = {role: examples.partition(role) for role in PARTITIONS.get(spec.examples.split, ())}
    partitions = {role: {"n": len(part), "n_correct": int(part.correct.sum())} for role, part in parts.items()}
    provenance = {
        **spec.run,
        "examples": spec.examples.model_dump(),
        "views": spec.views,
        "features": features,
        STATES: states,
        "fitted_on": {
            name: artifact_digest(path) for name, path in sorted(inputs.items()) if name not in ("actor", "facts")
        },
        "partitions": partitions,
        NAME: requirements(spec.scoring, inputs).model_dump(),
    }
    reader = FittedReader(
        module=module,
        settings=settings_of(module, spec.settings),
        weights=weights,
        parents=parents,
        provenance=provenance,
        unfitted=unfitted,
    )
    if len(examples) and unfitted is None:
        _check_scores(reader, examples, where)
    save_reader(out / "reader.safetensors", reader)
    counts = ", ".join(f"{role} {c['n']} ({c['n_correct']} correct)" for role, c in partitions.items())
    facts = {name: weights.notes[name] for name in ("temperature", "epochs_run") if name in weights.notes}
    notes = "".join(f", {name} {value:.4g}" for name, value in facts.items())
    read = f"read {len(examples)} answers: {counts}" if len(examples) else "read no answers, it needs none"
    if unfitted is not None:
        return f"{read}; no reader for {where}, its values will be dashes: {unfitted}"
    return f"{read}; wrote {spec.reader.method} for {where}{notes}"


def _check_scores(reader: FittedReader, examples: Examples, where: str) -> None:
    """Score the answers on which the reader was fitted, to find a broken reader before any other stage runs."""
    answers = examples.answers
    views = answers.views if declared(reader.module, "VIEWS") == "score" else ()
    try:
        score(reader, replace(answers, views=views))
    except ReaderError as error:
        raise ReaderError(f"{where}: on the answers on which it was fitted: {error}") from error
