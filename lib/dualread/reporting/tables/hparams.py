"""The hyperparameters of the study, from its config and its code (the paper's Table hparams).

Every number comes from the config or from a constant that the code uses; words such as MLP describe what the code does.
Where backbones or actors differ, the table prints the value of the first, and the others in parentheses.
"""

import re
import sys
from collections.abc import Callable, Mapping
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
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SMALL = 0.05  # below it a power of ten is easier to read

Config = Mapping[str, Any]
Rows = dict[str, str]


def build(data: pl.DataFrame, settings: StudySettings) -> PrintedTable:
    """Return the table of hyperparameters.

    Args:
        data: A table of stage summarize_data.
        settings: What is printed besides.
    """
    ordered = {
        section: {name: settings.config[section][name] for name in names} for section, names in settings.order.items()
    }
    config = {**settings.config, **ordered}
    in_distribution = next(name for name, dataset in config["datasets"].items() if dataset.get("id"))
    is_training = (pl.col("dataset") == in_distribution) & (pl.col("split") == "train")
    n_questions = int(data.filter(is_training)["questions"].sum())
    versions = [f"{SOFTWARE[name]} {version}" for name, version in settings.software.items()]
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    sections = {
        "Actor training (shared; the reward differs per method)": _training(config, n_questions),
        "Hidden-state head fitting (DualRead)": _fitting(config, settings),
        "Hidden-state head fitting (baselines)": _baselines(config, settings),
        "Evaluation": {**_evaluation(config, settings), "Software": ", ".join([python, *versions])},
    }
    body, cells = [], []
    for title, rows in sections.items():
        body += [Gap.RULE, Heading(title, 2), Gap.RULE] if rows else []
        body += [TableRow([name, text]) for name, text in rows.items()]
        cells += [{"table": "hparams", "section": title, "row": name, "printed": text} for name, text in rows.items()]
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


# Rows by label. <path> is a number of the settings, <path:symbol> one behind a symbol, a name of _WORDS is in words.
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
_MLP = (
    "MLP <hidden>, class-weighted BCE<terms>, <optimizer> lr <learning_rate>, weight decay <weight_decay>, batch"
    r" <batch_size>, <max_epochs:≤> epochs, early stopping (patience <patience>)"
)
_HEADS = {"psr": _MLP, "saplma": _MLP, "bicr": f"{_MLP}, dropout <dropout>, grad-norm clip <clip_norm>"}
_PER = "P-State then P-Visual, linear pointwise BCE, <steps> full-batch steps, lr <learning_rate>"
_TERMS = {"bicr": r" with Brier and ranking terms (<brier_weight:β=>, <ranking_weight:λ=>, <margin:γ=>)"}
_MARK = re.compile(r"<(\w+)(?::([^>]*))?>")


def _filled(template: str, by_owner: Mapping[tuple[str, ...], Any], words: Mapping[str, Callable[[Any], str]]) -> str:
    """Return a row's text; where the settings differ, each value says whose it is."""

    def text(mark: re.Match[str]) -> str:
        path, symbol = mark[1], mark[2] or ""
        value = words.get(
            path,
            lambda settings: number(
                settings[path] if isinstance(settings, Mapping) else getattr(settings, path), symbol
            ),
        )
        return told_apart({who: value(settings) for who, settings in by_owner.items()})

    return _MARK.sub(text, template)


