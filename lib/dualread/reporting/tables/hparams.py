"""The hyperparameters of the study, from its config and its code (the paper's Table hparams).

Every number comes from the config or from a constant that the code uses; words such as MLP describe what the code does.
Where backbones or actors differ, the table prints the value of the first, and the others in parentheses.
"""

import sys
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from dualread.declared.tables import StudySettings
from dualread.digests import digest_of
from dualread.evaluation.metrics.calibration_error import N_BINS
from dualread.evaluation.statistics.bootstrap import PERCENTILES
from dualread.models.training.settings import LOSS, OPTIMIZER, SCHEDULE, WEIGHTS, TrainingSettings, settings_on
from dualread.readers.dualread import WEIGHT
from dualread.readers.verbalized import IMPUTED_CONFIDENCE
from dualread.reporting.tables._latex import Float, Gap, Heading, TableRow, escape
from dualread.reporting.tables.cells import PrintedTable

READS = "data"  # for the number of in-distribution training questions, which make one pass
CONFIG = ("seeds", "datasets", "backbones", "actors", "conditions", "generation", "replay", "methods", "metrics")
ORDERED = ("backbones", "actors", "conditions", "methods")  # sections whose order in the config is the order in print
DECLARED = {"readers": ("OPTIMIZER", "SPACE"), "generation": ("ENVIRONMENT",)}  # constants of the study's plugins
SOFTWARE = {"torch": "PyTorch", "transformers": "Transformers", "trl": "TRL"}

# The table's words for names in the code. A name that is missing here raises an error; it is not printed wrongly.
_SPOKEN = {
    **{"grpo": "GRPO", "adamw_torch_fused": "AdamW", "constant_with_warmup": "constant"},
    **{"float32": "FP32", "bfloat16": "BF16"},
    **{"sdpa": "SDPA", "eager": "eager", "flash_attention_2": "FlashAttention-2"},
}
_SMALL = 0.05  # below it a power of ten is easier to read

Config = Mapping[str, Any]
Rows = dict[str, str]


def build(data: pl.DataFrame, settings: StudySettings) -> PrintedTable:
    """Return the table of hyperparameters.

    Args:
        data: A table of stage summarize_data.
        settings: What is printed besides.
    """
    ordered = {section: {name: settings.config[section][name] for name in of} for section, of in settings.order.items()}
    config = {**settings.config, **ordered}
    in_distribution = next(name for name, dataset in config["datasets"].items() if dataset.get("id"))
    is_training = (pl.col("dataset") == in_distribution) & (pl.col("split") == "train")
    n_questions = int(data.filter(is_training)["questions"].sum())
    versions = [f"{SOFTWARE[name]} {version}" for name, version in settings.software.items()]
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    sections = {
        "Actor training (shared; the reward differs per method)": _training(config, n_questions),
        "Hidden-state head fitting (DualRead)": _fitting(config),
        "Hidden-state head fitting (baselines)": _baselines(config, settings),
        "Evaluation": {
            **_evaluation(config, settings.declared["generation"]),
            "Software": ", ".join([python, *versions]),
        },
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
                caption=f"Hyperparameters, study {escape(settings.study)}. In parentheses: who has which other value.",
            )
        ],
        cells=pl.DataFrame(cells),
    )


