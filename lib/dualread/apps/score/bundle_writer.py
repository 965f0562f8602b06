"""Write the bundle of one run of a study: readers, settings, thresholds, a model card, and perhaps the actor.

The model card has the form of the Hugging Face hub; its numbers are those of the study's metrics.
"""

import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.apps.score import ScorerChoice, distance, stored
from dualread.apps.score.answering import OpenActor
from dualread.apps.score.bundle import (
    BUNDLE,
    CHECKPOINT,
    DISTANCES,
    METRICS_FILE,
    READERS,
    STORED,
    Bundle,
    reader_file,
    write_bundle,
)
from dualread.apps.score.loading import ChosenReaders, checkpoint_folder
from dualread.artifacts.tables import read_table
from dualread.artifacts.tensors import read_tensors
from dualread.data.questions.roles import OF_UNIT, unit_of
from dualread.errors import ArtifactError, ConfigError, DualReadError, did_you_mean, in_a_line
from dualread.evaluation.answer_metrics import NOISE_FLOOR
from dualread.evaluation.answer_sets import SetThreshold
from dualread.evaluation.metrics.calibration_chance import is_by_chance
from dualread.evaluation.statistics.drift import VALIDATION, write_validation
from dualread.evaluation.thresholds import EMPIRICAL, Threshold
from dualread.progress import say
from dualread.readers.artifact import load_reader
from dualread.readers.base import FittedReader
from dualread.readers.declarations import declared
from dualread.schema.columns import FEATURES, MANIFEST, METRICS, PREDICTIONS
from dualread.store.digest import MANIFEST_NAME
from dualread.store.manifest import read_manifest

_TEMPLATE = Path(__file__).with_name("card.md.jinja")
_TASK = "visual-question-answering"
_TAGS = ["dualread", _TASK, "medical", "confidence-estimation", "selective-prediction"]
# The metrics of a card: their headings, and their names on the hub.
_SHOWN = {
    "accuracy": ("accuracy", "accuracy"),
    "auroc": ("AUROC", "roc_auc"),
    "ece15": ("ECE", "expected_calibration_error"),
    "brier": ("Brier", "brier_score"),
    "aurc": ("AURC", "aurc"),
    "natural_ccg_auc": ("CCG-AUC", "natural_ccg_auc"),
}
_RUN = ("backbone", "actor", "seed")


def _tables(tested: pl.DataFrame, rows: Mapping[str, str], fitted: str, known: Collection[str]) -> Iterator[Any]:
    """Yield one table per data set: first the one on which the reader was fitted, last the means over others."""
    for dataset in sorted(tested["dataset"].unique(), key=lambda name: (name != fitted, name not in known, name)):
        of_dataset = tested.filter(pl.col("dataset") == dataset)
        by_metric = {(row["method"], row["metric"]): row for row in of_dataset.iter_rows(named=True)}
        of_reader = {metric: row for (method, metric), row in by_metric.items() if method == next(iter(rows))}
        few = {metric: row["estimate"] for metric, row in of_reader.items()}
        pairs = of_reader.get("natural_ccg_auc")
        shown = [name for name in _SHOWN if name in of_reader]
        yield {
            "dataset": dataset,
            "answers": of_reader.get("accuracy"),
            "pairs": pairs if pairs and pairs["n"] else None,
            "short": [side for side in ("source", "donor") if few.get(f"natural_few_{side}s")],
            "columns": [_SHOWN[name][0] for name in shown],
            "rows": [
                {"name": f"{method}{words}", "cells": [_cell(method, name, by_metric) for name in shown]}
                for method, words in rows.items()
            ],
        }


