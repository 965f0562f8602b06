"""What the config may set for a plugin: the class `Settings` in the plugin's file, read without importing the plugin.

The class is a `Section`, as all parts of a study are. A plugin may need packages that are not installed here, or slow
ones, and a study is checked before anything runs. Therefore only the class statement is run, after those imports of the
file that are light: from typing, pydantic, collections.abc, `dualread.schema`, and from the file `settings.py` of the
family, which holds what its plugins share.
"""

import ast
from functools import cache
from typing import Any

from dualread import plugins
from dualread.errors import ConfigError
from dualread.schema.base import Section

_LIGHT = ("collections.abc", "dualread.schema", "pydantic", "typing")


class NoSettings(Section):
    """The settings of a plugin that has none."""


@cache
def settings_class(family: str, name: str) -> type[Section]:
    """Return the class `Settings` of plugin `name`, or `NoSettings`; the plugin is not imported.

    Raises:
        ConfigError: There is no such plugin, or its class uses a name of the file that is not known before the plugin
            runs, or is no `Section`.
    """
    statement = plugins.class_statement(family, name, "Settings")
    if statement is None:
        return NoSettings
    file, light = plugins.file_of(family, name), (*_LIGHT, f"dualread.{plugins.package_of(family)}.settings")
    where = f"{file}: line {statement.lineno}"
    packages = tuple(f"{package}." for package in light)
    imports = [line for line in plugins.imports(family, name) if f"{line.module or ''}.".startswith(packages)]
    names: dict[str, Any] = {"__name__": plugins.absolute(plugins.module_of(family, name))}
    try:
        exec(compile(ast.Module([*imports, statement], []), str(file), "exec"), names)
    except (ImportError, NameError, AttributeError, TypeError, ValueError) as error:
        raise ConfigError(
            f"{where}: the class Settings cannot be read without importing the plugin ({error}). Expected only names"
            f" that the file imports from {', '.join(light)}."
        ) from error
    section = names["Settings"]
    if not (isinstance(section, type) and issubclass(section, Section)):
        raise ConfigError(f"{where}: the class Settings is not derived from dualread.schema.base.Section.")
    return section
