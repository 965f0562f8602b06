"""What a short job waits for: packages that take longer to import than the job takes to do its work."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pytest

from dualread import plugins, stages
from dualread import schema as declared
from dualread.schema.base import Section

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


@pytest.mark.parametrize("stage", sorted(path.stem for path in Path(stages.__path__[0]).glob("[!_]*.py")))
def test_a_stage_names_the_type_of_its_spec(stage):
    compute = importlib.import_module(f"dualread.stages.{stage}").compute
    kind = get_type_hints(compute)["spec"]
    assert issubclass(kind, Section)
    assert kind.__module__.startswith("dualread.schema.")


def test_the_workflow_starts_without_the_packages_that_compute():
    names = [module.name for module in pkgutil.iter_modules(declared.__path__) if module.name != "columns"]
    modules = ", ".join(f"dualread.schema.{name}" for name in names)
    program = f"import sys, {modules}; print(*sorted({{'polars', 'numpy', 'torch'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
