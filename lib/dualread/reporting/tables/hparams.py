"""The hyperparameters of the study, from its config and its code (the paper's Table hparams).

Every number comes from the config or from a constant that the code uses; words such as MLP describe what the code does.
Where backbones or actors differ, the table prints the value of the first, and the others in parentheses.
"""

import re
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from dualread.digests import digest_of
from dualread.evaluation.metrics.calibration_error import N_BINS
from dualread.evaluation.statistics.bootstrap import PERCENTILES
from dualread.readers.dualread import WEIGHT
from dualread.readers.verbalized import IMPUTED_CONFIDENCE
from dualread.reporting.tables.cells import PrintedTable
from dualread.reporting.tables.entries import Float, Gap, Heading, TableRow
from dualread.schema.tables import StudySettings
from dualread.training.settings import OPTIMIZER, SCHEDULE, WEIGHTS, TrainingSettings, settings_on

READS = "data"  # for the number of in-distribution training questions, which make one pass
CONFIG = ("seeds", "datasets", "backbones", "actors", "conditions", "generation", "replay", "methods", "metrics")
ORDERED = ("backbones", "actors", "conditions", "methods")  # sections whose order in the config is the order in print
SOFTWARE = {"torch": "PyTorch", "transformers": "Transformers", "trl": "TRL"}
CONSTANTS = {"readers": ("OPTIMIZER", "SPACE"), "generation": ("ENVIRONMENT",)}  # of plugins, by family

# The table's words for names in the code. A name that is missing here raises an error; it is not printed wrongly.
_SPOKEN = {
    **{"adamw_torch_fused": "AdamW", "constant_with_warmup": "constant"},
    **{"float32": "FP32", "bfloat16": "BF16"},
    **{"sdpa": "SDPA", "eager": "eager", "flash_attention_2": "FlashAttention-2"},
}
_MLP = (
    "MLP <hidden>, class-weighted BCE{}, <optimizer> lr <learning_rate>, weight decay <weight_decay>, batch"
    " <batch_size>, <max_epochs:≤> epochs, early stopping (patience <patience>)"
)
_TERMS = " with Brier and ranking terms (<brier_weight:β=>, <ranking_weight:λ=>, <margin:γ=>)"
_HEADS = {
    **{"psr": _MLP.format(""), "saplma": _MLP.format("")},
    "bicr": f"{_MLP.format(_TERMS)}, dropout <dropout>, grad-norm clip <clip_norm>",
}
# Rows by label: <name> is a value, <name:symbol> a number behind a symbol. A study that lacks
# one of its values does not have the row.
_TRAINING = {
    "Advantage estimator": "GRPO, group size <group_size:𝐺=><variant>",
    "Rollout temperature / top-𝑝": "<temperature> / <top_p>",
    "Rollouts sampled by": "<sampled_by>",
    "PPO clip (low / high)": "<clip_low> / <clip_high>",
    "KL penalty": "<kl_penalty>",
    "Optimizer": f"{_SPOKEN[OPTIMIZER]}, lr <learning_rate>, <betas>",
    "LR schedule / warmup": f"{_SPOKEN[SCHEDULE]}, <warmup>",
    "Weight decay / grad-norm clip": "<weight_decay> / <clip_norm>",
    "Precision / attention": "<precision>; <weights>",
    "Trainable params": "<trainable>",
    "Prompt batch / global batch": "<prompts_per_step> / <prompts_per_step>",
    "Max prompt / completion length": "<max_prompt_tokens> / <max_completion_tokens>",
    "Training exposure": "<exposure>",
    "Seeds": "<seeds>",
    "Hardware": "<processes> per run, each on its own GPU where there are GPUs",
}
_FITTING = {
    "PSR head (pre-answer)": "<psr>",
    "PER heads (post-answer)": "P-State then P-Visual, linear pointwise BCE, <steps> full-batch steps, "
    "lr <learning_rate>",
    "𝐿2 (P-State / P-Visual)": "<l2_state> / <l2_visual>",
    "Visual pooling": "cosine-similarity pooling, temperature <kappa:κ=>",
    "Fusion": "log-odds mean of calibrated PSR and PER, weight <weight> (frozen a priori)",
    "Calibration": "one scalar temperature per branch, fit on held-out <held_out>",
}
_EVALUATION = {
    "Decoding": "<decoding>",
    "Max prompt / answer length": "<prompt> / <answer>",
    "Generation engine": "<engine>, in <environment>",
    "Invalid-confidence policy": f"retain, impute 𝑐={IMPUTED_CONFIDENCE}, report parse rate",
    "Calibration error": f"{N_BINS} bins of equal width",
    "Bootstrap": "<bootstrap>",
    "Software": "<software>",
}
_MARK = re.compile(r"<(\w+)(?::([^>]*))?>")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SMALL = 0.05  # below it a power of ten is easier to read

