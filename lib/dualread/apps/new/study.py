"""A study about a user's model and questions: laid over config.yaml, and written as YAML with comments.

The comments say what each part is and what to look at.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dualread.apps.new.data import UserQuestions
from dualread.errors import ConfigError
from dualread.models.backbones.user_model import UserModel
from dualread.study import files

# Tables and figures that make sense for one data set and one actor.
_TABLES = ("main", "cascade", "sc_tradeoff", "data", "base_models", "significance", "thresholds", "costs", "intervals")
_FIGURES = ("forest", "reliability", "risk_coverage")
# In place of the names of actors, of which there is one.
_LABELS = {"verbalized": "Stated confidence", "expected_confidence": "Expected confidence"}


def laid_over(name: str, questions: UserQuestions, model: UserModel, root: Path = Path()) -> dict[str, Any]:
    """Return the study as a mapping; null removes what config.yaml has."""
    config = files.read(root / "config.yaml")
    if name in config["datasets"]:
        raise ConfigError(f"{name}: config.yaml has a data set of this name. Choose another name for the study.")
    backbone = f"{model.name}-own" if model.name in config["backbones"] else model.name
    base = next(key for key, actor in config["actors"].items() if not {"training", "checkpoints"} & set(actor))
    of_methods = Counter(method["actor"] for method in config["methods"].values() if method["actor"] != base)
    judged = {base, of_methods.most_common(1)[0][0]}  # the methods of this actor judge the base instead
    methods: dict[str, Any] = {}
    for key, entry in config["methods"].items():
        label = {"label": _LABELS[entry["reader"]]} if entry["reader"] in _LABELS else {}
        changed = {"actor": base, **label, **({"tuned_on": None} if "tuned_on" in entry else {})}
        methods[key] = changed if entry["actor"] in judged else None
    kept = [key for key, entry in methods.items() if entry is not None]
    shown = {"tables": _TABLES, "figures": (*_FIGURES, *(["counterfactuals"] if questions.has_donors else []))}
    # A condition that is for some actors or data sets, or a control, is no part of the main results.
    conditions = {
        key: None if {"actors", "datasets", "control"} & set(entry) else {}
        for key, entry in config["conditions"].items()
    }
    contrasts, tables, figures = (
        {
            key: _with_methods(entry, kept) if kind == "contrasts" or key in shown[kind] else None
            for key, entry in config[kind].items()
        }
        for kind in ("contrasts", "tables", "figures")
    )
    actor: dict[str, Any] = {"label": model.label}
    if model.answers is not None:  # given answers: most methods are left out, and there are no costs
        actor["answers"] = {"folder": model.answers}
        tables |= {"main": {"without": None}, "sc_tradeoff": None, "costs": None}
    hub = {} if questions.hub is None else dict(zip(("hub", "revision"), questions.hub, strict=True))
    match_on = ["modality"] if questions.has_modality else []
    dataset = {
        "label": name,
        "id": True,
        "loader": "table",
        "source": {"folder": str(questions.folder), **hub},
        "settings": dict(questions.settings),
        **({} if questions.bits is None else {"bits": questions.bits}),
        "splits": ["train", "validation", "test"],
        "roles": {"train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2}, "validation": "validation", "test": "test"},
        "pairing": {"splits": ["test"], "match_on": match_on} if questions.has_donors else None,
        "seed": 0,
        "prompt": "shared",
    }
    return {
        "study": name,
        "phantoms": None,
        "datasets": {**dict.fromkeys(config["datasets"]), name: dataset},
        "backbones": {**dict.fromkeys(config["backbones"]), backbone: {"label": model.label, **model.entry}},
        "actors": {**dict.fromkeys(config["actors"]), base: actor},
        "conditions": _changes(conditions),
        "methods": methods,
        "contrasts": _changes(contrasts),
        "tables": _changes(tables),
        "figures": _changes(figures),
    }


def _changes(entries: Mapping[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Return the entries that differ from those of config.yaml."""
    return {name: entry for name, entry in entries.items() if entry != {}}


def _with_methods(entry: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any] | None:
    """Return the changes to a table, figure or contrast, so that it lists kept methods only; None if it has none."""
    changed: dict[str, Any] = {key: None for key in ("datasets", "seeds") if key in entry}
    for key in ("methods", "without"):
        if key in entry and (listed := [method for method in entry[key] if method in kept]) != entry[key]:
            changed[key] = listed
    single = {entry[key] for key in ("method", "baseline") if key in entry}
    return None if changed.get("methods") == [] or single - set(kept) else changed


def written(study: Mapping[str, Any], questions: UserQuestions, model: UserModel, file: Path) -> str:
    """Return the text of the file."""
    folder = FileSystemLoader(Path(__file__).parent)
    templates = Environment(loader=folder, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    return templates.get_template("study.yaml.jinja").render(
        parts={key: _yaml(key, value) for key, value in study.items()},
        questions=questions,
        model=model,
        settings_from=fill(model.settings_from, 118, initial_indent="# ", subsequent_indent="# "),
        file=file,
    )


def _yaml(key: str, value: Any) -> str:
    if not isinstance(value, Mapping):
        return f"{key}: {'null' if value is None else value}"
    text = yaml.dump(dict(value), sort_keys=False, allow_unicode=True, width=108, default_flow_style=None)
    # PyYAML writes a mapping without nested ones in one line; the entries of a section stand one below the other.
    if text.startswith("{"):
        text = "".join(yaml.dump({name: entry}, default_flow_style=False) for name, entry in value.items())
    return f"{key}:\n{indent(text, '  ')}".removesuffix("\n")
