"""What the store says when it refuses something: messages.txt has the text of each case."""

import json
import re
from functools import partial
from pathlib import Path

from dualread.digests import artifact_digest, canonical_json
from dualread.store import results
from dualread.store.code import CodeIndex, stage_roots
from dualread.store.copy import LOCK_NAME, Lock, read_lock, restore, write_lock
from dualread.store.digest import raw_digest
from dualread.store.gc import leftovers
from dualread.store.graph import keys_below, reachable
from dualread.store.job import job_text, parse_job
from dualread.store.manifest import file_table, read_manifest
from dualread.store.place import find_key, find_target, registered, store_of, write_study
from dualread.store.store import Store
from tests import golden
from tests.store.entries import publish


def write(name: str, text: str) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.write_text(text)
    return path


def of_files(found):
    for name in ("link", "RECORD.json"):
        Path(name).mkdir()
    Path("link/link").symlink_to("/dev/null")
    write("RECORD.json/RECORD.json", "")
    Path("empty").mkdir()
    found("a stage that writes nothing", partial(file_table, Path("empty")))
    found("a stage that writes a link", partial(file_table, Path("link")))
    found("a stage that writes what the store writes", partial(file_table, Path("RECORD.json")))
    found("a value that JSON cannot express", partial(canonical_json, {"spec": {1, 2}}))
    found("a raw input that is not there", partial(raw_digest, Path("nowhere")))
    found("a raw input without files", partial(raw_digest, Path("empty")))
    found("an artifact that is not there", partial(artifact_digest, Path("nowhere")))
    found("half a manifest", partial(read_manifest, write("half/MANIFEST.json", "{")))
    write("file", "")
    found("a file where results go", partial(results.check_folders, Path("empty"), Path("file")))
    found("a file where a store goes", partial(publish, Store(Path("file")), "grade", {"a": "1"}))


def of_jobs(found):
    found("a job that is not there", partial(job_text, "none.json"))
    found("a job that is not JSON", partial(parse_job, "{"))
    found("a job that is a list", partial(parse_job, "[]"))
    found("a job with another field", partial(parse_job, '{"store": "s", "entries": [], "more": 1}'))
    found("a job with half an entry", partial(parse_job, '{"store": "s", "entries": [{"spec": {}}]}'))
    found("a plugin that is not named", partial(stage_roots, "grade", {"reader": {"module": 3}}))
    for name, text in {"__init__": "", "a": "DATA_FILES = ('t.json',)", "b": "DATA_FILES = tuple(names)"}.items():
        write(f"mini/{name}.py", text)
    digest = CodeIndex(Path("mini").absolute()).digest
    found("a module that is not there", partial(digest, ["mini.missing"]))
    found("a module of another package", partial(digest, ["elsewhere.module"]))
    found("a data file that a spec names", partial(digest, ["mini", "file:none.txt"]))
    found("a data file that a module names", partial(digest, ["mini.a"]))
    found("data files that are computed", partial(digest, ["mini.b"]))


def of_places(found):
    for name in ("a", "b"):
        write_study(Path("results", name), Store(Path(f"/elsewhere/{name}")))
    found("two stores", partial(store_of, "3fa2c1d0", None))
    store = Store(Path("results/store"))
    publish(store, "grade", {"a": "1"}, output=Path("results/a/graded"))
    found("a target that is not there", partial(find_target, "results/b/graded", store))
    found("a key that is not there", partial(find_key, "xyz", store))
    found("a table without a study", partial(find_target, str(write("tables/other.tex", "\\begin{tabular}")), store))
    found("a table of another study", partial(find_target, str(write("tables/other.tex", "% study: gone\n")), store))
    write("results/a/graded/MANIFEST.json", "{}")
    found("results with half a manifest", partial(keys_below, Path("results/a"), store))
    found("no results folder", lambda: list(leftovers(store, results=[Path("nowhere")])))
    (key,) = store.stored_keys()
    (store.entry(key) / "MANIFEST.json").unlink()
    write(f"{store.entry(key)}/MANIFEST.json", "{}")
    found("half an entry", partial(reachable, [key], store))
    write("results/store/roots/1.json", "{")
    found("half a registration", partial(registered, store))


def of_locks(found):
    store, folder = Store(Path("own/store")), Path("own/small")
    table = publish(store, "build_table", {"main.csv": "1"}, output=folder / "tables/main")
    lock = write_lock(folder, store)

    def restored(lock: Lock, store: Store = store, root: str = "restored"):
        return lambda: list(restore(lock, store, root=Path(root)))

    found("no lock", partial(read_lock, Path("nowhere")))
    found("a lock that is a list", partial(read_lock, write("list.lock", "[]")))
    other = json.dumps({"format": 2, "study": "s", "targets": {}})
    found("a lock of another format", partial(read_lock, write("other.lock", other)))
    found("no such target in a lock", partial(lock.only, ["tables/mai"]))
    found("a store without the tables of a lock", restored(lock, Store(Path("empty"))))
    Path("mine/results").mkdir(parents=True)
    publish(store, "grade", {"a": "1"}, output=Path("mine/results/small/graded"))
    found("other results in the place of a lock's", restored(lock, root="mine"))
    text = lock.to_text().replace(table.digest, "0" * 64)
    found("an entry with other files than a lock says", restored(read_lock(write(LOCK_NAME, text))))
    (store.entry(table.key) / "main.csv").chmod(0o644)
    (store.entry(table.key) / "main.csv").write_text("9")
    found("a damaged entry of a lock", restored(lock, root="again"))


def test_each_message_says_where_what_and_what_to_do(tmp_path, monkeypatch):
    found = {}

    def note(case, ask):
        text = golden.message_of(ask, Path.cwd())
        found[case] = re.sub(
            r"\b((?:[0-9a-f]{2}/)?[0-9a-f]{64}|[0-9a-f]{8}(?=\)))\b", "KEY", text
        )  # it has the version of Python

    for part in (of_files, of_jobs, of_places, of_locks):
        (tmp_path / part.__name__).mkdir()
        monkeypatch.chdir(tmp_path / part.__name__)
        part(note)
    golden.check(Path(__file__).with_name("messages.txt"), found)
