"""Write the bundle of one run of a study: readers, settings, thresholds, a model card, and perhaps the actor."""

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from dualread import plugins
from dualread.artifacts.tables import read_table
from dualread.declared.columns import METRICS
from dualread.errors import ConfigError, did_you_mean
from dualread.readers.base import FittedReader
from dualread.readers.declarations import declared
from dualread.readers.requirements import requirements_of
from dualread.scoring.agreement import check_is_own, checkpoint_folder
from dualread.scoring.bundle import CHECKPOINT, READERS, Bundle, copy_readers, is_bundle, write_bundle
from dualread.scoring.card import Facts, rows_of, write_card
from dualread.scoring.sources import find, read_reader
from dualread.scoring.thresholds import EMPIRICAL, Threshold
from dualread.store.digest import MANIFEST_NAME
from dualread.store.manifest import Manifest, read_manifest

_THRESHOLD = re.compile(r"(\w*?)_?threshold_at_risk_(\d+)")
_OURS, _OTHERS = "apache-2.0", "other"


def export(
    study: Path,
    run: tuple[str, str, int],
    out: Path,
    *,
    method: str,
    methods: Sequence[str] = (),
    with_checkpoint: bool = False,
    license: str | None = None,
) -> Bundle:
    """Write the bundle of a run into the folder `out`.

    Args:
        study: results/<study>.
        run: Backbone, actor and seed.
        out: A folder that does not exist, is empty, or holds a bundle, whose files are replaced.
        method: The method whose reader gives the confidence.
        methods: Other methods whose readers travel along.
        with_checkpoint: Whether the actor travels along.
        license: The hub's name of the licence; by default that of this library if all data and the actor were made by
            it, and "other" if not.

    Raises:
        ConfigError: There is no such run or method, or `out` holds something else.
        ArtifactError: The study's metrics are missing, or a reader does not say what it depends on.
    """
    source = find(_run_folder(study, run) / method)
    readers = {name: source.load(name) for name in dict.fromkeys((method, *methods))}
    required = requirements_of(readers[method], where=f"{study}: {method}")
    check_is_own(required, f"{study}: {method}")
    metrics = read_table(study / "metrics" / "metrics.parquet", METRICS)
    _empty(out)
    bundle = Bundle(
        **{"study": study.name, "backbone": run[0], "actor": run[1], "seed": run[2]},
        method=method,
        readers=copy_readers({name: source.files[name] for name in readers}, out),
        scoring=required.model_copy(update={"views": ()}).model_dump(),
        thresholds=_thresholds(metrics, run, list(readers), readers[method].provenance["examples"]["dataset"]),
    )
    write_bundle(out, bundle)
    actor = study / "actors" / run[0] / run[1] / str(run[2])
    if with_checkpoint:
        shutil.copytree(checkpoint_folder(actor), out / CHECKPOINT)
    # A method that is no longer in the study may have left a reader whose plugin is gone.
    evaluated = sorted(set(metrics["method"]) & set(source.files))
    nulls = [name for name in evaluated if declared(read_reader(source.files[name]).module, "NULL")]
    write_card(out, bundle, metrics, _facts(study, run, readers[method], nulls, with_checkpoint, license))
    return bundle


def _run_folder(study: Path, run: tuple[str, str, int]) -> Path:
    """Return the folder of a run's readers; an unknown name is answered with the known ones."""
    folder = study / "readers"
    for kind, name in zip(("backbone", "actor", "seed"), map(str, run), strict=True):
        known = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if name not in known:
            raise ConfigError(
                f"{folder}: no {kind} {name!r}. Known: {', '.join(known) or 'none'}.{did_you_mean(name, known)}"
            )
        folder /= name
    return folder


def _empty(out: Path) -> None:
    if out.exists() and not (out.is_dir() and (is_bundle(out) or not any(out.iterdir()))):
        raise ConfigError(f"{out}: holds something else than an exported bundle. Give a new folder.")
    for folder in (READERS, CHECKPOINT):  # what else is there, such as .git, stays
        shutil.rmtree(out / folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)


def _thresholds(
    metrics: pl.DataFrame, run: tuple[str, str, int], methods: Sequence[str], dataset: str
) -> list[Threshold]:
    chosen = metrics.filter(
        *(pl.col(name) == value for name, value in zip(("backbone", "actor", "seed"), run, strict=True)),
        (pl.col("dataset") == dataset) & (pl.col("split") == "test") & pl.col("method").is_in(methods),
    )
    found = [
        Threshold(
            method=row["method"],
            rule=match[1] or EMPIRICAL,
            target_risk_percent=int(match[2]),
            value=row["estimate"],
            reason=row["reason"],
        )
        for row in chosen.iter_rows(named=True)
        if (match := _THRESHOLD.fullmatch(row["metric"]))
    ]
    return sorted(found, key=lambda one: (methods.index(one.method), one.rule != EMPIRICAL, one.target_risk_percent))


def _facts(
    study: Path,
    run: tuple[str, str, int],
    reader: FittedReader,
    nulls: Sequence[str],
    with_checkpoint: bool,
    license: str | None,
) -> Facts:
    drawn = {read_manifest(path).key for path in study.glob(f"phantoms/*/{MANIFEST_NAME}")}
    made = {path.parent.parent.name: read_manifest(path) for path in study.glob(f"manifests/*/test/{MANIFEST_NAME}")}
    is_drawn = {name: manifest.input_keys.get("source") in drawn for name, manifest in sorted(made.items())}
    base_source = _base_source(study, run[0])
    ours = all(is_drawn.values()) and base_source is None
    return Facts(
        reader=reader,
        rows=rows_of(reader, nulls),
        origins={name: _origin(made[name], is_drawn[name]) for name in is_drawn},
        license=license or (_OURS if ours else _OTHERS),
        licence=_licence(license, ours, base_source),
        base_model=(base_source or {}).get("hub"),
        with_checkpoint=with_checkpoint,
        adapter=_adapter(study / "actors" / run[0] / run[1] / str(run[2]) / MANIFEST_NAME),
    )


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


def _base_source(study: Path, backbone: str) -> Mapping[str, str] | None:
    """Return where the actor's base came from ({hub, revision}, or {} for a folder); None if it was trained here."""
    manifests = sorted((study / "actors" / backbone).glob(f"*/0/{MANIFEST_NAME}"))
    actions = [read_manifest(path).action for path in manifests]
    copied = [action.spec.get("repository", {}) for action in actions if action.stage == "copy_checkpoint"]
    return copied[0] if copied else None


def _origin(manifest: Manifest, is_drawn: bool) -> str:
    loader = manifest.action.spec["loader"]["module"].rpartition(".")[2]
    if is_drawn:
        return f"drawn by DualRead in the format of {loader}: phantoms, no patients"
    return f"read by `{loader}`. {plugins.declared('datasets', loader, 'TERMS') or 'Terms: not recorded.'}"


def _licence(license: str | None, ours: bool, base_source: Mapping[str, str] | None) -> str:
    if license is not None:
        return f"{license}, as chosen by whoever exported this repository."
    if ours:
        return "Apache-2.0. All data and the actor were made by DualRead."
    base = "another model" if base_source is None else f"`{base_source.get('hub', 'a local checkpoint')}`"
    return (
        "No licence was chosen. What may be done with these files depends on the terms of the data above and of the"
        f" model that the actor was trained from ({base})."
    )
