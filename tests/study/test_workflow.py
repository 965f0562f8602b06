import errno
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import snakemake
from snakemake.cli import parse_set_resources
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.settings.enums import RerunTrigger
from snakemake.settings.types import ResourceSettings

from dualread.errors import ConfigError
from dualread.store.record import HOST, birth
from dualread.study import locks
from dualread.study import workflow as insides


def test_later_minor_versions_are_admitted_and_an_older_or_another_major_one_is_not():
    for version in (snakemake.__version__, "9.27.0", "9.28", "9.100.3"):
        insides.check_version(version)
    for version in ("9.26.4", "10.0", "10.0.0b1", "8.27.1"):
        with pytest.raises(ConfigError, match=re.escape(version)):
            insides.check_version(version)


def test_what_only_saves_time_is_done_without_and_said(capsys, tmp_path):
    empty = SimpleNamespace()
    insides.end_on_sigterm(empty)
    insides.start_jobs_at_once(empty)
    insides.prefer(empty, ["tables/main.tex"])
    insides.limit(empty, "gpu", 2)
    assert insides.jobs_here(empty, {}) == []
    insides.give_rules_the_resources_of_their_stage(SimpleNamespace(is_main_process=True), ["rlvr"], dict)
    insides.move_temporary_folders(empty, tmp_path)
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 7
    assert said[2] == "this Snakemake has no `SimpleNamespace.dag`: no table comes before the others"


def test_an_error_of_our_own_is_not_taken_for_another_version():
    class Ours:
        pass

    with pytest.raises(AttributeError, match="nothing"):
        insides.prefer(SimpleNamespace(dag=SimpleNamespace(priorityfiles=Ours().nothing)), [])


def module(**more):
    modifier = SimpleNamespace(
        is_main_snakefile=lambda: False,
        avail_rulename=lambda name: None if name == "all" else f"ours_{name}",
        path_modifier=SimpleNamespace(prefix=None, _prefix_replacements=None),
    )
    return SimpleNamespace(modifier=modifier, **more)


def test_a_module_is_configured_by_its_statement_and_the_main_workflow_by_the_command_line():
    main = SimpleNamespace(
        modifier=SimpleNamespace(is_main_snakefile=lambda: True, avail_rulename=lambda name: name),
        overwrite_configfiles=["mine.yaml"],
        config_settings=SimpleNamespace(config={"a": 1}),
    )
    assert insides.asked_for(main, {"b": 2}) == (["mine.yaml"], {"a": 1})
    assert insides.asked_for(module(), {"b": 2}) == ([], {"b": 2})
    assert (insides.name_in(main, "grade"), insides.name_in(module(), "grade")) == ("grade", "ours_grade")
    assert insides.name_in(module(), "all") is None
    given = {"seeds": {"a": 1}}
    _, kept = insides.asked_for(module(), given)
    given["seeds"]["b"] = 2
    assert kept == {"seeds": {"a": 1}}  # as it was given


def test_of_a_module_records_and_hooks_are_ours_and_those_of_other_rules_stay(capsys):
    def job(rule):
        return SimpleNamespace(rule=SimpleNamespace(name=rule))

    events = []
    records = SimpleNamespace(
        params_changed=lambda job: True,
        input_changed=lambda job: ["in"],
        code_changed=lambda job: ["code"],
        software_stack_changed=lambda job: [],
    )
    running = module(
        is_main_process=True,
        _prepare_dag=lambda: setattr(running, "dag", SimpleNamespace(forcefiles={"a"})),
        persistence=records,
        rerun_triggers=RerunTrigger.all(),
        dag_settings=SimpleNamespace(rerun_triggers=RerunTrigger.all()),
        _onsuccess=lambda log: events.append(log),
    )
    hooks = {"onsuccess": lambda: events.append("ours"), "onerror": lambda: None}
    for found in ("b", "c"):  # two studies in one workflow
        insides.plan_with(running, lambda: None, lambda found=found: [found], rules={"ours_grade"}, hooks=hooks)
    running._prepare_dag()
    assert [bool(records.params_changed(job(name))) for name in ("ours_grade", "theirs")] == [False, True]
    assert list(records.input_changed(job("ours_grade"))) == []
    assert list(records.code_changed(job("theirs"))) == ["code"]
    assert running.dag_settings.rerun_triggers == RerunTrigger.all()
    assert [running.dag.forcefiles.isdisjoint([file]) for file in "abcd"] == [False, False, False, True]
    running._onsuccess("log")
    assert events == ["ours", "ours", "log"]
    assert "what a study does at onerror is left out" in capsys.readouterr().err


