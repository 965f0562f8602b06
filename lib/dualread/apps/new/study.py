"""A study about a user's model and questions: laid over config.yaml, and written as YAML with comments.

The comments say what each part is and what to look at.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import yaml

from dualread.apps.new.data import UserQuestions
from dualread.errors import ConfigError
from dualread.models.backbones.user_model import UserModel
from dualread.study import files

# Tables and figures that make sense for one data set and one actor.
_TABLES = ("main", "cascade", "sc_tradeoff", "data", "base_models", "significance", "thresholds", "costs", "intervals")
_FIGURES = ("forest", "reliability", "risk_coverage")
# In place of the names of actors, of which there is one.
_LABELS = {"verbalized": "Stated confidence", "expected_confidence": "Expected confidence"}
_OF_DONORS = ("counterfactuals",)


def laid_over(name: str, questions: UserQuestions, model: UserModel, root: Path = Path()) -> dict[str, Any]:
    """Return the study as a mapping; null removes what config.yaml has.

    Raises:
        ConfigError: config.yaml has a data set of the study's name.
    """
    config = files.read(root / "config.yaml")
    if name in config["datasets"]:
        raise ConfigError(f"{name}: config.yaml has a data set of this name. Choose another name for the study.")
    backbone = f"{model.name}-own" if model.name in config["backbones"] else model.name
    base = next(key for key, actor in config["actors"].items() if not {"training", "checkpoints"} & set(actor))
    of_methods = Counter(method["actor"] for method in config["methods"].values() if method["actor"] != base)
    judged = {base, of_methods.most_common(1)[0][0]}  # the methods of this actor judge the base instead
    methods = {
        key: _method(entry, base) if entry["actor"] in judged else None for key, entry in config["methods"].items()
    }
    kept = [key for key, entry in methods.items() if entry is not None]
    figures = (*_FIGURES, *(_OF_DONORS if questions.has_donors else ()))
    actor: dict[str, Any] = {"label": model.label}
    tables = _chosen(config["tables"], _TABLES, kept)
    if model.answers is not None:  # given answers: most methods are left out, and there are no costs
        actor["answers"] = {"folder": model.answers}
        tables |= {"main": {"without": None}, "sc_tradeoff": None, "costs": None}
    # A condition that is for some actors or data sets, or a control, is no part of the main results.
    conditions = {
        key: None if {"actors", "datasets", "control"} & set(entry) else {}
        for key, entry in config["conditions"].items()
    }
    return {
        "study": name,
        "phantoms": None,
        "datasets": {**dict.fromkeys(config["datasets"]), name: _dataset(questions, name)},
        "backbones": {**dict.fromkeys(config["backbones"]), backbone: {"label": model.label, **model.entry}},
        "actors": {**dict.fromkeys(config["actors"]), base: actor},
        "conditions": _changes(conditions),
        "methods": methods,
        "contrasts": _changes({key: _of(entry, kept) for key, entry in config["contrasts"].items()}),
        "tables": _changes(tables),
        "figures": _changes(_chosen(config["figures"], figures, kept)),
    }


def _chosen(entries: Mapping[str, Any], names: Collection[str], kept: Collection[str]) -> dict[str, Any]:
    return {name: _of(entry, kept) if name in names else None for name, entry in entries.items()}


def _changes(entries: Mapping[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Return the entries that differ from those of config.yaml."""
    return {name: entry for name, entry in entries.items() if entry != {}}


