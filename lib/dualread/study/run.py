"""One run of a study: what happens around its jobs, in the order of time.

Before anything is planned, results that people, disks and clocks have changed are repaired. Then all results that the
run may need are compared with what would be made now (`dualread.study.stale`). When the jobs begin, those that can be
forked are (`dualread.store.layers`). When some have failed, the run ends with what their logs say, and
when none has, with the study's results.lock.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from dualread.devices import ASSIGNED, gpus
from dualread.digests import MANIFEST_NAME
from dualread.errors import ConfigError, DualReadError, did_you_mean, printable
from dualread.machine import model_slots
from dualread.progress import say
from dualread.schema.study import Config
from dualread.source_snapshot import ROOT
from dualread.store.code import SOURCES_NAME
from dualread.store.copy import LOCK_NAME, write_lock
from dualread.store.disk import check_writable, explained
from dualread.store.job import Entry, write_planned
from dualread.store.layers import start_forkserver
from dualread.store.manifest import Manifest
from dualread.store.partial import Lease
from dualread.store.place import STUDY_MARK, register, write_study
from dualread.store.results import check_folders, repair, wrong_copies
from dualread.store.store import Store
from dualread.study import workflow as insides
from dualread.study.again import forget_old_plans, outdated
from dualread.study.display import Display, failures
from dualread.study.files import selection
from dualread.study.jobs import Description, RuleJobs
from dualread.study.locks import TEMPORARY, free_dead_locks, hold
from dualread.study.shards import StudyShards
from dualread.study.stale import Plan
from dualread.study.work import cluster_resources, seconds_of_jobs

_NAMED = 3  # copies that a line names
# One thread per job: results do not depend on the number of cores, and jobs do not slow each other down.
_ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "PASSIVE",
    "POLARS_MAX_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def check(repository: Path, workflow: Any, snakemake_version: str) -> None:
    """Refuse surroundings in which rules and library would not fit together, or Snakemake would fail."""
    insides.check_version(snakemake_version)
    insides.check_insides(workflow, snakemake_version)
    insides.check_surroundings(Path.cwd())
    if repository not in ROOT.resolve().parents:
        raise ConfigError(
            f"{repository}: the rules are from here, but the library is {ROOT}."
            " Use this checkout's environment (`make env`, then `. .venv/bin/activate` in its folder), or set"
            f" PYTHONPATH={repository / 'lib'}."
        )


class StudyRun:
    """One call of Snakemake for a study, or one job of it that runs elsewhere and reads the rules again."""

    def __init__(
        self,
        workflow: Any,
        study: Config,
        results: str,
        files: Sequence[Path] = (),
        given: Mapping[str, Any] | None = None,
    ) -> None:
        """Take what Snakemake was asked for: `files` are laid over config.yaml, and `given` over them."""
        self._workflow, self._study, self._results = workflow, study, results
        self._selection = selection(files, given)
        noted = {"files": [os.path.relpath(file) for file in files], "given": dict(given or {})}
        noted |= {"selection": self._selection} if self._selection else {}
        # Taken before any rule gets hold of the study.
        self._noted = json.loads(json.dumps({**noted, "settings": study.as_mapping()}))
        selected = f" (a selection: {self._selection})" if self._selection else ""
        # What the copy of a table in tables/ begins with.
        self.first_line = f"{STUDY_MARK}{study.study}{selected}"
        self._started = time.time()
        self._store = Store(Path(study.store))
        self._made: dict[str, Manifest] = {}  # the artifacts that are there, as far as they have been read
        self._rules: dict[str, RuleJobs] = {}
        self._planned: Plan | None = None
        self._copies: dict[str, Mapping[str, str]] = {}
        self._others = {rule.name for rule in workflow.rules}  # of a workflow that uses this one as a module
        self._display: Display | None = None
        self._locks: list[IO[str] | Lease] = []  # held until this process ends
        # GPUs are assigned by a cluster's scheduler, or taken by the jobs. No command says so, or Snakemake would run
        # its job again elsewhere.
        self._variables, machine = dict(_ENVIRONMENT), study.machine
        if machine.samples_every is not None:  # trainings read from their environment who watches them
            self._variables["DUALREAD_SAMPLES_EVERY"] = str(machine.samples_every)
        if machine.report_to is not None:
            self._variables |= {"DUALREAD_REPORT_TO": ",".join(machine.report_to), "DUALREAD_RESULTS": results}
        variables = {**self._variables, **({ASSIGNED: "1"} if workflow.remote_exec else {})}
        # What comes before the command of each job.
        self.exports = f"export {' '.join(f'{name}={value}' for name, value in variables.items())}; "

    def before_planning(self) -> None:
        """Share what this machine has among its jobs, and repair what was changed since the results were written."""
        insides.limit(self._workflow, "model_slots", model_slots(self._study.machine.model_job_memory_gb))
        if n_gpus := len(gpus()):
            insides.limit(self._workflow, "gpu", n_gpus)
        names = set(StudyShards(self._study).answering)
        for training in (backbone.training for backbone in self._study.backbones.values()):
            engine, nodes = training.get("rollouts"), training.get("nodes", 1)
            names |= {engine, "_".join(filter(None, (engine, nodes > 1 and f"{nodes}_nodes")))} - {None, ""}
        forecast = {"root": ROOT.resolve().parents[1], "results": Path(self._results)}
        insides.give_rules_the_resources_of_their_stage(
            self._workflow, names, lambda: cluster_resources(self._study, **forecast)
        )
        if not insides.runs_here(self._workflow):
            return
        self._locks.append(free_dead_locks(Path(".snakemake")))
        insides.move_temporary_folders(self._workflow, Path(".snakemake", TEMPORARY))
        results = Path(self._results)
        check_folders(results, self._store.root, Path("tables"), Path("figures"))
        check_writable(self._store.root)
        register(Path("results"), self._store)
        self._made = repair(results, self._store)

    def jobs(self, rule: str, stage: str, describe: Callable[[Any], Description], environment: str | None) -> RuleJobs:
        """Return the jobs of a rule (see `RuleJobs`)."""
        jobs = RuleJobs(
            workflow=self._workflow,
            stage=stage,
            describe=describe,
            environment=environment,
            store=self._study.store,
            results=self._results,
        )
        if name := insides.name_in(self._workflow, rule):
            self._rules[name] = jobs
        return jobs

    def copies(self, rule: str, sources: Mapping[str, str], beside: Mapping[str, str] | None = None) -> list[str]:
        """Return the outputs of a rule that copies their `sources`, all with wildcards; `beside` may be there."""
        if name := insides.name_in(self._workflow, rule):
            self._copies[name] = {**sources, **(beside or {})}
        return list(sources)

    def plan(self, first: Callable[[], Collection[str]], **known: Collection[str]) -> None:
        """Let Snakemake plan; `first` returns what `begin` lets go before others, `known` has what people ask for."""

        def check() -> None:
            for target in insides.unknown_targets(self._workflow):
                meant = did_you_mean(target, [name for names in known.values() for name in names])
                listed = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in known.items() if names)
                sys.exit(
                    f"\n{target}: no rule makes this, and it is not there. The study {self._study.study} has {listed};"
                    f" and the MANIFEST.json of every artifact in {self._results}.{meant}"
                )
            if insides.makes_results(self._workflow):
                try:
                    self._locks.append(hold(Path(self._results)))
                except ConfigError as error:
                    sys.exit(f"\n{error}")

        def seconds_by_rule() -> dict[str, float]:
            seconds = seconds_of_jobs(self._study, root=ROOT.resolve().parents[1], results=Path(self._results))
            return {rule: seconds[jobs.stage] for rule, jobs in self._rules.items() if jobs.stage in seconds}

        rules = {rule.name for rule in self._workflow.rules} - self._others
        hooks = {"onstart": lambda: self.begin(first()), "onerror": self.end_failed, "onsuccess": self.end}
        insides.plan_with(self._workflow, check, self._outdated, rules=rules, hooks=hooks)
        if self._workflow.is_main_process and not insides.is_module(self._workflow):
            self._display = Display(seconds_by_rule)
            self._display.show()

    def _outdated(self) -> list[str]:
        """Return the files of this run that are there and are not what would be made now."""
        planned: dict[str, tuple[str, Entry]] = {}
        outdated: list[str] = []
        wrong: list[str] = []
        for rule, wildcards, outputs in insides.jobs_of(self._workflow):
            if jobs := self._rules.get(rule):
                jobs.file(wildcards)  # `dualread.study.again` reads the plan of every job
                planned |= {str(entry.output): (jobs.stage, entry) for entry in jobs.entries(wildcards)}
            elif sources := self._copies.get(rule):
                named = [[path.format(**dict(wildcards.items())) for path in pair] for pair in sources.items()]
                if differing := wrong_copies({Path(copy): Path(source) for copy, source in named}, self.first_line):
                    outdated += outputs
                    wrong += [str(copy) for copy in differing if copy.exists()]
        if wrong:
            more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
            say(f"made again, because they differ from what they show: {', '.join(wrong[:_NAMED])}{more}")
        workflow = self._workflow
        try:
            write_study(Path(insides.plan_folder(workflow, self._results)), self._store, **self._noted)
            if insides.makes_results(workflow):
                # From now on, no job of an earlier run shows its result; one may have done so since this run began.
                now = write_planned(Path(self._results), Plan(planned, self._store).recipes())
                self._forget_what_is_newer(now - (time.time() - self._started) - 1)
            plan = Plan(planned, self._store, self._made)
            stale, self._planned = plan.stale(), plan
        except DualReadError as error:
            sys.exit(f"\n{error}")
        except OSError as error:
            sys.exit(f"\n{explained(error, Path(self._results))}")
        return [*outdated, *(f"{output}/{MANIFEST_NAME}" for output in stale)]

    def _forget_what_is_newer(self, since: float) -> None:
        """Forget what was read of artifacts whose MANIFEST.json was written `since` then, or is gone."""
        for output in [*self._made]:
            with contextlib.suppress(FileNotFoundError):
                if os.stat(f"{output}/{MANIFEST_NAME}").st_mtime < since:
                    continue
            del self._made[output]

    def begin(self, first: Collection[str]) -> None:
        """Prepare for the jobs, which are planned; `first` are files that go before others where they are made."""
        insides.end_on_sigterm(self._workflow)
        insides.start_jobs_at_once(self._workflow)
        insides.prefer(self._workflow, first)
        sources = Path(self._study.store, SOURCES_NAME)
        forked = {rule: jobs.stage for rule, jobs in self._rules.items() if not jobs.environment}
        hooks = {} if self._planned is None else {"is_found": self._planned.is_found}
        start_forkserver(
            insides.jobs_here(self._workflow, forked), sources, {**insides.ONE_THREAD, **self._variables}, **hooks
        )

    def end_failed(self) -> None:
        """Print what failed jobs said, wherever they ran, and then what Snakemake says of them."""
        said = failures(Path(self._results, "logs"), since=self._started)
        print("", *map(printable, said), "", sep="\n", file=sys.stderr)
        if self._display is not None:
            self._display.release()

    def end(self) -> None:
        """Name all results in one small file. Kept with a paper, it lets `dualread store restore` show them."""
        results = Path(self._results)
        try:
            forget_old_plans(results)
            earlier = outdated(results, self._store)
            write_lock(results, self._store, outdated=earlier, selection=self._selection)
            if earlier:
                named = f"{len(earlier):,} artifacts, such as {min(earlier)}"
                say(f"{results / LOCK_NAME}: {named}, are of an earlier configuration than the others")
        except (DualReadError, OSError) as error:
            print(f"warning: results.lock was not written: {error}", file=sys.stderr)
