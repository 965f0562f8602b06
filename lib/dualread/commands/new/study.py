"""What a new study lays over config.yaml: one backbone that answers as it is, one data set, and what reads them.

Everything that needs a trained actor or another data set is left out, by what config.yaml has at this time.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import yaml

from dualread.commands.new.data import Found
from dualread.commands.new.model import Model
from dualread.errors import ConfigError

# Tables and figures that make sense for one data set and one actor.
_TABLES = ("main", "cascade", "sc_tradeoff", "data", "base_models", "significance", "thresholds", "costs", "intervals")
_FIGURES = ("reliability", "risk_coverage")
# In place of the names of actors, of which there is one.
_LABELS = {"verbalized": "Stated confidence", "expected_confidence": "Expected confidence"}
_OF_DONORS = ("counterfactuals",)


def laid_over(name: str, found: Found, model: Model, root: Path = Path()) -> dict[str, Any]:
    """Return the study as a mapping; null removes what config.yaml has.

    Raises:
        ConfigError: config.yaml has a data set of the study's name.
    """
    config = yaml.safe_load((root / "config.yaml").read_text(encoding="utf-8"))
    if name in config["datasets"]:
        raise ConfigError(f"{name}: config.yaml has a data set of this name. Choose another name for the study.")
    backbone = f"{model.name}-own" if model.name in config["backbones"] else model.name
    base = next(one for one, actor in config["actors"].items() if not {"training", "checkpoints"} & set(actor))
    of_methods = Counter(method["actor"] for method in config["methods"].values() if method["actor"] != base)
    judged = {base, of_methods.most_common(1)[0][0]}  # the methods of this actor judge the base instead
    methods = {
        one: _method(entry, base) if entry["actor"] in judged else None for one, entry in config["methods"].items()
    }
    kept = [one for one, entry in methods.items() if entry is not None]
    figures = (*_FIGURES, *(_OF_DONORS if found.has_donors else ()))
    return {
        "study": name,
        "phantoms": None,
        "datasets": {**dict.fromkeys(config["datasets"]), name: _dataset(found, name)},
        "backbones": {**dict.fromkeys(config["backbones"]), backbone: {"label": model.label, **model.entry}},
        "actors": {**dict.fromkeys(config["actors"]), base: _actor(model)},
        "conditions": _changes({one: _condition(entry) for one, entry in config["conditions"].items()}),
        "methods": methods,
        "contrasts": _changes({one: _of(entry, kept) for one, entry in config["contrasts"].items()}),
        "tables": _changes(_chosen(config["tables"], _TABLES, kept) | _of_given(model)),
        "figures": _changes(_chosen(config["figures"], figures, kept)),
    }


def _of_given(model: Model) -> dict[str, Any]:
    """Return the changes to tables where answers are given: most methods are left out, and there are no costs."""
    return {} if model.answers is None else {"main": {"without": None}, "sc_tradeoff": None, "costs": None}


def _actor(model: Model) -> dict[str, Any]:
    return {"label": model.label, **({} if model.answers is None else {"answers": {"folder": model.answers}})}


def _chosen(entries: Mapping[str, Any], names: Collection[str], kept: Collection[str]) -> dict[str, Any]:
    return {name: _of(entry, kept) if name in names else None for name, entry in entries.items()}


def _changes(entries: Mapping[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Return the entries that differ from those of config.yaml."""
    return {name: entry for name, entry in entries.items() if entry != {}}


def _dataset(found: Found, name: str) -> dict[str, Any]:
    source = {"folder": str(found.folder)}
    if found.hub is not None:
        source |= dict(zip(("hub", "revision"), found.hub, strict=True))
    match_on = ["modality"] if found.has_modality else []
    return {
        "label": name,
        "id": True,
        "loader": "table",
        "source": source,
        "settings": dict(found.settings),
        **({} if found.bits is None else {"bits": found.bits}),
        "splits": ["train", "validation", "test"],
        "roles": {
            "train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2},
            "validation": "validation",
            "test": "test",
        },
        "pairing": {"splits": ["test"], "match_on": match_on} if found.has_donors else None,
        "seed": 0,
        "prompt": "shared",
    }


def _method(entry: Mapping[str, Any], base: str) -> dict[str, Any]:
    changed: dict[str, Any] = {"actor": base}
    if entry["reader"] in _LABELS:
        changed["label"] = _LABELS[entry["reader"]]
    if "tuned_on" in entry:
        changed["tuned_on"] = None
    return changed


def _condition(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return no changes to a condition of the main results, and None for one that is for some actors or data sets."""
    return None if {"actors", "datasets", "control"} & set(entry) else {}


def _of(entry: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any] | None:
    """Return the changes to a table, figure or contrast, so that it lists kept methods only; None if it has none."""
    changed: dict[str, Any] = {key: None for key in ("datasets", "seeds") if key in entry}
    for key in ("methods", "without"):
        if key in entry and (listed := [method for method in entry[key] if method in kept]) != entry[key]:
            changed[key] = listed
    single = {entry[key] for key in ("method", "baseline") if key in entry}
    return None if changed.get("methods") == [] or single - set(kept) else changed
