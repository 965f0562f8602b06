"""Search for a reader's best settings on a finished study, and write them as a file to lay over it.

    python benchmarks/tune_reader.py bicr                                              the embedded study
    python benchmarks/tune_reader.py bicr --configfile workflow/studies/paper.yaml --seed 43

The paper chose BICR's architecture in 50 trials on one actor and then kept it (DualRead, app:baseline_protocols). A
trial draws the settings that the reader's literal SPACE names, fits the reader as the stage fit_readers does, with the
same seed, and measures the AUROC on validation. The AUROC depends only on the order of the confidences, which the
network decides; how far apart they are is decided by the temperature that is fitted afterwards. Of equal trials the
earliest is best. A trial that cannot be fitted has no AUROC. Needs Optuna: `make env-dev`, or `pip install optuna`.

Writes tuned/<method>.csv, one row per trial, and tuned/<method>.yaml with the best settings and, as `tuned_on`, where
they come from; the table hparams prints that, and whether the settings were edited since.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import optuna
import polars as pl
import yaml
from optuna.distributions import CategoricalDistribution, FloatDistribution

from dualread import plugins
from dualread.artifacts.tables import for_spreadsheets
from dualread.digests import MANIFEST_NAME, digest_of
from dualread.errors import DualReadError, UnfittedError
from dualread.evaluation.metrics.discrimination import auroc
from dualread.progress import track
from dualread.readers.answers import Examples
from dualread.readers.base import FittedReader, fit, load, score, settings_of
from dualread.schema.base import DatasetSplit
from dualread.schema.study import Config
from dualread.seeding import derive_seed
from dualread.stages._views import read_examples
from dualread.study.config import resolve
from dualread.study.files import merged
from dualread.study.shards import StudyShards

REPOSITORY = Path(__file__).resolve().parents[1]


def examples(study: Config, method: str, backbone: str, seed: int, split: str) -> Examples:
    """Return the answers to a split of the in-distribution data set, with the views that the reader is fitted on."""
    shards = StudyShards(study)
    results, actor = Path("results", study.study), study.methods[method].actor
    shard, run = (shards.in_distribution, split, "original"), (backbone, actor, str(seed))
    views = shards.views_of(method, "fit") if split == "train" else []
    inputs = {
        "manifest": results.joinpath("manifests", *shard[:2]),
        **{kind: results.joinpath(kind, *run, *shard) for kind in ("graded", "features")},
        **{f"view/{view}": results.joinpath("views", *run, *shard, view) for view in views},
    }
    if missing := [f"{path}/{MANIFEST_NAME}" for path in inputs.values() if not (path / MANIFEST_NAME).is_file()]:
        sys.exit(f"not there yet; make them with `snakemake --cores 8 --configfile ... --`: {' '.join(missing)}")
    return read_examples(DatasetSplit(dataset=shard[0], split=split), tuple(views), (), inputs, "/".join(run))


def trials(
    module: str, fixed: Mapping[str, Any], fitted_on: Examples, judged: Examples, names: tuple[str, str, int], n: int
) -> list[dict[str, Any]]:
    """Return a row per trial: its settings, and the AUROC on `judged`, or None if it could not be fitted."""
    space: Mapping[str, Any] = load(module).SPACE
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=derive_seed("tune_reader", *names, module))
    search = optuna.create_study(direction="maximize", sampler=sampler)
    rows = []
    for number in track(range(n), n, "trials"):
        trial = search.ask({name: _distribution(rule) for name, rule in space.items()})
        drawn = {name: json.loads(v) if "choices" in space[name] else v for name, v in trial.params.items()}
        settings = {**fixed, **{name: drawn[name] for name in space}}
        try:
            weights = fit(module, fitted_on, settings, {}, derive_seed("fit_readers", *names, module))
        except UnfittedError:
            value = None
            search.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            reader = FittedReader(module=module, settings=settings_of(module, settings), weights=weights)
            value = auroc(score(reader, judged.answers).confidence, judged.correct)
            search.tell(trial, value)
        rows.append({"trial": number, "validation_auroc": value, **{name: drawn[name] for name in space}})
    return rows


def _distribution(rule: Mapping[str, Any]) -> CategoricalDistribution | FloatDistribution:
    """Return a rule of a SPACE in Optuna's form; choices are written as JSON, because a choice may be a list."""
    if "choices" in rule:
        return CategoricalDistribution([json.dumps(choice) for choice in rule["choices"]])
    return FloatDistribution(**rule)


def tune(study: Config, method: str, backbone: str, seed: int, n: int, out: Path) -> str:
    """Search, and write both files into `out`; return a line about the best trial."""
    entry, module = study.methods[method], plugins.module_of("readers", study.methods[method].reader)
    if not plugins.declared("readers", entry.reader, "SPACE") or entry.parents:
        sys.exit(f"{method}: its reader {entry.reader} has no SPACE to search, or it builds on others. Tune another.")
    fixed = {k: v for k, v in entry.settings.items() if k not in plugins.declared("readers", entry.reader, "SPACE")}
    fitted_on, judged = (examples(study, method, backbone, seed, split) for split in ("train", "validation"))
    judged = judged.require("validation", both_classes=True)
    rows = trials(module, fixed, fitted_on, judged, (backbone, entry.actor, seed), n)
    if not (fitted := [row for row in rows if row["validation_auroc"] is not None]):
        sys.exit(f"{method}: none of {n} trials could be fitted.")
    best = max(fitted, key=lambda row: row["validation_auroc"])
    settings = {**fixed, **{name: value for name, value in best.items() if name not in ("trial", "validation_auroc")}}
    source = study.datasets[in_distribution := StudyShards(study).in_distribution].source
    tuned_on = {"study": study.study, "data": "phantoms" if source.phantom else in_distribution, "backbone": backbone}
    # The digest shows whether the settings of a study are still those that the search found.
    tuned_on |= {"actor": entry.actor, "seed": seed, "trials": n, "settings": digest_of(settings)[:16]}
    out.mkdir(exist_ok=True)
    cells = [{name: json.dumps(value) for name, value in row.items()} for row in rows]
    for_spreadsheets(pl.DataFrame(cells)).write_csv(out / f"{method}.csv")
    found = f"trial {best['trial']} of {n}, AUROC {best['validation_auroc']:.4f} on validation"
    fragment = {"methods": {method: {"settings": settings, "tuned_on": tuned_on}}}
    text = yaml.safe_dump(fragment, default_flow_style=None)
    (out / f"{method}.yaml").write_text(
        f"# {backbone}/{entry.actor}/{seed}/{method}: {found}.\n{text}", encoding="utf-8"
    )
    return f"best of {method}: {found}; wrote {out / method}.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method")
    parser.add_argument("--configfile", nargs="+", type=Path, default=[])
    parser.add_argument("--backbone", help="by default the first")
    parser.add_argument("--seed", type=int, help="of the actor; by default the backbone's last one")
    parser.add_argument("--trials", type=int, default=50)
    options = parser.parse_args()
    try:
        study = resolve(merged(options.configfile, REPOSITORY, {}), root=REPOSITORY)
        if options.method not in study.methods:
            sys.exit(f"{options.method}: no such method. Known: {', '.join(study.methods)}.")
        backbone = options.backbone or next(iter(study.backbones))
        seed = study.seeds_of(backbone)[-1] if options.seed is None else options.seed
        print(tune(study, options.method, backbone, seed, options.trials, Path("tuned")))
    except DualReadError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
