"""A small study on disk: three questions, one of them with a donor, answered by a base model and a trained actor."""

from PIL import Image

from dualread.data.images import pixel_sha256
from tests.stages import shards

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
    pictures = {name: Image.new("RGB", (8, 6), (level,) * 3) for name, level in GRAY.items()}
    rows = [
        {
            **{"sample_id": sample_id, "dataset": "mine", "split": "test", "role": "test", "question": question},
            **{"question_key": question.lower(), "reference_answers": [gold], "answer_type": "closed", "options": []},
            **{"image_files": [f"images/{image}.png"], "image_roles": [], "image_id": image, "cluster_id": image},
            **{"source_row": row, "pixel_sha256s": [pixel_sha256(pictures[image])]},
        }
        for row, (sample_id, (question, gold, image)) in enumerate(QUESTIONS.items())
    ]
    (manifest := shards.write(folder / "manifests/mine/test", "manifest", rows) / "images").mkdir()
    for name, picture in pictures.items():
        picture.save(manifest / f"{name}.png")
    paired = [
        {
            **{"sample_id": source, "donor_sample_id": donor, "question_key": QUESTIONS[source][0].lower()},
            **{"source_image_id": QUESTIONS[source][2], "donor_image_id": QUESTIONS[donor][2], "n_candidates": 1},
        }
        for source, donor in DONORS.items()
    ]
    shards.write(folder / "pairs/mine/test", "pairs", paired)
    for (actor, seed, condition), answers in ANSWERS.items():
        place, key = f"tiny/{actor}/{seed}/mine/test/{condition}", {"image_id": "a", "condition": condition}
        of_answer = {"sample_index": 0, "verbalized_confidence": None, **key}
        graded = [
            {**of_answer, "sample_id": name, "answer": answer, "canonical_answer": answer, "correct": correct}
            | {"parse_status": "valid" if answer else "invalid_answer"}
            for name, (answer, correct) in answers.items()
        ]
        shards.write(folder / f"graded/{place}", "graded", graded)
        written = [shards.generation(name, f"<answer>{said}</answer>", **key) for name, (said, _) in answers.items()]
        shards.write(folder / f"generations/{place}", "generations", written)
    for method, actor, seed in sorted({key[:3] for key in CONFIDENCES}):
        run = {"dataset": "mine", "split": "test", "backbone": "tiny", "actor": actor, "seed": seed, "method": method}
        predictions = [
            {**run, "sample_id": name, "condition": key[3], "score": value, "confidence": value}
            | {"imputed": value == 0.5}
            for key, values in CONFIDENCES.items()
            if key[0] == method
            for name, value in values.items()
        ]
        shards.write(folder / f"predictions/tiny/{actor}/{seed}/{method}", "predictions", predictions)
    return folder