def _training(config: Config, n_questions: int) -> Rows:
    """Return the rows on actor training with `n_questions` questions; none if the study trains no actor."""
    backbones = config["backbones"]
    trained = {
        (backbone["label"], actor["label"]): settings.model_copy(  # with the default limit on prompts
            update={"max_prompt_tokens": settings.longest_prompt(backbone["settings"])}
        )
        for backbone in backbones.values()
        for actor in config["actors"].values()
        if "training" in actor
        for settings in [settings_on(backbone, actor)]
    }
    if not trained:
        return {}
    split, whose = _training_split(config), {(backbone["label"],): backbone for backbone in backbones.values()}
    words_of_backbones = {
        "seeds": lambda actor: f"{{{', '.join(map(str, actor.get('seeds', config['seeds'])))}}}",
        "precision": lambda actor: " / ".join(_SPOKEN[actor["settings"][key]] for key in ("dtype", "attention")),
    }

    def exposure(settings: TrainingSettings) -> str:
        steps = number(settings.steps_over(n_questions))
        if settings.passes is None:
            return f"{steps} steps on {split}"
        return f"{number(settings.passes)} passes over {split} ({steps} steps)"

    rows = {}
    for label, template in _TRAINING.items():
        if label in ("Seeds", "Precision / attention"):
            first, *rest = template.split("; ")
            template = "; ".join([_filled(first, whose, words_of_backbones), *rest])
        rows[label] = _filled(template, trained, {**_WORDS, "exposure": exposure})
    if not any(settings.rollouts for settings in trained.values()):
        del rows["Rollouts sampled by"]
    return rows


def _sampled_by(settings: TrainingSettings) -> str:
    if settings.rollouts is None:
        return "the trained model"
    if (corrected := settings.importance_sampling) is None:
        return f"{settings.rollouts}, no importance-sampling correction"
    most = number(corrected.clip_max, "≤")
    return f"{settings.rollouts}, importance-sampling correction ({corrected.mode}, {most})"


def _variant(settings: TrainingSettings) -> str:
    chosen = {
        f"loss {settings.loss_type}": settings.loss_type != "grpo",
        f"advantages scaled by {settings.scale_rewards}": settings.scale_rewards != "group",
        f"{settings.num_iterations} steps per rollout": settings.num_iterations > 1,
        "truncated completions masked": settings.mask_truncated_completions,
    }
    return "".join(f", {text}" for text, is_shown in chosen.items() if is_shown)


def _trainable(settings: TrainingSettings) -> str:
    if (lora := settings.lora) is None:
        return "full model incl. vision tower"
    part = "full model incl. vision tower" if lora.vision else "language model"
    layers = " ".join(lora.targets or ["all linear layers"])
    dropout = "" if lora.dropout is None else f", dropout {number(lora.dropout)}"
    rank, alpha = number(lora.rank), number(lora.alpha, "α=")
    return f"LoRA of the {part} ({layers}), rank {rank}, {alpha}{dropout}"


def _fitting(config: Config, shown: StudySettings) -> Rows:
    """Return the rows on the heads that DualRead fuses; none if the study has no such method."""
    methods = config["methods"]
    heads = [method for method in methods.values() if method["reader"] == "dualread"][:1]
    for head in heads:  # the list grows while it is read, by the methods that each head builds on
        heads += [methods[parent] for parent in head.get("parents", {}).values()]
    settings_of = {head["reader"]: head.get("settings", {}) for head in heads}
    rows = {}
    if "psr" in settings_of:
        rows["PSR head (pre-answer)"] = _head("psr", settings_of["psr"], None)
    if {"p_state", "p_visual"} <= set(settings_of):
        linear = {("P-State",): settings_of["p_state"], ("P-Visual",): settings_of["p_visual"]}
        rows["PER heads (post-answer)"] = _filled(_PER, linear, {})
        rows["𝐿2 (P-State / P-Visual)"] = " / ".join(number(head["l2"]) for head in linear.values())
        rows["Visual pooling"] = f"cosine-similarity pooling, temperature {number(config['replay']['kappa'], 'κ=')}"
    if "dualread" in settings_of:
        rows["Fusion"] = f"log-odds mean of calibrated PSR and PER, weight {number(WEIGHT)} (frozen a priori)"
        held_out = f"{_training_split(config)} {shown.units_of(_in_distribution(config)['label'])}"
        rows["Calibration"] = f"one scalar temperature per branch, fit on held-out {held_out}"
    return rows


