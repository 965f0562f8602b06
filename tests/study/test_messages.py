"""What a study says about what it refuses.

A case of refused.txt is a line of YAML, which is laid over the embedded study, and the message behind it. To add one,
write the line and have the file written (tests/golden.py). Cases that no config can state are in messages.txt.
"""

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from dualread import plugins
from dualread.source_snapshot import ROOT as LIBRARY
from dualread.study import workflow as insides
from dualread.study.config import resolve
from dualread.study.files import load
from dualread.study.locks import hold
from dualread.study.run import check
from tests import golden
from tests.study.embedded import EMBEDDED, ROOT, merged, problems

REFUSED = Path(__file__).with_name("refused.txt")
# Files that are laid over config.yaml.
FILES = {
    "a file: a list": "- 1",
    "a file: an unknown alias": "a: 1\nb: *netwrok",
    "a file: an entry twice": "study: x\nseeds: [1]\nmethods: {a: 1}\nseeds: [2]",
    "a file: an entry twice inside of others": "a:\n  - {b: {c: 1, 'c': 2}}",
    "a file: mappings in a line": "a: 1\n  b: 2",
    "a file: a list that does not end": "a: [1\nb: 2\n",
    "a file: a tab": "a:\n\tb: 1",
    "a file: not UTF-8": b"a: \xff",
    "a file: an alias of itself": "a: &a [*a]",
    "a file: a seed twice": "seeds: [17, 17]",
}


def test_what_a_study_refuses():
    found = {}
    for line in (line for line in REFUSED.read_text().splitlines() if not line.startswith(" ")):
        changed = merged(EMBEDDED, yaml.safe_load(line))
        message = golden.message_of(partial(resolve, changed, source="config.yaml"), LIBRARY, ROOT)
        # A new plugin, method or setting belongs to many lists of what is known, which are long.
        long = r"(Known: [^,.]+)(, [^,.]+){4,}(?=\.( |$))"
        found[line] = re.sub(long, r"\1 and others", message, flags=re.MULTILINE)
    assert [line for line, message in found.items() if message == "no error"] == []
    golden.check(REFUSED, found)


# Lists of names that refused.txt leaves out, because a new plugin, method or setting is in them.
RECIPE = "backbones.qwen3-vl-tiny.source.pretrain"


@pytest.mark.parametrize(
    ("changes", "where", "family"),
    [
        (
            {"backbones": {"qwen3-vl-tiny": {"source": {"pretrain": {"architecture": {"name": "x"}}}}}},
            f"{RECIPE}.architecture.name",
            "architectures",
        ),
        ({"views": {"x": {"image": "gray", "measure": {"name": "x"}}}}, "views.x.measure.name", "measures"),
        ({"methods": {"psr": {"reader": "x"}}}, "methods.psr.reader", "readers"),
        ({"tables": {"x": {"methods": ["psr"]}}}, "tables.x", "tables"),
    ],
)
def test_an_unknown_plugin_is_named_with_all_known_ones(changes, where, family):
    known = ", ".join(plugins.known(family))
    folder = plugins.package_of(family).replace(".", "/")
    assert f"config.yaml: {where}: 'x': no such plugin in lib/dualread/{folder}. Known: {known}." in problems(changes)


def test_an_unknown_key_and_an_unknown_name_come_with_all_known_ones():
    keys, names = (", ".join(of) for of in (sorted(EMBEDDED["methods"]["psr"]["settings"]), EMBEDDED["datasets"]))
    assert f"settings.x: unknown key. Known: {keys}." in problems({"methods": {"psr": {"settings": {"x": 3}}}})
    assert f"'x' is not in datasets. Known: {names}" in problems({"tables": {"main": {"datasets": ["x"]}}})


def of_workflow(found, folder):
    found("an older Snakemake", partial(insides.check_version, "9.26.4"))
    lacks = SimpleNamespace(**dict.fromkeys(set(insides._NEEDED) - {"_prepare_dag"}))
    found("another Snakemake", partial(insides.check_insides, lacks, "9.31.0"))
    complete = SimpleNamespace(**dict.fromkeys(insides._NEEDED))
    found("the library of another checkout", partial(check, folder, complete, "9.27.1"))
    (folder / "taken").touch()
    found("a file where results go", partial(hold, folder / "taken"))
    moved = SimpleNamespace(
        is_main_snakefile=lambda: False, path_modifier=SimpleNamespace(prefix="there/", _prefix_replacements=None)
    )
    found("a module with a prefix", partial(insides.asked_for, SimpleNamespace(modifier=moved), {}))


def test_what_files_and_surroundings_are_refused(tmp_path):
    found = {}

    def add(name, ask):
        found[name] = golden.message_of(ask, tmp_path, LIBRARY, ROOT)

    for name, text in FILES.items():
        file = tmp_path / "study.yaml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        add(name, partial(load, [file], ROOT))
    add("a file: none", partial(load, [tmp_path / "none.yaml"], ROOT))
    of_workflow(add, tmp_path)
    golden.check(Path(__file__).with_name("messages.txt"), found)
