"""The files of the library and of packages with plugins, each read once: the code that runs is that of a result's key.

`import dualread` calls `install`. From then on, modules of the library are made from what `read` returns, and the store
computes the digests in keys from it, too: an edit, however short, reaches both or neither. The library reads its files
of data with `read` as well. The same holds for an installed package from the first call of `package_folder` on.

Python's own loader takes byte code for that of a source with the same size and second of its mtime. The loader here
only takes byte code that names the hash of its source (PEP 552), and writes such byte code.
"""

import contextlib
import errno
import json
import os
import sys
import threading
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec, source_hash, spec_from_file_location
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
_INSIDE = f"{ROOT}{os.sep}"
_HANDED_ON = "DUALREAD_SOURCES"
_CHECKED_HASH = (3).to_bytes(4, "little")  # the flags of byte code that names the hash of its source
_folders = {ROOT.name: ROOT}  # of the packages whose files are read once
_contents: dict[str, bytes | None] = {}  # by path, below ROOT where it is there; None: there was no such file

# Held while a syntax tree is made: CPython 3.11 counts the depth of all threads together, and fails where two make one.
PARSING = threading.Lock()


def read(path: Path) -> bytes:
    """Return the bytes of a file; those of a file of the library as they were when this process first asked for them.

    Raises:
        OSError: The file cannot be read, or did not exist when this process first asked for it.
    """
    name = str(path).removeprefix(_INSIDE)
    if name == str(path) and not any(path.is_relative_to(folder) for folder in _folders.values()):
        return path.read_bytes()
    if name not in _contents:
        try:
            _contents.setdefault(name, path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            _contents.setdefault(name, None)
    if (content := _contents[name]) is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return content


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, whose files are read once from now on; None if there is none.

    The package is not imported.
    """
    if package not in _folders:
        spec = find_spec(package) if package.isidentifier() else None
        if spec is None or not spec.submodule_search_locations:
            return None
        _folders[package] = Path(next(iter(spec.submodule_search_locations)))
    return _folders[package]


def module_file(root: Path, module: str) -> Path | None:
    """Return the file of a module, such as "dualread.readers.psr", of the package in the folder `root`."""
    base = root.parent.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_name(f"{base.name}.py")):
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            read(path)
            return path
    return None


@contextlib.contextmanager
def handed_on(folder: Path) -> Iterator[None]:
    """Let the processes that are started inside the block begin with what this process has read.

    Args:
        folder: An existing folder for the file in which they find it.
    """
    file = folder.absolute() / "sources"
    texts = {name: None if content is None else content.decode("latin-1") for name, content in _contents.items()}
    file.write_text(json.dumps(texts), encoding="utf-8")
    os.environ[_HANDED_ON] = str(file)
    try:
        yield
    finally:
        del os.environ[_HANDED_ON]


def install() -> None:
    """Make all modules of the library from what `read` returns; only the first call does something."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    if file := os.environ.get(_HANDED_ON):
        texts = json.loads(Path(file).read_text(encoding="utf-8"))
        _contents.update({name: None if text is None else text.encode("latin-1") for name, text in texts.items()})
    sys.meta_path.insert(0, _Finder())
    # Python itself has read this module, perhaps from byte code of an earlier text.
    _Loader(ROOT.name, str(ROOT / "__init__.py")).exec_module(sys.modules[ROOT.name])


class _Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        folder = _folders.get(fullname.partition(".")[0])
        file = folder and module_file(folder, fullname)
        return file and spec_from_file_location(fullname, file, loader=_Loader(fullname, str(file)))


class _Loader(SourceFileLoader):
    def get_data(self, path: str) -> bytes:
        if not path.endswith(".pyc"):
            return read(Path(path))
        data = super().get_data(path)
        if data[4:8] != _CHECKED_HASH:
            raise OSError(f"{path}: this byte code does not name the hash of its source")
        return data

    def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
        header = data[:4] + _CHECKED_HASH + source_hash(read(Path(self.path)))
        super().set_data(path, header + data[16:], _mode=_mode)
