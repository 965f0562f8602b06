"""A small made-up cell: 40 questions on 12 images, with donors, grades and predictions that follow the schemas."""

import numpy as np
import polars as pl

from dualread.schema.columns import all_schemas

RUN = {"backbone": "tiny", "actor": "rlvr", "seed": 17, "method": "psr"}


def table(rows, schema):
    return pl.DataFrame(rows, schema={name: column.dtype for name, column in all_schemas()[schema].columns.items()})


def gold(i):
    """The gold answer of question i; that of question i + 8, which is its donor, is the other one."""
    return "yes" if i // 8 % 2 else "no"


def manifest(dataset="slake", split="test", n=40, n_images=12):
    return table(
        [
            {
                "sample_id": f"{dataset}/{split}/{i:03d}",
                "dataset": dataset,
                "split": split,
                "role": "test",
                "question": f"Question {i % 8}?",
                "question_key": f"question {i % 8}",
                "reference_answers": [gold(i)],
                "answer_type": "closed" if i % 3 else "open",
                "content_family": "organ" if i % 4 == 0 else None,
                "options": [],
                "image_files": [f"images/{i % n_images}.png"],
                "image_roles": [],
                "pixel_sha256s": [f"{i % n_images}"],
                "image_id": f"{dataset}-image-{i % n_images:02d}",
                "cluster_id": f"{dataset}-image-{i % n_images:02d}",
                "source_row": i,
            }
            for i in range(n)
        ],
        "manifest",
    )


def pairs(questions):
    rows = list(questions.iter_rows(named=True))
    return table(
        [
            {
                "sample_id": row["sample_id"],
                "donor_sample_id": donor["sample_id"],
                "question_key": row["question_key"],
                "source_image_id": row["image_id"],
                "donor_image_id": donor["image_id"],
                "n_candidates": 1,
            }
            for row, donor in zip(rows, rows[8:], strict=False)
        ],
        "pairs",
    )


def graded(ids, images, condition, seed=0):
    generator = np.random.default_rng([seed, len(condition)])
    wrong = generator.choice(["the other", "unclear", ""], len(ids), p=[0.5, 0.4, 0.1])
    rows = []
    for sample, wrong_answer in zip(ids, wrong, strict=True):
        right = gold(int(sample[-3:]) + 8 * (condition == "donor"))
        correct = bool(wrong_answer) and bool(generator.random() < (0.7 if condition == "original" else 0.3))
        other = {"yes": "no", "no": "yes"}[right] if wrong_answer == "the other" else str(wrong_answer)
        rows.append((right if correct else other, correct))
    return table(
        [
            {
                "sample_id": sample,
                "condition": condition,
                "sample_index": 0,
                "image_id": image,
                "answer": answer or None,
                "canonical_answer": answer or None,
                "verbalized_confidence": 0.5,
                "parse_status": "valid" if answer else "invalid_answer",
                "correct": correct,
            }
            for sample, image, (answer, correct) in zip(ids, images, rows, strict=True)
        ],
        "graded",
    )


def predictions(answers, dataset="slake", split="test", seed=1):
    condition = answers["condition"][0]
    generator = np.random.default_rng([seed, len(condition)])
    return table(
        [
            {
                "sample_id": sample,
                "dataset": dataset,
                "split": split,
                "condition": condition,
                **RUN,
                "score": 0.0,
                "confidence": round(float(generator.random()), 1),
                "imputed": i % 10 == 0,
            }
            for i, sample in enumerate(answers["sample_id"])
        ],
        "predictions",
    )


def cell(dataset="slake", split="test"):
    """Return (manifest, pairs, graded by condition, predictions by condition)."""
    questions = manifest(dataset, split)
    donors = pairs(questions)
    grades = {
        "original": graded(questions["sample_id"], questions["image_id"], "original"),
        "donor": graded(donors["sample_id"], donors["donor_image_id"], "donor"),
    }
    return questions, donors, grades, {name: predictions(table, dataset, split) for name, table in grades.items()}


def control_cell():
    """Return `cell()` with the two control conditions: the source's answer on the donor's image, the next image."""
    questions, donors, grades, predicted = cell()
    labels = np.random.default_rng(2).random(len(donors)) < 0.2
    original = grades["original"].drop("image_id", "condition", "correct")
    fixed = donors.select("sample_id", image_id="donor_image_id").join(original, on="sample_id", how="left")
    fixed = fixed.with_columns(condition=pl.lit("donor_fixed_prefix"), correct=pl.Series(labels))
    images = sorted(set(questions["image_id"]))
    following = dict(zip(images, images[1:] + images[:1], strict=True))
    controls = {
        "donor_fixed_prefix": fixed.select(grades["original"].columns),
        "shuffled_image": graded(
            questions["sample_id"], [following[image] for image in questions["image_id"]], "shuffled_image"
        ),
    }
    return questions, donors, grades | controls, predicted | {n: predictions(table) for n, table in controls.items()}
