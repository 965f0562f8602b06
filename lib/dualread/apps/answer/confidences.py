"""`dualread.confidences`: a checkpoint's answers to examples, and what every method says about them, in one frame."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from dualread.apps.answer.claims import Labels, claims_frame, entry_of, known_labels, with_methods, with_references
from dualread.apps.answer.examples import PARTS, UserExample, numbered, other_columns, read_examples, write
from dualread.apps.answer.jobs import Jobs
from dualread.apps.answer.study import (
    DATASET,
    changes_of,
    check_examples,
    chosen_methods,
    known_methods,
    needed_parts,
    scoring_unfitted,
    study_of,
    uncalibrated,
)
from dualread.artifacts.tables import reason_of
from dualread.data.tables.contract import WIDE, WIDE_SCORE
from dualread.digests import digest_of
from dualread.errors import ConfigError, DataError, ReaderError, did_you_mean
from dualread.grading.answers import why_no_answer
from dualread.grading.canonical import canonical
from dualread.models.backbones.user_model import look
from dualread.progress import say, work_on
from dualread.schema.study import Config
from dualread.store.digest import raw_digest
from dualread.store.runner import Runner
from dualread.store.store import Store

_OF_ANSWERS = (
    "sample_id",
    "image_id",
    "cluster_id",
    "question",
    "answer_type",
    "answer",
    "reference_answer",
    "correct",
)
_OF_METHODS = f"^({WIDE}|{WIDE_SCORE}).*$"


def confidences(
    checkpoint: Any,
    examples: Any,
    methods: Iterable[str] | Mapping[str, Any],
    *,
    fit: Any = None,
    validation: Any = None,
    parts: str | Sequence[str] = "test",
    spans: str | Mapping[str, Any] | None = None,
    labels: Any = None,
    prompt: str = "shared",
    batch_size: int = 32,
    max_completion_tokens: int = 256,
    settings: Mapping[str, Any] | str | Path | None = None,
    folder: str | Path | None = None,
) -> Any:
    """Let a checkpoint answer questions about images, and return how far each method trusts each answer.

    The numbers are those of a study with the same rows. They do not depend on the order of the rows. What a call has
    computed is kept in `folder`: the same call takes seconds, another method computes only what is new, and a call that
    was killed goes on after its last batch.

    Args:
        checkpoint: The folder of a checkpoint, or of a study's actor; a model of the Hugging Face hub, "owner/name" or
            "owner/name@revision"; or an opened model and its processor, as a tuple. These are saved into `folder` at
            each call, and opened from there.
        examples: A frame (polars, pandas, pyarrow, datasets), dicts, or a file with such rows. Each has an `image` (a
            path, bytes, a picture of Pillow, an array of 8-bit values; or a list) and a `question`; and, if known, a
            `reference_answer` (or `answer`), `options`, an `id`, and its `part`: fit, validation, or test, the default.
        methods: Names of methods, those of config.yaml; or {name: entry} with entries of that form, None for a known
            one. "verbalized" is what the model states.
        fit: More examples, all of the part `fit`, on which readers of hidden states are fitted.
        validation: More examples, all of the part `validation`, on which Platt maps are fitted.
        parts: The parts whose answers are returned. Confidences in the part `fit` would be those of a method about
            what it has seen, and are not given.
        spans: What divides reports into claims, "sentences" or {plugin: settings} (lib/dualread/grading/spans): answers
            are then reports, and each claim has a confidence.
        labels: Which claims are supported, for what is fitted on them: a frame or file with `report` (the example's
            id), `text` and `correct`, such as an earlier result whose column `correct` was filled in; or "attributes",
            for drawn images.
        prompt: The prompt by which it answers: lib/dualread/models/prompts/<prompt>.txt.
        batch_size: Completions that are generated at once; less needs less memory.
        max_completion_tokens: Longest answer.
        settings: Entries to lay over config.yaml and these arguments, or a YAML file with them: another engine of
            generation, more samples, methods of your own, how the checkpoint is opened.
        folder: Where results are kept; by default `dualread` in the user's cache.

    Returns:
        One row per example, in their order, as a frame of polars, or of pandas if `examples` is one: sample_id, part,
        image_id, cluster_id, question, answer_type (where any is known), answer (null if it has no valid form),
        reference_answer and correct (null without a reference), `confidence_<method>` for each method, or
        `score_<method>` for one that there is no example to fit on, such as sc8 without the part `validation` (a number
        of which only the order counts, higher for more trust, and no probability), `reason`, and the examples' own
        further columns. Where a method could not be fitted, its column is null. An answer that does not exist, or of
        which nothing is left in canonical form, has no confidence, and `reason` says why; a study's own tables keep
        what readers say of it, as the paper does. With `spans`, one row per claim, in the order of the texts: report
        (the example's id), claim (0, 1, ...), part, image_id, cluster_id, start, end, text, correct (null without a
        label), the columns of methods, and the examples' own. `dualread.evaluate` takes these frames.

    Raises:
        ConfigError: A method, prompt or setting is unknown or wrong.
        DataError: An example is wrong, or the examples on which a method is fitted are missing.
        ArtifactError: There is no such checkpoint, or its answers do not depend on the image.
        ReaderError: No method has confidences.
    """
    wanted, changes = [parts] if isinstance(parts, str) else list(parts), changes_of(settings)
    if not wanted or (unknown := [part for part in wanted if part not in ("test", "validation")]):
        meant = did_you_mean(unknown[0], PARTS) if wanted else ""
        raise ConfigError(f"parts: {wanted}, expected test, validation, or both.{meant}")
    known = known_methods(changes)
    chosen = chosen_methods(methods, known)
    named = [methods] if isinstance(methods, str) else [str(name) for name in methods]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = (cache / "dualread" if folder is None else Path(folder)).absolute()
    how = {"prompt": prompt, "batch_size": batch_size, "max_completion_tokens": max_completion_tokens}
    labels = None if spans is None else known_labels(labels)
    claims = None if spans is None else entry_of(spans, labels, home / "labels")
    planned = study_of(None, chosen, changes=changes, claims=claims, **how)
    everything = study_of(None, chosen_methods(known, known), changes=changes, **how)
    asked = _asked(examples, fit, validation)
    asked = asked if spans is None else with_references(asked, labels)
    scores = uncalibrated(planned, asked, wanted)
    needed = needed_parts(planned, wanted, scores)
    fitted = {name for names in needed_parts(everything, ()).values() for name in names}
    fitted.difference_update(scoring_unfitted(everything))
    check_examples(asked, needed, [name for name in known if name not in fitted])
    with_model = look(_place(checkpoint, home)).entry
    backbone = {name: with_model[name] for name in ("source", "settings")}
    study = study_of(backbone, chosen, changes=changes, claims=claims, **how)
    answers = _answers(study, asked, needed, wanted, list(dict.fromkeys(named)), home, scores, labels)
    if type(examples).__module__.partition(".")[0] == "pandas":
        return sys.modules["pandas"].DataFrame(answers.to_dict(as_series=False))  # whoever gave such a frame has it
    return answers


def _answers(
    study: Config,
    asked: Sequence[UserExample],
    needed: Iterable[str],
    parts: Sequence[str],
    methods: Sequence[str],
    home: Path,
    uncalibrated: Mapping[str, str],
    labels: Labels | None,
) -> pl.DataFrame:
    """Run the stages, and return their answers as a frame."""
    sources = {
        PARTS[part]: write([example for example in asked if example.part == part], home / "examples")
        for part in PARTS
        if part in needed
    }
    splits = [PARTS[part] for part in parts]
    called = [study.as_mapping(), {split: source.name for split, source in sources.items()}, splits, methods]
    out, store = home / "runs" / digest_of(called)[:16], Store(home / "store")
    jobs = Jobs(study, sources, splits, methods, out, uncalibrated)
    try:
        for stage, entries in jobs:
            Runner(stage, store, below=out).run(entries)
            _release(stage)
    finally:
        work_on("")
    reasons = {method: reason_of(jobs.predictions(method)) for method in methods}
    for method, reason in reasons.items():
        if reason is not None:
            say(f"warning: {method} has no confidences: {reason}")
    tables = [jobs.answers / name for name in ("answers.parquet", "validation.parquet")]
    long = pl.concat([pl.read_parquet(table) for table in tables if table.is_file()] or [pl.DataFrame()])
    if long.is_empty():
        raise ReaderError("; ".join(f"{method}: {reason}" for method, reason in reasons.items()))
    raw = (pl.read_parquet(jobs.predictions(name)) if name in uncalibrated else None for name in methods)
    scores, wanted = dict(zip(methods, raw, strict=True)), [example for example in asked if example.part in parts]
    if study.datasets[DATASET].claims is not None:
        claims, manifests = ([table(split) for split in splits] for table in (jobs.claims, jobs.manifest))
        return claims_frame(long, claims, manifests, wanted, scores, labels)
    return _frame(long, wanted, scores)


def _release(stage: str) -> None:
    """Forget the model that a stage has opened: the next stage opens it in its own way."""
    from dualread.stages import generate, replay

    opened = {"generate": generate.loaded_engine, "replay": replay.loaded_actor}
    if stage in opened:
        opened[stage].cache_clear()


def _frame(long: pl.DataFrame, asked: Sequence[UserExample], scores: Mapping[str, pl.DataFrame | None]) -> pl.DataFrame:
    """Return one row per example from the table of answers; `scores` are those of methods that give scores alone."""
    answers = with_methods(long.unique("sample_id").select(_OF_ANSWERS), long, scores)
    known = pl.DataFrame(
        {
            "sample_id": [f"{DATASET}/{PARTS[example.part]}/{example.sample_id}" for example in asked],
            "name": [example.sample_id for example in asked],
            "part": [example.part for example in asked],
            "has_reference": [example.has_reference for example in asked],
            "says_type": ["answer_type" in example.record for example in asked],
        }
    )
    joined = known.join(answers, on="sample_id", how="left", validate="1:1", maintain_order="left")
    has_reference = pl.col("has_reference")
    joined = joined.with_columns(
        pl.when(has_reference).then("reference_answer"),
        pl.when(has_reference).then("correct"),
        pl.when(has_reference | pl.col("says_type")).then("answer_type"),
        sample_id="name",
    )
    why = [why_no_answer(answer, canonical(answer or "")) for answer in joined["answer"]]
    joined = joined.with_columns(reason=pl.Series(why, dtype=pl.String))
    joined = joined.with_columns(pl.when(pl.col("reason").is_null()).then(pl.col(_OF_METHODS)))
    others = [column for column in other_columns(asked) if column.name not in joined.columns]
    chosen = joined.select("sample_id", "part", *_OF_ANSWERS[1:], pl.col(_OF_METHODS), "reason")
    if chosen["answer_type"].null_count() == len(chosen):  # which `evaluate` would refuse, once answers are graded
        chosen = chosen.drop("answer_type")
    return chosen.with_columns(others)


def _asked(examples: Any, fit: Any, validation: Any) -> list[UserExample]:
    read = read_examples(examples, "examples")
    for part, source in (("fit", fit), ("validation", validation)):
        if source is not None:
            read += read_examples(source, part, part=part)
    return numbered(read)


def _place(checkpoint: Any, home: Path) -> str:
    """Return where a checkpoint is: a folder, or a name of the hub; an opened one is saved first."""
    if isinstance(checkpoint, str | Path):
        actor = Path(checkpoint) / "checkpoint"
        return str(
            (actor if actor.is_dir() else Path(checkpoint)).absolute() if Path(checkpoint).exists() else checkpoint
        )
    opened = list(checkpoint) if isinstance(checkpoint, tuple | list) else []
    if len(opened) != 2 or not all(hasattr(part, "save_pretrained") for part in opened):
        raise DataError(
            f"checkpoint: {type(checkpoint).__name__}. Expected a folder, owner/name of the hub, or a tuple of an"
            " opened model of transformers and its processor."
        )
    saved = home / "checkpoints"
    saved.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=saved, prefix=".") as temporary:
        for part in opened:
            part.save_pretrained(temporary)
        target = saved / raw_digest(Path(temporary))[:32]
        if not target.exists():
            shutil.copytree(temporary, target)
    return str(target)
