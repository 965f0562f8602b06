"""`dualread export`: a study's reader as a folder to share."""

import argparse
from importlib.metadata import version
from pathlib import Path

from dualread.errors import ArtifactError, in_a_line

HELP = "write a study's reader as a folder to share"
DESCRIPTION = """
Write the reader of one actor of a finished study into FOLDER, with all that scoring needs: the reader and its settings,
the thresholds that the study chose on validation, its metrics, and a model card in the form of the Hugging Face hub.
`dualread score --reader FOLDER` and `Scorer.load(FOLDER)` read it, before and after it went over the hub:

  dualread export results/embedded --backbone qwen3-vl-tiny --actor rlvr --seed 17 --out mine --with-checkpoint
  dualread score --reader mine --image x.png --question "Is there a lesion?"

  dualread export results/embedded --backbone qwen3-vl-tiny --actor rlvr --seed 17 --out mine --push owner/name
  dualread score --reader owner/name --revision COMMIT --image x.png --question "Is there a lesion?"

Without --with-checkpoint, the actor is named by the digests of its files, and `score` needs it as --checkpoint.
Readers of other methods travel along only if --methods names them: those of some methods, such as question_prior, hold
the questions of the training data as text.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument("study", type=Path, metavar="STUDY", help="results/<study>")
    parser.add_argument("--backbone", required=True, help="config name of the backbone")
    parser.add_argument("--actor", required=True, help="config name of the actor")
    parser.add_argument("--seed", required=True, type=int, help="seed of the actor; 0 for the base")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where to write; may hold an export")
    parser.add_argument(
        "--method", default="dualread", help="the method whose reader gives the confidence (%(default)s)"
    )
    parser.add_argument("--methods", nargs="+", default=[], metavar="NAME", help="other methods whose readers to add")
    parser.add_argument(
        "--plugins",
        nargs="+",
        default=[],
        metavar="PACKAGE",
        help="other packages whose plugins the study's readers name",
    )
    parser.add_argument("--with-checkpoint", action="store_true", help="add the actor itself")
    parser.add_argument(
        "--license",
        metavar="ID",
        help="the hub's name of the licence (default: apache-2.0 if all data and the actor were made here, else other)",
    )
    parser.add_argument(
        "--push",
        metavar="OWNER/NAME",
        help="also upload FOLDER to this repository of the hub, which is made as a private one if it is not there",
    )


def run(options: argparse.Namespace) -> int:
    """Export what `options` name; return the exit code."""
    from dualread.apps.score.bundle_writer import export

    bundle = export(
        options.study,
        (options.backbone, options.actor, options.seed),
        options.out,
        method=options.method,
        methods=options.methods,
        with_checkpoint=options.with_checkpoint,
        license=options.license,
        plugins=options.plugins,
    )
    with_actor = "its actor" if options.with_checkpoint else "without its actor"
    counts = f"{len(bundle.thresholds)} threshold{'s' * (len(bundle.thresholds) != 1)}"
    if bundle.answer_sets:
        counts += f", {len(bundle.answer_sets)} of answer sets"
    print(f"wrote {options.out}: readers of {', '.join(bundle.readers)}, {counts}, {with_actor}")
    if options.push:
        commit = _push(options.out, options.push)
        print(f"pushed to {options.push}: dualread score --reader {options.push} --revision {commit} ...")
    return 0


def _push(folder: Path, name: str) -> str:
    """Upload a bundle to a repository of the hub, without the readers of an earlier one; return the commit."""
    from huggingface_hub import HfApi

    api = HfApi(library_name="dualread", library_version=version("dualread"))
    try:
        api.create_repo(name, private=True, exist_ok=True)
        message = f"DualRead {version('dualread')}"
        return api.upload_folder(
            repo_id=name, folder_path=folder, commit_message=message, delete_patterns="readers/*"
        ).oid
    except Exception as error:  # the hub raises errors of several packages
        raise ArtifactError(
            f"{folder}: cannot be pushed to {name} ({in_a_line(error)}). It is written here all the same. Log in with"
            f" `hf auth login`, as one who may write to {name}; then run: hf upload {name} {folder}"
        ) from error
