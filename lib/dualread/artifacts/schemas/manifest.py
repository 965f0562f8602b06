"""The table of questions. One row per question: its text, gold answers and image, and what it may be used for."""

import polars as pl

from dualread.artifacts.schemas import Schema, column, nullable

MANIFEST = Schema(
    name="manifest",
    columns={
        "sample_id": column(pl.String, "dataset/split/official id; unique and stable"),
        "dataset": column(pl.String, "config name of the data set"),
        "split": column(pl.String, "train, validation or test"),
        "role": column(pl.String, "what the row may be used for: fit, stop, calibration, validation, test or ood"),
        "question": column(pl.String, "the question as the data set has it"),
        "question_key": column(pl.String, "the normalized question; questions with equal keys are the same question"),
        "reference_answers": column(pl.List(pl.String), "accepted gold answers, verbatim; one or more"),
        "answer_type": column(pl.String, "open or closed"),
        "content_family": nullable(pl.String, "modality, organ, plane, position, abnormality, size, shape, color, ..."),
        "options": column(
            pl.List(pl.String), "the visible options of a multiple-choice question; empty for other questions"
        ),
        "modality": nullable(pl.String, "imaging modality; null if the data set records none"),
        "location": nullable(pl.String, "part of the body; null if the data set records none"),
        "image_file": column(pl.String, "path relative to the artifact: images/<sha256>.<extension>"),
        "image_sha256": column(pl.String, "digest of the image file's bytes"),
        "pixel_sha256": column(pl.String, "digest of the image's size and decoded RGB pixels"),
        "image_id": column(pl.String, "name of the picture in its data set and split; the cluster of the bootstrap"),
        "source_row": column(pl.Int64, "0-based row of the official file"),
        "donor_sample_id": nullable(
            pl.String, "the same-question donor that the data set names; null if it names none"
        ),
    },
)
