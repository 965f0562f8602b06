"""Every column of every table that stages exchange: name, dtype and meaning. `dualread schema` prints them.

Keys digest definitions: a stage depends only on the tables that it reads and writes.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column: its polars dtype, the meaning of a value, and whether values may be null."""

    dtype: pl.DataType | type[pl.DataType]
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The columns of a table, in order."""

    name: str
    columns: Mapping[str, Column]


def column(dtype: pl.DataType | type[pl.DataType], meaning: str) -> Column:
    """Return a column that holds no null."""
    return Column(dtype=dtype, meaning=meaning)


def nullable(dtype: pl.DataType | type[pl.DataType], meaning: str) -> Column:
    """Return a column that may hold nulls."""
    return Column(dtype=dtype, meaning=meaning, nullable=True)


FEWEST_OPTIONS, MOST_OPTIONS = 2, 10  # of a multiple-choice question: its prompt has the letters A to J

# The key of a completion, which generations, graded and features share.
COMPLETION = {
    "sample_id": column(pl.String, "id of the question in the table of questions (manifest.parquet)"),
    "condition": column(pl.String, "the image, prompt and decoding that produced it: original, donor, ..."),
    "sample_index": column(pl.Int32, "0 for greedy; 0..K-1 for sampled completions"),
}


# The table of questions. One row per question: its text, gold answers and image, and what it may be used for.
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
        "image_files": column(
            pl.List(pl.String),
            "the images, in order, one or more: paths relative to the artifact, images/<sha256>.<extension>",
        ),
        "image_roles": column(
            pl.List(pl.String), "what each image is, such as prior and current; empty if the data set does not say it"
        ),
        "pixel_sha256s": column(pl.List(pl.String), "digest of the size and the decoded RGB pixels of each image"),
        "image_id": column(
            pl.String,
            "name of what is shown in its data set and split: of the image, or of all images, joined by ` + `",
        ),
        "cluster_id": column(
            pl.String,
            "what has one role and is resampled: the first image of the patient, or the image where none is known",
        ),
        "patient_id": nullable(
            pl.String, "digest of the patient, equal in all splits; null if the data set names none"
        ),
        "source_row": column(pl.Int64, "0-based row of the official file"),
        "donor_sample_id": nullable(
            pl.String, "the same-question donor that the data set names; null if it names none"
        ),
    },
)

# One row per question and further column of the user's table, where a study names some for groups of answers.
QUESTION_COLUMNS = Schema(
    name="question_columns",
    columns={
        "sample_id": column(pl.String, "the question"),
        "column": column(pl.String, "name of the column, such as sex or site"),
        "value": nullable(pl.String, "its value; null if it is blank"),
    },
)

# One row per question that has a same-question donor.
PAIRS = Schema(
    name="pairs",
    columns={
        "sample_id": column(pl.String, "the source question"),
        "donor_sample_id": column(pl.String, "the question that lends its image and its gold answer"),
        "question_key": column(pl.String, "the normalized question that both share"),
        "source_image_id": column(pl.String, "image of the source"),
        "donor_image_id": column(pl.String, "image of the donor; never the source's"),
        "n_candidates": column(pl.Int32, "number of questions that could have been the donor"),
    },
)

# One row per image of a phantom hospital: what its writer knows. The loader of the data set does not read it.
TRUTH = Schema(
    name="truth",
    columns={
        "image_id": column(pl.String, "the image, as the table of questions names it"),
        "haze": column(pl.Float64, "share of the contrast that a haze takes away, in [0, 1]; 0 is a clear image"),
    },
)

# One row per picture of a table of questions: a small gray version, to find copies of the picture.
THUMBNAILS = Schema(
    name="thumbnails",
    columns={
        "pixel_sha256": column(
            pl.String, "digest of the size and the decoded RGB pixels, as in the table of questions"
        ),
        "thumbnail": column(pl.Binary, "gray levels of the picture at 64 x 64 pixels, row by row, 8 bits each"),
    },
)

# One row per completion: exact token ids and raw log-probabilities.
GENERATIONS = Schema(
    name="generations",
    columns={
        **COMPLETION,
        "image_id": column(pl.String, "the image that was shown"),
        "prompt_sha256": column(pl.String, "digest of the prompt's token ids, with image tokens expanded"),
        "n_prompt_tokens": column(pl.Int32, "length of the prompt in tokens, with image tokens expanded"),
        "token_ids": column(pl.List(pl.Int32), "generated ids as sampled, with the stop token"),
        "token_log_probs": column(pl.List(pl.Float32), "raw log-softmax of each id, before bias and temperature"),
        "text": column(pl.String, "the decoded ids without special tokens"),
        "finish_reason": column(pl.String, "stop or length"),
    },
)

# One row per two answers to a question that differ in canonical form: what a model says of their meanings.
GROUPS = Schema(
    name="groups",
    columns={
        "sample_id": column(pl.String, "the question"),
        "answer": column(pl.String, "a canonical answer; the lesser of the two in the order of code points"),
        "other": column(pl.String, "the other one"),
        "similarity": nullable(
            pl.Float64,
            "by entailment, the mean of both directions: 1 entailed, 0.5 neutral, 0 contradicted; by embedding, the"
            " cosine; by judge, the share of both orders in which they mean the same; null without a verdict",
        ),
        "same": nullable(pl.Boolean, "whether they count as the same answer; null without a verdict of a judge"),
    },
)

# One row per given completion, in the order of generations.parquet: its tokens, as the service lists them.
TOKENS = Schema(
    name="tokens",
    columns={
        "sample_id": COMPLETION["sample_id"],
        "sample_index": COMPLETION["sample_index"],
        "n_bytes": column(
            pl.List(pl.Int32), "bytes of each token in the completion's text (UTF-8); 0 for the one that ends the turn"
        ),
        "log_probs": column(pl.List(pl.Float64), "log-probability of each token, as the service gave it"),
    },
)

# One row per answer and choice: how probable the choice is to the actor.
CHOICES = Schema(
    name="choices",
    columns={
        "sample_id": column(pl.String, "id of the question in the table of questions (manifest.parquet)"),
        "condition": column(pl.String, "condition/view: the condition of the answer, and the view that asks about it"),
        "choice": column(pl.String, "Yes, No, 0, 1, ..., 100; of options A, B, ..., or yes, no"),
        "log_prob": column(
            pl.Float64, "log-probability in nats; the probabilities of all choices need not add up to 1"
        ),
        "n_prompt_tokens": column(pl.Int32, "length of the prompt in tokens, image tokens and forced prefix included"),
    },
)

# One row per completion: parsed answer, stated confidence, correctness.
GRADED = Schema(
    name="graded",
    columns={
        **COMPLETION,
        "image_id": column(pl.String, "the image that was shown"),
        "answer": nullable(pl.String, "text of the valid answer block; null if there is none"),
        "canonical_answer": nullable(pl.String, "canonical form of the answer; null if empty or missing"),
        "verbalized_confidence": nullable(pl.Float64, "stated confidence in [0, 1]; null if invalid"),
        "parse_status": column(
            pl.String, "valid, invalid_confidence, invalid_answer, invalid_both or no_end_of_thinking"
        ),
        "correct": column(
            pl.Boolean, "whether the canonical answer equals a canonical gold answer for the image shown"
        ),
    },
)

# One row per claim of the reports of a shard, in the order of reports and texts, with a label or not.
CLAIMS = Schema(
    name="claims",
    columns={
        **COMPLETION,  # sample_id is that of the claim: the question's, `#`, and 0, 1, ... in the order of the text
        "question": column(pl.String, "sample_id of the question that the report answers"),
        "image_id": column(pl.String, "the image that was shown"),
        "start": column(pl.Int32, "first character of the claim in the completion's text, from 0"),
        "end": column(pl.Int32, "the character after its last one"),
        "text": column(pl.String, "the characters from start to end"),
        "label": nullable(
            pl.Boolean, "whether the reference of the image shown supports it; null where nothing says so"
        ),
    },
)

# One row per replayed completion: where its states were read, and how well the replay agrees.
FEATURES = Schema(
    name="features",
    columns={
        **COMPLETION,
        "row": column(pl.Int64, "row of this completion in every tensor of features.safetensors"),
        "n_prompt_tokens": column(pl.Int32, "length of the prompt in tokens; t_prompt is the last of them"),
        "t_close": column(
            pl.Int32, "position in the completion of the token that ends </answer>, or of the last token"
        ),
        "answer_positions": column(pl.List(pl.Int32), "A: positions in the completion of the answer's tokens"),
        "has_answer_block": column(
            pl.Boolean, "false: there is none, so t_close is the last token and A is all tokens"
        ),
        "n_image_tokens": column(pl.Int32, "M, the number of image-token positions"),
        "token_log_probs": column(pl.List(pl.Float32), "log-softmax of each generated id in the replay"),
        "log_prob_mean_difference": column(pl.Float32, "mean absolute difference to the generation's log-probs"),
        "log_prob_max_difference": column(pl.Float32, "largest absolute difference to the generation's log-probs"),
        "argmax_mismatches": column(
            pl.Int32, "greedy ids that are not the argmax of the replay by more than dtype noise"
        ),
    },
)

# One row per answer and method: its confidence, without labels.
PREDICTIONS = Schema(
    name="predictions",
    columns={
        "sample_id": column(pl.String, "id of the question in the table of questions (manifest.parquet)"),
        "dataset": column(pl.String, "config name of the data set"),
        "split": column(pl.String, "train, validation or test"),
        "condition": column(pl.String, "original, donor, ..."),
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor"),
        "seed": column(pl.Int64, "seed of the actor; 0 if the actor has none"),
        "method": column(pl.String, "config name of the confidence method"),
        "score": nullable(
            pl.Float64,
            "raw score, finite, higher = more confident; on the method's own scale, such as log-odds; null where a"
            " judge of its samples gave no verdict",
        ),
        "confidence": column(
            pl.Float64,
            "probability of being correct, in [0, 1]; of a method that is not calibrated, the score's rank in (0, 1)",
        ),
        "imputed": column(pl.Boolean, "whether the method had no valid value here, so that 0.5 replaces it"),
    },
)

# One row per method, actor and shard: the cost of a confidence, counted from the artifacts.
COSTS = Schema(
    name="costs",
    columns={
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor"),
        "seed": column(pl.Int64, "seed of the actor; 0 if the actor has none"),
        "dataset": column(pl.String, "config name of the data set"),
        "split": column(pl.String, "train, validation or test"),
        "method": column(pl.String, "config name of the confidence method"),
        "answers": column(pl.Int64, "number of committed answers; the following columns are means over them"),
        "completions": column(pl.Float64, "generated completions, with the committed answer (paper: t)"),
        "prompt_passes": column(pl.Float64, "how often a prompt and its image are encoded, with or without generation"),
        "prompt_only_passes": column(pl.Float64, "how many of the prompt passes generate nothing (paper: rho)"),
        "replay_passes": column(pl.Float64, "how often prompt and answer are read again (paper: tau)"),
        "read_tokens": column(pl.Float64, "tokens that all passes read: prompts, and answers that are read again"),
        "generated_tokens": column(pl.Float64, "generated tokens, with those of the committed answer"),
    },
)

# One row per quantity and step of a training; a quantity that is undefined at a step has no row there.
TRAIN_LOG = Schema(
    name="train_log",
    columns={
        "step": column(pl.Int64, "optimizer step, from 1 (from 0 in a pretraining)"),
        "name": column(pl.String, "reward, gradient_norm, terms/correct/mean, loss, valid/shared, ..."),
        "value": column(pl.Float64, "its value at this step"),
    },
)

# One row per estimate, in long format.
METRICS = Schema(
    name="metrics",
    columns={
        "study": column(pl.String, "name of the study"),
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor"),
        "seed": column(pl.Int64, "seed of the actor; 0 if the actor has none"),
        "dataset": column(pl.String, "config name of the data set, or an aggregate: ood6, ood_ccg"),
        "split": column(pl.String, "train, validation or test"),
        "subset": column(pl.String, "all, open, closed, family:<family>, condition:<name>, or group:<column>=<value>"),
        "method": column(pl.String, "config name of the confidence method"),
        "metric": column(pl.String, "accuracy, auroc, ece15, brier, aurc, hce90, natural_ccg_auc, ..."),
        "estimate": nullable(pl.Float64, "the value; null if undefined"),
        "low": nullable(pl.Float64, "lower end of the 95% interval; null if there is none"),
        "high": nullable(pl.Float64, "upper end of the 95% interval; null if there is none"),
        "n": column(pl.Int64, "rows (or pairs) that the value is computed from"),
        "n_clusters": column(pl.Int64, "distinct source images among them"),
        "reason": nullable(pl.String, "why the estimate is null, or why a value has no interval"),
    },
)

# One row per estimate: a metric of one method over seeds, or the difference between two methods, with intervals.
CONTRASTS = Schema(
    name="contrasts",
    columns={
        "study": column(pl.String, "name of the study"),
        "backbone": column(pl.String, "config name of the backbone"),
        "contrast": nullable(
            pl.String, "config name of the contrast or of the table that asks; null: a value of one method"
        ),
        "dataset": column(pl.String, "config name of the data set, or an aggregate: ood6, ood_ccg"),
        "split": column(pl.String, "validation or test"),
        "metric": column(pl.String, "as in metrics"),
        "method": column(pl.String, "config name of the confidence method"),
        "baseline": nullable(pl.String, "the method that is subtracted; null: the value is that of one method"),
        "estimate": nullable(pl.Float64, "mean over seeds; method minus baseline, even where lower is better"),
        "seed_std": nullable(pl.Float64, "sample standard deviation over seeds; null with one seed"),
        "n_seeds": column(pl.Int64, "number of seeds; a run without a seed is compared with every seed"),
        "low": nullable(pl.Float64, "lower end of the 95% interval over other images, for these seeds"),
        "high": nullable(pl.Float64, "upper end of the 95% interval"),
        "low_retrained": nullable(
            pl.Float64, "lower end of the 95% interval over other images and retrained actors; null with one seed"
        ),
        "high_retrained": nullable(pl.Float64, "its upper end"),
        "p": nullable(pl.Float64, "two-sided p-value of a difference, for these seeds; null for a value of one method"),
        "p_at_most": nullable(pl.Boolean, "whether p is the smallest value that the resamples can give: read <="),
        "p_holm": nullable(
            pl.Float64, "p after Holm's correction over all baselines of this contrast, backbone, data set and metric"
        ),
        "p_holm_at_most": nullable(pl.Boolean, "the same of p_holm"),
        "p_retrained": nullable(
            pl.Float64, "two-sided p-value of a difference between retrained methods; null with one seed"
        ),
        "p_holm_retrained": nullable(pl.Float64, "p_retrained after Holm's correction, as for p_holm"),
        "n": column(pl.Int64, "rows (or pairs) that a run is computed from; the smallest number if runs differ"),
        "n_clusters": column(pl.Int64, "distinct source images among them; the smallest number if runs differ"),
        "n_undefined": nullable(pl.Int64, "replicates without a value, which interval and p-value leave out; 0 of CCG"),
        "short": nullable(
            pl.String,
            "of CCG: the side with fewer than 30 decisive images in some run: source, donor, or source and donor",
        ),
        "reason": nullable(pl.String, "why the estimate is null, or why a value has no interval"),
    },
)

# One row per estimate: a metric of one method on a group of answers, and its difference to all other groups.
SUBGROUPS = Schema(
    name="subgroups",
    columns={
        **{name: METRICS.columns[name] for name in ("study", "backbone", "actor", "seed", "method", "dataset")},
        "by": column(pl.String, "column of questions, such as sex or content_family"),
        "group": nullable(pl.String, "its value; null: the questions without one"),
        **{name: METRICS.columns[name] for name in ("metric", "estimate", "low", "high")},
        "simultaneous_low": nullable(pl.Float64, "lower end of the interval that holds for all groups together, 95%"),
        "simultaneous_high": nullable(pl.Float64, "its upper end"),
        **{name: METRICS.columns[name] for name in ("n", "n_clusters", "reason")},
        "difference": nullable(pl.Float64, "the group minus all other groups of the column"),
        "difference_low": nullable(pl.Float64, "lower end of its 95% interval"),
        "difference_high": nullable(pl.Float64, "its upper end"),
        "p": nullable(pl.Float64, "two-sided p-value of the difference"),
        "p_at_most": CONTRASTS.columns["p_at_most"],
        "p_holm": nullable(pl.Float64, "p after Holm's correction over the groups of this column and metric"),
        "p_holm_at_most": CONTRASTS.columns["p_holm_at_most"],
        "difference_reason": nullable(pl.String, "why there is no difference, or why it has no interval"),
    },
)

# One row per estimate about the true difficulty of phantom images: of a method, or of a difference from a null.
#
# From `estimate` on, the columns are those of the contrasts. Holm's correction is over all methods and nulls of a
# backbone and reading.
DIFFICULTY = Schema(
    name="difficulty",
    columns={
        "study": column(pl.String, "name of the study"),
        "backbone": column(pl.String, "config name of the backbone"),
        "actor": column(pl.String, "config name of the actor whose answers are judged"),
        "dataset": column(pl.String, "config name of the data set"),
        "reading": column(pl.String, "own: of the answer itself; exchanged: of an equal answer about another image"),
        "metric": column(pl.String, "auroc, accuracy_clear or accuracy_hazy"),
        "method": nullable(pl.String, "config name of the confidence method; null: the true difficulty itself"),
        "baseline": nullable(pl.String, "the null that is subtracted; null: the value is no difference"),
        **dict(list(CONTRASTS.columns.items())[list(CONTRASTS.columns).index("estimate") :]),
    },
)

# One row per data set, split and role: how many questions, images and pairs the study has there.
DATA = Schema(
    name="data",
    columns={
        "dataset": column(pl.String, "config name of the data set"),
        "split": column(pl.String, "train, validation or test"),
        "role": column(pl.String, "what the rows may be used for: fit, stop, calibration, validation, test or ood"),
        "source_rows": column(pl.Int64, "rows of the official file, for all roles together"),
        "questions": column(pl.Int64, "questions with this role"),
        "images": column(pl.Int64, "what they show: distinct pictures, or lists of pictures"),
        "clusters": nullable(
            pl.Int64,
            "what roles, donors and intervals go by: patients, or images that lead to each other; null if images",
        ),
        "open": column(pl.Int64, "open questions"),
        "closed": column(pl.Int64, "closed questions"),
        "pairs": nullable(pl.Int64, "questions with a same-question donor; null if the study pairs none"),
        "reason": nullable(pl.String, "why there are no pairs; null if there are"),
        "manifest_sha256": column(pl.String, "digest of the split's table of questions, for all roles together"),
    },
)


def all_schemas() -> dict[str, Schema]:
    """Return every schema by name, sorted. For printing and tests; a stage imports only the schemas that it needs."""
    schemas = (value for value in globals().values() if isinstance(value, Schema))
    return {schema.name: schema for schema in sorted(schemas, key=lambda schema: schema.name)}
