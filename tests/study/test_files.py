import pytest
import yaml

from dualread.errors import ConfigError
from dualread.study.config import resolve
from dualread.study.files import changed_settings, laid_over, load, merged, selection
from tests.study.embedded import EMBEDDED, ROOT


def test_mappings_are_merged_and_everything_else_is_replaced():
    base = {"a": {"b": 1, "c": [1, 2]}, "d": 3, "e": {"f": 1}}
    assert laid_over(base, {"a": {"c": [3]}, "d": {"g": 4}, "e": None}) == {
        "a": {"b": 1, "c": [3]},
        "d": {"g": 4},
        "e": None,
    }
    assert base["a"] == {"b": 1, "c": [1, 2]}


def test_files_are_laid_over_config_yaml_in_their_order(tmp_path):
    (tmp_path / "study.yaml").write_text("study: mine\nseeds: [17, 29]\n")
    files = [tmp_path / "study.yaml", ROOT / "workflow/selections/one_seed.yaml"]
    study = load(files, ROOT)
    assert (study.study, study.seeds) == ("mine", [17])
    assert study.methods.keys() == EMBEDDED["methods"].keys()
    assert load([], ROOT).study == "embedded"


def test_what_an_overlay_adds_comes_after_what_it_is_laid_over(tmp_path):
    """So a method may build on one of config.yaml."""
    entry = {**EMBEDDED["methods"]["dualread"], "label": "Mine"}
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({"methods": {"mine": entry, "psr": {"label": "PSR 2"}}}))
    assert list(load([tmp_path / "mine.yaml"], ROOT).methods) == [*EMBEDDED["methods"], "mine"]


def test_entries_on_the_command_line_come_last(tmp_path):
    (tmp_path / "study.yaml").write_text("study: mine\n")
    assert merged([tmp_path / "study.yaml"], ROOT, {"study": "given"})["study"] == "given"


def test_a_selection_is_what_a_file_says_that_names_no_study(tmp_path):
    part, seed = tmp_path / "part.yaml", ROOT / "workflow/selections/one_seed.yaml"
    part.write_text("study: part\nonly: {backbones: [qwen3-vl-tiny], seeds: [29]}\n")
    assert selection([part]) is None
    assert selection([part, seed]) == "seeds: 17"
    assert selection([], {"only": {"actors": ["base", "rlvr"], "seeds": None}}) == "actors: base, rlvr"


def test_a_study_can_be_planned_before_its_actors_are_there():
    study = load([ROOT / "workflow/studies/one_gpu.yaml"], ROOT)
    assert study.as_mapping()["actors"]["rlvr"]["checkpoints"] == {"qwen3-vl-2b": {17: {"folder": "../my-actor"}}}


def test_nothing_of_a_package_that_a_study_json_names_is_run(tmp_path, monkeypatch):
    """Results may be somebody else's; whoever runs a study says by that whose code runs."""
    (tmp_path / "x_ray_reader").mkdir()  # no other test uses the name: where a package is found is remembered
    code = "class Settings(Section):\n    open('ran', 'w').close()\n\ndef score(reader, answers): ...\n"
    (tmp_path / "x_ray_reader/plain.py").write_text(f"from dualread.schema.base import Section\n\n{code}")
    (tmp_path / "x_ray_reader/__init__.py").write_text("open('ran', 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    method = {"label": "X", "group": "baseline", "actor": "base", "reader": "x_ray_reader.plain", "cost": "$t$"}
    planned = {"settings": load([], ROOT).as_mapping(), "given": {"methods": {"x": {**method, "settings": {"a": 1}}}}}
    _, lines = changed_settings(planned, tmp_path / "results/mine")
    assert any("methods.x.settings.a" in line and "1" in line for line in lines)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(ConfigError, match=r"methods\.x\.settings\.a"):
        resolve(merged([], ROOT, planned["given"]))
    assert (tmp_path / "ran").exists()
