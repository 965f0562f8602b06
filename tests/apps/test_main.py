import re
import shutil
import sys
from pathlib import Path

import pytest

from dualread.apps import main as program
from dualread.apps.explain import schema as schema_command
from dualread.schema.columns import all_schemas
from dualread.store.place import find_target
from dualread.store.store import Store
from tests.library_copy import LibraryCopy

ROOT = Path(__file__).resolve().parents[2]


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


def test_schema_prints_every_column_and_an_unknown_table_fails_with_the_nearest(capsys):
    assert program.main(["schema"]) == 0
    printed = capsys.readouterr().out
    for table, schema in all_schemas().items():
        assert f"{table}.parquet\n" in printed
        assert all(f"  {name}" in printed and column.meaning in printed for name, column in schema.columns.items())
    assert program.main(["schema", "metrics"]) == 0
    printed = capsys.readouterr().out
    assert "Float64 or null" in printed
    assert "pairs.parquet" not in printed
    assert program.main(["schema", "predicitons"]) == 1
    said = capsys.readouterr().err.rstrip()
    assert f"predicitons: no such table. Known: {', '.join(all_schemas())}, study, " in said
    assert said.endswith("Did you mean 'predictions'?")


def test_the_help_fits_a_screen_and_names_every_verb_once_evaluate_first(capsys):
    with pytest.raises(SystemExit):
        program.main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 24
    assert max(map(len, lines)) < 80
    folder = Path(program.__file__).parent
    modules = [path for path in folder.rglob("*.py") if "\nHELP = " in path.read_text()]
    verbs = [path.parent.name if path.stem == "__init__" else path.stem for path in modules]
    found = [match[1] for line in lines if (match := re.match(r"(?:\w+ +| {7})(\w+)  +\S", line))]
    assert found[0] == "evaluate"
    assert sorted(found) == sorted(verbs)
    for words in (*([verb] for verb in verbs), *(["store", word] for word in ("copy", "restore", "lock"))):
        with pytest.raises(SystemExit) as stop:
            program.main([*words, "--help"])
        assert stop.value.code == 0
        assert len(capsys.readouterr().out.splitlines()) > 8


def test_plan_reads_the_study_of_the_current_directory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert program.main(["plan"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"dualread plan: {tmp_path}: no config.yaml here. ")
    assert len(said.splitlines()) == 1
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    text = (ROOT / "config.yaml").read_text()
    (tmp_path / "config.yaml").write_text(text.replace("\nstudy: embedded ", "\nstudy: mine ", 1))
    assert program.main(["plan"]) == 0
    assert capsys.readouterr().out.startswith("study mine\n")


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "dualread schema: interrupted. Run the same command to continue.\n"),
        (OSError(30, "Read-only file system", "restored"), 1, "dualread schema: [Errno 30] Read-only file system: 're"),
    ],
)
def test_interrupts_and_system_errors_are_reported_without_a_traceback(monkeypatch, capsys, raised, code, said):
    def ends(options):
        raise raised

    monkeypatch.setattr(schema_command, "run", ends)
    assert program.main(["schema"]) == code
    assert capsys.readouterr().err.startswith(said)


INTACT = "results/study/joined: intact, down to the raw data\n"


def test_verify_takes_no_offence_at_an_edit_that_changed_no_file_and_names_what_other_code_has_made(library):
    library.edit("words.py", "text.strip()", "str(text.strip())")
    assert library.both() == ["computed", "hit"]
    done = _dualread(library, "verify", "results/study/joined")
    assert (done.returncode, done.stdout) == (0, INTACT)
    library.edit("words.py", "str(text.strip())", "text.strip() + '!'")
    library.both()
    library.edit("words.py", "text.strip() + '!'", "text.strip()")
    done = _dualread(library, "verify", "results/study/joined")
    assert done.returncode == 0
    line, last = done.stdout.splitlines()
    assert line.startswith("write_text ")
    assert line.endswith(": was made by other code than there is now (edited since: dualread.words)")
    assert last.endswith("; 1 of the artifacts behind it were made by other code than there is now")


def test_damage_upstream_fails_verify_and_is_not_copied_and_a_missing_entry_is_reported_once(library):
    _damage(library.root / "results/study/text/text.txt", "Jello")
    done = _dualread(library, "verify", "results/study/joined/text.txt")
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first.startswith("results/store/")
    assert "/text.txt: sha256" in first
    assert last.endswith("1 damaged or missing")
    done = _dualread(library, *_PUSH)
    assert done.returncode == 1
    refused, last = done.stdout.splitlines()
    assert "/text.txt: sha256" in refused
    assert last.endswith("0 already present, 1 refused")
    manifests = (library.root / "results/store").glob("??/*/MANIFEST.json")
    (entry,) = (path.parent for path in manifests if "write" in path.read_text())
    entry.rename(library.root / "elsewhere")
    done = _dualread(library, "verify", "results/study/joined")
    assert done.returncode == 1
    missing, last = done.stdout.splitlines()
    assert missing.startswith(f"{entry.relative_to(library.root)}: not in the store, and join_texts ")
    assert last == "results/study/joined: 1 damaged or missing"


