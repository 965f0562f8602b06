# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
#   kernelspec: {display_name: Python 3, language: python, name: python3}
# ---

# %% [markdown]
# # Notebook: score the next image, and decide
#
# You have a finished study. This notebook exports one of its readers as a folder that can be shared, asks about images with it,
# and decides which answers to keep. It runs in a copy of the repository, inside its environment (`. .venv/bin/activate`),
# without a GPU. [Score the next image](../score.md) explains the rest. The models are tiny and the images are drawn: the numbers
# say nothing about medicine, and none is for clinical use.
#
# ## A study
#
# After `make tables` the embedded study is there. Otherwise the smallest study, *micro*, is run once; its three training steps
# teach the model to answer in the right form and little else.

# %%
import json
import subprocess
import sys
from pathlib import Path

import polars as pl
from IPython.display import Image
from matplotlib import pyplot as plt

from dualread import Question, Scorer
from dualread.apps.main import main

study = Path("results/embedded")
if not (study / "results.lock").exists():  # it is written when a study has finished
    study = Path("results/micro")
if not (study / "results.lock").exists():
    small = ["--configfile", "workflow/studies/micro.yaml", "--cores", "2"]
    done = subprocess.run([sys.executable, "-m", "snakemake", *small], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
print(study)

# %% [markdown]
# ## A reader to share
#
# The folder has the reader, its thresholds, the study's metrics, a model card, and here the actor too. It can be pushed to the
# Hugging Face hub as it is.

# %%
bundle = "build/notebook/my-reader"
assert (
    main(f"export {study} --backbone qwen3-vl-tiny --actor rlvr --seed 17 --out {bundle} --with-checkpoint".split())
    == 0
)
print((Path(bundle) / "README.md").read_text().split("---")[2][:460])

# %% [markdown]
# ## One question
#
# A donor is another image on which the same question has another answer. If confidence comes from the image, it drops there.

# %%
folder = study / "manifests/slake/test"
columns = ["sample_id", "question", "options", "image_files"]
questions = pl.read_parquet(folder / "manifest.parquet", columns=columns).sort("sample_id")
donors = pl.read_parquet(study / "pairs/slake/test/pairs.parquet").select("sample_id", "donor_sample_id").drop_nulls()
files = {row["sample_id"]: folder / row["image_files"][0] for row in questions.to_dicts()}
paired = questions.join(donors, on="sample_id").head(24).to_dicts()
score = Scorer.load(bundle)
both = list(
    score.each(
        Question(image=files[row["sample_id"]], question=row["question"], donor=files[row["donor_sample_id"]])
        for row in paired
    )
)
# Of an answer that has no valid form there is no confidence. The first question with answers about both images is shown.
chosen = next((k for k, r in enumerate(both) if r.drop is not None), 0)
first, result = paired[chosen], both[chosen]
Image(files[first["sample_id"]], width=160)


# %%
def shown(value, form=".3f"):
    return "none" if value is None else format(value, form)


print("question  ", first["question"])
print("answer    ", result.answer)
print("confidence", f"{shown(result.confidence)}, from PSR {shown(result.psr)} before the answer and PER", end=" ")
print(shown(result.per), "after it")
print("drop      ", shown(result.drop, "+.3f"), "on the donor's image")
print("decision  ", result.decision.reason)

# %% [markdown]
# ## Many questions
#
# `score.each` answers in batches. A question that cannot be answered says why, and stops no other one.

# %%
some = questions.head(24).to_dicts()
asked = [Question(image=files[row["sample_id"]], question=row["question"], options=row["options"]) for row in some]
results = list(score.each([*asked, Question(image="nowhere.png", question="Is there a lesion?")]))
print(results[-1])
pl.DataFrame(
    [
        {"question": row["question"], "answer": r.answer, "confidence": r.confidence, "keep": r.decision.keep}
        for row, r in zip(some, results, strict=False)
    ]
).head(6)

# %% [markdown]
# ## Decide
#
# The reader's folder has one threshold for each target risk and rule. `empirical` reached the target among the validation
# answers; `certified` holds for new images of the same source with high probability. Where there is none, the reason is given,
# and nothing is decided: an undefined threshold is not a number.

# %%
pl.DataFrame([row for row in json.loads((Path(bundle) / "thresholds.json").read_text()) if row["method"] == "dualread"])

# %%
for certified in (False, True):
    decides = Scorer.load(bundle, target_risk_percent=10, certified=certified)
    print(decides(files[first["sample_id"]], first["question"]).decision.reason)

# %% [markdown]
# ## Does confidence come from the image?
#
# Each point is a question that was asked about its own image and about its donor. Below the line, confidence drops.

# %%
judged = [r for r in both if r.drop is not None]
figure, axes = plt.subplots(figsize=(3.6, 3.6))
axes.plot([0, 1], [0, 1], color="gray", linewidth=0.8)
axes.scatter([r.confidence for r in judged], [r.donor.confidence for r in judged], s=14)
axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence on the image", ylabel="confidence on the donor")
plt.show()
print(
    f"confidence drops in {sum(r.drop > 0 for r in judged)} of {len(judged)} questions;"
    f" {len(both) - len(judged)} more have no answer about one of the images"
)
