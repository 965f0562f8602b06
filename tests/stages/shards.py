"""Small artifacts of one shard, written as the stages upstream write them."""

from pathlib import Path

import numpy as np
import polars as pl

from dualread.artifacts.tables import from_rows, write_table
from dualread.artifacts.tensors import write_tensors
from dualread.grading.canonical import question_key
from dualread.schema.columns import FEATURES, all_schemas
from dualread.schema.readers import ScoringSpec
from dualread.store.digest import MANIFEST_NAME
from dualread.store.key import Action
from dualread.store.manifest import Manifest, file_table
from tests import specs

REPLAY = {
    **{"backbone": "tiny", "actor": "rlvr", "seed": 17, "actor_digest": "abc", "kappa": 0.1},
    **{"final_layer": 4, "middle_layer": 3, "positions": {"t_close": "the token that closes the answer"}},
    **{"example": {"h_ans": [2.0]}, "prompt": {"name": "shared", "sha256": "d" * 64}},
    **{"dataset": "slake", "split": "train", "condition": "original"},
}


SCORING = ScoringSpec(
    model={"dtype": "float32", "attention": "sdpa", "max_prompt_tokens": 4096, "min_pixels": 256, "max_pixels": 1024},
    contract="single",
    answer=specs.shard(),
    views=(),
)


def write_actor(folder: Path) -> Path:
    """Write an actor without weights."""
    (folder / "checkpoint").mkdir(parents=True)
    (folder / "checkpoint" / "config.json").write_text("{}")
    (folder / "train_log.parquet").write_text("no part of the checkpoint")
    return seal(folder)


def seal(folder: Path) -> Path:
    """Write the folder's MANIFEST.json."""
    action = Action(stage="test", code="c", spec={}, inputs={}, packages={})
    (folder / MANIFEST_NAME).write_bytes(Manifest(action=action, files=file_table(folder)).to_bytes())
    return folder


def manifest_rows(n: int, *, split: str, roles: tuple[str, ...], questions: int = 5) -> list[dict]:
    rows = []
    for i in range(n):
        question = f"What is in region {i % questions}?"
        row = {"sample_id": f"slake/{split}/{i:04d}", "dataset": "slake", "split": split, "role": roles[i % len(roles)]}
        row |= {"question": question, "question_key": question_key(question), "answer_type": "open", "options": []}
        row |= {
            "reference_answers": ["Lung" if i % 2 else "Heart"],
            "modality": "CT",
            "image_files": [f"images/{i}.png"],
            "image_roles": [],
        }
        row |= {
            "pixel_sha256s": [f"p{i}"],
            "image_id": f"image {i}",
            "cluster_id": f"image {i}",
            "source_row": i,
        }
        rows.append(row)
    return rows


def write(folder: Path, name: str, rows: list[dict]) -> Path:
    """Write `rows` as the table `name` and seal the folder."""
    folder.mkdir(parents=True)
    schema = all_schemas()[name]
    write_table(folder / f"{name}.parquet", from_rows(rows, schema), schema)
    return seal(folder)


def generation(sample_id: str, text: str, *, image_id: str, condition: str = "original", sample_index: int = 0) -> dict:
    key = {"sample_id": sample_id, "condition": condition, "sample_index": sample_index, "image_id": image_id}
    tokens = {"prompt_sha256": "0", "n_prompt_tokens": 3, "token_ids": [1, 2], "token_log_probs": [-0.1, -0.2]}
    return {**key, **tokens, "text": text, "finish_reason": "stop"}


def graded_rows(manifest: list[dict], correct: np.ndarray, *, condition: str = "original") -> list[dict]:
    return [
        {
            **{"sample_id": row["sample_id"], "condition": condition, "sample_index": 0, "image_id": row["image_id"]},
            **dict.fromkeys(("answer", "canonical_answer"), None if i % 11 == 0 else f"answer {i % 3}"),
            "verbalized_confidence": None if i % 7 == 0 else (i % 101) / 100,
            "parse_status": "invalid_confidence" if i % 7 == 0 else "valid",
            "correct": bool(correct[i]),
        }
        for i, row in enumerate(manifest)
    ]


def write_features(folder: Path, graded: list[dict], correct: np.ndarray, *, seed: int = 0, **header) -> Path:
    """Write states that hold the labels, in a row order of their own."""
    rng, n = np.random.default_rng(seed), len(graded)
    rows = rng.permutation(n)  # the table's order is not the tensors'
    states = rng.normal(size=(n, 6))
    states[rows, 0] += correct
    names = ("h_pre", "h_close", "h_ans", "h_global", "h_evid", "h_mid")
    tensors = {name: (states + 0.2 * rng.normal(size=(n, 6))).astype(np.float32) for name in names}
    same = {"sample_index": 0, "n_prompt_tokens": 3, "t_close": 1, "answer_positions": [0], "has_answer_block": True}
    same |= {"n_image_tokens": 4, "token_log_probs": [-0.1], "argmax_mismatches": 0}
    same |= {"log_prob_mean_difference": 0.0, "log_prob_max_difference": 0.0}
    index = [
        {**same, "sample_id": row["sample_id"], "condition": row["condition"], "row": int(rows[i])}
        for i, row in enumerate(graded)
    ]
    folder.mkdir(parents=True)
    write_tensors(folder / "features.safetensors", tensors, {**REPLAY, **header})
    write_table(folder / "features.parquet", from_rows(index, FEATURES), FEATURES)
    return seal(folder)


def read(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / f"{name}.parquet")
