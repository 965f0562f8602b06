"""What a cell has to hold and to print, and where a table differs from it."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, stdev
from typing import Any

import polars as pl

CLOSE = 1e-9
DASH = "---"
UP = ("auroc", "natural_ccg_auc", "strict_ccg_auc", "fixed_prefix_ccg_auc", "strict_same_answer_ccg_auc")
UP = (*UP, "shuffled_auroc", "shuffled_ccg_auc")
DOWN = ("ece15", "brier", "aurc", "hce90")
KEY = ("backbone", "dataset", "subset", "method", "metric")


@dataclass(frozen=True, kw_only=True)
class Expected:
    """A cell as it has to be: the value of every seed that it shows, and how it is printed."""

    backbone: str
    dataset: str
    method: str
    metric: str
    subset: str = "all"
    by_seed: Mapping[int, float | None]
    short: Collection[str] = ()
    by_chance: bool = False
    digits: int = 3
    signed: bool = False
    summary: Callable[[Sequence[float]], float] = mean
    spread: bool = True
    best_of: Sequence[str] = field(default_factory=tuple)  # methods that compete for the bold print

    @property
    def key(self) -> tuple[str, ...]:
        return (self.backbone, self.dataset, self.subset, self.method, self.metric)

    @property
    def mean(self) -> float | None:
        values = list(self.by_seed.values())
        return None if None in values or not values else self.summary([v for v in values if v is not None])

    @property
    def std(self) -> float | None:
        values = [v for v in self.by_seed.values() if v is not None]
        return stdev(values) if self.spread and len(values) > 1 and self.mean is not None else None

    def printed(self, mean: float | None, std: float | None) -> str:
        if mean is None:
            return DASH
        shows_spread = std is not None and (self.digits > 0 or std > 0)
        spread = f"±{text(std, self.digits)}" if shows_spread and std is not None else ""
        return f"{text(mean, self.digits, self.signed)}{spread}{mark(self.short)}{'°' if self.by_chance else ''}"


def mark(short: Collection[str]) -> str:
    """Return the mark of a CCG-AUC of which some side has few images."""
    return "†" + "".join(side[0] for side in ("source", "donor") if side in short) if short else ""


def text(value: float, digits: int = 3, signed: bool = False) -> str:
    """Return .952, 1.000, -.013, and with a sign +.130; never -.000."""
    found = f"{value:.{digits}f}"
    if not re.search("[1-9]", found):
        return found.replace("-", "").replace("0.", ".")
    sign = "-" if found.startswith("-") else "+" if signed else ""
    return sign + re.sub(r"^0(?=\.)", "", found.removeprefix("-"))


def differences(table: str, printed: pl.DataFrame, expected: Iterable[Expected]) -> list[str]:
    """Return a line for every cell of the table's CSV that is wrong, missing, or there without a reason to be."""
    wanted = {cell.key: cell for cell in expected}
    rows = {tuple(row[name] for name in KEY): row for row in printed.iter_rows(named=True)}
    found = [f"{table} {'/'.join(key)}: not in the table" for key in wanted if key not in rows]
    found += [f"{table} {'/'.join(key)}: not expected in the table" for key in rows if key not in wanted]
    if len(rows) != len(printed):
        found.append(f"{table}: {len(printed) - len(rows)} cells stand twice")
    both = {key: cell for key, cell in wanted.items() if key in rows}
    stated = {key: [closest(rows[key][n], getattr(cell, n)) for n in ("mean", "std")] for key, cell in both.items()}
    bold = _bold(both, {key: mean for key, (mean, _) in stated.items()})
    for key, cell in both.items():
        row = rows[key]
        pairs = [("mean", row["mean"], cell.mean), ("std", row["std"], cell.std)]
        pairs += [("printed", row["printed"], cell.printed(*stated[key]))]
        pairs += [("n_seeds", row["n_seeds"], len(cell.by_seed)), ("bold", row["bold"], key in bold)]
        pairs += [("has a reason", bool(row["reason"]), cell.mean is None)]
        found += [
            f"{table} {'/'.join(key)}: {n} {is_!r}, expected {to_be!r}" for n, is_, to_be in pairs if differ(is_, to_be)
        ]
    return sorted(found)