Config = Mapping[str, Any]
# A number or a text by its name and by who has it: labels such as (backbone, actor).
Values = dict[str, dict[tuple[str, ...], Any]]


def build(data: pl.DataFrame, settings: StudySettings) -> PrintedTable:
    """Return the table of hyperparameters; `data` is a table of stage summarize_data."""
    ordered = {
        section: {name: settings.config[section][name] for name in names} for section, names in settings.order.items()
    }
    config = {**settings.config, **ordered}
    name, in_distribution = next(entry for entry in config["datasets"].items() if entry[1].get("id"))
    split = f"{in_distribution['label'].removesuffix('-test')}-train"  # labels name what is reported
    training = _training(config, int(data.filter(dataset=name, split="train")["questions"].sum()), split)
    held_out = f"{split} {settings.units_of(in_distribution['label'])}"
    sections = {
        "Actor training (shared; the reward differs per method)": _rows(_TRAINING, training),
        "Hidden-state head fitting (DualRead)": _rows(_FITTING, _fitting(config, held_out)),
        "Hidden-state head fitting (baselines)": _baselines(config, settings),
        "Evaluation": _rows(_EVALUATION, _evaluation(config, settings)),
    }
    body, cells = [], []
    for title, rows in sections.items():
        body += [Gap.RULE, Heading(title, 2), Gap.RULE] if rows else []
        body += [TableRow([label, text]) for label, text in rows.items()]
        cells += [{"table": "hparams", "section": title, "row": row, "printed": text} for row, text in rows.items()]
    return PrintedTable(
        floats=[
            Float(
                name="hparams",
                wide=True,
                columns="lp",
                specification=r"lp{0.67\textwidth}",
                head=[],
                body=body[1:],
                caption=f"Hyperparameters, study {settings.study}. In parentheses: who has which other value.",
            )
        ],
        cells=pl.DataFrame(cells),
    )


def _rows(templates: Mapping[str, str], values: Values) -> dict[str, str]:
    """Return the text of each row that has all its values; where these differ, each says whose it is."""

    def text(mark: re.Match[str]) -> str:
        name, symbol = mark[1], mark[2] or ""
        texts = {who: v if isinstance(v, str) else number(v, symbol) for who, v in values[name].items()}
        return told_apart(texts)

    shown = (row for row in templates.items() if all(name in values for name, _ in _MARK.findall(row[1])))
    return {label: _MARK.sub(text, template) for label, template in shown}


def _by_name(settings: Mapping[tuple[str, ...], Mapping[str, Any]]) -> Values:
    """Return values by name of settings by who has them; of those that all have, as each plugin may have others."""
    first, *others = settings.values()
    names = [name for name in first if all(name in values for values in others)]
    return {name: {who: values[name] for who, values in settings.items()} for name in names}


def _shared(**values: Any) -> Values:
    """Return values that everybody has."""
    return _by_name({("",): values})


def _training(config: Config, n_questions: int, split: str) -> Values:
    """Return the values of actor training with the questions of `split`; none if the study trains no actor."""
    backbones = config["backbones"].values()
    trained = {
        (backbone["label"], actor["label"]): settings.model_copy(  # with the default limit on prompts
            update={"max_prompt_tokens": settings.longest_prompt(backbone["settings"])}
        )
        for backbone in backbones
        for actor in config["actors"].values()
        if "training" in actor
        for settings in [settings_on(backbone, actor)]
    }
    if not trained:
        return {}
    values = _by_name(
        {who: {**dict(settings), **_words(settings, n_questions, split)} for who, settings in trained.items()}
    )
    if not any(values["rollouts"].values()):
        del values["sampled_by"]
    return values | _by_name(
        {
            (backbone["label"],): {
                "precision": " / ".join(_SPOKEN[backbone["settings"][key]] for key in ("dtype", "attention")),
                "seeds": f"{{{', '.join(map(str, backbone.get('seeds', config['seeds'])))}}}",
            }
            for backbone in backbones
        }
    )


