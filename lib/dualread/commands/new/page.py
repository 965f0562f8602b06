"""The file of a new study: YAML with comments that say what each part is and what to look at."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill, indent
from typing import Any

import yaml

from dualread.commands.new.data import Found
from dualread.commands.new.model import Model

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


def written(study: Mapping[str, Any], found: Found, model: Model, file: Path) -> str:
    """Return the text of the file."""
    said = "\n".join(f"#   {line}" for line in found.lines)
    before = "".join(f"#     {line}\n" for line in model.before(file))
    parts = [
        _INTRODUCTION.format(model=model.label, file=file, before=before),
        _yaml(study, "study"),
        "seeds: [17]                  # seeds of readers derive from it; the model itself has none\n",
        _yaml(study, "phantoms"),
        "\n",
        _DATA.format(found=said),
        _yaml(study, "datasets"),
        "\n",
        *_of_model(study, model, file),
        "\n",
        _LEFT_OUT,
        *(_yaml(study, key) for key in ("conditions", "methods", "contrasts", "tables", "figures")),
    ]
    return "".join(parts)


def _of_model(study: Mapping[str, Any], model: Model, file: Path) -> list[str]:
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
