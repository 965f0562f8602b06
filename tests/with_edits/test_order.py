"""The bytes of an artifact do not depend on what its process has made before: all jobs of a study, in other orders."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

from tests.workflow.recomputed import jobs

ROOT = Path(__file__).resolve().parents[2]


def test_the_order_of_jobs_in_a_process_changes_no_byte(micro, tmp_path):
    # As in a job: one thread, because sums of several have other last bits.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.with_edits.test_order", "micro", str(tmp_path / "out")]
    done = subprocess.run(command, cwd=micro.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["computed"] > 100
    assert found["others"] == []


if __name__ == "__main__":
    _jobs = jobs(sys.argv[1])
    # Only once what takes half a minute; four times what reads tables, whose texts a process numbers together.
    _quick = [job for job in _jobs if job.stage not in ("pretrain_base", "train_actor", "probe_checkpoint")]
    _shuffled = [job for seed in range(4) for job in random.Random(seed).sample(_quick, len(_quick))]
    _orders = [*reversed(_jobs), *_shuffled]
    _others = [str(job.entry.output) for job in _orders if job.compute(Path(sys.argv[2])) != job.files()]
    print(json.dumps({"computed": len(_orders), "others": _others}))
