"""What a short job waits for: packages that take longer to import than the job takes to do its work."""

import subprocess
import sys

import pytest

from dualread import plugins

_HEAVY = ("matplotlib", "scipy.optimize", "scipy.sparse", "scipy.special", "scipy.stats", "sklearn", "torch")
_SHORT = ("build_table", "collect_metrics", "compare_methods", "compute_metrics", "compare_with_paper", "measure_costs")


@pytest.mark.parametrize(
    "modules",
    [
        [f"dualread.stages.{stage}" for stage in _SHORT],
        [f"dualread.reporting.tables.{table}" for table in plugins.known("tables")],
    ],
    ids=["stages", "tables"],
)
def test_a_short_stage_imports_nothing_heavy_before_it_needs_it(modules):
    program = f"import sys, {', '.join(modules)}; print(*sorted(set({_HEAVY}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