@pytest.fixture
def running(tmp_path):
    """A Snakemake that has made its two folders for the time of a run."""
    (tmp_path / "made").mkdir()
    made = [tempfile.TemporaryDirectory(dir=tmp_path / "made") for _ in range(2)]
    running = SimpleNamespace(_snakemake_tmp_dir=made[0], sourcecache=SimpleNamespace(runtime_cache=made[1]))
    yield running
    running._snakemake_tmp_dir.cleanup()
    running.sourcecache.runtime_cache.cleanup()


def test_folders_of_a_killed_run_are_removed_by_the_next_one(running, tmp_path):
    place = tmp_path / ".snakemake"
    Path(running.sourcecache.runtime_cache.name, "Snakefile").touch()  # it is read again when it is needed
    lock = locks.free_dead_locks(place)
    insides.move_temporary_folders(running, place / locks.TEMPORARY)
    made = [running._snakemake_tmp_dir.name, running.sourcecache.runtime_cache.name]
    assert not list((tmp_path / "made").iterdir())
    locks.free_dead_locks(place).close()  # of another run, as long as this one lives
    assert sorted(made) == sorted(map(str, (place / locks.TEMPORARY).iterdir()))
    lock.close()
    locks.free_dead_locks(place).close()
    assert not list((place / locks.TEMPORARY).iterdir())


def test_folders_that_hold_something_stay_where_snakemake_has_made_them(running, tmp_path):
    folder = running._snakemake_tmp_dir.name
    Path(folder, "source-cache").mkdir()
    insides.move_temporary_folders(running, tmp_path / "temporary")
    assert len(list((tmp_path / "made").iterdir())) == 2
    assert running._snakemake_tmp_dir.name == folder


def test_a_lock_of_snakemake_stays_while_its_process_lives_and_where_another_machine_held_it(tmp_path):
    alive, lock = locks.free_dead_locks(tmp_path), tmp_path / "locks" / "0.input.lock"
    lock.parent.mkdir()
    lock.touch()
    locks.free_dead_locks(tmp_path).close()
    assert lock.exists()
    alive.close()
    locks.free_dead_locks(tmp_path).close()
    assert not lock.exists()
    assert (tmp_path / "running").read_text() == HOST
    (tmp_path / "running").write_text("another machine")
    lock.touch()
    locks.free_dead_locks(tmp_path).close()
    assert lock.exists()


def test_two_runs_of_one_study_are_refused_as_long_as_the_first_runs(tmp_path):
    results = tmp_path / "results/small"
    program = (
        "import sys; from pathlib import Path; from dualread.study.locks import hold\n"
        "held = hold(Path(sys.argv[1])); print('held', flush=True); input()"
    )
    command = [sys.executable, "-c", program, results]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match=rf"another run .* \(process {other.pid} on {HOST}\)"):
            locks.hold(results)
        other.communicate("\n")
    for lock in (locks.hold(results), locks.hold(results)):  # a module is read once for each `use rule`
        lock.close()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be written to"):
        locks.hold(tmp_path / "file")