def _training(config: Config, n_questions: int) -> Rows:
    """Return the rows on actor training with `n_questions` questions; none if the study trains no actor."""
    trained = {
        (backbone["label"], actor["label"]): _trained_with(backbone, actor)
        for backbone in config["backbones"].values()
        for actor in config["actors"].values()
        if "training" in actor
    }
    if not trained:
        return {}

    def told(text: Callable[[TrainingSettings], str]) -> str:
        return told_apart({who: text(settings) for who, settings in trained.items()})

    def each(name: str, symbol: str = "") -> str:
        return told(lambda settings: number(getattr(settings, name), symbol))

    def of_backbones(text: Callable[[Config], str]) -> str:
        return told_apart({(backbone["label"],): text(backbone) for backbone in config["backbones"].values()})

    return {
        "Advantage estimator": f"{_SPOKEN[LOSS]}, group size {each('group_size', 'G=')}",
        "Rollout temperature / top-$p$": f"{each('temperature')} / {each('top_p')}",
        **_rollouts(trained),
        "PPO clip (low / high)": f"{each('clip_low')} / {each('clip_high')}",
        "KL penalty": told(_kl_penalty),
        "Optimizer": f"{_SPOKEN[OPTIMIZER]}, lr {each('learning_rate')}, {told(_betas)}",
        "LR schedule / warmup": f"{_SPOKEN[SCHEDULE]}, {told(_warmup)}",
        "Weight decay / grad-norm clip": f"{each('weight_decay')} / {each('clip_norm')}",
        "Precision / attention": f"{of_backbones(_precision)}; {told(_weights)}",
        "Trainable params": told(_trainable),
        "Prompt batch / global batch": f"{each('prompts_per_step')} / {each('prompts_per_step')}",
        "Max prompt / completion length": f"{each('max_prompt_tokens')} / {each('max_completion_tokens')}",
        "Training exposure": told(lambda settings: _exposure(settings, n_questions, _training_split(config))),
        "Seeds": of_backbones(lambda backbone: _set(backbone.get("seeds", config["seeds"]))),
        "Hardware": f"{told(_processes)} per run, each on its own GPU where there are GPUs",
    }


def _rollouts(trained: Mapping[tuple[str, str], TrainingSettings]) -> Rows:
    """Return the row on what samples the completions; none where the trained models themselves do."""
    if not any(settings.rollouts for settings in trained.values()):
        return {}

    def text(settings: TrainingSettings) -> str:
        if settings.rollouts is None:
            return "the trained model"
        engine = escape(settings.rollouts)
        if (corrected := settings.importance_sampling) is None:
            return f"{engine}, no importance-sampling correction"
        most = number(corrected.clip_max, r"\le")
        return f"{engine}, importance-sampling correction ({escape(corrected.mode)}, {most})"

    return {"Rollouts sampled by": told_apart({who: text(settings) for who, settings in trained.items()})}


def _weights(settings: TrainingSettings) -> str:
    part = "adapter" if settings.lora else "weights"
    return f"{part} in training {_SPOKEN[WEIGHTS]}"


def _trainable(settings: TrainingSettings) -> str:
    if (lora := settings.lora) is None:
        return r"full model incl.\ vision tower"
    of = r"full model incl.\ vision tower" if lora.vision else "language model"
    layers = " ".join(escape(name) for name in lora.targets or ["all linear layers"])
    dropout = "" if lora.dropout is None else f", dropout {number(lora.dropout)}"
    rank, alpha = number(lora.rank), number(lora.alpha, r"\alpha=")
    return f"LoRA of the {of} ({layers}), rank {rank}, {alpha}{dropout}"


def _fitting(config: Config) -> Rows:
    """Return the rows on the heads that DualRead fuses; none if the study has no such method."""
    methods = config["methods"]
    heads = [method for method in methods.values() if method["reader"] == "dualread"][:1]
    for head in heads:  # the list grows while it is read, by the methods that each head builds on
        heads += [methods[parent] for parent in head.get("parents", {}).values()]
    of = {head["reader"]: head.get("settings", {}) for head in heads}
    rows = {}
    if "psr" in of:
        rows["PSR head (pre-answer)"] = _psr_network(of["psr"], {})
    if {"p_state", "p_visual"} <= set(of):
        linear = {("P-State",): of["p_state"], ("P-Visual",): of["p_visual"]}
        steps, rate = (
            told_apart({name: number(head[key]) for name, head in linear.items()}) for key in ("steps", "learning_rate")
        )
        rows["PER heads (post-answer)"] = (
            f"P-State then P-Visual, linear pointwise BCE, {steps} full-batch steps, lr {rate}"
        )
        rows["$L2$ (P-State / P-Visual)"] = f"{number(of['p_state']['l2'])} / {number(of['p_visual']['l2'])}"
        kappa = number(config["replay"]["kappa"], r"\kappa=")
        rows["Visual pooling"] = f"cosine-similarity pooling, temperature {kappa}"
    if "dualread" in of:
        rows["Fusion"] = f"log-odds mean of calibrated PSR and PER, weight {number(WEIGHT)} (frozen a priori)"
        rows["Calibration"] = f"one scalar temperature per branch, fit on held-out {_training_split(config)} images"
    return rows


