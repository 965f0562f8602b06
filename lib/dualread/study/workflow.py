"""Everything that the rules need of Snakemake's insides, for which it has no interface.

Snakemake is not imported here: the functions take the `workflow` object of the running Snakefile. What they rely on was
read in Snakemake 9.27. In a later 9.x it may have another name: what only saves time, or sorts jobs, is then done
without, and a line says so. What a right result needs is looked for before anything is planned (`check_insides`).
tests/study/test_workflow.py holds the functions against the installed version, tests/workflow/test_versions.py against
the oldest and the newest one.
"""

import contextlib
import copy
import getpass
import os
import re
import signal
import tempfile
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dualread.errors import ConfigError
from dualread.progress import say
from dualread.store.digest import content, replace_text
from dualread.store.place import DRY_RUN

OLDEST, TOO_NEW = (9, 27), (10,)
# Without these, results could be made from something else than the study says.
_NEEDED = ("_prepare_dag", "is_main_process", "output_settings", "dag_settings", "execution_settings", "rules")
# What Snakemake sets to the number of a job's threads.
ONE_THREAD = dict.fromkeys(
    (
        *("OMP_NUM_THREADS", "GOTO_NUM_THREADS", "OPENBLAS_NUM_THREADS"),
        *("MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS"),
    ),
    "1",
)


def check_version(version: str) -> None:
    """Refuse a Snakemake that is older than what this module was written for, or of another major version."""
    version_number = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if not OLDEST <= version_number < TOO_NEW:
        oldest = ".".join(map(str, OLDEST))
        raise ConfigError(
            f"snakemake {version}: the rules need {oldest} or a later {OLDEST[0]}.x (lib/dualread/study/workflow.py)."
            " Use this checkout's environment (make env), or `pip install 'dualread[workflow]'`."
        )


def check_insides(workflow: Any, version: str) -> None:
    """Refuse a Snakemake that lacks something without which a result could be out of date."""
    if missing := [name for name in _NEEDED if not hasattr(workflow, name)]:
        raise ConfigError(
            f"snakemake {version}: has no `Workflow.{missing[0]}`, which decides what is made again"
            " (lib/dualread/study/workflow.py). Use this checkout's environment (make env), and please report this."
        )


@contextlib.contextmanager
def _or_without(what: str) -> Iterator[None]:
    """Do without what is inside the block, and say so, where Snakemake has an inside no more."""
    try:
        yield
    except AttributeError as error:
        # Only a name that is not there at all, of an object of Snakemake, is another version's.
        if not type(error.obj).__module__.startswith(("snakemake", "types")):
            raise
        say(f"this Snakemake has no `{type(error.obj).__name__}.{error.name}`: {what}")


def is_module(workflow: Any) -> bool:
    """Return whether the Snakefile that is read now is a `module` of another workflow, and not the main one."""
    modifier = getattr(workflow, "modifier", None)
    return modifier is not None and not modifier.is_main_snakefile()


def asked_for(workflow: Any, config: Mapping[str, Any]) -> tuple[list[Path], Mapping[str, Any]]:
    """Return what is laid over config.yaml: the files that follow --configfile, and what else is given.

    A module gets all from the `config:` of its `module` statement; the command line is about the other workflow.
    `config` is that which Snakemake has before any file is read.
    """
    if not is_module(workflow):
        return workflow.overwrite_configfiles, workflow.config_settings.config
    with _or_without("`prefix:` of a module is not noticed"):
        paths = workflow.modifier.path_modifier
        if paths.prefix or paths._prefix_replacements:
            raise ConfigError(
                "module dualread: has a prefix, or replaces one. Leave it out: results are in results/<study>, where"
                " `study` is a setting, and `snakemake --directory FOLDER` puts all of them elsewhere."
            )
    return [], copy.deepcopy(config)  # Snakemake lays it over what the Snakefile reads, part by part


def name_in(workflow: Any, rule: str) -> str | None:
    """Return the name of one of our rules in the workflow that uses it; None if that does not use it.

    A workflow with `use rule * from dualread as dualread_*` knows `grade` as `dualread_grade`.
    """
    modifier = getattr(workflow, "modifier", None)
    return rule if modifier is None else modifier.avail_rulename(rule)


def check_surroundings(folder: Path) -> None:
    """Refuse a folder for Snakemake's records, or a user, with which it would end with lines of its own code."""
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
    return runs_here(workflow) and getattr(workflow, "_executor_plugin", True) is not None