def _words(settings: TrainingSettings, n_questions: int, split: str) -> dict[str, str]:
    """Return what settings of a training mean in words."""
    steps, n = f"{number(settings.steps_over(n_questions))} steps", settings.processes
    passes = "" if settings.passes is None else f"{number(settings.passes)} passes over {split} ({steps})"
    variants = {
        f"loss {settings.loss_type}": settings.loss_type != "grpo",
        f"advantages scaled by {settings.scale_rewards}": settings.scale_rewards != "group",
        f"{settings.num_iterations} steps per rollout": settings.num_iterations > 1,
        "truncated completions masked": settings.mask_truncated_completions,
    }
    coefficient = number(settings.kl_coefficient, "coef=")
    warmup = percent(settings.warmup_fraction)
    return {
        "variant": "".join(f", {text}" for text, is_shown in variants.items() if is_shown),
        "sampled_by": _sampled_by(settings),
        "kl_penalty": coefficient if settings.kl_coefficient else f"disabled ({coefficient})",
        "betas": f"β=({', '.join(map(str, settings.betas))})",
        # docs/choices.md, "Warm-up"
        "warmup": f"{warmup} warmup{'; rate 0 in step 1' * (settings.warmup_fraction > 0)}",
        "weights": f"{'adapter' if settings.lora else 'weights'} in training {_SPOKEN[WEIGHTS]}",
        "trainable": _trainable(settings),
        "exposure": passes or f"{steps} on {split}",
        "processes": f"{number(n)} {'sharded ' if settings.shard else ''}process{'es' * (n > 1)}",
    }


def _sampled_by(settings: TrainingSettings) -> str:
    if settings.rollouts is None:
        return "the trained model"
    if (corrected := settings.importance_sampling) is None:
        return f"{settings.rollouts}, no importance-sampling correction"
    most = number(corrected.clip_max, "≤")
    return f"{settings.rollouts}, importance-sampling correction ({corrected.mode}, {most})"


def _trainable(settings: TrainingSettings) -> str:
    if (lora := settings.lora) is None:
        return "full model incl. vision tower"
    part = "full model incl. vision tower" if lora.vision else "language model"
    layers = " ".join(lora.targets or ["all linear layers"])
    dropout = "" if lora.dropout is None else f", dropout {number(lora.dropout)}"
    rank, alpha = number(lora.rank), number(lora.alpha, "α=")
    return f"LoRA of the {part} ({layers}), rank {rank}, {alpha}{dropout}"


def _fitting(config: Config, held_out: str) -> Values:
    """Return the values of the heads that DualRead fuses; none if the study has no such method."""
    methods = config["methods"]
    heads = [method for method in methods.values() if method["reader"] == "dualread"][:1]
    for head in heads:  # the list grows while it is read, by the methods that each head builds on
        heads += [methods[parent] for parent in head.get("parents", {}).values()]
    settings = {head["reader"]: head.get("settings", {}) for head in heads}
    values: Values = {}
    if "psr" in settings:
        values |= _shared(psr=_head("psr", settings["psr"], None))
    if {"p_state", "p_visual"} <= set(settings):
        state, visual = settings["p_state"], settings["p_visual"]
        values |= _by_name({("P-State",): state, ("P-Visual",): visual})
        values |= _shared(l2_state=state["l2"], l2_visual=visual["l2"], kappa=config["replay"]["kappa"])
    return values | (_shared(weight=WEIGHT, held_out=held_out) if "dualread" in settings else {})


def _head(reader: str, settings: Config, optimizer: str | None) -> str:
    hidden = "–".join(map(number, settings["hidden"]))
    values = _shared(**{**settings, "hidden": hidden, "optimizer": optimizer or "AdamW"})
    return _rows({reader: _HEADS[reader]}, values)[reader]


def _baselines(config: Config, shown: StudySettings) -> dict[str, str]:
    """Return the rows on the networks of the baselines, and the origin of searched settings."""
    rows = {}
    for method in config["methods"].values():
        if (reader := method["reader"]) in _HEADS and reader != "psr":
            head = _head(reader, method.get("settings", {}), shown.constants.get(f"readers.{reader}.OPTIMIZER"))
            searched = shown.constants.get(f"readers.{reader}.SPACE")
            rows[f"{method['label']} head"] = f"{head}; {_origin(method, shown.study)}" if searched else head
    return rows


