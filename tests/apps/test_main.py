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
from tests.store.entries import HOUR, grow_old

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


def test_schema_prints_every_column(capsys):
    assert program.main(["schema"]) == 0
    printed = capsys.readouterr().out
    for table, schema in all_schemas().items():
        assert f"{table}.parquet\n" in printed
        assert all(f"  {name}" in printed and column.meaning in printed for name, column in schema.columns.items())
    assert program.main(["schema", "metrics"]) == 0
    printed = capsys.readouterr().out
    assert "Float64 or null" in printed
    assert "pairs.parquet" not in printed


def test_an_unknown_table_fails_with_the_known_ones(capsys):
    assert program.main(["schema", "metric"]) == 1
    assert f"metric: no such table. Known: {', '.join(all_schemas())}, study, " in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        *([], ["plan"], ["schema"], ["verify"], ["explain"], ["evaluate"], ["score"], ["export"], ["report"]),
        *(["gc"], ["store", "copy"], ["store", "restore"], ["store", "lock"]),
    ],
)
def test_every_verb_has_a_help_text(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        program.main([*arguments, "--help"])
    assert stop.value.code == 0
    assert len(capsys.readouterr().out.splitlines()) > 8


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


def test_plan_says_what_the_study_costs(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    files = ["workflow/studies/smoke.yaml", "workflow/selections/qwen3-vl-tiny.yaml"]
    assert program.main(["plan", "--cores", "8", "--configfile", *files]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("study smoke\n  backbones: qwen3-vl-tiny\n")
    assert "\non 8 CPU cores about " in printed


def test_plan_reads_the_study_of_the_current_directory(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "workflow", tmp_path / "workflow")
    text = (ROOT / "config.yaml").read_text()
    assert text.count("\nstudy: embedded ") == 1
    (tmp_path / "config.yaml").write_text(text.replace("\nstudy: embedded ", "\nstudy: mine "))
    monkeypatch.chdir(tmp_path)
    assert program.main(["plan"]) == 0
    assert capsys.readouterr().out.startswith("study mine\n")


def test_plan_outside_of_a_repository_says_where_to_run_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert program.main(["plan"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"dualread plan: {tmp_path}: no config.yaml here. ")
    assert len(said.splitlines()) == 1


def test_plan_reports_a_missing_config_file(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert program.main(["plan", "--configfile", "nowhere.yaml"]) == 1
    assert capsys.readouterr().err.startswith("dualread plan: nowhere.yaml: cannot be read")


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


def test_verify_reads_everything_and_changes_nothing(library):
    done = _dualread(library, "verify", "results/study/joined")
    assert (done.returncode, done.stdout) == (0, "results/study/joined: intact, down to the raw data\n")


def test_verify_names_what_other_code_has_made(library):
    library.edit("words.py", "text.strip()", "text.strip() + '!'")
    library.both()
    library.edit("words.py", "text.strip() + '!'", "text.strip()")
    done = _dualread(library, "verify", "results/study/joined")
    assert done.returncode == 0
    line, last = done.stdout.splitlines()
    assert line.startswith("write_text ")
    assert line.endswith(": was made by other code than there is now (edited since: dualread.words)")
    assert last.endswith("; 1 of the artifacts behind it were made by other code than there is now")


def test_verify_takes_no_offence_at_an_edit_that_changed_no_file(library):
    library.edit("words.py", "text.strip()", "str(text.strip())")
    assert library.both() == ["computed", "hit"]
    done = _dualread(library, "verify", "results/study/joined")
    assert (done.returncode, done.stdout) == (0, "results/study/joined: intact, down to the raw data\n")


def test_verify_reports_a_damaged_file_upstream(library):
    _damage(library.root / "results/study/text/text.txt", "Jello")
    done = _dualread(library, "verify", "results/study/joined/text.txt")
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first.startswith("results/store/")
    assert "/text.txt: sha256" in first
    assert last.endswith("1 damaged or missing")


def test_verify_reports_a_missing_entry_once(library):
    (entry,) = (
        p.parent for p in (library.root / "results/store").glob("??/*/MANIFEST.json") if "write" in p.read_text()
    )
    entry.rename(library.root / "elsewhere")
    done = _dualread(library, "verify", "results/study/joined")
    assert done.returncode == 1
    missing, last = done.stdout.splitlines()
    assert missing.startswith(f"{entry.relative_to(library.root)}: not in the store, and join_texts ")
    assert missing.endswith(" was made from it")
    assert last == "results/study/joined: 1 damaged or missing"


def test_explain_prints_the_lineage(library):
    done = _dualread(library, "explain", "results/study/joined")
    first, second, said = done.stdout.splitlines()
    assert first.startswith("join_texts ")
    assert '{"voice": {"module": "voices.loud"}}' in first
    assert second.startswith("  first: write_text ")
    assert said == "its stage said: read 1 texts, wrote 1"
    assert "edited since" not in done.stdout
    library.edit("words.py", "text.strip()", "text.lstrip()")
    _, second, _ = _dualread(library, "explain", "results/study/joined").stdout.splitlines()
    assert "(edited since: dualread.words)" in second


def test_why_shows_the_changed_module_field_and_input(library):
    library.edit("words.py", "text.strip()", "text.strip() + '!'")
    library.both()
    done = _dualread(library, "explain", "results/study/text", "--why")
    assert "  code dualread.words: changed\n" in done.stdout
    assert done.stdout.endswith("Their files are different.\n")
    joined = _dualread(library, "explain", "--why", "results/study/joined").stdout
    line = next(line for line in joined.splitlines() if line.startswith("  input first: "))
    follow = line.partition("to see why, run: dualread ")[2].split()
    assert "  code dualread.words: changed\n" in _dualread(library, *follow).stdout
    library.both(text="Bye")
    assert "  spec text: Hello -> Bye\n" in _dualread(library, "explain", "results/study/text", "--why").stdout


def test_why_reports_that_there_is_no_earlier_artifact(library):
    done = _dualread(library, "explain", "results/study/text", "--why")
    assert "the store holds no earlier artifact of the same output" in done.stdout


@pytest.mark.parametrize("target", ["nowhere", "lib/dualread/words.py", ""])
def test_an_invalid_target_is_reported(library, target):
    done = _dualread(library, "verify", target)
    assert done.returncode == 1
    assert done.stderr.startswith("dualread verify: ")
    assert "Traceback" not in done.stderr


def test_gc_removes_only_with_delete(library):
    library.both(text="Bye")  # replaces the outputs, so the entries of "Hello" are no longer needed
    store = library.root / "results/store"
    grow_old(store, 2 * HOUR)
    done = _dualread(library, "gc")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sorted(line.split()[0] for line in lines[:2]) == ["join_texts", "write_text"]
    assert "results/study/text" in done.stdout
    assert re.fullmatch(
        r"results/store: nothing was removed\. --delete would remove 2 of 2 unneeded entries and folders and free"
        r" [\d.]+ k?B\.",
        lines[-1],
    )
    assert len(list(Store(store).stored_keys())) == 4
    assert _dualread(library, "gc", "--delete").stdout.splitlines()[-1].endswith(" freed")
    assert len(list(Store(store).stored_keys())) == 2
    assert "intact" in _dualread(library, "verify", "results/study/joined").stdout
    assert library.both(text="Bye") == ["hit", "hit"]
    assert library.both() == ["computed", "computed"]


_PUSH = ("store", "copy", "results/store", "shared")
_PULL = ("store", "copy", "shared", "results/store")


def test_nothing_is_recomputed_after_a_copy(library):
    pushed = _dualread(library, *_PUSH)
    assert pushed.stdout.startswith("shared: copied 2 entries, ")
    assert _dualread(library, *_PUSH).stdout.endswith("2 already present\n")
    shutil.rmtree(library.root / "results")
    assert _dualread(library, *_PULL).returncode == 0
    assert library.both() == ["hit", "hit"]


def test_a_target_is_copied_with_what_it_was_made_from(library):
    library.both(text="Bye")  # now the store has two entries of each
    one = _dualread(library, "store", "copy", "results/store", "one", "--of", "results/study/text")
    assert one.stdout.startswith("one: copied 1 entries")
    two = _dualread(library, "store", "copy", "results/store", "two", "--of", "results/study")
    assert two.stdout.startswith("two: copied 2 entries")


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


def test_a_damaged_entry_is_not_copied(library):
    _damage(library.root / "results/study/text/text.txt", "Jello")
    done = _dualread(library, *_PUSH)
    assert done.returncode == 1
    refused, last = done.stdout.splitlines()
    assert "/text.txt: sha256" in refused
    assert last.endswith("0 already present, 1 refused")


def test_locked_tables_are_restored_although_the_code_was_edited(library):
    library.run("join_texts", [{"spec": {"voice": {"module": "voices.loud"}}, "output": "results/study/tables/main"}])
    assert _dualread(library, "store", "lock", "results/study").stdout.startswith(
        "results/study/results.lock: 3 artifacts"
    )
    lock = (library.root / "results/study/results.lock").rename(library.root / "paper.lock")
    _dualread(library, *_PUSH)
    shutil.rmtree(library.root / "results")
    library.edit("voices/loud.py", "upper", "title")
    done = _dualread(library, "store", "restore", lock.name)
    assert done.returncode == 1
    assert "lacks 1 of the locked tables and figures, such as tables/main" in done.stderr
    pulled = _dualread(library, *_PULL, "--of", lock.name, "--only", "tables")
    assert pulled.stdout.startswith("results/store: copied 1 entries")
    done = _dualread(library, "store", "restore", lock.name)
    assert done.returncode == 0, done.stderr
    assert "(edited since: dualread.voices.loud)" in done.stdout.splitlines()[0]
    assert "1 of 3 locked artifacts" in done.stdout
    assert (library.root / "restored/results/study/tables/main/text.txt").is_file()


def test_some_of_a_lock_can_be_restored(library):
    for table in ("main", "paired"):
        entry = {"spec": {"text": table}, "output": f"results/study/tables/{table}"}
        assert library.run("write_text", [entry]).returncode == 0
    _dualread(library, "store", "lock", "results/study")
    _dualread(library, *_PUSH, "--of", "results/study/tables/main")
    call = ("store", "restore", "results/study/results.lock", "--store", "shared")
    assert "lacks 1 of the locked tables and figures" in _dualread(library, *call).stderr
    assert "1 of 1 locked artifacts" in _dualread(library, *call, "--only", "tables/main").stdout
    assert "the lock of study has no such target" in _dualread(library, *call, "--only", "tables/mai").stderr


def test_only_needs_a_lock(library):
    done = _dualread(library, *_PUSH, "--only", "tables")
    assert done.returncode == 1
    assert done.stderr.startswith("dualread store: --only: selects targets of a lock")


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        (["pln"], "'plan'"),
        (["store", "cop", "elsewhere"], "'copy'"),
        (["plan", "--confgfile", "mine.yaml"], "'--configfile'"),
        (["explain", "tables/main.tex", "--sell", "slake"], "'--cell'"),
        (["evaluate", "mine.csv", "--clutser=patient"], "'--cluster'"),
    ],
)
def test_the_nearest_verb_or_option_is_suggested(arguments, meant, capsys):
    with pytest.raises(SystemExit) as stop:
        program.main(arguments)
    assert stop.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(f"Did you mean {meant}?")


def test_the_nearest_schema_is_suggested(capsys):
    assert program.main(["schema", "predicitons"]) == 1
    assert capsys.readouterr().err.rstrip().endswith("Did you mean 'predictions'?")


def test_the_nearest_target_is_suggested(tmp_path, monkeypatch, capsys):
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/main.tex").write_text("% study: mine\n")
    monkeypatch.chdir(tmp_path)
    for wrong in ("tables/mian.tex", "tabels/main.tex"):
        assert program.main(["verify", wrong]) == 1
        assert capsys.readouterr().err.rstrip().endswith("Did you mean 'tables/main.tex'?")


def test_plan_says_where_an_actor_has_to_be_put(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    assert program.main(["plan", "--configfile", "workflow/studies/one_gpu.yaml"]) == 0
    assert "rlvr, qwen3-vl-2b, seed 17: to be put into ../my-actor" in capsys.readouterr().out


def test_a_missing_study_gets_no_lock(tmp_path, monkeypatch, capsys):
    (tmp_path / "results/embedded").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert program.main(["store", "lock", "results/embeded"]) == 1
    said = capsys.readouterr().err
    assert "results/embeded: no such folder" in said
    assert said.rstrip().endswith("Did you mean 'results/embedded'?")
    assert not (tmp_path / "results/embeded").exists()


def test_every_snakemake_command_in_a_study_file_gives_the_cores():
    files = [ROOT / "config.yaml", *ROOT.glob("workflow/studies/*.yaml"), *ROOT.glob("workflow/selections/*.yaml")]
    for line in (line for file in files for line in file.read_text().splitlines()):
        for command in re.findall(r"(?:`|#     |: )(snakemake [^`]*)", line):
            assert "--cores" in command, line


def test_every_snakemake_command_in_a_help_text_gives_the_cores(capsys):
    for arguments in ([], ["plan"], ["verify"], ["explain"], ["gc"], ["store"]):
        with pytest.raises(SystemExit):
            program.main([*arguments, "--help"])
        for line in capsys.readouterr().out.splitlines():
            if line.strip().startswith("snakemake "):
                assert "--cores" in line


def test_an_option_has_to_be_written_in_full(capsys):
    with pytest.raises(SystemExit):
        program.main(["gc", "--delet"])
    assert "--delet: no such option." in capsys.readouterr().err