def move_temporary_folders(workflow: Any, folder: Path) -> None:
    """Move the folders that Snakemake has for the time of a run into `folder`.

    It makes one among the temporary files, and one with the text of all rules in the user's cache. There, a SIGKILL
    would leave them for good. What is in use stays: paths that another workflow may know, and a cache for jobs.
    """
    with _or_without("when it is killed, it leaves folders among temporary files and in the user's cache"):
        if is_module(workflow) or os.listdir(workflow._snakemake_tmp_dir.name):
            return
        folder.mkdir(exist_ok=True)
        for owner, name in ((workflow, "_snakemake_tmp_dir"), (workflow.sourcecache, "runtime_cache")):
            made = getattr(owner, name)
            setattr(owner, name, tempfile.TemporaryDirectory(dir=folder.absolute(), ignore_cleanup_errors=True))
            made.cleanup()


def plan_folder(workflow: Any, results: str) -> str:
    """Return where a plan leaves its jobs and settings: below `results`, or apart where it is of a dry run.

    A dry run may be of other settings than the results; what `verify` and others read is of the last run.
    """
    return f"{results}/{DRY_RUN}" if workflow.is_main_process and not makes_results(workflow) else results


def as_planned(workflow: Any, file: Path, find: Callable[[], Sequence[str]]) -> Sequence[str]:
    """Return the words that `find` finds when a run is planned, and that `file` keeps for the run's jobs elsewhere.

    A job of a cluster reads the rules again, and would find what is there when it starts. Where settings were edited,
    it is not a job of the plan; then the words are of nothing that it could find.
    """
    if not workflow.is_main_process:
        return file.read_text().split() if file.is_file() else ["unplanned", "unplanned"]
    words = find()
    if runs_here(workflow) and content(file) != " ".join(words).encode():
        replace_text(file, " ".join(words))
    return words


def limit(workflow: Any, resource: str, total: int) -> None:
    """Let jobs of this machine share `total` of `resource`, unless --resources says how many.

    A cluster's scheduler knows its own limits.
    """
    with _or_without(f"jobs do not share {total} {resource}; say so with --resources {resource}={total}"):
        is_local = workflow.global_resources["_nodes"].value is None
        if is_local and resource not in workflow.global_resources:
            workflow.register_resource(resource, total)


def give_rules_the_resources_of_their_stage(
    workflow: Any, actors: Collection[str], expected: Callable[[], Mapping[str, Mapping[str, int]]]
) -> None:
    """Apply a profile's `set-resources`, which names stages, to the rules that a stage has for each actor.

    A workflow that uses ours as a module may have given them other names. Memory and time that the profile does not say
    of a stage that it names are what is `expected` of it.
    """
    if not workflow.is_main_process:
        return  # jobs on a cluster are told the result
    with _or_without("`set-resources` of a profile has to name each rule, such as generate_rlvr"):
        by_stage: Mapping[str, Any] = workflow.resource_settings.overwrite_resources
        estimated = expected() if by_stage else {}
        for stage, resources in by_stage.items():
            missing = {name: n for name, n in estimated.get(stage, {}).items() if name not in resources}
            resources.update(missing)
        rules = {
            name_in(workflow, "_".join(filter(None, (stage, actor)))): resources
            for stage, resources in by_stage.items()
            for actor in (None, *actors)
        }
        used = {rule: resources for rule, resources in rules.items() if rule is not None}
        workflow.resource_settings.overwrite_resources = {**used, **by_stage}


def start_jobs_at_once(workflow: Any) -> None:
    """Switch off the limit on how many jobs are started per second, where jobs run on this machine.

    No setting says "no limit" (the default is 100 per second), and jobs of this machine never come near it. Because of
    it, Snakemake looks at all ready jobs again one second after each look at which some were ready: every finished job
    adds such a series of looks, and in a long run they take a fifth of a core.
    """
    with _or_without("its limit on jobs per second stays"):
        if workflow.local_exec and hasattr(workflow.scheduler, "job_rate_limiter"):
            workflow.scheduler.job_rate_limiter = None


def end_on_sigterm(workflow: Any) -> None:
    """Let SIGTERM end the run at any moment: no further job starts, and those that run are waited for.

    Snakemake's handler waits for a lock. Python runs it in the main thread, which may hold this lock, as when it counts
    finished jobs and says so; then it would wait for itself for ever. A thread of its own waits until the lock is free.
    """
    with _or_without("it may never end after SIGTERM; end it with Ctrl-C"):
        end = workflow.scheduler.exit_gracefully
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=end, daemon=True).start())