def _evaluation(config: Config, shown: StudySettings) -> Values:
    """Return the values of generation, parsing and evaluation, and the software's versions."""
    generation, conditions = config["generation"], config["conditions"]
    decodings = {
        name: condition.get("decoding", generation["decoding"])
        for name, condition in conditions.items()
        if "completions" not in condition
    }
    answers = {
        (settings["label"], name): settings.get("max_completion_tokens", rule["max_completion_tokens"])
        for actor, settings in config["actors"].items()
        for name, rule in decodings.items()
        if actor in conditions[name].get("actors", [actor])
    }
    chosen = {
        (name,): f"{'sampled' if rule['temperature'] else 'greedy'} (temperature {number(rule['temperature'])})"
        for name, rule in decodings.items()
    }
    prompts = {
        (backbone["label"],): backbone["settings"]["max_prompt_tokens"] for backbone in config["backbones"].values()
    }
    has_own = shown.constants.get(f"generation.{generation['engine']}.ENVIRONMENT")
    where = "an environment of its own, with other versions" if has_own else "the environment of all other stages"
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    software = ", ".join([python, *(f"{SOFTWARE[name]} {version}" for name, version in shown.software.items())])
    replicates, level = number(config["metrics"]["bootstrap"]["replicates"], "𝐵="), PERCENTILES[1] - PERCENTILES[0]
    bootstrap = shown.in_units(f"paired {{unit}}-cluster, {replicates}, {level:g}% percentile")
    shared = _shared(engine=generation["engine"], environment=where, bootstrap=bootstrap, software=software)
    return {"decoding": chosen, "prompt": prompts, "answer": answers, **shared}


def _origin(method: Config, study: str) -> str:
    """Return the origin of a method's settings: a search in this study, a search in another study, or none."""
    tuned = method.get("tuned_on")
    if tuned is None:
        return "settings as configured, from no search"
    run = f"{tuned['backbone']}/{tuned['actor']}/{tuned['seed']}"
    origin = f"chosen in {number(tuned['trials'])} trials on the answers of {run} to {tuned['data']}"
    if tuned["settings"] != digest_of(method.get("settings", {}))[: len(tuned["settings"])]:
        return f"settings changed by hand after others were {origin}, study {tuned['study']}"
    if tuned["study"] == study:
        return origin
    return f"settings not tuned for this study: {origin}, study {tuned['study']}"


def number(value: float, name: str = "") -> str:
    """Return every digit of `value` after a name: 128, 10,000, 0.2, 1.276×10⁻⁴, κ=0.1."""
    if isinstance(value, int):
        return f"{name}{value:,}" if value >= 10_000 else f"{name}{value}"
    if value == 0 or abs(value) >= _SMALL:
        return f"{name}{value if value else 0}"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    mantissa = "-" * sign + ".".join(filter(None, (first, "".join(rest))))
    power = str(int(exponent) + len(rest)).translate(_RAISED)
    return f"{name}{mantissa}×10{power}"


def percent(fraction: float) -> str:
    """Return a fraction in percent: 5%."""
    return f"{number(float(Decimal(repr(fraction)) * 100)).removesuffix('.0')}%"


def told_apart(texts: Mapping[tuple[str, ...], str]) -> str:
    """Return the first text and, in parentheses, the other texts with the labels that have them.

    Of several labels, such as (backbone, actor), only the one that matters is named: the actor's where backbones agree.
    """
    first, n_labels = next(iter(texts.values())), len(next(iter(texts)))
    texts_by_label: dict[str, set[str]] = {}
    for named in [slice(k, k + 1) for k in range(n_labels)] + [slice(None)]:
        texts_by_label = {}
        for labels, text in texts.items():
            texts_by_label.setdefault(" with ".join(reversed(labels[named])), set()).add(text)
        if all(len(of_name) == 1 for of_name in texts_by_label.values()):
            break
    others: dict[str, list[str]] = {}
    for name, (text,) in texts_by_label.items():
        if text != first:
            others.setdefault(text, []).append(name)
    told = "; ".join(f"{', '.join(names)}: {text}" for text, names in others.items())
    return f"{first} ({told})" if told else first
