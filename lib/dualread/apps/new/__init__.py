"""`dualread new`: write a study about your own model and your own questions.

`data` looks at the questions and `models.backbones.user_model` at the checkpoint; `study` lays both over config.yaml,
and writes the file. Nothing is guessed: what has to be decided is said, with the option that decides it.
"""

import argparse
from pathlib import Path

from dualread.apps.text import check_repository, named_values
from dualread.errors import ConfigError, printable

GOLDS = ("text", "letter", "number from 0", "number from 1")
BOOLEANS = ("yes/no", "true/false")
HELP = "write a study about your own model and questions"
DESCRIPTION = """
Look at a model and at a table of questions, say what is there, and write a commented study, which `dualread plan` and
`snakemake` take with --configfile. Run it in the folder of the repository.

MODEL is the folder of a checkpoint, as save_pretrained writes it, or a model of the Hugging Face hub, owner/name or
owner/name@revision. It answers as it is; nothing is trained but the readers of its confidence. With --answers, MODEL is
the name by which a service knows a model: its answers are given, and `dualread ask` writes what it is to be asked.

DATA is a table (.csv as Excel saves it, .tsv, .json, .jsonl, .parquet), a folder with one table per split (train,
validation, test) or one named rows, or a data set of the hub, hf://owner/name or hf://owner/name@revision, which
--download copies into a folder. The table has the columns question, reference_answers and image, a path beside it; the
first lines of lib/dualread/data/datasets/table.py list the others.

  dualread new mine --model ../my-model --data ../questions/export.csv \\
      --columns question=Frage reference_answers=Antwort image=Bild --shares train=.6 validation=.2 test=.2
  dualread new mine --model Qwen/Qwen3-VL-2B-Instruct --data ../questions
  dualread new mine --model some-model --answers ../answers --data ../questions
  dualread new mine --model Qwen/Qwen3-VL-2B-Instruct --data hf://owner/name --download ../data/name \\
      --files train='data/train-*.parquet' validation='data/val-*.parquet' test='data/test-*.parquet'

Readers are fitted on the training split and calibrated on a part of it; the validation split chooses thresholds, and
the test split is reported. If one table without a column `split` holds all questions, --shares draws the splits by
image.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("name", metavar="NAME", help="the study's name: results go to results/NAME")
    parser.add_argument(
        "--model", required=True, metavar="MODEL", help="folder of a checkpoint, or owner/name[@revision]"
    )
    parser.add_argument(
        "--answers", metavar="FOLDER", help="a service answers: where its requests and responses are, new or not"
    )
    parser.add_argument("--data", required=True, metavar="DATA", help="table, folder, or hf://owner/name[@revision]")
    parser.add_argument(
        "--columns", nargs="+", default=[], metavar="NAME=YOURS", help="columns that have another name in your table"
    )
    parser.add_argument(
        "--files",
        nargs="+",
        default=[],
        metavar="SPLIT=PATTERN",
        help="the tables of each split, or rows=PATTERN for all",
    )
    parser.add_argument(
        "--shares", nargs="+", default=[], metavar="SPLIT=SHARE", help="draw the splits by image, such as train=.6"
    )
    parser.add_argument(
        "--gold",
        choices=GOLDS,
        help="how gold answers name options, where several ways fit: text, letter, 'number from 0', 'number from 1'",
    )
    parser.add_argument(
        "--alternatives", metavar="TEXT", help="what separates gold answers, or options, in one text (nothing)"
    )
    parser.add_argument("--booleans", choices=BOOLEANS, help="what True and False stand for in gold answers")
    parser.add_argument(
        "--bits", type=int, metavar="N", help="bits that count in 16-bit gray images that do not say it, such as 12"
    )
    parser.add_argument("--download", type=Path, metavar="FOLDER", help="copy a data set of the hub into this folder")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the study's file (NAME.yaml); it must not exist yet")


def run(options: argparse.Namespace) -> int:
    """Write the study that `options` describe, and print what was found; return the exit code."""
    from dualread.apps.new import data, study
    from dualread.models.backbones import user_model
    from dualread.study.files import load

    check_repository()
    out = options.out or Path(f"{options.name}.yaml")
    if out.exists():
        raise ConfigError(f"{out}: exists already. Choose another file with --out, or remove it.")
    questions = data.look(
        options.data,
        columns=named_values("--columns", options.columns),
        files=named_values("--files", options.files),
        shares=named_values("--shares", options.shares, float),
        download=options.download,
        bits=options.bits,
        meant={"gold": options.gold, "booleans": options.booleans, "alternatives": options.alternatives},
    )
    backbone = (
        user_model.look(options.model) if options.answers is None else user_model.served(options.model, options.answers)
    )
    questions.refuse_tokens(backbone.tokens)
    for line in (*questions.lines, *backbone.lines):
        print(printable(line))
    text = study.written(study.laid_over(options.name, questions, backbone), questions, backbone, out)
    out.write_text(text, encoding="utf-8")
    try:
        load([out], Path())
    except ConfigError:
        out.unlink()
        raise
    print(f"wrote {out}. Next:")
    print(f"  dualread plan --configfile {out}")
    for line in backbone.before(out):
        print(f"  {line}")
    print(f"  snakemake --cores 8 --configfile {out}")
    return 0
