"""The hyperparameters of the study, from its config and its code (the paper's Table hparams).

Where backbones or actors differ, the table prints the value of the first, and the others in parentheses. `_hparams`
makes the rows.
"""

import sys

import polars as pl

from dualread.declared.tables import StudySettings
from dualread.reporting.tables import _hparams
from dualread.reporting.tables._latex import escape
from dualread.reporting.tables._structure import Float, Gap, Heading, Row
from dualread.reporting.tables.cells import Table

READS = "data"  # for the number of in-distribution training questions, which make one pass
CONFIG = ("seeds", "datasets", "backbones", "actors", "conditions", "generation", "replay", "methods", "metrics")
ORDERED = ("backbones", "actors", "conditions", "methods")  # sections whose order in the config is the order in print
SOFTWARE = {"torch": "PyTorch", "transformers": "Transformers", "trl": "TRL"}


def build(data: pl.DataFrame, settings: StudySettings) -> Table:
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
        "Actor training (shared; the reward differs per method)": _hparams.training(config, n_questions),
        "Hidden-state head fitting (DualRead)": _hparams.fitting(config),
        "Hidden-state head fitting (baselines)": _hparams.baselines(config, settings.study),
        "Evaluation": {**_hparams.evaluation(config), "Software": ", ".join([python, *versions])},
    }
    body, cells = [], []
    for title, rows in sections.items():
        body += [Gap.RULE, Heading(title, 2), Gap.RULE] if rows else []
        body += [Row([name, text]) for name, text in rows.items()]
        cells += [{"table": "hparams", "section": title, "row": name, "printed": text} for name, text in rows.items()]
    return Table(
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