def prefer(workflow: Any, files: Collection[str]) -> None:
    """Let `files`, and whatever they need, go before other jobs that are ready, if this run makes them.

    With --prioritize, they would become targets of every run.
    """
    with _or_without("no table comes before the others"):
        workflow.dag.priorityfiles.update(files)
        workflow.dag.update_priority()


def jobs_here(workflow: Any, stages: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return stage and job file of this run's jobs, if they run on this machine; `stages` has the stage of a rule."""
    with _or_without("each job imports its packages itself, which takes seconds"):
        if workflow.touch or not workflow.local_exec:
            return []
        jobs = workflow.dag.needrun_jobs()
        return [(stages[job.rule.name], Path(job.params.job)) for job in jobs if job.rule.name in stages]
    return []


def unknown_targets(workflow: Any) -> list[str]:
    """Return the files that this call names (targets, --until, ...) and that are neither there nor made by any rule."""
    if not workflow.is_main_process or is_module(workflow):
        return []
    settings = workflow.dag_settings
    named = [*settings.targets, *settings.forcerun, *settings.until, *settings.omit_from]
    files = [os.path.relpath(name) for name in named if not workflow.is_rule(name)]
    missing = [file for file in files if not os.path.exists(file)]
    return [file for file in missing if not any(rule.is_producer(file) for rule in workflow.rules)]


class _Forced(set[str]):
    """The files that Snakemake makes again; `find` is called when it first asks, and knows all jobs by then."""

    def __init__(self, files: Iterable[str], find: Callable[[], Iterable[str]]) -> None:
        super().__init__(files)
        # A workflow may have several studies as modules.
        self._finders = [*(files._finders if isinstance(files, _Forced) else ()), find]

    def isdisjoint(self, other: Iterable[Any]) -> bool:
        finders, self._finders = self._finders, []
        for find in finders:
            self.update(find())
        return super().isdisjoint(other)


def plan_with(
    workflow: Any,
    check: Callable[[], None],
    find: Callable[[], Iterable[str]],
    *,
    rules: Collection[str] = (),
    hooks: Mapping[str, Callable[[], None]] | None = None,
) -> None:
    """Have Snakemake call `check` before it plans, and make the files again that `find` returns if this run needs them.

    Its own reasons besides missing files and times are switched off: what it remembers of settings and code can be
    wrong, and a job that runs for nothing makes all that depends on it run. If this is a module, all reasons of others
    than its `rules` stay, and `hooks` has what is done besides at the "onstart", "onsuccess" and "onerror" of the
    workflow, which ignores these sections of a module.
    """
    prepare, module = workflow._prepare_dag, is_module(workflow)

    def prepared(*arguments: Any, **options: Any) -> None:
        check()
        if not module:
            by_time = frozenset(t for t in workflow.rerun_triggers if str(t) == "mtime")
            workflow.dag_settings.rerun_triggers = by_time
        if options.get("lock_warn_only"):  # a dry run takes no lock; Snakemake would print an error where a run has one
            options |= {"lock_warn_only": False, "nolock": True}
        prepare(*arguments, **options)
        if module:
            _trust_no_records_of(workflow, rules)
            for event, ours in (hooks or {}).items():
                with _or_without(f"what a study does at {event} is left out"):
                    theirs = getattr(workflow, f"_{event}")
                    setattr(workflow, f"_{event}", lambda log, ours=ours, theirs=theirs: (ours(), theirs(log)))
        if workflow.is_main_process:
            workflow.dag.forcefiles = _Forced(workflow.dag.forcefiles, find)
        else:
            # Snakemake would remove the outputs of a job that fails. There is none but whole results, and where the job
            # has outlived its run, they are those of a later one.
            workflow.execution_settings.keep_incomplete = True

    workflow._prepare_dag = prepared


def _trust_no_records_of(workflow: Any, rules: Collection[str]) -> None:
    """Have Snakemake's records say that nothing has changed since a job of one of these rules ran."""
    with _or_without("jobs may be looked up again; --rerun-triggers mtime avoids it"):
        records = workflow.persistence
        for name in ("params_changed", "input_changed", "code_changed", "software_stack_changed"):
            ask = getattr(records, name)
            setattr(records, name, lambda job, ask=ask: () if job.rule.name in rules else ask(job))


def jobs_of(workflow: Any) -> list[tuple[str, Any, list[str]]]:
    """Return rule, wildcards and outputs of each job that this run may need."""
    return [(job.rule.name, job.wildcards, list(job.output)) for job in workflow.dag.jobs]
