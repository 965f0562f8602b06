"""A small study on disk: three questions, one of them with a donor, answered by a base model and a trained actor."""

import json

from PIL import Image

from dualread.artifacts.tables import from_rows, write_table
from dualread.data.images import pixel_sha256
from dualread.schema.columns import GENERATIONS, GRADED, MANIFEST, PAIRS, PREDICTIONS

HOSTILE = "</script><img src=x onerror=document.title='broken'><!-- <b>bold</b>"
GRAY = {"a": 40, "b": 200}  # one image per name, of one gray level
QUESTIONS = {  # sample_id: question, reference answer, image, in the official file's order
    "mine/test/2": ("Is there a lesion?", "yes", "a"),
    "mine/test/1": ("Is there a lesion?", "no", "b"),
    "mine/test/3": (HOSTILE, "liver", "a"),
}
DONORS = {"mine/test/2": "mine/test/1"}
# (actor, seed, condition): {sample_id: (answer, correct)}
ANSWERS = {
    ("base", 0, "original"): {"mine/test/2": ("no", False), "mine/test/1": ("no", True), "mine/test/3": (None, False)},
    ("base", 0, "donor"): {"mine/test/2": ("no", True)},
    ("rlvr", 17, "original"): {
        "mine/test/2": ("yes", True),
        "mine/test/1": ("yes", False),
        "mine/test/3": ("liver", True),
    },
    ("rlvr", 17, "donor"): {"mine/test/2": ("yes", False)},
}
# (method, actor, seed, condition): {sample_id: confidence}
CONFIDENCES = {
    ("baseline", "base", 0, "original"): {"mine/test/2": 0.5, "mine/test/1": 0.75, "mine/test/3": 0.5},
    ("baseline", "base", 0, "donor"): {"mine/test/2": 0.25},
    ("dualread", "rlvr", 17, "original"): {"mine/test/2": 0.9, "mine/test/1": 0.95, "mine/test/3": 0.30004},
    ("dualread", "rlvr", 17, "donor"): {"mine/test/2": 0.2},
}


def write(folder):
    """Write the study into `folder` and return it."""
    manifests, pairs = _artifact(folder, "manifests/mine/test"), _artifact(folder, "pairs/mine/test")
    pictures = {name: Image.new("RGB", (8, 6), (level,) * 3) for name, level in GRAY.items()}
    for name, picture in pictures.items():
        (manifests / "images").mkdir(exist_ok=True)
        picture.save(manifests / f"images/{name}.png")
    rows = [
        {
            **{"sample_id": sample_id, "dataset": "mine", "split": "test", "role": "test", "question": question},
            **{"question_key": question.lower(), "reference_answers": [gold], "answer_type": "closed", "options": []},
            **{"image_file": f"images/{image}.png", "image_sha256": image * 64, "image_id": image, "source_row": row},
            "pixel_sha256": pixel_sha256(pictures[image]),
        }
        for row, (sample_id, (question, gold, image)) in enumerate(QUESTIONS.items())
    ]
    write_table(manifests / "manifest.parquet", from_rows(rows, MANIFEST), MANIFEST)
    paired = [
        {
            **{"sample_id": source, "donor_sample_id": donor, "question_key": QUESTIONS[source][0].lower()},
            **{"source_image_id": QUESTIONS[source][2], "donor_image_id": QUESTIONS[donor][2], "n_candidates": 1},
        }
        for source, donor in DONORS.items()
    ]
    write_table(pairs / "pairs.parquet", from_rows(paired, PAIRS), PAIRS)
    for (actor, seed, condition), answers in ANSWERS.items():
        _write_answers(folder, f"tiny/{actor}/{seed}/mine/test/{condition}", condition, answers)
    for method, actor, seed in sorted({key[:3] for key in CONFIDENCES}):
        place = _artifact(folder, f"predictions/tiny/{actor}/{seed}/{method}")
        said = [_said(key, *row) for key, of in CONFIDENCES.items() if key[0] == method for row in of.items()]
        write_table(place / "predictions.parquet", from_rows(said, PREDICTIONS), PREDICTIONS)
    return folder


def _write_answers(folder, shard, condition, answers):
    graded, generations = _artifact(folder, f"graded/{shard}"), _artifact(folder, f"generations/{shard}")
    key = {"condition": condition, "sample_index": 0, "image_id": "a"}
    judged = [
        {
            **{"sample_id": sample_id, **key, "answer": answer, "canonical_answer": answer, "correct": correct},
            "parse_status": "valid" if answer else "invalid_answer",
        }
        for sample_id, (answer, correct) in answers.items()
    ]
    write_table(graded / "graded.parquet", from_rows(judged, GRADED), GRADED)
    written = [
        {
            **{"sample_id": sample_id, **key, "prompt_sha256": "0" * 64, "n_prompt_tokens": 9, "finish_reason": "stop"},
            **{"token_ids": [1], "token_log_probs": [0.0], "text": f"<answer>{answer}</answer>"},
        }
        for sample_id, (answer, _) in answers.items()
    ]
    write_table(generations / "generations.parquet", from_rows(written, GENERATIONS), GENERATIONS)


def _said(key, sample_id, confidence):
    method, actor, seed, condition = key
    return {
        **{"sample_id": sample_id, "dataset": "mine", "split": "test", "condition": condition, "backbone": "tiny"},
        **{"actor": actor, "seed": seed, "method": method, "score": confidence, "confidence": confidence},
        "imputed": confidence == 0.5,
    }


def _artifact(folder, place):
    made = folder / place
    made.mkdir(parents=True)
    (made / "MANIFEST.json").write_text(json.dumps({}))
    return made
