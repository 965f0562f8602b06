"""What several verbs read, print or write: NAME=VALUE options, aligned columns, sizes, pages, and tables as files."""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from dualread.errors import ArtifactError, ConfigError, printable

if TYPE_CHECKING:
    import polars as pl

_COLORS = {"good": "\x1b[32m", "bad": "\x1b[31m"}


class EscapedStdout:
    """Standard output of a verb: whoever prints there, no control character of anybody reaches the terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write a text whose control characters are escaped."""
        self._stream.write(printable(text))
        return len(text)

    def paint(self, text: str, color: str) -> None:
        """Write a text in a color, if whoever reads it is a terminal and asks for none of NO_COLOR and TERM=dumb."""
        is_plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not self._stream.isatty()
        start, end = ("", "") if is_plain else (_COLORS[color], "\x1b[0m")
        self._stream.write(f"{start}{printable(text)}{end}")

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def named_values(option: str, words: Sequence[str], kind: Callable[[str], Any] = str) -> dict[str, Any]:
    """Return {name: value} from words such as "question=Frage", each name once; `kind` makes a value of its text."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals and value):
            raise ConfigError(f"{option} {word}: expected NAME=VALUE.")
        if name in values:
            raise ConfigError(f"{option} {word}: {name}={values[name]} is there, too. Give each name once.")
        try:
            values[name] = kind(value)
        except ValueError as error:
            raise ConfigError(f"{option} {word}: {error}. Expected a number, such as {name}=.6.") from error
    return values


def check_repository() -> None:
    """Refuse a current folder that is not the repository's, where Snakemake runs."""
    if not Path("config.yaml").is_file():
        raise ConfigError(
            f"{Path.cwd()}: no config.yaml here. Change to the folder of the repository, where snakemake runs, and run"
            " the same command again."
        )


def aligned(rows: Sequence[Sequence[str]], *, numbers: Collection[int]) -> Iterator[str]:
    """Yield one line per row, with two spaces between columns; the columns `numbers` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        padded = (text.rjust(width) if k in numbers else text.ljust(width) for k, (text, width) in enumerate(cells))
        yield "  ".join(padded).rstrip()


def size_text(n_bytes: float) -> str:
    """Return a number of bytes as text, such as "1.4 MB" (1 MB = 1e6 bytes)."""
    for unit in ("B", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.0f} {unit}" if unit == "B" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:,.1f} GB"


def write_page(path: Path, text: str) -> None:
    """Write an HTML page, and the folders above it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ArtifactError(
            f"{path}: cannot be written ({error.strerror}). Choose another place with --out."
        ) from error


def check_table_suffix(file: Path) -> None:
    """Refuse a file that `write_table` would not write."""
    _table_writer(file)


def write_table(table: "pl.DataFrame", file: Path) -> None:
    """Write the answers, at once or not at all; in .csv and .tsv, lists of texts are written as a#b, others as JSON."""
    beside = file.with_name(f".{file.name}.new")
    _table_writer(file)(table, beside)
    beside.replace(file)


def evaluating(table: "pl.DataFrame", file: Path) -> str:
    """Return the call that evaluates answers which `write_table` wrote to a file."""
    import polars as pl

    has_lists = table.schema.get("reference_answer") == pl.List(pl.String) and file.suffix in (".csv", ".tsv")
    several = has_lists and bool((table["reference_answer"].list.len() > 1).any())
    return f"dualread evaluate {file}" + (" --alternatives '#'" if several else "")


def _table_writer(file: Path):
    import polars as pl

    def as_text(table: "pl.DataFrame") -> "pl.DataFrame":
        lists = [name for name, kind in table.schema.items() if kind.is_nested()]
        return table.with_columns(
            pl.Series(
                name, [None if value is None else _list_text(value) for value in table[name].to_list()], pl.String
            )
            for name in lists
        )

    writers = {
        ".parquet": lambda table, to: table.write_parquet(to, compression="zstd"),
        ".jsonl": lambda table, to: table.write_ndjson(to),
        ".csv": lambda table, to: as_text(table).write_csv(to),
        ".tsv": lambda table, to: as_text(table).write_csv(to, separator="\t"),
    }
    if file.suffix not in writers:
        raise ConfigError(f"--out {file}: unknown suffix. Expected {', '.join(writers)}.")
    if not file.absolute().parent.is_dir():
        raise ConfigError(f"--out {file}: there is no folder {file.parent}. Make it first.")
    return writers[file.suffix]


def _list_text(value: object) -> str:
    """Return a list of plain texts as a#b, which --alternatives '#' reads, and anything else as JSON."""
    if isinstance(value, list) and value and all(isinstance(t, str) and not set(t) & set('#["{') for t in value):
        return "#".join(value)
    return json.dumps(value, ensure_ascii=False, default=str)
