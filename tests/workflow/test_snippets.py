"""Everything that a page shows to be typed runs, in the order of the page, in a copy of the finished smoke study."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
import yaml
from benchmarks import gallery

from dualread.apps import main as program
from dualread.apps.evaluate import evaluation
from dualread.evaluation import planning
from tests import families, meaning
from tests.test_docs import PAGES, read
from tests.test_targets import TARGETS
from tests.tiny import image
from tests.workflow.checkout import ROOT, Checkout

# What is not run. Everything else is.
NOT_RUN = (
    r"pip install '\.|uvx? ",  # replace this environment's library: tests/test_installed.py installs the package
    "dualread (serve|demo) ",  # until they are interrupted: tests/apps/serve runs them
    "dualread browse results/reports |dualread report results/slake_tiny",  # need these studies: benchmarks/gallery.py
    *map(re.escape, re.sub(r" *\\\n *", " ", gallery.SHOTS["theirs"].command).splitlines()),  # downloads a log
    "dualread evaluate lesions.eval --from inspect --score pattern",  # needs inspect_ai: tests/data/logs runs it
    "make release ",  # commits: tests/test_release.py releases a small checkout
    "npm ",  # needs the network
    "dualread score --reader results/ours/",  # needs a study of a trained model: tests/workflow/test_families.py
    "dualread (new mine|answer) ",  # need a checkpoint and questions: tests/apps/new, tests/apps/answer
    "dualread (ask|judge) .*--run",  # need a service: tests/apps/ask, tests/apps/evaluate/test_judged.py
    "dualread export .* --push|.* --reader owner/name ",  # need an account of the hub: tests/apps/score/test_export.py
    "dualread .* --methods choices",  # need a study with answer sets: tests/workflow/test_groups_and_scores.py
    "python -m tests.workflow.recount ",  # tests/workflow/test_recount.py
    "OMP_NUM_THREADS=1 python benchmarks/coverage.py",  # takes minutes: tests/test_coverage.py runs parts of it
)
# These take hours. tests/test_docs.py says that their targets, files and options exist.
DRY = ("make", "snakemake")
PROGRAMS = ("dualread", "pip", "npm", "hf", "python", "uv", "uvx", *DRY)
# The study of the pages is the embedded one, its copy on a shared disk, and the question of docs/tour.md.
IN_PLACE = {
    "results/embedded": "results/smoke",
    "/mnt/shared/store": "shared/store",
    "slake/test/2390": "slake/test/245",  # asks the same
}
# What a study makes, and the pages whose commands change it.
MADE = ("results", "tables", "figures")
CHANGING = {"docs/gallery.md", "docs/trust.md"}


@dataclass(frozen=True)
class Block:
    """A block of a page: its kind, "sh" or "python", and its text."""

    kind: str
    text: str


def blocks(page: str) -> list[Block]:
    found = re.findall(r"^```(sh|python)\n(.*?)^```$", read(page), re.DOTALL | re.MULTILINE)
    return [Block(*one) for one in found]


def commands(block: Block) -> list[str]:
    """The lines of a block of commands, each whole and without its comment."""
    lines = re.sub(r" *\\\n *", " ", block.text).splitlines()
    return [re.sub(r" +#.*", "", line).strip() for line in lines]


def shown(*pages: str) -> set[str]:
    """The commands on `pages`, or on all pages."""
    return {line for page in pages or PAGES for block in blocks(page) if block.kind == "sh" for line in commands(block)}


def is_left_out(line: str) -> bool:
    return any(re.match(pattern, line) for pattern in NOT_RUN)


def is_run(page: str) -> bool:
    """Whether a page has Python, or a command of `dualread` that is run."""
    return any(block.kind == "python" for block in blocks(page)) or any(
        line.startswith("dualread ") for line in shown(page) if not is_left_out(line)
    )


def typed(page: str, folder: Path) -> Iterator[tuple[str, list[str]] | str]:
    """Yield what a person types, in order: a program with its arguments as bash reads them, or a block of Python."""
    record = 'record() { printf "%s\\0" "$@" >&3; printf "\\n\\0" >&3; }\n'
    stubs = "".join(f'{name}() {{ record {name} "$@"; }}\n' for name in PROGRAMS)
    written = []
    for number, block in enumerate(blocks(page)):
        lines = [line for line in commands(block) if not is_left_out(line)] if block.kind == "sh" else []
        written += [*lines, f"record block {number}"]
    script = "set -eu\n" + record + stubs + "\n".join(written)
    (folder / "typed").touch()
    subprocess.run(["bash", "-c", f"exec 3> typed\n{in_place(script)}"], cwd=folder, check=True)
    calls = (folder / "typed").read_text().split("\n\0")
    for call in filter(None, calls):
        first, *arguments = call.rstrip("\0").split("\0")
        if first != "block":
            yield first, arguments
        elif (block := blocks(page)[int(arguments[0])]).kind == "python":
            yield in_place(block.text)


def in_place(text: str) -> str:
    for shown, here in IN_PLACE.items():
        text = text.replace(shown, here)
    return text


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What docs/your-model.md supposes beside the repository."""
    folder = tmp_path_factory.mktemp("beside")
    write_model_and_questions(folder)
    return folder