def test_explain_prints_the_lineage_and_why_the_changed_module_field_and_input(library):
    done = _dualread(library, "explain", "results/study/joined")
    first, second, said = done.stdout.splitlines()
    assert first.startswith("join_texts ")
    assert '{"voice": {"module": "voices.loud"}}' in first
    assert second.startswith("  first: write_text ")
    assert said == "its stage said: read 1 texts, wrote 1"
    why = ("explain", "results/study/text", "--why")
    assert "the store holds no earlier artifact of the same output" in _dualread(library, *why).stdout
    library.edit("words.py", "text.strip()", "text.strip() + '!'")
    _, second, _ = _dualread(library, "explain", "results/study/joined").stdout.splitlines()
    assert "(edited since: dualread.words)" in second
    library.both()
    done = _dualread(library, *why)
    assert "  code dualread.words: changed\n" in done.stdout
    assert done.stdout.endswith("Their files are different.\n")
    joined = _dualread(library, "explain", "--why", "results/study/joined").stdout
    line = next(line for line in joined.splitlines() if line.startswith("  input first: "))
    follow = line.partition("to see why, run: dualread ")[2].split()
    assert "  code dualread.words: changed\n" in _dualread(library, *follow).stdout
    library.both(text="Bye")
    assert "  spec text: Hello -> Bye\n" in _dualread(library, *why).stdout


_PUSH = ("store", "copy", "results/store", "shared")
_PULL = ("store", "copy", "shared", "results/store")


def test_missing_inputs_of_a_target_are_counted(library):
    store = Store(library.root / "results/store")
    joined = find_target(str(library.root / "results/study/joined"), store).manifest
    (below,) = joined.input_keys.values()
    shutil.rmtree(store.entry(below))
    for call in (("--of", "results/study/joined"), ("--of", "results/study/results.lock")):
        _dualread(library, "store", "lock", "results/study")
        done = _dualread(library, *_PUSH, *call)
        assert done.returncode == 1
        lines = done.stdout.splitlines()
        assert lines[0] == f"results/store: lacks 1 of the 2 artifacts that {call[1]} needs"
    assert Store(library.root / "shared").lookup(joined.key) is not None
    library.both()  # recomputes it
    assert _dualread(library, *_PUSH, "--of", "results/study/joined").returncode == 0
    shutil.rmtree(store.entry(below))
    assert _dualread(library, *_PUSH, "--of", "results/study/joined").returncode == 0  # the target has it


def test_locked_tables_or_some_of_them_are_restored_although_the_code_was_edited(library):
    for name in ("main", "paired"):
        library.run(
            "join_texts", [{"spec": {"voice": {"module": "voices.loud"}}, "output": f"results/study/tables/{name}"}]
        )
    said = _dualread(library, "store", "lock", "results/study").stdout
    assert said.startswith("results/study/results.lock: 4 artifacts")
    lock = (library.root / "results/study/results.lock").rename(library.root / "paper.lock")
    _dualread(library, *_PUSH)
    shutil.rmtree(library.root / "results")
    library.edit("voices/loud.py", "upper", "title")
    done = _dualread(library, "store", "restore", lock.name)
    assert done.returncode == 1
    assert "lacks 2 of the locked tables and figures, such as tables/main" in done.stderr
    _dualread(library, *_PULL, "--of", lock.name, "--only", "tables")
    done = _dualread(library, "store", "restore", lock.name)
    assert done.returncode == 0, done.stderr
    assert "(edited since: dualread.voices.loud)" in done.stdout.splitlines()[0]
    assert (library.root / "restored/results/study/tables/main/text.txt").is_file()
    call = ("store", "restore", lock.name, "--store", "shared", "--to", "some", "--only")
    assert "1 of 1 locked artifacts" in _dualread(library, *call, "tables/main").stdout
    assert "the lock of study has no such target" in _dualread(library, *call, "tables/mai").stderr


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["pln"], "'plan'"),
        (["store", "cop", "elsewhere"], "'copy'"),
        (["plan", "--confgfile", "mine.yaml"], "'--configfile'"),
        (["explain", "tables/main.tex", "--sell", "slake"], "'--cell'"),
        (["evaluate", "mine.csv", "--clutser=patient"], "'--cluster'"),
        (["gc", "--delet"], "'--delete'"),  # an option has to be written in full
    ],
)
def test_the_nearest_verb_or_option_is_suggested(arguments, meant, capsys):
    with pytest.raises(SystemExit) as stop:
        program.main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(f"Did you mean {meant}?")


def test_an_invalid_target_is_reported_and_the_nearest_is_suggested(tmp_path, monkeypatch, capsys):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/main.tex").write_text("% study: mine\n")
    (tmp_path / "results/embedded").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for words, meant in (
        (["verify", "tables/mian.tex"], "tables/main.tex"),
        (["verify", "tabels/main.tex"], "tables/main.tex"),
        (["store", "lock", "results/embeded"], "results/embedded"),
        (["verify", "nowhere"], None),
        (["verify", ""], None),
    ):
        assert program.main(words) == 1
        said = capsys.readouterr().err.rstrip()
        assert said.startswith(f"dualread {words[0]}: ")
        assert meant is None or said.endswith(f"Did you mean '{meant}'?")
    assert not (tmp_path / "results/embeded").exists()
