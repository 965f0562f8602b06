"""Calls LM-Polygraph itself on what a study has stored, and prints how far our scores are from it.

    python direct.py RESULTS CANONICAL

It uses no code of the library, nor of the package: parquet and safetensors are read with
polars and numpy, statistics are built from the columns, and each shard is one batch. CANONICAL is a JSON file with the
canonical answer of every sampled text, null for an invalid one. For each method, backbone, seed and shard, a JSON line
has the number of answers, the largest difference between -score and LM-Polygraph's uncertainty, and the largest
difference between the confidence and sigmoid(slope * score + intercept). Both are relative to the larger of 1 and the
value.
"""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
from lm_polygraph import estimators
from safetensors.numpy import load_file

KEY = ["sample_id", "condition"]
ROOT, CANONICAL = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())


def header(path):
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    (text,) = json.loads(raw[8 : 8 + size])["__metadata__"].values()
    return json.loads(text)


def read(folder, name):
    parts = sorted(folder.glob(f"{name}*.parquet"))
    return pl.concat([pl.read_parquet(path) for path in parts]) if parts else None


class Shard:
    """One shard of one actor: everything about its answers in the order of the graded table."""

    def __init__(self, run, dataset, split, condition):
        backbone, actor, seed = run
        self.run, self.name = run, f"{dataset}/{split}/{condition}"
        self.path = f"{backbone}/{actor}/{seed}/{dataset}/{split}/{condition}"
        graded = read(ROOT / "graded" / self.path, "graded").filter(pl.col("sample_index") == 0).sort(KEY)
        index = read(ROOT / "features" / self.path, "features").filter(pl.col("sample_index") == 0)
        self.table = graded.select(*KEY, "correct").join(index, on=KEY, how="left", maintain_order="left")
        roles = read(ROOT / "manifests" / dataset / split, "manifest").select("sample_id", "role")
        self.role = self.table.join(roles, on="sample_id", how="left", maintain_order="left")["role"].to_numpy()
        self.tensors = load_file(ROOT / "features" / self.path / "features.safetensors")

    def states(self):
        return self.tensors["h_ans"][self.table["row"].to_numpy()]

    def tokens(self, which):
        """The log-probabilities and the entropies of the completion's or of the answer's tokens."""
        log_probs, entropies = [], []
        for row, of, at in self.table.select("row", "token_log_probs", "answer_positions").iter_rows():
            chosen = at if which == "answer" else range(len(of))
            log_probs.append([of[t] for t in chosen])
            entropies.append([float(self.tensors["token_entropies"][row, t]) for t in chosen])
        return log_probs, entropies

    def samples(self, k):
        """The statistics of the first k samples; those with equal canonical answers are a class."""
        view = read(ROOT / "views" / self.path / "samples", "generations").sort("sample_id", "sample_index")
        of = {i: rows for (i,), rows in view.group_by("sample_id", maintain_order=True)}
        stats = {"sample_texts": [], "sample_log_probs": [], "sample_tokens": []}
        to, of_class = {}, {}
        for n, sample_id in enumerate(self.table["sample_id"]):
            rows = of[sample_id].head(k)
            stats["sample_texts"].append(rows["text"].to_list())
            stats["sample_log_probs"].append([sum(one) for one in rows["token_log_probs"].to_list()])
            stats["sample_tokens"].append(rows["token_ids"].to_list())
            groups = [CANONICAL[text] or ("invalid", j) for j, text in enumerate(rows["text"])]
            seen = list(dict.fromkeys(groups))
            to[n] = {j: seen.index(group) for j, group in enumerate(groups)}
            of_class[n] = [[j for j, group in enumerate(groups) if group == one] for one in seen]
        return stats | {"semantic_classes_entail": {"sample_to_class": to, "class_to_sample": of_class}}


def uncertainties(settings, module, shard, fitted):
    estimator = getattr(estimators, settings["estimator"])(**settings.get("parameters", {}))
    if module == "dualread_lm_polygraph.sampling":
        return estimator(shard.samples(settings["k"]))
    if "tokens" in settings:
        log_probs, entropies = shard.tokens(settings["tokens"])
        return estimator({"greedy_log_likelihoods": log_probs, "entropy": entropies})
    every = fitted.role == "fit"
    train = every & fitted.table["correct"].to_numpy() if module == "dualread_lm_polygraph.relative_density" else every
    return estimator(
        {
            "embeddings_decoder": shard.states(),
            "train_embeddings_decoder": fitted.states()[train],
            "background_train_embeddings_decoder": fitted.states()[every],
        }
    )


def difference(one, other):
    return float(np.max(np.abs(one - other) / np.maximum(1, np.abs(other)), initial=0))


for path in sorted(ROOT.glob("readers/*/*/*/*/reader.safetensors")):
    fitted_reader = header(path)
    if not fitted_reader["module"].startswith("dualread_lm_polygraph."):
        continue
    run, method = tuple(path.parts[-5:-2]), path.parts[-2]
    examples = fitted_reader["provenance"]["examples"]
    fitted = Shard(run, examples["dataset"], examples["split"], "original")
    predictions = pl.read_parquet(ROOT / "predictions" / "/".join(run) / method / "predictions.parquet")
    for names, rows in predictions.group_by("dataset", "split", "condition", maintain_order=True):
        shard = Shard(run, *names)
        found = uncertainties(fitted_reader["settings"], fitted_reader["module"], shard, fitted)
        ours = shard.table.join(rows, on=KEY, how="left", maintain_order="left")
        assert len(rows) == len(shard.table) == len(found)
        score, notes = ours["score"].to_numpy(), fitted_reader["notes"]
        platt = 1 / (1 + np.exp(-(notes["platt_slope"] * -np.asarray(found) + notes["platt_intercept"])))
        print(
            json.dumps(
                {
                    **{"run": "/".join(run), "method": method, "shard": shard.name, "n": len(rows)},
                    **{"score": difference(-score, np.asarray(found)), "slope": notes["platt_slope"]},
                    "confidence": difference(ours["confidence"].to_numpy(), platt),
                }
            )
        )