@pytest.fixture
def copy(
    request: pytest.FixtureRequest, study: Checkout, beside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """The working folder: a copy of the finished study's repository, with the files that the pages suppose.

    Its folders are links, and what the study has made may not change. For a page of CHANGING, that is copied.
    """
    folder, page = tmp_path / "copy", getattr(request.node, "callspec", None)
    folder.mkdir()
    changes = page is not None and page.params.get("page") in CHANGING
    for entry in study.folder.iterdir():
        if entry.is_file():
            shutil.copy2(entry, folder, follow_symlinks=False)
        elif changes and entry.name in MADE:
            subprocess.run(["cp", "-a", entry, folder], check=True)
        elif entry.name not in (".snakemake", "tests"):
            (folder / entry.name).symlink_to(entry)
    for entry in beside.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.chdir(folder)
    # Neither intervals nor numbers of images are looked at.
    monkeypatch.setattr(evaluation, "REPLICATES", 40)
    monkeypatch.setattr(planning, "REPETITIONS", 2)
    images = sorted(Path("results/smoke/manifests/slake/test/images").rglob("*.*"))
    for name, file in zip(("x.png", "y.png", "z.png"), images, strict=False):
        shutil.copy(file, name)
    shutil.copy("results/smoke/results.lock", "results.lock")
    shutil.copy("lib/dualread/study/costs.yaml", "my-gpu.yaml")
    questions = re.search(r'```\n(\{"image".*?)```', read("docs/score.md"), re.DOTALL)[1]
    Path("questions.jsonl").write_text(questions)
    write_answers()
    # docs/given-answers.md: the study of the pages, with the answers of one of its actors given.
    given = {"training": None, "reward": None, "settings": None, "answers": {"folder": "../answers"}}
    smoke = yaml.safe_load((ROOT / "workflow/studies/smoke.yaml").read_text())
    only = {
        "only": {"actors": ["rlvr"]},
        "actors": {**smoke["actors"], "rlvr": given},
        "figures": {"training": None},
    }
    Path("mine.yaml").write_text(yaml.safe_dump({**smoke, **only}))
    before = states(study.folder)
    yield folder
    planning.images_needed.cache_clear()
    after = states(study.folder)  # `dualread browse` adds a page
    assert {name: after.get(name) for name in before} == before


def states(checkout: Path) -> dict[str, tuple[int, int]]:
    """Return the size and the time of each file that a study has made; lookups may add to the store's caches."""
    files = (Path(top, name) for made in MADE for top, _, names in os.walk(checkout / made) for name in names)
    found = {str(file): file.stat() for file in files if file.parent.name != "store"}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in found.items()}


