from dataclasses import replace

import pytest

from dualread.limits import UntrustedNameError
from dualread.readers.artifact import features_read, load_reader, save_reader
from dualread.readers.base import score
from tests.readers.test_contract import EVERY, fitted_once, held_out


@pytest.fixture(scope="module")
def reader():
    return fitted_once("dualread")


@pytest.mark.parametrize("name", EVERY)
def test_every_reader_survives_the_file_and_its_bytes_repeat(tmp_path, name):
    one, packages = fitted_once(name), name.split(".")[:-1]  # readers of other packages have to be named
    save_reader(tmp_path / "a", one)
    save_reader(tmp_path / "b", load_reader(tmp_path / "a", plugins=packages))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    answers = held_out(name)
    assert (
        score(load_reader(tmp_path / "b", plugins=packages), answers).confidence == score(one, answers).confidence
    ).all()


def test_features_read_include_the_parents(reader):
    assert features_read("readers.verbalized", {}) == []
    assert features_read("readers.psr", {}) == ["h_pre"]
    parents = reader.parents.values()
    assert features_read("readers.dualread", {}, parents) == ["h_ans", "h_close", "h_evid", "h_global", "h_pre"]


@pytest.mark.parametrize("named", [(), ("chest",), ("chest_reader.b",), ("chest_reader_2",)])
def test_a_file_names_readers_of_packages_that_were_named_alone(tmp_path, reader, named):
    foreign = replace(reader.parents["pre"], module="chest_reader.a")
    for one, place in ((foreign, "module"), (replace(reader, parents={"pre": foreign}), "parents.pre.module")):
        save_reader(tmp_path / "a", one)
        with pytest.raises(UntrustedNameError, match=f"a: {place}: 'chest_reader.a'"):
            load_reader(tmp_path / "a", plugins=named)