def _cell(method: str, metric: str, cells: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    row = cells.get((method, metric))
    if row is None or row["estimate"] is None:
        return "—"
    floor = cells[method, NOISE_FLOOR]["estimate"] if metric == "ece15" and (method, NOISE_FLOOR) in cells else None
    mark = "°" if floor is not None and is_by_chance(row["estimate"], floor) else ""
    interval = "" if row["low"] is None else f" [{row['low']:.3f}, {row['high']:.3f}]"
    return f"{row['estimate']:.3f}{mark}{interval}"


def export(
    study: Path,
    run: tuple[str, str, int],
    out: Path,
    *,
    method: str,
    methods: Sequence[str] = (),
    with_checkpoint: bool = False,
    license: str | None = None,
    plugins: str | Sequence[str] = (),
) -> Bundle:
    """Write the bundle of a `run` (backbone, actor and seed) of results/<study> into the folder `out`.

    A folder that holds a bundle gets other files in the place of its own. The reader of `method` gives the confidence;
    those of `methods` travel along, and the actor does `with_checkpoint`. `license` is the hub's name of the licence:
    by default that of this library if all data and the actor were made by it, and "other" if not. The study's readers
    may name plugins of the packages `plugins`.

    Raises:
        ConfigError: There is no such run or method, it judges claims that a table names, or `out` holds something else.
        ArtifactError: The study's metrics are missing, or a reader is another one's or does not say what it depends on.
    """
    packages = [plugins] if isinstance(plugins, str) else plugins
    chosen = ChosenReaders.load(
        ScorerChoice(reader=_run_folder(study, run) / method, methods=methods, plugins=packages)
    )
    readers, files = chosen.by_method, chosen.files
    if files.method != method:
        raise ArtifactError(
            f"{files.where}: holds the reader of {files.method!r}, expected that of {method!r}. Rename the folder."
        )
    required = readers[method].requirements
    metrics = read_table(study / "metrics" / "metrics.parquet", METRICS)
    _clear(out)
    (out / READERS).mkdir(parents=True, exist_ok=True)
    for name in readers:
        shutil.copyfile(files.known[name], reader_file(out, name))
    dataset = readers[method].provenance["examples"]["dataset"]
    order = list(readers)
    of_run = metrics.filter(
        pl.col("method").is_in(order), **dict(zip(_RUN, run, strict=True)), dataset=dataset, subset="all"
    )
    tested, chosen_on = (of_run.filter(split=split).iter_rows(named=True) for split in ("test", "validation"))
    bundle = Bundle(
        format=1,
        study=study.name,
        backbone=run[0],
        actor=run[1],
        seed=run[2],
        method=method,
        readers={name: files.read[name].sha256 for name in readers},
        scoring=required.model_copy(update={"views": ()}).model_dump(),
        thresholds=sorted(
            filter(None, map(Threshold.of_metric, tested)),
            key=lambda t: (order.index(t.method), t.rule != EMPIRICAL, t.target_risk_percent),
        ),
        answer_sets=sorted(
            filter(None, map(SetThreshold.of_metric, chosen_on)), key=lambda t: (order.index(t.method), t.miss_percent)
        ),
    )
    write_bundle(out, bundle)
    if with_checkpoint:
        shutil.copytree(checkpoint_folder(_actor_folder(study, run)), out / CHECKPOINT)
        try:  # so that another engine can be checked
            exported = ChosenReaders.load(ScorerChoice(reader=out, plugins=packages))
            stored.write(out, exported.with_actor(partial(OpenActor, batch_size=4)))
        except (DualReadError, ImportError, RuntimeError) as error:  # RuntimeError: torch, perhaps without memory
            say(f"{out}: has no stored answers, without which `dualread serve` uses no vLLM: {in_a_line(error)}")
    if required.spans is None:  # what is compared are answers
        _store_validation(study, run, list(readers), dataset, out)
    # A method that is no longer in the study may have left a reader whose plugin is gone.
    evaluated = sorted(set(metrics["method"]) & set(files.known))
    others = {name: load_reader(files.known[name], plugins=packages) for name in evaluated}
    nulls = [name for name, reader in others.items() if declared(reader.module, "NULL")]
    _write_card(study, out, bundle, metrics, readers[method], nulls, license)
    return bundle


def _clear(out: Path) -> None:
    """Remove what an earlier export wrote; what else is there, such as .git, stays."""
    if out.exists() and not (out.is_dir() and ((out / BUNDLE).is_file() or not any(out.iterdir()))):
        raise ConfigError(f"{out}: holds something else than an exported bundle. Give a new folder.")
    for file in (STORED, VALIDATION, DISTANCES):
        (out / file).unlink(missing_ok=True)
    for folder in (READERS, CHECKPOINT):
        shutil.rmtree(out / folder, ignore_errors=True)


def _shown(reader: FittedReader) -> dict[str, str]:
    """Return the methods of a card with what stands behind their names: the reader's, and its parts."""
    shown = {str(reader.provenance["method"]): ""}
    for role in declared(reader.module, "PARENTS"):
        shown |= _shown(reader.parents[role])
    return shown


def _store_validation(study: Path, run: tuple[str, str, int], methods: Sequence[str], dataset: str, out: Path) -> None:
    """Write what new answers are compared with, where it is: confidences of validation answers, and their states."""
    place, manifest = Path(*map(str, run)), study / "manifests" / dataset / "validation" / "manifest.parquet"
    if not manifest.is_file():
        return
    clusters = read_table(manifest, MANIFEST, ("sample_id", "cluster_id"))
    files = {method: study / "predictions" / place / method / "predictions.parquet" for method in methods}
    if all(file.is_file() for file in files.values()):
        confidences = {}
        for method, file in files.items():
            rows = read_table(file, PREDICTIONS).filter(dataset=dataset, split="validation", condition="original")
            rows = rows.join(clusters, on="sample_id", validate="1:1")
            confidences[method] = (rows["confidence"].to_list(), rows["cluster_id"].to_list())
        write_validation(out, confidences)
    states = study / "features" / place / dataset / "validation" / "original"
    if (states / "features.safetensors").is_file():
        index = read_table(states / "features.parquet", FEATURES, ("sample_id", "sample_index", "row"))
        rows = index.filter(sample_index=0).sort("sample_id").join(clusters, on="sample_id", validate="1:1")
        h_pre = read_tensors(states / "features.safetensors", ["h_pre"])["h_pre"][rows["row"].to_numpy()]
        if fitted := distance.StateDistances.fit(h_pre, rows["cluster_id"].to_list()):
            distance.write(out, fitted)


def _run_folder(study: Path, run: tuple[str, str, int]) -> Path:
    """Return the folder of a run's readers; an unknown name is answered with the known ones."""
    folder = study / "readers"
    for kind, name in zip(_RUN, map(str, run), strict=True):
        known = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if name not in known:
            raise ConfigError(
                f"{folder}: no {kind} {name!r}. Known: {', '.join(known) or 'none'}.{did_you_mean(name, known)}"
            )
        folder /= name
    return folder


def _write_card(
    study: Path,
    folder: Path,
    bundle: Bundle,
    metrics: pl.DataFrame,
    reader: FittedReader,
    nulls: Sequence[str],
    license: str | None,
) -> None:
    """Write README.md and metrics.csv into the bundle's folder; `metrics` are those of the whole study."""
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    run, has_checkpoint = (bundle.backbone, bundle.actor, bundle.seed), (folder / CHECKPOINT).is_dir()
    drawn = {read_manifest(path).key for path in study.glob(f"phantoms/*/{MANIFEST_NAME}")}
    made = {path.parent.parent.name: read_manifest(path) for path in study.glob(f"manifests/*/test/{MANIFEST_NAME}")}
    is_drawn = {name: manifest.input_keys.get("source") in drawn for name, manifest in sorted(made.items())}
    origins = {}
    for name, drawn_here in is_drawn.items():
        loader = made[name].action.spec["loader"]["module"].rpartition(".")[2]
        terms = plugins.declared("datasets", loader, "TERMS") or "Terms: not recorded."
        phantoms = f"drawn by DualRead in the format of {loader}: phantoms, no patients"
        origins[name] = phantoms if drawn_here else f"read by `{loader}`. {terms}"
    # The words for what intervals resample; images, where a restored study has no questions.
    paths = {name: study / "manifests" / name / "test/manifest.parquet" for name in made}
    units = {name: unit_of(read_table(path, MANIFEST, OF_UNIT)) for name, path in paths.items() if path.is_file()}
    # Where the actor's base came from ({hub, revision}, or {} for a folder); None if it was trained here.
    bases = sorted((study / "actors" / bundle.backbone).glob(f"*/0/{MANIFEST_NAME}"))
    actions = [read_manifest(path).action for path in bases]
    copied = [action.spec.get("repository", {}) for action in actions if action.stage == "copy_checkpoint"]
    base_source: Mapping[str, str] | None = copied[0] if copied else None
    ours = all(is_drawn.values()) and base_source is None
    hub_license = license or ("apache-2.0" if ours else "other")
    shown = _shown(reader) | dict.fromkeys(nulls, " (null)")
    of_run = (pl.col(name) == value for name, value in zip(_RUN, run, strict=True))
    rows = metrics.filter(*of_run, pl.col("method").is_in(list(shown)))
    rows.write_csv(folder / METRICS_FILE)
    tested = rows.filter((pl.col("split") == "test") & (pl.col("subset") == "all"))
    judged = "claims in the reports" if "spans" in bundle.scoring else "answers"
    title = f"{bundle.method}: confidence in the {judged} of {bundle.backbone}, {bundle.actor}, seed {bundle.seed}"
    data = ModelCardData(
        license=hub_license,
        license_name="terms-of-data-and-model" if hub_license == "other" else None,
        library_name="dualread",
        pipeline_tag=_TASK,
        tags=_TAGS,
        metrics=[name for _, name in _SHOWN.values()],
        base_model=(base_source or {}).get("hub"),
        model_name=title,
        eval_results=[
            EvalResult(
                task_type=_TASK,
                dataset_type=row["dataset"],
                dataset_name=row["dataset"],
                dataset_split=row["split"],
                metric_type=_SHOWN[row["metric"]][1],
                metric_name=_SHOWN[row["metric"]][0],
                metric_value=row["estimate"],
            )
            for row in tested.filter(method=bundle.method).iter_rows(named=True)
            if row["metric"] in _SHOWN and row["estimate"] is not None
        ],
    )
    provenance, settings = reader.provenance, bundle.scoring["model"]
    card = ModelCard.from_template(
        data,
        template_path=str(_TEMPLATE),
        bundle=bundle,
        title=title,
        version=version("dualread"),
        with_checkpoint=has_checkpoint,
        adapter=_adapter(_actor_folder(study, run) / MANIFEST_NAME),
        settings={name: value for name, value in settings.items() if name != "quantization"},
        quantization=settings.get("quantization"),
        fitted={**provenance["examples"], "partitions": provenance["partitions"]},
        origins=origins,
        units=units,
        tables=list(_tables(tested, shown, provenance["examples"]["dataset"], origins)),
        licence=license,
        ours=ours,
        base="another model" if base_source is None else f"`{base_source.get('hub', 'a local checkpoint')}`",
    )
    card.save(folder / "README.md")


def _actor_folder(study: Path, run: tuple[str, str, int]) -> Path:
    """Return the folder of a run's actor; that of another one if it is the same checkpoint, asked in another way."""
    backbone, actor, seed = map(str, run)
    folder = study / "actors" / backbone / actor / seed
    if folder.is_dir():
        return folder
    of_readers = (study / "readers" / backbone / actor / seed).glob(f"*/{MANIFEST_NAME}")
    read = {read_manifest(path).input_keys.get("actor") for path in of_readers}
    others = (study / "actors" / backbone).glob(f"*/{seed}/{MANIFEST_NAME}")
    return next((path.parent for path in others if read_manifest(path).key in read), folder)


def _adapter(manifest: Path) -> str | None:
    """Return the adapter in an actor's weights, in words; None if there is none, or no manifest to know it from."""
    if not manifest.is_file():
        return None
    action = read_manifest(manifest).action
    if action.stage == "train_actor" and (lora := action.spec["settings"].get("lora")):
        return f"trained by DualRead with {', '.join(f'{name} {value}' for name, value in lora.items())}"
    if action.stage == "copy_checkpoint" and (adapter := action.spec.get("adapter")) is not None:
        repository = adapter.get("repository", {"hub": "a local folder", "revision": None})
        return f"{repository['hub']}" + (f" at {repository['revision']}" if repository["revision"] else "")
    return None