def differ(is_: Any, to_be: Any) -> bool:
    if isinstance(is_, float) and isinstance(to_be, float):
        return not math.isclose(is_, to_be, rel_tol=0.0, abs_tol=CLOSE)
    return is_ != to_be


def closest(is_: Any, to_be: Any) -> Any:
    """Return what a table states where it is right: a number half way between two printed ones is rounded as it was."""
    return to_be if differ(is_, to_be) else is_


def _bold(
    wanted: Mapping[tuple[str, ...], Expected], means: Mapping[tuple[str, ...], float | None]
) -> set[tuple[str, ...]]:
    """Return the cells that show the best printed value of their column."""
    columns = defaultdict(list)
    for key, cell in wanted.items():
        if cell.metric in (*UP, *DOWN) and cell.method in cell.best_of and (mean := means[key]) is not None:
            columns[cell.backbone, cell.dataset, cell.subset, cell.metric].append((float(f"{mean:.3f}"), key))
    best = {column: (max if column[-1] in UP else min)(value for value, _ in of) for column, of in columns.items()}
    return {key for column, of in columns.items() for value, key in of if value == best[column]}


def not_as_in_latex(table: str, tex: str, printed: pl.DataFrame) -> list[str]:
    """Return a line where the numbers in the LaTeX are not those of the CSV, bold ones bold."""
    in_tex: Counter[str] = Counter()
    if table in ("costs", "sc_tradeoff"):  # a method without a cost in the paper
        tex = re.sub(r"^([^&\n]*)& ---", r"\1&", tex, flags=re.MULTILINE)
    for body in re.findall(r"\\midrule(.*?)\\bottomrule", tex, flags=re.DOTALL):
        for cell in re.findall(r"\$([^$]*)\$|(---)", body):
            in_tex.update(_atoms(_plain("".join(cell))))
    in_csv: Counter[str] = Counter()
    for row in printed.iter_rows(named=True):
        if (row["metric"], row["printed"]) != ("retained_high_percent", DASH):  # one dash for a range
            mark = "*" if row.get("bold") or _significant(table, row) else ""
            in_csv.update(_atoms(mark + row["printed"]))
        if table == "paired" and row["printed"] == DASH and row["mean"] is None:
            in_csv.update([DASH])  # in the place of the interval
    return [
        f"{table}: {atom} stands {in_tex[atom]} times in the LaTeX, {in_csv[atom]} times in the CSV"
        for atom in sorted(in_tex.keys() | in_csv.keys())
        if in_tex[atom] != in_csv[atom]
    ]


def _significant(table: str, row: Mapping[str, Any]) -> bool:
    if table != "significance" or row["p_holm"] is None or row["short"]:
        return False
    return max(p for p in (row["p_holm"], row["p_holm_retrained"]) if p is not None) < 0.05


def _plain(cell: str) -> str:
    """Return the text of a LaTeX cell as the CSV has it, after an asterisk where it is bold."""
    cell = re.sub(r"\\mathbf\{([^}]*)\}", r"*\1", cell).replace(r"\,", " ").replace(r"\le ", "≤")
    cell = cell.replace(r"{}^{\circ}", "°")
    cell = re.sub(r"\{\}\^\{\\dagger\\mathrm\{(\w+)\}\}", r"†\1", cell)
    return re.sub(r"_\{\\pm([^}]*)\}", r"±\1", cell)


def _atoms(cell: str) -> list[str]:
    """Return the words of a cell; costs in the paper's notation, marks of components and a minus are none."""
    return [atom for atom in cell.split() if atom != "-" and not re.search(r"t|\\", atom)]
