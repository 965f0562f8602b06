import re
import textwrap

import pytest

from dualread import plugins
from dualread import source_snapshot as source_snapshot
from dualread.store import code
from dualread.store.code import CodeIndex, job_digests, library, stage_roots

_FILES = {
    "__init__.py": '"""Mini."""\n__version__ = "1"\n',
    "stages/__init__.py": "",
    "stages/grade.py": """
        from typing import TYPE_CHECKING
        import numpy as np
        from mini.grading import parse
        if TYPE_CHECKING:
            import torch
            from mini.training import grpo

        def compute(spec, inputs, out):
            from mini import progress
            import mini.lazy
            return parse.parse(spec)
    """,
    "stages/other.py": "",
    "grading/__init__.py": "VALUE = 1\n",
    "grading/parse.py": """
        from . import _tags
        from .._shared import join
        DATA_FILES = ("grading/table.json",)

        def parse(text):
            '''Parse it.'''
            return join(text)  # as it is
    """,
    "grading/_tags.py": "import sklearn.svm\n",
    "grading/table.json": "{}",
    "_shared.py": "def join(text):\n    return text\n",
    "lazy.py": "import json\n",
    "progress.py": "import tqdm\n",
    "training/__init__.py": "",
    "training/grpo.py": "import torch\n",
    "readers/__init__.py": "",
    "readers/psr.py": "import scipy\n",
    "prompts/shared.txt": "Question",
}
_ROOT = "mini.stages.grade"


@pytest.fixture
def package(tmp_path):
    root = tmp_path / "mini"
    for name, text in _FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))
    return root


def _closure(package, *roots):
    return sorted(name.removeprefix("mini") for name in CodeIndex(package).table(roots or [_ROOT]))


def test_the_table_has_the_modules_of_which_something_can_run(package):
    """An import without effects is none of them: `.grading` has a constant that nothing names."""
    assert _closure(package) == [
        "._shared",
        ".grading._tags",
        ".grading.parse",
        ".lazy",
        ".stages.grade",
        "file:grading/table.json",
    ]


def test_who_only_imports_a_module_has_nothing_of_its_files(package):
    (package / "stages/other.py").write_text("from mini.grading import parse\n\n\ndef compute():\n    return 1\n")
    assert _closure(package, "mini.stages.other") == [".grading._tags", ".stages.other"]  # an import may have effects
    assert CodeIndex(package).way_to(["mini.stages.other"], "grading/none.json") == []


def test_the_way_to_a_data_file_names_the_modules_on_it(package):
    (package / "stages/other.py").write_text("from mini.stages.grade import compute\n\n\ndef run():\n    compute()\n")
    way = CodeIndex(package).way_to(["mini.stages.other"], "grading/table.json")
    assert way == ["mini.stages.other", "mini.stages.grade", "mini.grading.parse"]


def test_type_checking_imports_and_modules_that_cannot_change_results_do_not_count(package):
    assert not {".training.grpo", ".progress"} & set(_closure(package))


def test_plugins_and_data_files_of_the_spec_are_roots(package):
    spec = {"reader": {"module": "readers.psr"}, "prompts": [{"file": "prompts/shared.txt"}], "n": 3}
    roots = stage_roots("grade", spec, "mini")
    assert roots == ("mini.readers.psr", "mini.stages.grade", "file:prompts/shared.txt")
    extra = {".readers.psr", "file:prompts/shared.txt"}
    assert set(_closure(package, *roots)) - set(_closure(package)) == extra


@pytest.mark.parametrize(
    ("name", "changes"),
    [("grading/table.json", True), ("lazy.py", True), ("prompts/shared.txt", False), ("progress.py", False)],
)
def test_a_data_file_counts_where_it_is_named_and_code_that_changes_no_result_does_not(package, name, changes):
    """`test_definitions.py` has edits of code."""
    before = CodeIndex(package).digest([_ROOT])
    text = (package / name).read_text()
    (package / name).write_text(f"{text}\nassert True\n")
    assert (CodeIndex(package).digest([_ROOT]) != before) is changes
    (package / name).write_text(text)
    assert CodeIndex(package).digest([_ROOT]) == before


