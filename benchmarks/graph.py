"""What the graph of jobs costs before anything runs: `snakemake -n` of a study, and of it with ten times the seeds.

    python benchmarks/graph.py                                  the paper's study
    python benchmarks/graph.py workflow/studies/smoke.yaml      another one

Where the study is finished, the first line is that of a call that finds nothing to do. CPU seconds: other work on the
machine does not count.
"""

import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
SEEDS = {"as it is": 0, "30 seeds": 30}


def main() -> None:
    study = Path(sys.argv[1] if len(sys.argv) > 1 else "workflow/studies/paper.yaml").resolve()
    with tempfile.TemporaryDirectory() as folder:
        for name, n_seeds in SEEDS.items():
            overlay = Path(folder, "seeds.yaml")
            overlay.write_text(f"seeds: {list(range(1, n_seeds + 1))}\n" if n_seeds else "{}\n")
            command = ["snakemake", "-n", "--quiet", "host", "--configfile", str(study), str(overlay)]
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
            seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
            if done.returncode != 0:
                sys.exit(done.stdout + done.stderr)
            jobs = re.findall(r"^total +(\d+)", done.stdout + done.stderr, re.MULTILINE)
            print(f"{study.stem}, {name}: {jobs[0] if jobs else 0} jobs, {seconds:.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
