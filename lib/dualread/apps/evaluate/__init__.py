"""`dualread evaluate`: compute every metric for your own confidences, read from plain tables and other harnesses' logs.

Here are the arguments. Those that `evaluation.evaluate` takes have the names of its parameters; it says what each does.
The road: `tables` reads, `evaluation_data` joins, `metrics`, `thresholds` and others compute `results`, `report` says
what they mean, `printed` prints it, and `files` writes it. Heavy imports are inside `run`, so that the program starts
fast.
"""

import argparse
import inspect
import sys
from functools import partial
from pathlib import Path

from dualread.apps.text import EscapedStdout, named_values
from dualread.errors import ConfigError

HELP = "every metric of your own confidences, with intervals"
DESCRIPTION = """
Compute all metrics of the workflow, CCG-AUC included, with their intervals, for confidences from any model and any
method. No model is loaded.

PREDICTIONS is a table (.csv, .tsv, .jsonl, .ndjson, .json or .parquet, each also as .gz) with one row per answer and
these columns:

  confidence        probability that the answer is correct, from 0 to 1
  score             in place of it: any number, of which only the order counts, such as a log-probability. It gets
                    metrics of ranks: AUROC, AURC, CCG-AUC
  correct           1 or 0, true or false; empty if nobody judged the answer, which is left out and counted. Or, to have
                    answers graded as in the paper, both of:
  answer              the answer (if `correct` is given, it is used only for Strict CCG-AUC)
  reference_answer    the gold answer, or a list of accepted ones; --alternatives '#' accepts a and b for `a#b`
  image_id          optional without --pairs: intervals resample images; without it, rows count as independent
  cluster_id        optional: what intervals resample in place of images, such as the patient
  question          optional: for the within-question AUROC
  answer_type       optional: open or closed; each gets its own metrics (--all)
  claim             optional: rows are claims of reports, such as sentences: a number or a text that tells the claims
                    of a report apart. The report is `report`, or else sample_id; it is what intervals resample if
                    there is nothing else. `start` and `end`, its characters, are checked: claims do not overlap
  method            optional: the method that gave the confidence. All methods are evaluated on the same resamples
  sample_id         the question's name, unique per method; needed only with --pairs and --compare
  dataset, split    optional: each data set is evaluated by itself, and its image_id are its own
  study, replicates written by a study, whose resamples are drawn

A value that is not so is refused with its column and row; nothing is guessed. Other columns are not used and are
listed. If your columns have other names, --columns says which: --columns confidence=p_true correct=label. It holds for
all tables. An uncertainty, where higher means less sure, is a score with the other sign: --columns score=-entropy. One
column per method, confidence_NAME or score_NAME, will do, too. What was graded is shown: the most common pairs of
answer and reference that count as wrong.

PREDICTIONS may also be a log of another harness, and so may the calibration answers:

  --from inspect      a .eval or .json of Inspect (inspect_ai)
  --from lm-eval      samples_<task>_<date>.jsonl of lm-eval
  --from lmms-eval    <date>_samples_<task>.jsonl of lmms-eval
  --from vlmevalkit   predictions of VLMEvalKit: .tsv, .csv or .json

Every kind of confidence that the log holds becomes a method: sequence_likelihood (token log-probabilities),
self_consistency (repeated answers), stated (<confidence>NN</confidence>), choice_likelihood (choices). Stated
confidences reach to 100, or to what --stated-scale says; where 100 may not be meant, it is asked for. If the log has
several scores, --score NAME says which one means correct; --score graded grades the answers instead.

PREDICTIONS may lie on the Hugging Face hub: hf://owner/name (a data set with one table), hf://owner/name/FILE, or
hf://owner/name@revision/config/split.

PAIRS adds CCG-AUC. It has one row per question that was asked again on another question's image (the donor), where the
gold answer is different:

  sample_id         the question in PREDICTIONS
  donor_image_id    the donor's image. Its cluster is that of the image in PREDICTIONS, or donor_COLUMN with
                    --cluster COLUMN; an image without an answer in PREDICTIONS is a cluster by itself
  donor_confidence  confidence in the answer on the donor's image; or donor_score
  donor_correct     whether that answer is correct there; or donor_answer and donor_reference_answer
  donor_answer      optional: for Strict CCG-AUC, with `answer` in PREDICTIONS
  method, dataset   needed if PREDICTIONS has several of them

--by gives every metric of groups of answers, the values of a column: intervals that hold for all groups together, the
worst group, and differences to the rest. Rows without a value are counted, and in no group.

--choices gives answer sets of questions with choices, such as yes and no: all choices that are likely enough for the
right one to be among them, but with a probability of --miss. The calibration answers choose how likely that is.

--compare prints the difference between methods on the same images: interval, p-value, and p-value after Holm's
adjustment. It holds for these answers: if the methods were trained, other seeds may differ otherwise. --target-risk
finds the smallest confidence at which the error rate is low enough: once among the calibration answers (empirical), and
once for new images from the same source, wrongly with a probability of at most delta (certified; it needs more
answers). Nothing is certified for images from another source. Each certified threshold holds by itself: if you choose
the best of K methods, or of K target risks, by what is certified for it, give --share-delta K. --expect says how many
calibration images it takes, before you collect any.

Of claims, it also finds a filter: the smallest confidence of the claims of a report that may be kept. The loss of a
report is the share of unsupported claims among those that are kept, or 1 if any is. Its mean over new reports is at
most the target risk, wrongly with a probability of at most delta.

For example, predictions.csv and pairs.csv:

  sample_id,image_id,question,answer,reference_answer,confidence
  q1,ct-01,Is there a lesion?,yes,yes,0.92
  q2,ct-01,Which organ is shown?,the liver,Liver,0.71
  q3,ct-02,Is there a lesion?,yes,no,0.64

  sample_id,donor_image_id,donor_answer,donor_correct,donor_confidence
  q1,ct-02,yes,0,0.55

  dualread evaluate predictions.csv --pairs pairs.csv --out mine
  dualread evaluate test.csv --compare ours baseline
  dualread evaluate test.csv --target-risk .1 --calibration validation.csv
  dualread evaluate claims.csv --target-risk .1 --calibration claims_validation.csv
  dualread evaluate --expect .75 .8 --per-image 3 --target-risk .1 .2
  dualread evaluate mine.csv --columns confidence=p_true correct=label
  dualread evaluate lesions.eval --from inspect --score match

A study writes such tables of each of its runs to results/<study>/answers. They give the study's own numbers:

  answers=results/embedded/answers/qwen3-vl-tiny/rlvr/17
  dualread evaluate $answers/answers.parquet --pairs $answers/pairs.parquet --method dualread rlvr --compare dualread
  dualread evaluate $answers/answers.parquet --target-risk .1 --calibration $answers/validation.parquet
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.set_defaults(refuse=parser.error)
    several = partial(parser.add_argument, nargs="+", default=[])
    parser.add_argument(
        "predictions",
        nargs="?",
        metavar="PREDICTIONS",
        help="table of answers, or log, see above; not with --expect",
    )
    parser.add_argument("--pairs", help="table of donor pairs, see above, which CCG-AUC needs (none)")
    parser.add_argument(
        "--from",
        dest="log_format",
        metavar="HARNESS",
        help="PREDICTIONS and the calibration answers are logs of this harness: inspect, lm-eval, lmms-eval or"
        " vlmevalkit, see above (they are tables)",
    )
    parser.add_argument(
        "--score",
        metavar="NAME",
        help="of a log: the score that says whether an answer is correct, or graded to grade the answers; needed if"
        " there are several (the only one)",
    )
    parser.add_argument(
        "--stated-scale",
        type=int,
        metavar="N",
        help="of a log: what stands for certainty in stated confidences, 1, 10 or 100 (100, unless the numbers are such"
        " that it may not be meant)",
    )
    several(
        "--columns",
        metavar="NAME=YOURS",
        help="columns that have another name in your tables, such as confidence=p_true, or score=-entropy, which gives"
        " a number the other sign",
    )
    parser.add_argument(
        "--alternatives",
        metavar="TEXT",
        help="what separates accepted answers in one text of reference_answer, such as '|' (nothing)",
    )
    several(
        "--options",
        metavar="COLUMN",
        help="multiple choice: columns of the options, such as A B C D, or one that holds lists of them; letters in"
        " answers and references are read as the options' texts (none)",
    )
    parser.add_argument(
        "--missing",
        nargs="*",
        metavar="WORD",
        help="words that stand for an empty cell, such as NA; rows without a reference are left out and counted (they"
        " are refused)",
    )
    parser.add_argument(
        "--decimal", default=".", choices=[".", ","], help="the decimal point of numbers in your tables (%(default)s)"
    )
    several(
        "--by",
        metavar="COLUMN",
        help="every metric of each group of answers, the values of this column, such as sex or site; at most 100 values"
        " (none)",
    )
    several(
        "--compare",
        metavar="METHOD",
        help="compare the first method with the others that are named, or with all if it is the only one (none)",
    )
    several(
        "--target-risk",
        type=float,
        metavar="SHARE",
        help="largest error rate of the answers that a threshold keeps, between 0 and 1, such as .1; needs"
        " --calibration, or --expect (no threshold)",
    )
    parser.add_argument(
        "--calibration",
        metavar="FILE",
        help="table or log of other answers, which choose the threshold of --target-risk or the sets of --choices; not"
        " those on which the confidence was fitted",
    )
    parser.add_argument(
        "--delta",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="how often a certified threshold may be wrong, a probability between 0 and 1 (%(default)s)",
    )
    parser.add_argument(
        "--share-delta",
        type=int,
        default=1,
        metavar="K",
        help="number of certified thresholds that share delta, 1 or more: the methods or targets among which you choose"
        " by them (%(default)s)",
    )
    several(
        "--choices",
        metavar="CHOICE=YOURS",
        help="columns of the choices' probabilities, such as yes=p_yes no=p_no: sets that hold the right one; needs"
        " --calibration (no sets)",
    )
    parser.add_argument(
        "--miss",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="how often a set of choices may miss the right one, between 0 and 1 (%(default)s)",
    )
    parser.add_argument(
        "--max-per-image",
        type=int,
        metavar="N",
        help="largest number of answers to an image that the source can have, 1 or more; certified thresholds rest on"
        " it (the largest one in --calibration)",
    )
    parser.add_argument(
        "--max-reports",
        type=int,
        metavar="N",
        help="of claims: largest number of reports of a patient, or of what is resampled, 1 or more; certified filters"
        " rest on it (that in --calibration)",
    )
    parser.add_argument(
        "--expect",
        nargs=2,
        type=float,
        metavar=("ACCURACY", "AUROC"),
        help="without PREDICTIONS: how many calibration images would certify a threshold for --target-risk, if answers"
        " have this accuracy, between 0 and 1, and AUROC, between .5 and 1",
    )
    parser.add_argument(
        "--per-image",
        type=int,
        default=1,
        metavar="N",
        help="with --expect: answers to each image, 1 or more (%(default)s)",
    )
    parser.add_argument(
        "--all", action="store_true", help="print all metrics with what they mean, answer types and counts"
    )
    parser.add_argument(
        "--cluster",
        metavar="COLUMN",
        help="resample the values of this column, such as patients, so that intervals hold for new ones (cluster_id, or"
        " else image_id)",
    )
    parser.add_argument(
        "--replicates",
        type=int,
        metavar="N",
        help="number of resamples, 39 or more; 0 for none, and no intervals but those of pairs (2000, or as many as a"
        " study's table says)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of the resampling, a whole number; the same one gives the same numbers (%(default)s)",
    )
    several("--method", dest="methods", metavar="NAME", help="only these methods (all)")
    several("--dataset", dest="datasets", metavar="NAME", help="only these data sets (all)")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="also write evaluate.html (one page), metrics.csv (full precision) and figures to FOLDER, in place of"
        " earlier ones (nothing is written)",
    )


def run(options: argparse.Namespace) -> int:
    """Evaluate the files that `options` names; return the exit code."""
    from dualread.apps.evaluate import files, printed, report, thresholds
    from dualread.apps.evaluate.evaluation import evaluate

    options.columns = named_values("--columns", options.columns)
    options.choices = named_values("--choices", options.choices)
    if options.expect is not None:
        if options.predictions is not None:
            raise ConfigError(f"--expect: is for no answers yet. Leave out {options.predictions}, or --expect.")
        for line in thresholds.plan(options):
            print(line)
        return 0
    if options.predictions is None:
        options.refuse("the following arguments are required: PREDICTIONS, or --expect ACCURACY AUROC")
    evaluation = evaluate(**{name: getattr(options, name) for name in inspect.signature(evaluate).parameters})
    told = report.evaluation_report(evaluation)
    if options.all:
        for text in printed.everything(told):
            print(text)
    else:
        for line in printed.first(told):
            # On a terminal, what a line says is green where it is good, and red where it is not.
            if line.kind and isinstance(sys.stdout, EscapedStdout):
                print(line.text[: line.start], end="")
                sys.stdout.paint(line.text[line.start :], line.kind)
                print()
            else:
                print(line.text)
    if options.out is not None:
        written = files.write(evaluation, told, options.out)
        print(f"wrote {options.out}: {', '.join(written)}")
        if missing := files.without_figures():
            print(missing)
    return 0
