"""`dualread answer`: let a checkpoint answer a table of questions, and write how far each method trusts each answer."""

import argparse
from pathlib import Path

from dualread.apps.text import check_table_suffix, evaluating, write_table
from dualread.errors import ConfigError

HELP = "answer a table of questions, with confidences, without a study"
DESCRIPTION = """
Let a checkpoint answer questions about images, and write one row per question with the confidence of every method.
MODEL is the folder of a checkpoint, or a model of the Hugging Face hub, owner/name or owner/name@revision. QUESTIONS is
a table (.jsonl, .json, .csv, .tsv, .parquet, each also as .gz) with the columns image, a path beside the table, and
question; and, where they are known, reference_answer, options, id and part:

  {"image": "x.png", "question": "Is there a lesion?", "reference_answer": "yes", "part": "fit"}

  dualread answer ../my-model questions.jsonl --methods verbalized p_true --out answers.parquet
  dualread answer ../my-model test.csv --fit train.csv --validation val.csv --methods dualread sc8 --out answers.csv
  dualread evaluate answers.csv --compare dualread

Some methods are fitted on answers whose reference answers are known: those of the part `fit` (a column `part`, or
--fit), and some of them on those of the part `validation`. Nothing is fitted or chosen on the part `test`, which all
other rows are, and which is written. Without --methods, the methods are listed.

What is computed is kept in --folder: the same command takes seconds, and a run that was killed goes on where it ended.
The numbers are those of a study with the same rows. `dualread.confidences` does the same in Python.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.set_defaults(refuse=parser.error)
    parser.add_argument("model", metavar="MODEL", help="folder of a checkpoint, or owner/name[@revision]")
    parser.add_argument("questions", metavar="QUESTIONS", help="the table of questions, see above")
    parser.add_argument("--methods", nargs="+", default=[], metavar="NAME", help="methods, such as verbalized dualread")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where answers go: .parquet, .jsonl, .csv or .tsv")
    parser.add_argument("--fit", metavar="FILE", help="more questions, of the part fit")
    parser.add_argument("--validation", metavar="FILE", help="more questions, of the part validation")
    parser.add_argument(
        "--parts",
        nargs="+",
        default=["test"],
        choices=["test", "validation"],
        help="the parts whose answers are written (test)",
    )
    parser.add_argument("--prompt", default="shared", metavar="NAME", help="a prompt of the library (%(default)s)")
    parser.add_argument("--batch-size", type=int, default=32, metavar="N", help="completions at once (%(default)s)")
    parser.add_argument(
        "--max-tokens", type=int, default=256, metavar="N", help="longest answer in tokens (%(default)s)"
    )
    parser.add_argument(
        "--configfile", metavar="FILE", help="entries laid over config.yaml, such as workflow/studies/vllm.yaml"
    )
    parser.add_argument("--folder", type=Path, help="where results are kept (dualread in the user's cache)")


def run(options: argparse.Namespace) -> int:
    """Answer the questions that `options` name; return the exit code."""
    from dualread.apps.answer.confidences import confidences
    from dualread.apps.answer.study import changes_of, known_methods

    if not options.methods:
        known = ", ".join(known_methods(changes_of(options.configfile)))
        raise ConfigError(f"--methods: none. Known: {known}.")
    out: Path | None = options.out
    if out is None:
        return options.refuse("the following arguments are required: --out FILE")
    check_table_suffix(out)
    answers = confidences(
        options.model,
        options.questions,
        options.methods,
        fit=options.fit,
        validation=options.validation,
        parts=options.parts,
        prompt=options.prompt,
        batch_size=options.batch_size,
        max_completion_tokens=options.max_tokens,
        settings=options.configfile,
        folder=options.folder,
    )
    write_table(answers, out)
    known = answers["correct"].drop_nulls()
    graded = f", {known.mean():.1%} of {len(known)} correct" if len(known) else ""
    print(f"wrote {out}: {len(answers)} answers{graded}. Next: {evaluating(answers, out)}")
    return 0
