"""Official files of data sets, as they were released, with made-up rows."""

import csv
import json
from dataclasses import astuple
from pathlib import Path

import polars as pl

from dualread import plugins
from dualread.data.datasets.base import load
from tests import golden

RAD = "VQA_RAD Dataset Public.json"
RAD_IMAGES = "VQA_RAD Image Folder"
OF_2019 = "VQAMed2019_Test_Questions_w_Ref_Answers.txt"
IMAGES_2019 = "VQAMed2019_Test_Images"
VIEW = "deid_png/GRDN1/GRDN2/studies/1.2/series/1.3/instances/1.4.png"
LEAKS = ("correct_answer_explanation", "category", "class", "subcategory", "study_id", "PatientID", "PatientAge",
         "Indication", "Comparison", "Findings", "Impression")  # fmt: skip
RECORDS = {
    "slake": {
        **{"img_id": 1, "img_name": "xmlab1/source.jpg", "question": "What is it?", "answer": "MRI", "q_lang": "en"},
        **{"modality": "MRI", "location": "Brain_Tissue", "answer_type": "OPEN", "base_type": "vqa"},
        **{"content_type": "Modality", "triple": ["vhead", "_", "_"], "qid": 7},
    },
    "vqa_rad": {
        **{
            "qid": 1,
            "phrase_type": "freeform",
            "qid_linked_id": "03f4",
            "image_case_url": "https://medpix.nlm.nih.gov/case?id=48e1dd0e-8552-46ad-a354-5eb55be86de6",
        },
        **{"image_name": "synpic54610.jpg", "image_organ": "HEAD", "evaluation": "not evaluated"},
        **{"question": "Are regions of the brain infarcted?", "question_rephrase": "NULL", "question_relation": "NULL"},
        **{"question_frame": "NULL", "question_type": "PRES", "answer": "Yes", "answer_type": "CLOSED"},
    },
    "pmc_vqa": {
        **{"Figure_path": "PMC1064097_F1.jpg", "Question": "What is the uptake pattern?", "Answer": "Focal uptake "},
        **{"Choice A": " A:Diffuse uptake ", "Choice B": " B:Focal uptake ", "Choice C": " C:No uptake "},
        **{"Choice D": " D:Cannot be told", "Answer_label": "B"},
    },
    "omnimedvqa": {
        **{"dataset": "ACRIMA", "question_id": "7", "question_type": "Modality Recognition", "question": "Which one?"},
        **{"gt_answer": "Fundus imaging", "image_path": "Images/ACRIMA/Im553_g_ACRIMA.png", "option_A": "PET scan"},
        **{"option_B": "CT scan", "option_C": "Blood test", "option_D": "Fundus imaging"},
        **{"modality_type": "Fundus Photography"},
    },
    "rexvqa": {
        **{
            "question": "Which is present?",
            "options": ["A. Normal heart", "B. Pneumonia", "C. Fracture", "D. Effusion"],
        },
        **{"correct_answer": "B", "task_name": "Presence Assessment", **{name: f"LEAK {name}" for name in LEAKS}},
        **{"ImagePath": [f"../{VIEW}", "../deid_png/GRDN1/lateral.png"], "ImageViewPosition": ["PA", "LATERAL"]},
    },
    "table": {"question": "What is it?", "reference_answers": ["CT", "CT scan"], "image": "img/a.png"},
}


PMC_COLUMNS = list(RECORDS["pmc_vqa"])


def record(loader: str, **changes) -> dict:
    """A row of a loader's official file; a change to `...` leaves a key out."""
    changed = {**RECORDS[loader], **changes}
    return {key: value for key, value in changed.items() if value is not ...}


def write(folder: Path, files: dict) -> None:
    """Write files by their path: texts, bytes, and what JSON can hold."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content, ensure_ascii=False)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())


def write_rows(folder: Path, loader: str, *rows: dict, name: str | None = None) -> None:
    """Write the official file of a loader, for the split test or under another name."""
    if loader == "vqa_rad":
        write(folder, {name or RAD: list(rows), f"{RAD_IMAGES}/a": ""})
    elif loader == "pmc_vqa":
        with (folder / (name or "test_clean.csv")).open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    elif loader == "omnimedvqa":
        write(folder, {f"QA_information/Open-access/{name or 'ACRIMA.json'}": list(rows)})
    elif loader == "rexvqa":
        named = {f"q{k}": row for k, row in enumerate(rows)}
        write(folder, {f"metadata/{name or 'test_vqa_data.json'}": named})
    elif loader == "table":
        write(folder, {name or "test.jsonl": "".join(json.dumps(row) + "\n" for row in rows)})
    elif loader == "path_vqa":
        write_tables(folder, name or "test", list(rows))
    elif loader == "vqa_med_2019":
        write(folder, {OF_2019: "\n".join(rows), f"{IMAGES_2019}/a": ""})
    else:
        write(folder, {name or "test.json": list(rows)})


OF_THE_HUB = {
    "image": pl.Struct({"bytes": pl.Binary, "path": pl.String}),
    "question": pl.String,
    "answer": pl.String,
}


def write_tables(folder, split, *shards, schema=OF_THE_HUB):
    """Write one table for each list of (image bytes, question, answer), named as on the hub."""
    (folder / "data").mkdir(exist_ok=True)
    for i, rows in enumerate(shards):
        records = [
            {"image": {"bytes": image, "path": None}, "question": question, "answer": answer}
            for image, question, answer in rows
        ]
        name = f"{split}-{i:05d}-of-{len(shards):05d}-e5bc3d208bb4deeb.parquet"
        pl.DataFrame(records, schema=schema).write_parquet(folder / "data" / name)


def _named(image, folder):
    return image if isinstance(image, bytes) else str(image.relative_to(folder))


def text_of(loaded, folder):
    """The rows, a line each, and the audit; of what all rows have, the first row has it alone."""
    lines = [f"file {loaded.file.relative_to(folder)}"]
    for row in loaded.rows:
        shown = astuple(row)[: None if row.columns else -1]  # further columns only where there are some
        images = [(_named(source, folder), name, *([] if role is None else [role])) for source, name, role in shown[8]]
        lines.append(" · ".join(map(repr, (*shown[:8], *(part for image in images for part in image), *shown[9:]))))
    return "\n".join(
        [*lines, *(f"{of.step}: {of.kept} kept, {of.dropped} dropped: {of.reason}" for of in loaded.audit)]
    )


def rows_or_refusal(loader, folder, split, settings):
    loaded = []
    module = plugins.load("datasets", loader)
    refusal = golden.message_of(lambda: loaded.append(load(module, folder, split, settings)), folder)
    return text_of(loaded[0], folder) if loaded else refusal