def test_sigterm_ends_a_run_whose_main_thread_holds_the_lock_of_snakemakes_handler():
    """A run that was told to end while it said how many jobs were done went on for ever."""
    scheduler = JobScheduler.__new__(JobScheduler)
    scheduler._lock, scheduler._open_jobs, scheduler._user_kill = threading.Lock(), threading.Semaphore(0), None
    before = signal.getsignal(signal.SIGTERM)
    try:
        insides.end_on_sigterm(SimpleNamespace(scheduler=scheduler))
        with scheduler._lock:
            os.kill(os.getpid(), signal.SIGTERM)
            assert scheduler._user_kill is None
        assert scheduler._open_jobs.acquire(timeout=60)  # what its loop waits for
        assert scheduler._user_kill == "graceful"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_only_jobs_of_this_machine_are_forked(tmp_path):
    def job(rule):
        return SimpleNamespace(rule=SimpleNamespace(name=rule), params=SimpleNamespace(job=f"{rule}.json"))

    dag = SimpleNamespace(needrun_jobs=lambda: [job("grade_rlvr"), job("copy_table")])
    here = SimpleNamespace(touch=False, local_exec=True, dag=dag)
    stages = {"grade_rlvr": "grade"}
    assert insides.jobs_here(here, stages) == [("grade", Path("grade_rlvr.json"))]
    assert insides.jobs_here(SimpleNamespace(touch=True, local_exec=True, dag=dag), stages) == []
    assert insides.jobs_here(SimpleNamespace(touch=False, local_exec=False, dag=dag), stages) == []


def planning(main):
    running = SimpleNamespace(
        is_main_process=main, rerun_triggers=RerunTrigger.all(), dag_settings=SimpleNamespace(), dag=None
    )

    def prepare(forceall):
        assert (running.checked, forceall) == (True, False)
        running.dag = SimpleNamespace(forcefiles={"a"})

    running._prepare_dag = prepare
    return running


def test_files_to_make_again_are_looked_for_once_when_all_jobs_are_known():
    running, asked = planning(main=True), []
    insides.plan_with(running, lambda: setattr(running, "checked", True), lambda: asked.append(1) or ["b"])
    running._prepare_dag(forceall=False)
    running.dag.forcefiles.update(["c"])  # as of incomplete files
    assert asked == []
    assert [running.dag.forcefiles.isdisjoint([file]) for file in "abcd"] == [False, False, False, True]
    assert asked == [1]
    assert running.dag_settings.rerun_triggers == {RerunTrigger.MTIME}


@pytest.mark.parametrize("dry", [True, False])
def test_a_dry_run_neither_takes_nor_misses_a_lock(dry):
    """Beside a run, Snakemake would print an error in the middle of what it lists."""
    running, told = planning(main=True), {}
    running._prepare_dag = lambda **options: (
        told.update(options) or setattr(running, "dag", SimpleNamespace(forcefiles=set()))
    )
    insides.plan_with(running, lambda: None, lambda: [])
    running._prepare_dag(lock_warn_only=dry, nolock=False)
    assert told == {"lock_warn_only": False, "nolock": dry}


def test_a_job_elsewhere_is_made_as_it_was_planned():
    running = planning(main=False)
    running.execution_settings = SimpleNamespace(keep_incomplete=False)
    insides.plan_with(running, lambda: setattr(running, "checked", True), lambda: ["b"])
    running._prepare_dag(forceall=False)
    assert running.dag.forcefiles == {"a"}
    assert running.execution_settings.keep_incomplete


