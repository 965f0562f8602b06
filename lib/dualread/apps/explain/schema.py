"""`dualread schema`: the columns of every parquet file that stages exchange, and the settings of a study."""

import argparse
import json
from collections.abc import Iterator, Sequence

from dualread.errors import ConfigError, did_you_mean

HELP = "explain the columns of a file, or the settings of a study"
DESCRIPTION = """
Print the columns of the parquet files that stages exchange: name, dtype, whether null is allowed, and meaning; or the
settings that a study's YAML file may have, with those of plugins: place, type, bounds, and meaning. Without NAME, print
the columns of all files. NAME is also a family of plugins or a plugin: training, grpo.
"""
_SETTINGS = "settings"
_PAGE = """# Settings

All that a study's YAML file may say. The declarations are in `lib/dualread/schema/`. `<name>` stands for the name of
an entry. What the `settings` of a data set, a method, or another plugin may say is at the end, under plugins, and
declared in the plugin's file. `dualread schema --json` prints the same, without plugins, as a JSON schema, with which
editors complete and check a study's file. This page is `dualread schema --markdown`.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this verb to `parser`."""
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help=f"manifest, ..., metrics, ..., {_SETTINGS}, or a plugin: training, grpo"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the JSON schema of a study, for editors")
    form.add_argument("--markdown", action="store_true", help="print the page docs/settings.md")


def run(options: argparse.Namespace) -> int:
    """Print what is asked for; return the exit code."""
    # Here, because --help needs neither polars nor pydantic.
    from dualread.schema.columns import all_schemas
    from dualread.schema.explained import json_schema, plugin_settings, settings

    if options.json:
        print(json.dumps(json_schema(), indent=1))
        return 0
    tables, places = all_schemas(), [*settings(), *plugin_settings()]
    sections = list(dict.fromkeys(place.partition(".")[0] for place, _, _ in places))
    if options.markdown:
        print("\n".join([_PAGE, *_page(sections, places)]).rstrip())
        return 0
    wanted = options.name
    plugins = {name for place, _, _ in places for name in _plugins(place)}
    if wanted is not None and wanted not in (known := [*tables, *sections, _SETTINGS, *sorted(plugins)]):
        raise ConfigError(f"{wanted}: no such table. Known: {', '.join(known)}.{did_you_mean(wanted, known)}")
    for table in [wanted] if wanted in tables else [] if wanted else tables:
        print(f"{table}.parquet")
        columns = tables[table].columns.items()
        dtypes = {name: f"{column.dtype}{' or null' if column.nullable else ''}" for name, column in columns}
        _print([(name, dtypes[name], column.meaning) for name, column in columns], 16)
    if chosen := [row for row in places if wanted in (_SETTINGS, row[0].partition(".")[0], *_plugins(row[0]))]:
        print("settings of a study")
        _print(chosen, 24)
    return 0


def _plugins(place: str) -> list[str]:
    """Return the family and the plugins of a setting: training, dcpo and grpo of plugins.training.{dcpo,grpo}.steps."""
    section, *rest = place.split(".")
    return [name for part in rest[:2] for name in part.strip("{}").split(",")] if section == "plugins" else []


def _print(rows: Sequence[tuple[str, str, str]], width_of_type: int) -> None:
    width = max(len(name) for name, _, _ in rows)
    for name, kind, meaning in rows:
        print(f"  {name:<{width}}  {kind:<{width_of_type}}  {meaning}")


def _page(sections: Sequence[str], places: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    by_section = {section: [row for row in places if row[0].partition(".")[0] == section] for section in sections}
    alone = [rows[0] for rows in by_section.values() if len(rows) == 1]
    for title, rows in {"The study": alone, **by_section}.items():
        if len(rows) > 1:
            yield f"## {title}\n\n| key | value | meaning |\n|---|---|---|"
            yield from (f"| `{place}` | {kind} | {meaning.replace('<', '&lt;')} |" for place, kind, meaning in rows)
            yield ""