def _dataset(questions: UserQuestions, name: str) -> dict[str, Any]:
    source = {"folder": str(questions.folder)}
    if questions.hub is not None:
        source |= dict(zip(("hub", "revision"), questions.hub, strict=True))
    match_on = ["modality"] if questions.has_modality else []
    return {
        "label": name,
        "id": True,
        "loader": "table",
        "source": source,
        "settings": dict(questions.settings),
        **({} if questions.bits is None else {"bits": questions.bits}),
        "splits": ["train", "validation", "test"],
        "roles": {
            "train": {"fit": 0.7, "stop": 0.1, "calibration": 0.2},
            "validation": "validation",
            "test": "test",
        },
        "pairing": {"splits": ["test"], "match_on": match_on} if questions.has_donors else None,
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


def _of(entry: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any] | None:
    """Return the changes to a table, figure or contrast, so that it lists kept methods only; None if it has none."""
    changed: dict[str, Any] = {key: None for key in ("datasets", "seeds") if key in entry}
    for key in ("methods", "without"):
        if key in entry and (listed := [method for method in entry[key] if method in kept]) != entry[key]:
            changed[key] = listed
    single = {entry[key] for key in ("method", "baseline") if key in entry}
    return None if changed.get("methods") == [] or single - set(kept) else changed


_INTRODUCTION = """\
# How far can the answers of {model} be trusted? A study that `dualread new` wrote; it is laid over config.yaml, which
# explains every key. The model answers as it is, and only the readers of its confidence are fitted.
#
#     dualread plan --configfile {file}
{before}#     snakemake --cores 8 --configfile {file}
"""
_DATA = """\
# The questions, read by lib/dualread/data/datasets/table.py. Paths are relative to the repository.
{found}
"""
_MODEL = """\
# The model, opened the same way in every stage.
{settings}
# A question that is longer than max_prompt_tokens, with its image, is an error and never cut off. Only `dualread plan`
# reads `size`.
"""
_ACTOR = """\
# It answers by the prompt lib/dualread/models/prompts/shared.txt, and should keep to that format. If it was trained
# with another one, put a file of your own beside it, and name it as `prompt` of the data set.
"""
_LEFT_OUT = """\
# What judges the answers, and what shows it. null leaves out what config.yaml has for trained actors and other data.
"""
_SERVICE = """\
# The model, by the name that the service knows it by. `dualread ask` sends it questions, or writes them into files.
"""
_GIVEN = """\
# It answers by the prompt lib/dualread/models/prompts/shared.txt, and should keep to that format: look at some answers
# before you ask all questions. `dualread ask {file}` writes {folder}/requests-*.jsonl; what a service replies belongs
# into {folder}/responses. `body` is laid over the body of every request, and `max_choices` is the most
# completions that the service gives per request.
"""
_LONGEST = """\
# Longest answers.
generation:
  decoding: {max_completion_tokens: 256}
views:
  samples: {decoding: {max_completion_tokens: 256}}
"""
# Sizes of a real model, in place of those of config.yaml for tiny ones; the same as in workflow/studies/one_gpu.yaml.
_RUNNING = """\
# Longest answers, and how many are computed at once: choose less if memory is short. A faster engine for many answers:
# --configfile {file} workflow/studies/vllm.yaml
generation:
  settings: {{batch_size: 32}}
  decoding: {{max_completion_tokens: 256}}
views:
  samples: {{decoding: {{max_completion_tokens: 256}}}}
replay:
  settings: {{batch_size: 8}}
  agreement: {{max_argmax_mismatch_share: 1.0e-2}}   # the others of config.yaml widen with the measured rounding
"""


def written(study: Mapping[str, Any], questions: UserQuestions, model: UserModel, file: Path) -> str:
    """Return the text of the file."""
    facts = "\n".join(f"#   {line}" for line in questions.lines)
    before = "".join(f"#     {line}\n" for line in model.before(file))
    parts = [
        _INTRODUCTION.format(model=model.label, file=file, before=before),
        _yaml(study, "study"),
        "seeds: [17]                  # seeds of readers derive from it; the model itself has none\n",
        _yaml(study, "phantoms"),
        "\n",
        _DATA.format(found=facts),
        _yaml(study, "datasets"),
        "\n",
        *_of_model(study, model, file),
        "\n",
        _LEFT_OUT,
        *(_yaml(study, key) for key in ("conditions", "methods", "contrasts", "tables", "figures")),
    ]
    return "".join(parts)


def _of_model(study: Mapping[str, Any], model: UserModel, file: Path) -> list[str]:
    """Return the parts on the model, and on how it answers."""
    if model.answers is not None:
        actor = _GIVEN.format(file=file, folder=model.answers)
        return [_SERVICE, _yaml(study, "backbones"), "\n", actor, _yaml(study, "actors"), "\n", _LONGEST]
    opened = _MODEL.format(settings=fill(model.settings_from, 118, initial_indent="# ", subsequent_indent="# "))
    running = _RUNNING.format(file=file)
    return [opened, _yaml(study, "backbones"), "\n", _ACTOR, _yaml(study, "actors"), "\n", running]


def _yaml(study: Mapping[str, Any], key: str) -> str:
    value = study[key]
    if not isinstance(value, Mapping):
        return f"{key}: {'null' if value is None else value}\n"
    text = yaml.dump(dict(value), sort_keys=False, allow_unicode=True, width=108, default_flow_style=None)
    # PyYAML writes a mapping without nested ones in one line; the entries of a section stand one below the other.
    if text.startswith("{"):
        text = "".join(yaml.dump({name: entry}, default_flow_style=False) for name, entry in value.items())
    return f"{key}:\n{indent(text, '  ')}"
