"""Everything that the rules need of Snakemake's insides, for which it has no interface.

Snakemake is not imported here: the functions take the `workflow` object of the running Snakefile. What they rely on was
read in Snakemake 9.27; `check_version` refuses any other minor version, and tests/study/test_workflow.py holds the
functions against the installed one.
"""

import contextlib
import fcntl
import getpass
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from dualread.errors import ConfigError
from dualread.store.digest import replace_text
from dualread.store.record import HOST

TESTED = (9, 27)
# What Snakemake sets to the number of a job's threads.
_THREADS = (
    *("OMP_NUM_THREADS", "GOTO_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
    *("MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
)


def check_version(version: str) -> None:
    """Refuse a Snakemake whose insides may differ from those that this module knows.

    Raises:
        ConfigError: The minor version is not `TESTED`.
    """
    found = tuple(int(part) for part in version.split(".")[:2])
    if found != TESTED:
        tested = ".".join(map(str, TESTED))
        raise ConfigError(
            f"snakemake {version}: the rules rely on insides of Snakemake {tested} (lib/dualread/study/workflow.py)."
            " Use this checkout's environment (make env), or `pip install 'dualread[workflow]'`."
        )


def check_surroundings(folder: Path) -> None:
    """Refuse surroundings in which Snakemake would end with lines of its own code.

    Args:
        folder: Where Snakemake runs, and keeps its records.

    Raises:
        ConfigError: The folder cannot be written to, or the user has no name.
    """
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(
            f"{folder}: cannot be written to by this user. Snakemake keeps its records there (.snakemake), and results"
            " go there. Run it in a copy of your own, or with --directory FOLDER."
        )
    try:
        getpass.getuser()
    except (KeyError, OSError) as error:
        raise ConfigError(
            f"the user id {os.getuid()} has no name on this machine, and Snakemake asks for one. Give it any:"
            " `export USER=me`."
        ) from error


def runs_here(workflow: Any) -> bool:
    """Return whether this process plans the run and is not a job of it, nor a dry run."""
    return workflow.is_main_process and not workflow.output_settings.dryrun


def makes_results(workflow: Any) -> bool:
    """Return, when it plans, whether this process makes what it plans: it is a run, not an inquiry like --summary."""
    return runs_here(workflow) and workflow._executor_plugin is not None


def as_planned(workflow: Any, file: Path, find: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Return the words that `find` finds when a run is planned, and that `file` keeps for the run's jobs elsewhere.

    A job of a cluster reads the rules again, and would find what is there when it starts. Where settings were edited,
    it is not a job of the plan; then the words are of nothing that it could find.
    """
    if not workflow.is_main_process:
        return file.read_text().split() if file.exists() else ["unplanned", "unplanned"]
    found, known = find(), file.read_text() if file.exists() else None
    if runs_here(workflow) and known != " ".join(found):
        replace_text(file, " ".join(found))
    return found


def free_dead_locks(folder: Path) -> IO[str]:
    """Hold a lock of our own in Snakemake's `folder` until this process ends; remove Snakemake's if nobody else does.

    A SIGKILL leaves Snakemake's lock behind, and every later run would ask for --unlock first. The caller keeps the
    returned file open for as long as the lock has to hold.
    """
    folder.mkdir(exist_ok=True)
    running = (folder / "running").open("a+")
    # Snakemake's own lock decides where another process is at work, where the file system has no such locks, and where
    # another machine held the last one, because some file systems keep these locks to one machine.
    with contextlib.suppress(OSError):
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
        running.seek(0)
        if running.read() in ("", HOST):
            for lock in folder.glob("locks/*.lock"):
                lock.unlink(missing_ok=True)
            running.truncate(0)
            running.write(HOST)
            running.flush()
    with contextlib.suppress(OSError):
        fcntl.flock(running, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return running


def hold(results: Path) -> IO[str]:
    """Hold the lock of a study's results until this process ends; the caller keeps the returned file open.

    Snakemake locks its folder when it has planned, and --nolock switches that off. Of two runs at a time, one would
    plan with results that the other is about to replace.

    Raises:
        ConfigError: Another run holds it, or the folder cannot be written to.
    """
    try:
        results.mkdir(parents=True, exist_ok=True)
        running = (results / "running").open("a+")
    except OSError as error:
        raise ConfigError(f"{results}: cannot be written to ({error.strerror}). Make the folder writable.") from error
    try:
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        with running:
            running.seek(0)
            holder = running.read()
        raise ConfigError(
            f"{results}: another run of this study is at work here ({holder}), so nothing was started. Wait for it, or"
            " end it. To run another configuration at the same time, use a second checkout; both may have one store."
        ) from None
    except OSError:
        return running  # a file system without locks
    running.truncate(0)
    running.write(f"process {os.getpid()} on {HOST}")
    running.flush()
    return running


def limit(workflow: Any, resource: str, total: int) -> None:
    """Let jobs of this machine share `total` of `resource`, unless --resources says how many.

    A cluster's scheduler knows its own limits.
    """
    is_local = workflow.global_resources["_nodes"].value is None
    if is_local and resource not in workflow.global_resources:
        workflow.register_resource(resource, total)


def give_rules_the_resources_of_their_stage(workflow: Any, actors: Collection[str]) -> None:
    """Apply a profile's `set-resources`, which names stages, to the rules that a stage has for each actor."""
    if workflow.is_main_process:  # jobs on a cluster are told the result
        by_stage: Mapping[str, Any] = workflow.resource_settings.overwrite_resources
        by_actor = {f"{stage}_{actor}": given for stage, given in by_stage.items() for actor in actors}
        workflow.resource_settings.overwrite_resources = {**by_actor, **by_stage}


def start_jobs_at_once(workflow: Any) -> None:
    """Switch off the limit on how many jobs are started per second, where jobs run on this machine.

    No setting says "no limit" (the default is 100 per second), and jobs of this machine never come near it. Because of
    it, Snakemake looks at all ready jobs again one second after each look at which some were ready: every finished job
    adds such a series of looks, and in a long run they take a fifth of a core.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def prefer(workflow: Any, files: Collection[str]) -> None:
    """Let `files`, and whatever they need, go before other jobs that are ready, if this run makes them.

    With --prioritize, they would become targets of every run.
    """
    workflow.dag.priorityfiles.update(files)
    workflow.dag.update_priority()


def jobs_here(workflow: Any, stages: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return stage and job file of this run's jobs, if they run on this machine; `stages` has the stage of a rule."""
    if workflow.touch or not workflow.local_exec:
        return []
    jobs = workflow.dag.needrun_jobs()
    return [(stages[job.rule.name], Path(job.params.job)) for job in jobs if job.rule.name in stages]


def job_environment(exported: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that each job of one thread has, besides those of Snakemake's process.

    Args:
        exported: What the prefix of every command exports.
    """
    return {**dict.fromkeys(_THREADS, "1"), **exported}


def unknown_targets(workflow: Any) -> list[str]:
    """Return the files that this call names (targets, --until, ...) and that are neither there nor made by any rule."""
    settings = workflow.dag_settings
    if not workflow.is_main_process:
        return []
    named = [*settings.targets, *settings.forcerun, *settings.until, *settings.omit_from]
    files = [os.path.relpath(name) for name in named if not workflow.is_rule(name)]
    missing = [file for file in files if not os.path.exists(file)]
    return [file for file in missing if not any(rule.is_producer(file) for rule in workflow.rules)]


class _Forced(set[str]):
    """The files that Snakemake makes again; `find` is called when it first asks, and knows all jobs by then."""

    def __init__(self, files: Iterable[str], find: Callable[[], Iterable[str]]) -> None:
        super().__init__(files)
        self._find: Callable[[], Iterable[str]] | None = find

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        find, self._find = self._find, None
        if find is not None:
            self.update(find())
        return super().isdisjoint(other)


def plan_with(workflow: Any, check: Callable[[], None], find: Callable[[], Iterable[str]]) -> None:
    """Have Snakemake call `check` before it plans, and make the files again that `find` returns if this run needs them.

    Its own reasons besides missing files and times are switched off: what it remembers of settings and code can be
    wrong, and a job that runs for nothing makes all that depends on it run.
    """
    prepare = workflow._prepare_dag

    def prepared(*arguments: Any, **options: Any) -> None:
        check()
        workflow.dag_settings.rerun_triggers = frozenset(t for t in workflow.rerun_triggers if str(t) == "mtime")
        prepare(*arguments, **options)
        if workflow.is_main_process:
            workflow.dag.forcefiles = _Forced(workflow.dag.forcefiles, find)
        else:
            # Snakemake would remove the outputs of a job that fails. There is none but whole results, and where the job
            # has outlived its run, they are those of a later one.
            workflow.execution_settings.keep_incomplete = True

    workflow._prepare_dag = prepared


def jobs_of(workflow: Any) -> list[tuple[str, Any, list[str]]]:
    """Return rule, wildcards and outputs of each job that this run may need."""
    return [(job.rule.name, job.wildcards, list(job.output)) for job in workflow.dag.jobs]