def _baselines(config: Config, settings: StudySettings) -> Rows:
    """Return the rows on the networks of the baselines, and the origin of searched settings."""
    rows = {}
    for method in config["methods"].values():
        if network := _BASELINES.get(method["reader"]):
            constants = settings.declared["readers"][method["reader"]]
            head = network(method.get("settings", {}), constants)
            origin = f"; {_origin(method, settings.study)}" if "SPACE" in constants else ""
            rows[f"{escape(method['label'])} head"] = f"{head}{origin}"
    return rows


def _evaluation(config: Config, engines: Config) -> Rows:
    """Return the rows on generation, parsing and evaluation."""
    replicates = number(config["metrics"]["bootstrap"]["replicates"], "B=")
    level = percent((PERCENTILES[1] - PERCENTILES[0]) / 100)
    usual = config["generation"]["decoding"]
    decodings = {
        name: condition.get("decoding", usual)
        for name, condition in config["conditions"].items()
        if "completions" not in condition
    }
    prompts = {(of["label"],): number(of["settings"]["max_prompt_tokens"]) for of in config["backbones"].values()}
    answers = {
        (of["label"], name): number(of.get("max_completion_tokens", rule["max_completion_tokens"]))
        for actor, of in config["actors"].items()
        for name, rule in decodings.items()
        if actor in config["conditions"][name].get("actors", [actor])
    }
    return {
        "Decoding": told_apart({(name,): _decoding(rule) for name, rule in decodings.items()}),
        "Max prompt / answer length": f"{told_apart(prompts)} / {told_apart(answers)}",
        "Generation engine": _engine(config["generation"]["engine"], engines),
        "Invalid-confidence policy": f"retain, impute {number(IMPUTED_CONFIDENCE, 'c=')}, report parse rate",
        "Calibration error": f"{number(N_BINS)} bins of equal width",
        "Bootstrap": f"paired image-cluster, {replicates}, {level} percentile",
    }


def _trained_with(backbone: Config, actor: Config) -> TrainingSettings:
    """Return the settings of a training, with the default limit on prompts where they set none."""
    settings = settings_on(backbone, actor)
    return settings.model_copy(update={"max_prompt_tokens": settings.longest_prompt(backbone["settings"])})


def _training_split(config: Config) -> str:
    in_distribution = next(dataset for dataset in config["datasets"].values() if dataset.get("id"))
    return f"{escape(in_distribution['label'].removesuffix('-test'))}-train"  # labels name what is reported: SLAKE-test


def _kl_penalty(settings: TrainingSettings) -> str:
    coefficient = number(settings.kl_coefficient, r"\mathrm{coef}=")
    return coefficient if settings.kl_coefficient else f"disabled ({coefficient})"


def _warmup(settings: TrainingSettings) -> str:
    # docs/choices.md, "Warm-up"
    first = "; rate $0$ in step $1$" if settings.warmup_fraction else ""
    return f"{percent(settings.warmup_fraction)} warmup{first}"


def _betas(settings: TrainingSettings) -> str:
    return rf"$\beta=({','.join(map(str, settings.betas))})$"


def _precision(backbone: Config) -> str:
    return " / ".join(_SPOKEN[backbone["settings"][key]] for key in ("dtype", "attention"))


def _exposure(settings: TrainingSettings, n_questions: int, split: str) -> str:
    steps = number(settings.steps_over(n_questions))
    return (
        f"{number(settings.passes)} passes over {split} ({steps} steps)"
        if settings.passes is not None
        else (f"{steps} steps on {split}")
    )


def _set(seeds: list[int]) -> str:
    return rf"$\{{{', '.join(map(str, seeds))}\}}$"


def _processes(settings: TrainingSettings) -> str:
    n = settings.processes
    return f"{number(n)} {'sharded ' if settings.shard else ''}process{'es' * (n > 1)}"


def _decoding(rule: Config) -> str:
    chosen = "sampled" if rule["temperature"] else "greedy"
    return f"{chosen} (temperature {number(rule['temperature'])})"