def test_packages_are_those_of_the_closure(package, monkeypatch):
    monkeypatch.setattr(code, "public_versions", lambda names: dict.fromkeys(sorted(names), "1"))
    index = CodeIndex(package)
    assert set(index.packages([_ROOT])) == {"numpy", "sklearn"}
    assert set(index.packages([_ROOT, "mini.readers.psr"])) == {"numpy", "scipy", "sklearn"}


def test_the_library_itself_has_digests():
    stages = [path.stem for path in sorted((library()._root / "stages").glob("[!_]*.py"))]
    digests = {stage: library().digest(stage_roots(stage, {})) for stage in stages}
    assert len(set(digests.values())) == len(stages)
    for stage in stages:
        modules = library().table(stage_roots(stage, {}))
        outside = (
            "dualread.store",
            "dualread.store.run",
            "dualread.apps.main",
            "dualread.progress",
            "dualread.plugins",
        )
        assert not [name for name in modules if name.startswith(outside)]


def test_code_of_results_reads_the_files_of_the_library_once():
    """What is read otherwise may have been edited since the digest in the key was computed."""
    family = [
        f"dualread.{plugins.module_of(name, plugin)}" for name in plugins.FAMILIES for plugin in plugins.known(name)
    ]
    stages = [f"dualread.stages.{path.stem}" for path in (source_snapshot.ROOT / "stages").glob("[!_]*.py")]
    for module in library().table([*stages, *family]):
        if not module.startswith("file:"):
            text = source_snapshot.module_file(source_snapshot.ROOT, module).read_text()
            for line in text.splitlines():
                assert "__file__" not in line or re.search(r"source_snapshot\.read\(|\.glob\(", line), (
                    f"{module}: {line}"
                )


def test_the_digests_of_a_job_are_those_of_all_its_entries():
    one, other = {"reader": {"module": "readers.psr"}}, {"reader": {"module": "readers.saplma"}}
    both = job_digests("fit_readers", [one, other])
    assert both == job_digests("fit_readers", [other, one, one])
    assert both[0] not in (job_digests("fit_readers", [one])[0], job_digests("fit_readers", [other])[0])


@pytest.fixture
def theirs(tmp_path, monkeypatch):
    """A package of somebody else, with a reader that uses another module of it, and a second package beside it."""
    files = {
        "their_package/__init__.py": "",
        "their_package/width.py": """
            import numpy
            from their_package.shared import half

            def score(reader, answers):
                return half(answers)
        """,
        "their_package/shared.py": """
            import second_package

            def half(a):
                return a / 2

            def unused():
                return 1
        """,
        "second_package/__init__.py": "VALUE = 1\n",
    }
    for name, text in files.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(source_snapshot, "_folders", dict(source_snapshot._folders))
    monkeypatch.setattr(source_snapshot, "_contents", dict(source_snapshot._contents))
    return tmp_path / "site"


def test_the_package_of_a_plugin_is_followed_like_the_library(theirs, package):
    roots = stage_roots("grade", {"reader": {"module": "their_package.width"}}, "mini")
    assert roots == ("mini.stages.grade", "their_package.width")
    index = CodeIndex(package)
    assert {"their_package.width", "their_package.shared", "mini.grading.parse"} <= set(index.table(roots))
    assert {"numpy", "second_package"} <= {name.partition(".")[0] for name in index.outside(roots)}
    assert "their_package" not in {name.partition(".")[0] for name in index.outside(roots)}
    # What the library alone reaches does not depend on what was asked before, and neither do the packages of others.
    assert index.table([_ROOT]) == CodeIndex(package).table([_ROOT])
    both = ("mini.stages.grade", "second_package", "their_package.width")
    assert "second_package" in index.table(both)
    assert index.table(roots) == CodeIndex(package).table(roots)


@pytest.mark.parametrize(
    ("file", "old", "new", "changes"),
    [
        ("shared.py", "a / 2", "a / 3", True),
        ("shared.py", "return 1", "return 2", False),
        ("shared.py", "def half(a):\n", "def half(a):  # the middle\n", False),
        ("width.py", "half(answers)", "half(half(answers))", True),
    ],
)
def test_an_edit_of_another_package_reaches_the_keys_of_its_plugins(theirs, package, file, old, new, changes):
    roots = ("mini.stages.grade", "their_package.width")
    before = CodeIndex(package).digest(roots)
    path = theirs / "their_package" / file
    path.write_text(path.read_text().replace(old, new))
    assert CodeIndex(package).digest(roots) == before  # this process runs what it has read
    source_snapshot._contents.clear()
    assert (CodeIndex(package).digest(roots) != before) is changes


