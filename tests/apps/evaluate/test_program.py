"""`dualread evaluate` as users run it."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import dualread
from dualread.apps import evaluate
from dualread.apps import main as program
from dualread.schema.metrics import ENOUGH_REPLICATES
from tests.apps.evaluate.tables import ANSWERS, PAIRS, write

_HEAVY = ("torch", "transformers", "sklearn", "matplotlib")
_LOADED = f"""
import sys
from dualread.apps.main import main
code = main(sys.argv[1:])
print("loaded:", *(name for name in {_HEAVY} if name in sys.modules))
sys.exit(code)
"""


def evaluated(folder, *arguments):
    """Run the program in a new process; the last line of its output lists the heavy packages that it loaded."""
    command = [sys.executable, "-c", _LOADED, "evaluate", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(Path(dualread.__file__).parents[1])}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path, "mine.csv", ANSWERS)
    write(tmp_path, "pairs.csv", PAIRS)
    return tmp_path


def test_a_table_loads_nothing_heavy_and_a_figure_loads_matplotlib(folder):
    done = evaluated(folder, "mine.csv", "--pairs", "pairs.csv", "--replicates", "40")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "mine.csv: 4 answers, 3 images"
    assert done.stdout.splitlines()[-1] == "loaded:"
    done = evaluated(folder, "mine.csv", "--out", "out", "--replicates", "40")
    assert (done.returncode, done.stderr) == (0, "")
    *_, said, loaded = done.stdout.splitlines()
    figures = ", ".join(f"{name}.pdf, .png, .csv" for name in ("reliability", "risk_coverage", "forest"))
    assert said == f"wrote out: metrics.csv, graded.csv, {figures}, evaluate.html"
    assert loaded == "loaded: matplotlib"
    assert pl.read_csv(folder / "out/metrics.csv").filter(pl.col("metric") == "auroc")["estimate"].to_list() == [0.75]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.csv"], "none.csv: cannot be read (No such file or directory)."),
        (["mine.csv", "--replicates", "-5"], f"--replicates: -5, expected {ENOUGH_REPLICATES}."),
        (["mine.csv", "--out", "pairs.csv", "--replicates", "0"], "--out pairs.csv: cannot be written (File exists)."),
        (["--expect", ".8", ".85"], "--expect: needs --target-risk"),
        (["mine.csv", "--expect", ".8", ".85"], "--expect: is for no answers yet. Leave out mine.csv, or --expect."),
        (["--expect", ".8", ".3", "--target-risk", ".1"], "--expect 0.8 0.3 --per-image 1: auroc: 0.3, expected a"),
        (["--expect", ".8", ".9", "--target-risk", "10"], "--target-risk 10: expected a number between 0 and 1"),
    ],
)
def test_an_error_is_one_line_and_no_traceback(folder, arguments, message, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    assert program.main(["evaluate", *arguments]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"dualread evaluate: {message}")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("options", [["--compare", "a", "b"], ["--target-risk", ".1"], ["--dataset", "x"]])
def test_a_file_behind_an_option_that_takes_all_words_is_missed_with_advice(options, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as stop:
        program.main(["evaluate", *options, "mine.csv"])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert options[0] in said.splitlines()[-1]
    assert said.endswith("write PREDICTIONS first, as in `dualread evaluate PREDICTIONS ...`.\n")


def test_nobody_has_to_collect_answers_to_learn_how_many_are_needed(folder, capsys):
    asked = ["evaluate", "--expect", ".8", ".85", "--target-risk", ".2", ".1"]
    assert program.main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("calibration images with 1 answer each, calibrated confidences with accuracy 0.8 and")
    rows = [line.split() for line in lines if re.match(r" +0\.[12] ", line)]
    assert [row[0] for row in rows] == ["0.2"] * 5 + ["0.1"] * 5
    images = [int(row[1]) for row in rows]
    assert images[:5] == sorted(images[:5])
    assert images[5] > images[0]
    assert program.main([*asked, "--per-image", "2", "--max-per-image", "6", "--share-delta", "4"]) == 0
    said = capsys.readouterr().out
    assert "with 2 answers each (at most 6)" in said
    assert "delta 0.025" in said


def test_where_nothing_is_certified_the_program_says_how_many_images_would_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [(f"i{k}", f"{0.5 + k % 50 / 100:.2f}", int(k % 50 >= 10 or k % 2 == 0)) for k in range(100)]
    for name, chosen in (("validation.csv", rows[:40]), ("test.csv", rows[40:])):
        write(tmp_path, name, "image_id,confidence,correct\n" + "".join(f"{a},{b},{c}\n" for a, b, c in chosen))
    command = ["evaluate", "test.csv", "--calibration", "validation.csv", "--replicates", "0", "--target-risk"]
    assert program.main([*command, ".1", ".05"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "at most 0.1, as long as no image has more than 1 answer (the most among the calibration answers)" in said
    assert "if you choose one of the 2 by what it certifies, add --share-delta 2" in said
    assert re.search(r"test, target 0\.05: with calibrated confidences of this accuracy \(0\.\d+\) and AUROC", said)
    assert re.search(r"about \d+ images with 1 answer each certify something in 80% of cases; these are 40", said)
    assert program.main([*command, ".1", ".05", "--share-delta", "2"]) == 0
    assert "add --share-delta" not in capsys.readouterr().out


@pytest.mark.parametrize("options", [[], ["--cluster", "patient"]])
def test_a_donor_without_an_answer_of_its_own_is_a_cluster_by_itself(folder, options, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    others = {"ct-01": "ct-07", "ct-02": "ct-09", "ct-03": "ct-08"}
    names = {"image_id": "patient", "donor_image_id": "donor_patient"} if options else {}
    answers = pl.read_csv(ANSWERS.encode(), infer_schema=False).rename(names, strict=False)
    pairs = pl.read_csv(PAIRS.encode(), infer_schema=False).with_columns(pl.col("donor_image_id").replace(others))
    for n, path in ((1, "one.csv"), (2, "two.csv")):  # alone, and together with a second method
        for table, name in ((answers, path), (pairs.rename(names, strict=False), f"pairs_{path}")):
            pl.concat([table.with_columns(method=pl.lit(f"m{k}")) for k in range(n)]).write_csv(name)
        assert program.main(["evaluate", path, "--pairs", f"pairs_{path}", "--replicates", "40", *options]) == 0
        cluster = "patient" if options else "image_id"
        said = f"donors whose {cluster} has no answer in {path}, each a cluster by itself: ct-07, ct-08, ct-09"
        assert said in capsys.readouterr().out.splitlines()
        found = dualread.evaluate(path, f"pairs_{path}", cluster="patient" if options else None, replicates=200).metrics
        values = {row["metric"]: row for row in found.filter(subset="all", method="m0").iter_rows(named=True)}
        # q1 (.9 > .5) and q3 (.6 < .7) are decisive; both are on ct-01, and their donors are two different images
        found = values["natural_ccg_auc"]
        assert (found["estimate"], found["n"], values["donor_images"]["estimate"]) == (0.5, 2, 2.0)
        assert found["low"] is found["high"] is None  # of a single source image, there is no variance
        assert values["vbr"]["low"] < values["vbr"]["estimate"] < values["vbr"]["high"]


def _blocks(text):
    """Return {file name: text} of the two tables that a text shows."""
    found = re.findall(r"^ *(sample_id,.*(?:\n *\S+,.*)+)", text, re.MULTILINE)
    return dict(zip(("predictions.csv", "pairs.csv"), (re.sub(r"(?m)^ +", "", block) for block in found), strict=True))


@pytest.mark.rest
def test_the_example_of_the_help_runs(tmp_path, monkeypatch, capsys):
    """`tests/workflow/test_snippets.py` runs those of the pages."""
    for name, table in _blocks(evaluate.DESCRIPTION).items():
        write(tmp_path, name, table + "\n")
    monkeypatch.chdir(tmp_path)
    command = re.search(r"dualread (evaluate predictions\.csv --pairs pairs\.csv --out \w+)", evaluate.DESCRIPTION)[1]
    assert program.main([*command.split(), "--replicates", "40"]) == 0
    # q1: .92 yes/yes right, q2: .71 "the liver"/Liver right, q3: .64 yes/no wrong; on the donor's image .55, wrong
    assert re.search(r"(?ms)^accuracy +\.667 .*^natural_ccg_auc +1 ", capsys.readouterr().out)
    assert program.main([*command.split(), "--replicates", "40", "--all"]) == 0
    assert re.search(r"(?ms)^accuracy +\.6667 .*^strict_ccg_auc +1 ", capsys.readouterr().out)


@pytest.mark.parametrize("options", [[], ["--compare", "b"], ["--target-risk", ".3", "--calibration", "other.csv"]])
def test_one_screen_fits_100_columns_and_all_says_more(tmp_path, monkeypatch, capsys, options):
    monkeypatch.chdir(tmp_path)
    for name, step in (("mine.csv", 2), ("other.csv", 3)):
        rows = [f"q{k},i{k},{k % step > 0:d},{k / 60:.3f},{method}" for method in "ab" for k in range(60)]
        write(tmp_path, name, "\n".join(["sample_id,image_id,correct,confidence,method", *rows]))
    assert program.main(["evaluate", "mine.csv", "--replicates", "50", *options]) == 0
    short = capsys.readouterr().out
    if not options:
        assert short.startswith(f"{dualread.evaluate('mine.csv', replicates=50)!r}\n")
    assert max(map(len, short.splitlines())) <= 100
    assert len(short.splitlines()) <= 24 + 1  # and one that says how many are right
    assert "CCG-AUC needs a table of donor pairs (--pairs)" in short
    assert program.main(["evaluate", "mine.csv", "--replicates", "50", "--all", *options]) == 0
    everything = capsys.readouterr().out
    assert len(everything.splitlines()) > len(short.splitlines())
    assert "brier" in everything
    assert "brier" not in short


class Terminal(io.StringIO):
    """What a program takes for a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environment", "stream", "is_colored"),
    [({}, Terminal, True), ({"NO_COLOR": "1"}, Terminal, False), ({"TERM": "dumb"}, Terminal, False),
     ({"NO_COLOR": ""}, Terminal, True), ({}, io.StringIO, False)],
)  # fmt: skip
def test_only_a_terminal_gets_colors_and_no_table_can_send_its_own(
    tmp_path, monkeypatch, environment, stream, is_colored
):
    monkeypatch.chdir(tmp_path)
    rows = [f"i{k},{k % 2},{0.3 + 0.4 * (k % 2)},\x1b[31mevil{m}" for m in "ab" for k in range(60)]
    write(tmp_path, "mine.csv", "\n".join(["image_id,correct,confidence,method", *rows]))
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = stream()
    monkeypatch.setattr(sys, "stdout", terminal)
    assert program.main(["evaluate", "mine.csv", "--replicates", "50"]) == 0
    said = terminal.getvalue()
    green = "\x1b[32mright answers get more confidence than wrong ones: all\x1b[0m"
    assert (green in said) == is_colored
    assert "\x1b[31mevil" not in said
    assert "u001b[31mevil" in said
    assert ("\x1b" in said) == is_colored
