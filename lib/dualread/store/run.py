"""Run one stage for a list of entries: `python -m dualread.store.run STAGE JOB`.

JOB is a JSON file, `-` for standard input, or the JSON itself:

    {"store": "results/store", "inputs": {name: path},
     "entries": [{"spec": {...}, "inputs": {name: path}, "output": directory}]}

If the store already holds an entry, it is linked to its output and the stage is not imported. Otherwise the stage's
`compute(spec, inputs, out)` computes it, with the spec as the dataclass that its signature names. Entries run in order;
a later entry may read what an earlier one wrote.
"""

# The road of an edit goes on in `dualread.store.runner`; here are arguments, messages and exit codes.

import os
import sys

if __name__ == "__main__":
    from dualread.store.forked import stand_for_job

    stand_for_job(sys.argv[1:])  # before any import that takes time; it returns where the job runs here

# Set before any import that reads it: jobs whose threads compete for cores ran 10 to 15 times slower than with one
# thread per job.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import errno
import gc
import signal
import traceback
from pathlib import Path
from types import FrameType

from dualread import devices
from dualread.errors import ArtifactError, DualReadError
from dualread.progress import keep_log, note, say
from dualread.store.job import job_text, parse_job
from dualread.store.manifest import MACHINE_FAILED, TEMPORARY
from dualread.store.runner import Runner


def main(arguments: list[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m dualread.store.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", metavar="STAGE", help="a module of dualread.stages, such as generate")
    parser.add_argument("job", metavar="JOB", help="a JSON file, - for standard input, or the JSON itself")
    log = "also write all messages to FILE; the reason of a failure goes only there"
    parser.add_argument("--log", metavar="FILE", type=Path, help=log)
    gpus = "take N GPUs of this machine; wait until they are free. By default, the job uses all that it can see"
    parser.add_argument("--gpus", metavar="N", type=int, default=0, help=gpus)
    planned = "the digests of dualread.store.code.job_digests with which the run was planned; - for one that is unknown"
    parser.add_argument("--planned", metavar=("CODE", "PACKAGES"), nargs=2, help=planned)
    options = parser.parse_args(arguments)
    # A model's packages create a million objects, none of them garbage. Python's default of one collection per 700
    # allocations takes a sixth of their load time.
    gc.set_threshold(50_000)
    signal.signal(signal.SIGTERM, _terminate)
    try:
        if options.log:
            try:
                keep_log(options.log)
            except OSError as error:
                advice = "Make its folder writable."
                raise ArtifactError(f"{options.log}: cannot write the log ({error.strerror}). {advice}") from error
        store, entries = parse_job(job_text(options.job))
        runner = Runner(options.stage, store)
        if options.planned:
            runner.check_plan(entries, *options.planned)
        with devices.taken(options.gpus):
            runner.run(entries)
    except DualReadError as error:
        return _fail(options, str(error))
    except KeyboardInterrupt:
        say(f"[{options.stage}] interrupted; the entries finished so far are in the store")
        return 130
    except Exception as error:
        (note if options.log else say)(traceback.format_exc().rstrip())
        cause = "This is an unexpected error: a bug in dualread, in a plugin, or in a package that it uses."
        if isinstance(error, MemoryError) or getattr(error, "errno", None) in (errno.EIO, *TEMPORARY):
            cause = f"{MACHINE_FAILED} Finished entries are safe."
        where = "in the log" if options.log else "above"
        return _fail(options, f"{type(error).__name__}: {error}. {cause} The traceback is {where}.")
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # Python ignores exceptions while it ends, and prints them
    note(f"[{options.stage}] done")  # a log that ends with neither this line nor an error belongs to a killed job
    return 0


def _fail(options: argparse.Namespace, reason: str) -> int:
    """Report the reason once, in the log if there is one: the workflow shows the logs of failed jobs at its end."""
    if options.log:
        note(f"[{options.stage}] error: {reason}")
        print(f"[{options.stage}] failed; see {options.log}", file=sys.stderr, flush=True)
    else:
        say(f"[{options.stage}] error: {reason}")
    return 1


def _terminate(signal_number: int, frame: FrameType | None) -> None:
    # Raise instead of dying at once, so that the scratch directory is removed.
    raise SystemExit(128 + signal_number)


if __name__ == "__main__":
    sys.exit(main())
