import sys
from pathlib import Path

import pytest

from dualread import cli
from dualread.artifacts.schemas import all_schemas
from tests.library_copy import LibraryCopy

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def library(tmp_path):
    copy = LibraryCopy(tmp_path)
    assert copy.both() == ["computed", "computed"]
    return copy


def _dualread(library, *arguments):
    return library.call([sys.executable, "-m", "dualread", *arguments])


def _damage(path, text):
    path.chmod(0o644)
    path.write_text(text)


def test_schema_prints_every_column(capsys):
    assert cli.main(["schema"]) == 0
    printed = capsys.readouterr().out
    for table, schema in all_schemas().items():
        assert f"{table}.parquet\n" in printed
        assert all(f"  {name}" in printed and column.meaning in printed for name, column in schema.columns.items())
    assert cli.main(["schema", "metrics"]) == 0
    printed = capsys.readouterr().out
    assert "Float64 or null" in printed
    assert "pairs.parquet" not in printed


def test_an_unknown_table_fails_with_the_known_ones(capsys):
    assert cli.main(["schema", "metric"]) == 1
    assert f"metric: no such table. Known: {', '.join(all_schemas())}." in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["plan"], ["schema"], ["verify"], ["explain"], ["evaluate"], ["report"]])
def test_help_teaches(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments, "--help"])
    assert stop.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) > 8


def test_plan_says_what_the_study_costs(capsys):
    chosen = ROOT / "workflow/selections/qwen3-vl-tiny.yaml"
    assert (
        cli.main(["plan", "--cores", "8", "--configfile", str(ROOT / "workflow/studies/smoke.yaml"), str(chosen)]) == 0
    )
    printed = capsys.readouterr().out
    assert printed.startswith("study smoke\n  backbones: qwen3-vl-tiny\n")
    assert "\non 8 CPU cores about " in printed


def test_plan_names_a_file_that_is_not_there(capsys):
    assert cli.main(["plan", "--configfile", "nowhere.yaml"]) == 1
    assert capsys.readouterr().err.startswith("dualread plan: nowhere.yaml: cannot be read")


def test_verify_reads_everything_and_changes_nothing(library):
    done = _dualread(library, "verify", "results/study/joined")
    assert (done.returncode, done.stdout) == (0, "results/study/joined: intact, down to the raw data\n")


def test_verify_names_a_damaged_file_upstream(library):
    _damage(library.root / "results/study/text/text.txt", "Jello")
    done = _dualread(library, "verify", "results/study/joined/text.txt")
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first.startswith("results/store/")
    assert "/text.txt: sha256" in first
    assert last.endswith("1 damaged or missing")


def test_verify_names_a_missing_entry_once_for_whoever_reads_it(library):
    (entry,) = (
        p.parent for p in (library.root / "results/store").glob("??/*/MANIFEST.json") if "write" in p.read_text()
    )
    entry.rename(library.root / "elsewhere")
    done = _dualread(library, "verify", "results/study/joined")
    assert done.returncode == 1
    assert "MANIFEST.json: cannot be read (No such file or directory)" in done.stdout
    assert "It belongs to join_texts" in done.stdout


def test_explain_prints_the_lineage(library):
    done = _dualread(library, "explain", "results/study/joined")
    first, second = done.stdout.splitlines()
    assert first.startswith("join_texts ")
    assert '{"voice": {"module": "voices.loud"}}' in first
    assert second.startswith("  first: write_text ")
    assert "edited since" not in done.stdout
    library.edit("words.py", "text.strip()", "text.lstrip()")
    _, second = _dualread(library, "explain", "results/study/joined").stdout.splitlines()
    assert "(edited since: dualread.words)" in second


def test_why_names_the_module_the_field_and_the_input(library):
    library.edit("words.py", "text.strip()", "text.strip() + '!'")
    library.both()
    done = _dualread(library, "explain", "results/study/text", "--why")
    assert "  code dualread.words: changed\n" in done.stdout
    assert done.stdout.endswith("The two hold different files.\n")
    joined = _dualread(library, "explain", "--why", "results/study/joined").stdout
    line = next(line for line in joined.splitlines() if line.startswith("  input first: "))
    follow = line.partition("to see why: dualread ")[2].split()
    assert "  code dualread.words: changed\n" in _dualread(library, *follow).stdout
    library.both(text="Bye")
    assert "  spec text: Hello -> Bye\n" in _dualread(library, "explain", "results/study/text", "--why").stdout


def test_why_without_an_earlier_one_says_so(library):
    done = _dualread(library, "explain", "results/study/text", "--why")
    assert "nothing earlier was written for the same output" in done.stdout


@pytest.mark.parametrize("target", ["nowhere", "lib/dualread/words.py", ""])
def test_a_target_that_is_none_is_named(library, target):
    done = _dualread(library, "verify", target)
    assert done.returncode == 1
    assert done.stderr.startswith("dualread verify: ")
    assert "Traceback" not in done.stderr
