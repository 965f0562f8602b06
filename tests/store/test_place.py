"""Every command finds the store of the study that it is about."""

from pathlib import Path

import pytest

from dualread.errors import ConfigError
from dualread.store.place import lacking, read_study, store_of, write_study
from dualread.store.store import Store
from tests.store.entries import publish


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def study(name, store):
    write_study(Path("results", name), Store(Path(store)), settings={"a": 1})
    Path("tables").mkdir(exist_ok=True)
    Path("tables/main.tex").write_text(f"% study: {name}\n")
    Path("tables/main.csv").write_text("")


def test_the_default_is_the_store_beside_the_studies():
    assert store_of(None, None).root == Path("results/store")
    assert store_of("results/micro/metrics", None).root == Path("results/store")


@pytest.mark.parametrize(
    "target", ["results/a", "results/a/metrics/MANIFEST.json", "tables/main.tex", "tables/main.csv"]
)
def test_a_target_names_its_study_and_the_study_its_store(target):
    study("b", "/elsewhere/other")
    study("a", "/elsewhere/store")
    assert store_of(target, None).root == Path("/elsewhere/store")
    assert store_of(target, Path("given")).root == Path("given")


def test_a_relative_store_is_found_from_other_folders(tmp_path, monkeypatch):
    study("a", "results/shared")
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    assert store_of("../results/a/metrics", None).root == Path("../results/shared")


def test_a_key_belongs_to_the_one_store_of_all_studies():
    study("a", "/elsewhere/store")
    assert store_of("3fa2c1d0", None).root == Path("/elsewhere/store")
    study("b", "results/store")
    with pytest.raises(ConfigError, match=r"^--store: the studies in results have /elsewhere/store, results/store\."):
        store_of("3fa2c1d0", None)


@pytest.mark.parametrize("text", ["{", "[]", '{"store": 1}'])
def test_half_a_note_is_as_none(text):
    study("a", "/elsewhere")
    Path("results/a/study.json").write_text(text)
    assert read_study(Path("results/a")) == {}
    assert store_of("results/a", None).root == Path("results/store")


def test_the_keys_that_a_store_lacks():
    store = Store(Path("results/store"))
    key = publish(store, "grade", {"a": "1"}).key
    assert lacking([key, "0" * 64], store) == ["0" * 64]