def write_model_and_questions(folder: Path) -> None:
    """Write what pages suppose beside the repository: checkpoints of a model and of a classifier, and questions."""
    families.build("llava", folder / "my-model")
    meaning.classifier(folder / "nli")
    (folder / "questions").mkdir()
    lines = ["image,question,reference_answers,split"]
    for k, split in enumerate(["train"] * 6 + ["validation"] * 2 + ["test"] * 2):
        image(k).save(folder / f"questions/{k}.png")
        lines += [
            f"{k}.png,Is there a lesion?,{('yes', 'no')[k % 2]},{split}",
            f"{k}.png,Which organ is {k}?,liver,{split}",
        ]
    (folder / "questions/export.csv").write_text("\n".join(lines) + "\n")


def write_answers() -> None:
    """Write what docs/evaluate.md names: the example as two methods, as two halves, with other names, and two logs."""
    for name, confidence in (("predictions", "confidence"), ("pairs", "donor_confidence")):
        ours = pl.read_csv(f"docs/example/{name}.csv").with_columns(method=pl.lit("ours"), sex=pl.lit("F"))
        ours = ours.with_columns(site=pl.int_range(pl.len()) % 2)
        other = ours.with_columns(pl.lit("baseline").alias("method"), pl.col(confidence).reverse())
        pl.concat([ours, other]).write_csv(f"{name}.csv")
    answers = pl.read_csv("docs/example/predictions.csv")
    label = pl.col("answer").str.to_lowercase() == pl.col("reference_answer").str.to_lowercase()
    own = {"p_true": "confidence", "scan": "image_id"}
    answers.select(label.alias("label"), **{name: pl.col(column) for name, column in own.items()}).write_csv("mine.csv")
    for log in ("lesions.eval", "samples_organs.jsonl"):
        shutil.copy(ROOT / "tests/data/logs/made" / log, log)
    is_first = pl.col("image_id") <= "ct-20"
    answers.filter(is_first).write_csv("validation.csv")
    answers.filter(~is_first).write_csv("test.csv")
    names = {"report": "image_id", "patient_id": "image_id", "claim": pl.int_range(pl.len())}
    claims = answers.select("confidence", correct=label.cast(pl.Int8), **names)
    claims.filter(pl.col("report") > "ct-20").write_csv("claims.csv")
    claims.filter(pl.col("report") <= "ct-20").write_csv("claims_validation.csv")
    of_yes = pl.when(pl.col("answer") == "yes").then("confidence").otherwise(1 - pl.col("confidence"))
    closed = answers.filter(answer_type="closed").with_columns(p_yes=of_yes, p_no=1 - of_yes, site=pl.lit("A"))
    closed.filter(is_first).write_csv("closed_validation.csv")
    closed.filter(~is_first).write_csv("closed.csv")


@pytest.mark.rest
@pytest.mark.parametrize("page", [page for page in PAGES if is_run(page)])
def test_what_a_page_shows_runs(page, copy, capsys):
    names: dict[str, object] = {}
    for one in typed(page, copy):
        if isinstance(one, str):
            exec(compile(one, page, "exec"), names)
        elif one[0] == "python":  # a script that needs another finished study; tests/workflow/test_smoke.py runs it
            assert Path(one[1][0]).is_file(), one
        elif one[0] not in DRY:
            assert one[0] == "dualread", one
            assert program.main(one[1]) == 0, (one, capsys.readouterr().err)


def test_what_is_made_is_a_target():
    words = {word for line in shown() if line.startswith("make ") for word in line.split()[1:]}
    assert {word for word in words if "=" not in word and not word.startswith("-")} <= TARGETS


def test_what_is_not_run_is_still_shown():
    assert [pattern for pattern in NOT_RUN if not any(re.match(pattern, line) for line in shown())] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_block_starts_no_other_program(page):
    """A program that is not in the list would be started for real."""
    shell = re.compile(rf"(?:{'|'.join(PROGRAMS)}) |\w+=|echo ")
    for block in blocks(page):
        if block.kind == "sh":
            run = [line for line in commands(block) if line and not is_left_out(line)]
            assert [line for line in run if not shell.match(line)] == []
