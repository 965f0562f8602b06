# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Notebook: your own predictions
#
# You have the answers of a model and a confidence for each. This notebook computes every metric with its interval, compares
# two methods, and finds the confidence from which answers may be used. It runs in seconds, without a GPU and without a model,
# in a copy of the repository. All data are made up; put your own tables in their place.
# [Judge your own confidences](../evaluate.md) explains all columns, metrics and options.
#
# ## One table, every metric

# %%
from pathlib import Path

import numpy as np
import polars as pl
from IPython.display import Image

import dualread

example = Path("docs/example")
answers, pairs = pl.read_csv(example / "predictions.csv"), pl.read_csv(example / "pairs.csv")
answers.head(3)

# %% [markdown]
# A row is an answer. `pairs` has one row per question that was asked again on a *donor*, another image on which the question
# has another answer: it adds CCG-AUC, which asks whether confidence falls there.

# %%
found = dualread.evaluate(answers, pairs, replicates=2000)
shown = ["accuracy", "auroc", "ece15", "ece15_noise_floor", "squared_calibration_error", "brier", "natural_ccg_auc"]
found.metrics.filter(pl.col("subset") == "all", pl.col("metric").is_in(shown)).select(
    "metric", "estimate", "low", "high", "n", "n_clusters"
)

# %% [markdown]
# `low` and `high` are the ends of the 95% interval. It resamples images, because the answers to questions about one image are
# not independent.
#
# The same from the shell also draws a reliability diagram and a plot of risk against coverage.

# %%
from dualread.apps.main import main

out = Path("build/notebook")
command = f"evaluate {example}/predictions.csv --pairs {example}/pairs.csv --out {out} --replicates 200"
assert main(command.split()) == 0

# %%
Image(out / "reliability.png", width=480)

# %% [markdown]
# ## Which of two methods is better?
#
# A second method for comparison: the confidence of an answer is the share of right answers to *other* images' copies of the
# question. It knows the question and not the image.

# %%
right = answers.with_columns(
    correct=pl.Series([a == r for a, r in answers.select("answer", "reference_answer").rows()])
)
of_question = pl.col("correct").sum().over("question") - pl.col("correct")
prior = of_question / (pl.len().over("question") - 1)
both = pl.concat(
    [
        right.drop("correct").with_columns(method=pl.lit("ours")),
        right.with_columns(prior.alias("confidence")).drop("correct").with_columns(method=pl.lit("question alone")),
    ]
)
compared = dualread.evaluate(both, compare=["ours", "question alone"], replicates=2000)
compared.differences.filter(pl.col("metric").is_in(shown)).select("metric", "estimate", "low", "high", "p", "reason")

# %% [markdown]
# The methods are compared on the same images, so that what makes an image hard for both cancels out. CCG-AUC
# has no value, because the second method was not asked about donors; `reason` says so. Undefined is never a number here.
#
# ## From which confidence may an answer be used?
#
# The example is too small to certify anything, so here is a larger table: 2,000 answers about 1,000 images, whose confidence is
# the true probability of being right. Half of the images choose the threshold, the others judge it.

# %%
generator = np.random.default_rng(0)
images = np.repeat(np.arange(1000), 2)
confidence = generator.beta(5, 1, len(images))
larger = pl.DataFrame(
    {
        "image_id": [f"image {i}" for i in images],
        "confidence": confidence,
        "correct": generator.random(len(images)) < confidence,
    }
)
validation, test = larger[:1000], larger[1000:]
chosen = dualread.evaluate(test, calibration=validation, target_risk=[0.05, 0.1], delta=0.1, replicates=0)
chosen.thresholds.select("target_risk", "rule", "threshold", "coverage", "risk", "reason")

# %% [markdown]
# - **empirical**: at most the target share of the *validation* answers with this confidence is wrong. On new answers it is
#   often more.
# - **certified**: at most the target share of the answers to *new images of the same source* is wrong; the statement itself is
#   wrong with a probability of at most `delta`. It keeps fewer answers: `coverage` is the share that is kept, `risk` the share
#   of these that is wrong on the test half, which is itself an estimate from a few hundred answers.
#
# Out of distribution neither rule promises anything. And the answers that choose must be others than those that judge:

# %%
try:
    dualread.evaluate(test, calibration=test, target_risk=0.1, replicates=0)
except dualread.errors.DataError as error:
    print(error)