def test_targets_that_are_neither_there_nor_made_are_unknown(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there").touch()
    settings = SimpleNamespace(targets=["all", "there", "./a", "b"], forcerun=["c"], until=["all"], omit_from=["a"])
    rules = [SimpleNamespace(is_producer=lambda file: file == "a")]
    running = SimpleNamespace(
        is_main_process=True, dag_settings=settings, rules=rules, is_rule=lambda name: name == "all"
    )
    assert insides.unknown_targets(running) == ["b", "c"]
    running.is_main_process = False
    assert insides.unknown_targets(running) == []


@pytest.mark.parametrize(("running", "ours"), [(lambda **more: SimpleNamespace(**more), ""), (module, "ours_")])
def test_resources_of_a_stage_reach_the_rule_of_each_actor_and_an_own_entry_wins(running, ours):
    """Also the rules of a module, under their other names."""
    given = {"generate": {"gpu": 4}, f"{ours}generate_rlvr": {"gpu": 1}, "report": {"mem_mb": 1}}
    run = running(is_main_process=True, resource_settings=SimpleNamespace(overwrite_resources=given))
    insides.give_rules_the_resources_of_their_stage(run, ["base", "rlvr"], dict)
    found = run.resource_settings.overwrite_resources
    rules = (f"{ours}generate", f"{ours}generate_base", f"{ours}generate_rlvr", f"{ours}report")
    assert [found[rule] for rule in rules] == [{"gpu": 4}, {"gpu": 4}, {"gpu": 1}, {"mem_mb": 1}]


def test_what_a_profile_does_not_say_of_a_stage_is_what_is_expected_of_it():
    given = parse_set_resources(["generate:slurm_partition='gpu'", "grade:runtime=5", "replay:mem='8G'"])
    running = SimpleNamespace(is_main_process=True, resource_settings=ResourceSettings(overwrite_resources=given))
    expected = {stage: {"mem_mb": 64000, "runtime": 90} for stage in ("generate", "grade", "replay", "pair_donors")}
    insides.give_rules_the_resources_of_their_stage(running, ["rlvr"], lambda: expected)
    parsed = running.resource_settings._parsed_overwrite_resources
    found = {rule: {name: resource.raw for name, resource in of.items()} for rule, of in parsed.items()}
    assert {name: found["generate_rlvr"][name] for name in ("mem_mb", "runtime")} == {"mem_mb": 64000, "runtime": 90}
    assert found["generate"] == found["generate_rlvr"]
    assert found["grade"] == {"runtime": 5, "mem_mb": 64000}
    assert found["replay"] == {"mem_mb": 8000, "runtime": 90}
    assert "pair_donors" not in found  # the profile does not name it

    def never():
        raise AssertionError("nothing is computed for a run without such a profile")

    insides.give_rules_the_resources_of_their_stage(
        SimpleNamespace(is_main_process=True, resource_settings=ResourceSettings()), ["rlvr"], never
    )


def test_a_folder_that_cannot_be_written_to_is_refused_in_one_sentence(tmp_path, monkeypatch):
    insides.check_surroundings(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)  # whoever runs the tests may write everywhere
    with pytest.raises(ConfigError, match=rf"^{tmp_path}: cannot be written to"):
        insides.check_surroundings(tmp_path)


def test_a_user_without_a_name_is_refused_in_one_sentence(tmp_path, monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 3_999_999_999)
    with pytest.raises(ConfigError, match="3999999999"):
        insides.check_surroundings(tmp_path)


def test_a_job_elsewhere_gets_what_its_run_was_planned_with(tmp_path):
    def planning(main, dryrun=False):
        return SimpleNamespace(is_main_process=main, output_settings=SimpleNamespace(dryrun=dryrun))

    file = tmp_path / "job.planned"
    assert insides.as_planned(planning(main=True), file, lambda: ["code", "packages"]) == ["code", "packages"]
    # Edited since; and somebody looks at what another run would do.
    assert insides.as_planned(planning(main=True, dryrun=True), file, lambda: ["edited", "-"]) == ["edited", "-"]
    assert insides.as_planned(planning(main=False), file, lambda: ["edited", "-"]) == ["code", "packages"]
    assert insides.as_planned(planning(main=True), file, lambda: ["edited", "-"]) == ["edited", "-"]
    assert insides.as_planned(planning(main=False), file, lambda: ["code", "packages"]) == ["edited", "-"]
    unplanned = insides.as_planned(planning(main=False), tmp_path / "other.planned", lambda: ["code", "packages"])
    assert not {*unplanned} & {"code", "packages", "-"}


def test_without_locks_a_study_is_held_by_a_lease_until_its_process_ends(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    file = tmp_path / "running.lease"
    first, again = locks.hold(tmp_path), locks.hold(tmp_path)  # the rules of a module are read several times
    again.close()
    assert json.loads(file.read_text())["pid"] == os.getpid()
    first.close()
    parent = {"host": HOST, "pid": os.getppid(), "birth": birth(os.getppid())}
    for holder in (parent, {"host": "another-host", "pid": 1, "birth": ""}):
        file.write_text(json.dumps(holder))
        with pytest.raises(ConfigError, match=f"process {holder['pid']} on {holder['host']}"):
            locks.hold(tmp_path)
    file.write_text("[]")  # damaged, and just now
    with pytest.raises(ConfigError, match=r"process \? on \?"):
        locks.hold(tmp_path)
    file.write_text(json.dumps({**parent, "birth": "another process"}))  # it was killed
    locks.hold(tmp_path).close()
    assert not file.exists()