# What stages and plugins use of modules whose code is in no key, and why that changes no result.
_OF_OTHERS = {
    "dualread.plugins": {
        **dict.fromkeys(("load", "load_module"), "the module is named by the spec, so it is followed"),
        **dict.fromkeys(("absolute", "class_statement", "file_of", "imports", "module_of"), "of such a module, too"),
        **dict.fromkeys(("declared", "is_foreign"), "of the reader that the spec names; TERMS only stand in an error"),
        "name_of": "of the reader that the spec names, too",
        **dict.fromkeys(("FAMILIES", "package_of"), "the folder of a family"),
        "known": "which names are ours: another is refused, and the error shows them",
    },
    "dualread.progress": dict.fromkeys(
        ("NotedStep", "note_steps", "say", "steps_file", "track", "work_on"), "what people see"
    ),
    "dualread.source_snapshot": dict.fromkeys(
        ("install", "package_folder", "read"), "the bytes of a file that is in the key, also of another package"
    ),
    "dualread.store.batches": dict.fromkeys(("current", "read_by_row"), "where an equal batch was computed before"),
    "dualread.store.digest": {
        "MANIFEST_NAME": "the name of a file",
        "read_json": "a file that the runner has compared with its manifest, or the training's own",
        **dict.fromkeys(("replace_text", "sha256_file"), "a file is whole, or another training begins from it"),
    },
    "dualread.store.manifest": {"read_manifest": "files of an input, which the runner has compared"},
    "dualread.store.partial": {"directory": "where a training resumes, with equal bytes (tests/with_faults)"},
}
_READ_DECLARATIONS = {"dualread.readers.declarations", "dualread.stages.download_dataset"}


def _closure_of_all_results():
    families = set(plugins.FAMILIES) - {"graders", "logs"}  # which commands read
    modules = [f"dualread.{plugins.module_of(family, name)}" for family in families for name in plugins.known(family)]
    stages = [f"dualread.stages.{path.stem}" for path in (source_snapshot.ROOT / "stages").glob("[!_]*.py")]
    return library().closure([*stages, *modules])


def test_results_depend_on_no_code_that_keys_leave_out():
    known = {f"{module}.{name}" for module, names in _OF_OTHERS.items() for name in names}
    for module, part in _closure_of_all_results():
        found = library()._source(module)
        if isinstance(part, int):
            for use in found.definitions[part].uses:
                first, _, rest = use.partition(".")
                for target in found.aliases.get(first, ()):
                    name = ".".join(filter(None, (target, rest)))
                    is_left_out = library().is_outside(name) and library()._find(name) is None
                    is_known = name in known and (not name.endswith(".declared") or module in _READ_DECLARATIONS)
                    assert not is_left_out or is_known, f"{module} uses {name}, whose code is in no key"


def test_no_result_depends_on_a_module_whose_name_is_computed():
    """Nor on one that is found by searching all modules: then each edit of the library would make it again."""
    for module, part in _closure_of_all_results():
        if isinstance(part, int) and (it := library()._source(module).definitions[part]).names != ("__getattr__",):
            assert it.reach in ("names", "module"), f"{module}: {it.names} reaches {it.reach}"


def test_an_edit_of_an_equivalence_reaches_generation_only_through_a_hint():
    spec = {"shard": {"prompt": {"name": "shared", "file": "models/prompts/shared.txt"}}}
    hinted = {"shard": {"prompt": {**spec["shard"]["prompt"], "hints": {"module": "models.hints"}}}}
    file = "file:grading/equivalences.json"
    for stage in ("generate", "replay"):
        assert file not in library().table(stage_roots(stage, spec))
        assert file in library().table(stage_roots(stage, hinted))


def test_the_wording_of_metrics_reaches_no_value():
    reached = library().table(stage_roots("compute_metrics", {}))
    assert "dualread.evaluation.answer_metrics" in reached
    assert "dualread.evaluation.explained" not in reached
