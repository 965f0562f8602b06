"""All comparisons of a study, in one list of differences."""

from collections.abc import Iterator
from pathlib import Path

from tests.workflow.recount import cells, collected, data_table, donors, figures, floors, interval_tables, point_tables
from tests.workflow.recount.study import Study
from tests.workflow.recount.values import Values

# Compared elsewhere, or holding no number that predictions could give.
ELSEWHERE = ("data", "hparams", "preview", "training")


def judge(results: Path) -> list[str]:
    """Return a line for every cell of the tables and every value of the figures of results/<study> that is wrong."""
    return list(_differences(results))


def of_points(name: str, values: Values) -> list[str]:
    """Return a line for every cell of one table of means that is wrong."""
    return cells.differences(name, values.study.printed("tables", name), point_tables.TABLES[name](values))


def _differences(results: Path) -> Iterator[str]:
    study = Study(results=results)
    values = Values(study=study)
    intervals = interval_tables.Intervals(values=values)
    yield from donors.differences(study)
    if (results / "tables" / "data").exists():
        yield from data_table.differences(study)
    shown = sorted(path.name for path in (results / "tables").iterdir())
    for name in shown:
        if name in point_tables.TABLES:
            yield from of_points(name, values)
        elif name not in (*interval_tables.TABLES, *ELSEWHERE):
            yield f"{name}: a table that nothing here computes"
    yield from collected.differences(values)
    yield from floors.differences(values)
    for name in (name for name in shown if name in interval_tables.TABLES):
        yield from interval_tables.differences(name, intervals)
    for name in (name for name in shown if name not in ELSEWHERE):
        tex = (results / "tables" / name / f"{name}.tex").read_text()
        yield from cells.not_as_in_latex(name, tex, study.printed("tables", name))
    recounts = {
        "reliability": lambda: figures.reliability(study, "reliability"),
        "reliability_domains": lambda: figures.reliability(study, "reliability_domains"),
        "risk_coverage": lambda: figures.risk_coverage(study),
        "counterfactuals": lambda: figures.counterfactuals(values),
        "forest": lambda: interval_tables.forest(intervals),
        "training_signals": lambda: figures.training_signals(values),
    }
    for name in sorted(path.name for path in (results / "figures").glob("*") if path.name not in ELSEWHERE):
        yield from recounts[name]() if name in recounts else [f"figure {name}: one that nothing here computes"]