def _engine(name: str, engines: Config) -> str:
    where = "an environment of its own, with other versions" if engines[name] else "the environment of all other stages"
    return f"{escape(name)}, in {where}"


def _psr_network(settings: Config, constants: Config) -> str:
    return _network(settings, "class-weighted BCE", "AdamW")


def _bicr_network(settings: Config, constants: Config) -> str:
    weights = {"brier_weight": r"\beta=", "ranking_weight": r"\lambda=", "margin": r"\gamma="}
    loss = ", ".join(number(settings[name], symbol) for name, symbol in weights.items())
    terms = f"class-weighted BCE with Brier and ranking terms ({loss})"
    network = _network(settings, terms, constants["OPTIMIZER"])
    return f"{network}, dropout {number(settings['dropout'])}, grad-norm clip {number(settings['clip_norm'])}"


_BASELINES = {"saplma": _psr_network, "bicr": _bicr_network}


def _network(settings: Config, loss: str, optimizer: str) -> str:
    widths = "--".join(map(number, settings["hidden"]))
    rate, decay = number(settings["learning_rate"]), number(settings["weight_decay"])
    epochs, patience = number(settings["max_epochs"], r"\le"), number(settings["patience"])
    return (
        f"MLP {widths}, {loss}, {optimizer} lr {rate}, weight decay {decay}, batch {number(settings['batch_size'])}, "
        f"{epochs} epochs, early stopping (patience {patience})"
    )


def _origin(method: Config, study: str) -> str:
    """Return the origin of a method's settings: a search in this study, a search in another study, or none."""
    tuned = method.get("tuned_on")
    if tuned is None:
        return "settings as configured, from no search"
    run = escape(f"{tuned['backbone']}/{tuned['actor']}/{tuned['seed']}")
    found = f"chosen in {number(tuned['trials'])} trials on the answers of {run} to {escape(tuned['data'])}"
    if tuned["settings"] != digest_of(method.get("settings", {}))[: len(tuned["settings"])]:
        return rf"settings \emph{{changed by hand}} after others were {found}, study {escape(tuned['study'])}"
    if tuned["study"] == study:
        return found
    return rf"settings \emph{{not tuned for this study}}: {found}, study {escape(tuned['study'])}"


def number(value: float, name: str = "") -> str:
    r"""Return every digit of `value` as LaTeX: $128$, $10{,}000$, $0.2$, $1.276\!\times\!10^{-4}$; `$<name>...$`."""
    return f"${name}{_digits(value)}$"


def percent(fraction: float) -> str:
    r"""Return a fraction as LaTeX: $5\%$."""
    return rf"${_digits(float(Decimal(repr(fraction)) * 100)).removesuffix('.0')}\%$"


def told_apart(texts: Mapping[tuple[str, ...], str]) -> str:
    """Return the first text and, in parentheses, the other texts with the labels that have them.

    Args:
        texts: LaTeX by labels, such as (backbone, actor). Only the label that
            matters is named: the actor's where all backbones agree.
    """
    first, n_labels = next(iter(texts.values())), len(next(iter(texts)))
    found: dict[str, set[str]] = {}
    for named in [slice(k, k + 1) for k in range(n_labels)] + [slice(None)]:
        found = {}
        for labels, text in texts.items():
            found.setdefault(" with ".join(map(escape, reversed(labels[named]))), set()).add(text)
        if all(len(of_name) == 1 for of_name in found.values()):
            break
    others: dict[str, list[str]] = {}
    for name, (text,) in found.items():
        if text != first:
            others.setdefault(text, []).append(name)
    told = "; ".join(f"{', '.join(names)}: {text}" for text, names in others.items())
    return f"{first} ({told})" if told else first


def _digits(value: float) -> str:
    if isinstance(value, int):
        return f"{value:,}".replace(",", "{,}") if value >= 10_000 else str(value)
    if value == 0:
        return "0"
    if abs(value) >= _SMALL:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    mantissa = "-" * sign + ".".join(filter(None, (first, "".join(rest))))
    return rf"{mantissa}\!\times\!10^{{{int(exponent) + len(rest)}}}"
