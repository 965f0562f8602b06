"""Stage tune_reader: search for a reader's best settings -> every trial, and the best settings as a study file.

The paper chose BICR's architecture in 50 trials on one actor and then kept it (DualRead, app:baseline_protocols). A
trial draws the settings that the reader's literal SPACE names, fits the reader as fit_readers does, with the same seed,
and measures the AUROC on validation. The AUROC depends only on the order of the confidences, which the network decides;
how far apart they are is decided by the temperature that is fitted afterwards. Of equal trials the earliest is best.
A trial that cannot be fitted has no AUROC.

Inputs: `manifest`, `graded`, `features` and `view/<name>` of the training answers, `validation/manifest`,
`validation/graded` and `validation/features`. Outputs: trials.csv, one row per trial; best.yaml, a study file with the
best settings and, as `tuned_on`, where they come from.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from dualread.artifacts.tables import for_spreadsheets
from dualread.declared.base import Settings
from dualread.declared.readers import DatasetSplit, TuneReaderSpec
from dualread.errors import ConfigError, UnfittedError
from dualread.evaluation.metrics.discrimination import auroc
from dualread.progress import track
from dualread.readers.base import FittedReader, fit, load, score
from dualread.readers.declarations import declared
from dualread.seeding import derive_seed
from dualread.stages._examples import read_examples
from dualread.store.digest import digest_of


def compute(spec: TuneReaderSpec, inputs: Mapping[str, Path], out: Path) -> str:
    """Write trials.csv and best.yaml."""
    names = (spec.backbone, spec.actor, spec.seed)
    module, where = spec.reader.module, spec.name
    space = _space(module, spec.settings, where)
    examples = read_examples(DatasetSplit(dataset=spec.dataset, split="train"), spec.views, inputs, where)
    others = DatasetSplit(dataset=spec.dataset, split="validation")
    held_out = {name.removeprefix("validation/"): inputs[name] for name in inputs if name.startswith("validation/")}
    validation = read_examples(others, (), held_out, where).require("validation", both_classes=True)
    study, distributions = _study(derive_seed("tune_reader", *names, module)), _distributions(space)
    import optuna

    rows, unfitted = [], ""
    for number in track(range(spec.trials), spec.trials, f"{where}: trials"):
        trial = study.ask(distributions)
        drawn = {n: json.loads(trial.params[n]) if "choices" in rule else trial.params[n] for n, rule in space.items()}
        settings = {**spec.settings, **drawn}
        try:
            weights = fit(module, examples, settings, {}, derive_seed("fit_readers", *names, module))
        except UnfittedError as error:
            unfitted, value = str(error), None
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            reader = FittedReader(module=module, settings=settings, weights=weights)
            value = auroc(score(reader, validation.answers).confidence, validation.correct)
            study.tell(trial, value)
        rows.append({"trial": number, "validation_auroc": value, **drawn})
    fitted = [row for row in rows if row["validation_auroc"] is not None]
    if not fitted:
        raise UnfittedError(f"{where}: none of {len(rows)} trials could be fitted, the last one because: {unfitted}")
    best = max(fitted, key=lambda row: row["validation_auroc"])
    cells = [{name: json.dumps(value) for name, value in row.items()} for row in rows]
    for_spreadsheets(pl.DataFrame(cells)).write_csv(out / "trials.csv")
    found = f"trial {best['trial']} of {len(rows)}, AUROC {best['validation_auroc']:.4f} on validation"
    settings = {**spec.settings, **{name: best[name] for name in space}}
    tuned_on = {name: getattr(spec, name) for name in ("study", "data", "backbone", "actor", "seed", "trials")}
    # The digest shows whether the settings of a study are still those that the search found.
    method = {"settings": settings, "tuned_on": {**tuned_on, "settings": digest_of(settings)[:16]}}
    fragment = yaml.safe_dump({"methods": {spec.reader.method: method}}, default_flow_style=None)
    (out / "best.yaml").write_text(f"# {where}: {found}.\n{fragment}", encoding="utf-8")
    return f"read {len(examples)} training and {len(validation)} validation answers; best of {where}: {found}"


def _space(module: str, fixed: Settings, where: str) -> dict[str, Any]:
    reader = load(module)
    if not hasattr(reader, "SPACE") or declared(module, "PARENTS"):
        raise ConfigError(f"{where}: {module} has no SPACE to search, or it has parents. Expected readers.bicr.")
    if twice := sorted(set(fixed) & set(reader.SPACE)):
        raise ConfigError(f"{where}: settings {', '.join(twice)} are tuned. Leave them out of the study's settings.")
    return reader.SPACE


def _distributions(space: Mapping[str, Any]) -> dict[str, Any]:
    """Return a SPACE in Optuna's form; choices are written as JSON, because a choice may be a list."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution

    return {
        name: CategoricalDistribution([json.dumps(choice) for choice in rule["choices"]])
        if "choices" in rule
        else FloatDistribution(**rule)
        for name, rule in space.items()
    }


def _study(seed: int) -> Any:
    """Return a study in memory with the tree-structured Parzen estimator as sampler."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