def _head(reader: str, settings: Config, optimizer: str | None) -> str:
    words = {
        "hidden": lambda head: "–".join(map(number, head["hidden"])),
        "optimizer": lambda head: optimizer or "AdamW",
        "terms": lambda head: _filled(_TERMS.get(reader, ""), {("",): head}, {}),
    }
    return _filled(_HEADS[reader], {("",): settings}, words)


def _baselines(config: Config, shown: StudySettings) -> Rows:
    """Return the rows on the networks of the baselines, and the origin of searched settings."""
    rows = {}
    for method in config["methods"].values():
        if (reader := method["reader"]) in _HEADS and reader != "psr":
            head = _head(reader, method.get("settings", {}), shown.constants.get(f"readers.{reader}.OPTIMIZER"))
            searched = shown.constants.get(f"readers.{reader}.SPACE")
            rows[f"{method['label']} head"] = f"{head}; {_origin(method, shown.study)}" if searched else head
    return rows


def _evaluation(config: Config, shown: StudySettings) -> Rows:
    """Return the rows on generation, parsing and evaluation."""
    replicates = number(config["metrics"]["bootstrap"]["replicates"], "𝐵=")
    level = percent((PERCENTILES[1] - PERCENTILES[0]) / 100)
    usual = config["generation"]["decoding"]
    decodings = {
        name: condition.get("decoding", usual)
        for name, condition in config["conditions"].items()
        if "completions" not in condition
    }
    prompts = {
        (backbone["label"],): number(backbone["settings"]["max_prompt_tokens"])
        for backbone in config["backbones"].values()
    }
    answers = {
        (settings["label"], name): number(settings.get("max_completion_tokens", rule["max_completion_tokens"]))
        for actor, settings in config["actors"].items()
        for name, rule in decodings.items()
        if actor in config["conditions"][name].get("actors", [actor])
    }
    chosen = {
        (name,): f"{'sampled' if rule['temperature'] else 'greedy'} (temperature {number(rule['temperature'])})"
        for name, rule in decodings.items()
    }
    engine = config["generation"]["engine"]
    has_own = shown.constants.get(f"generation.{engine}.ENVIRONMENT")
    where = "an environment of its own, with other versions" if has_own else "the environment of all other stages"
    return {
        "Decoding": told_apart(chosen),
        "Max prompt / answer length": f"{told_apart(prompts)} / {told_apart(answers)}",
        "Generation engine": f"{engine}, in {where}",
        "Invalid-confidence policy": f"retain, impute {number(IMPUTED_CONFIDENCE, '𝑐=')}, report parse rate",
        "Calibration error": f"{number(N_BINS)} bins of equal width",
        "Bootstrap": shown.in_units(f"paired {{unit}}-cluster, {replicates}, {level} percentile"),
    }


def _in_distribution(config: Config) -> Config:
    return next(dataset for dataset in config["datasets"].values() if dataset.get("id"))


def _training_split(config: Config) -> str:
    return f"{_in_distribution(config)['label'].removesuffix('-test')}-train"  # labels name what is reported


_WORDS: Mapping[str, Callable[[TrainingSettings], str]] = {
    "sampled_by": _sampled_by,
    "variant": _variant,
    "kl_penalty": lambda training: ("{}" if training.kl_coefficient else "disabled ({})").format(
        number(training.kl_coefficient, "coef=")
    ),
    "betas": lambda training: f"β=({', '.join(map(str, training.betas))})",
    # docs/choices.md, "Warm-up"
    "warmup": lambda training: (
        f"{percent(training.warmup_fraction)} warmup{'; rate 0 in step 1' * (training.warmup_fraction > 0)}"
    ),
    "weights": lambda training: f"{'adapter' if training.lora else 'weights'} in training {_SPOKEN[WEIGHTS]}",
    "trainable": _trainable,
    "processes": lambda training: (
        f"{number(training.processes)} {'sharded ' if training.shard else ''}process{'es' * (training.processes > 1)}"
    ),
}


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

    Args:
        texts: Texts by labels, such as (backbone, actor). Only the label that
            matters is named: the actor's where all backbones agree.
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
