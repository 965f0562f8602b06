"""Every column of every table that stages exchange: name, dtype, meaning. Printed by `dualread schema`."""

from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its polars dtype, what a value means, and whether it may be null."""

    dtype: pl.DataType | type[pl.DataType]
    meaning: str
    nullable: bool = False


def _column(dtype: pl.DataType | type[pl.DataType], meaning: str) -> Column:
    return Column(dtype=dtype, meaning=meaning)


def _nullable(dtype: pl.DataType | type[pl.DataType], meaning: str) -> Column:
    return Column(dtype=dtype, meaning=meaning, nullable=True)


# The key of a completion; generations, graded and features share it.
_COMPLETION = {
    "sample_id": _column(pl.String, "the question's id in the manifest"),
    "condition": _column(pl.String, "which image, prompt and decoding produced it: original, donor, ..."),
    "sample_index": _column(pl.Int32, "0 for greedy; 0..K-1 for sampled completions"),
}

MANIFEST = {
    "sample_id": _column(pl.String, "dataset/split/official id; unique and stable"),
    "dataset": _column(pl.String, "config name of the data set"),
    "split": _column(pl.String, "train, validation or test"),
    "role": _column(pl.String, "what the row may be used for: fit, stop, calibration, validation, test or ood"),
    "question": _column(pl.String, "the question as the data set has it"),
    "question_key": _column(pl.String, "the normalized question; equal keys are the same question"),
    "reference_answers": _column(pl.List(pl.String), "accepted gold answers, verbatim; one or more"),
    "answer_type": _column(pl.String, "open or closed"),
    "content_family": _nullable(pl.String, "modality, organ, plane, position, abnormality, size, shape, color, ..."),
    "options": _column(pl.List(pl.String), "the visible options of a multiple-choice question; empty otherwise"),
    "modality": _nullable(pl.String, "imaging modality, where the data set records one"),
    "location": _nullable(pl.String, "part of the body, where the data set records one"),
    "image_file": _column(pl.String, "path relative to the artifact: images/<sha256>.<extension>"),
    "image_sha256": _column(pl.String, "digest of the image file's bytes"),
    "pixel_sha256": _column(pl.String, "digest of the decoded RGB pixels and the size"),
    "image_id": _column(pl.String, "the image's identity: the cluster of every resample"),
    "source_row": _column(pl.Int64, "0-based row of the official file"),
}

PAIRS = {
    "sample_id": _column(pl.String, "the source question"),
    "donor_sample_id": _column(pl.String, "the question that lends its image and its gold answer"),
    "question_key": _column(pl.String, "the normalized question that both share"),
    "source_image_id": _column(pl.String, "image of the source"),
    "donor_image_id": _column(pl.String, "image of the donor; never the source's"),
    "n_candidates": _column(pl.Int32, "eligible donors that this one was taken from"),
}

GENERATIONS = {
    **_COMPLETION,
    "image_id": _column(pl.String, "the image that was shown"),
    "prompt_sha256": _column(pl.String, "digest of the prompt's token ids, image tokens expanded"),
    "n_prompt_tokens": _column(pl.Int32, "length of the prompt in tokens, image tokens expanded"),
    "token_ids": _column(pl.List(pl.Int32), "generated ids as sampled, the stop token included"),
    "token_log_probs": _column(pl.List(pl.Float32), "raw log-softmax of each id, before bias and temperature"),
    "text": _column(pl.String, "the ids decoded, special tokens left out"),
    "finish_reason": _column(pl.String, "stop or length"),
}

GRADED = {
    **_COMPLETION,
    "image_id": _column(pl.String, "the image that was shown"),
    "answer": _nullable(pl.String, "text of the one valid answer block; null where there is none"),
    "canonical_answer": _nullable(pl.String, "canonical form of the answer; null where empty or missing"),
    "verbalized_confidence": _nullable(pl.Float64, "stated confidence in [0, 1]; null where invalid"),
    "parse_status": _column(pl.String, "valid, invalid_confidence, invalid_answer or invalid_both"),
    "correct": _column(pl.Boolean, "the canonical answer equals a canonical gold answer of the image shown"),
}

FEATURES = {
    **_COMPLETION,
    "row": _column(pl.Int64, "row of every tensor in features.safetensors"),
    "n_prompt_tokens": _column(pl.Int32, "t_prompt is the last of these"),
    "t_close": _column(pl.Int32, "completion position of the token that ends </answer>, or the last one"),
    "answer_positions": _column(pl.List(pl.Int32), "A: completion positions of the answer's tokens"),
    "has_answer_block": _column(pl.Boolean, "false: t_close and A fall back to the end and to all tokens"),
    "n_image_tokens": _column(pl.Int32, "M, the number of image-token positions"),
    "token_log_probs": _column(pl.List(pl.Float32), "replayed log-softmax of each generated id"),
    "log_prob_mean_difference": _column(pl.Float32, "mean absolute difference to the generation's log-probs"),
    "log_prob_max_difference": _column(pl.Float32, "largest absolute difference to the generation's log-probs"),
    "argmax_mismatches": _column(pl.Int32, "greedy ids that are not the replay's argmax, beyond dtype noise"),
}

PREDICTIONS = {
    "sample_id": _column(pl.String, "the question's id in the manifest"),
    "dataset": _column(pl.String, "config name of the data set"),
    "split": _column(pl.String, "train, validation or test"),
    "condition": _column(pl.String, "original, donor, ..."),
    "backbone": _column(pl.String, "config name of the backbone"),
    "actor": _column(pl.String, "config name of the actor"),
    "seed": _column(pl.Int64, "seed of the actor; 0 where the actor has none"),
    "method": _column(pl.String, "config name of the confidence method"),
    "score": _column(pl.Float64, "raw score, higher = more confident; log-odds for the readers"),
    "confidence": _column(pl.Float64, "probability of being correct, in [0, 1]"),
    "imputed": _column(pl.Boolean, "the method had no valid value here and 0.5 stands in"),
}

METRICS = {
    "study": _column(pl.String, "name of the study"),
    "backbone": _column(pl.String, "config name of the backbone"),
    "actor": _column(pl.String, "config name of the actor"),
    "seed": _column(pl.Int64, "seed of the actor; 0 where the actor has none"),
    "dataset": _column(pl.String, "config name of the data set, or an aggregate: ood6, ood_ccg"),
    "split": _column(pl.String, "train, validation or test"),
    "subset": _column(pl.String, "all, open or closed"),
    "method": _column(pl.String, "config name of the confidence method"),
    "metric": _column(pl.String, "accuracy, auroc, ece15, brier, aurc, hce90, natural_ccg_auc, ..."),
    "estimate": _nullable(pl.Float64, "the value; null where undefined"),
    "low": _nullable(pl.Float64, "lower end of the 95% interval; null where none was computed"),
    "high": _nullable(pl.Float64, "upper end of the 95% interval; null where none was computed"),
    "n": _column(pl.Int64, "rows (or pairs) that the value rests on"),
    "n_clusters": _column(pl.Int64, "distinct source images among them"),
    "reason": _nullable(pl.String, "why the estimate is null; null where it is not"),
}

TABLES: dict[str, dict[str, Column]] = {
    "manifest": MANIFEST,
    "pairs": PAIRS,
    "generations": GENERATIONS,
    "graded": GRADED,
    "features": FEATURES,
    "predictions": PREDICTIONS,
    "metrics": METRICS,
}
