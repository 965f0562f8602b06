"""The typed models of a config: nothing is converted or lost, every key is explained, and problems are named."""

import json
import subprocess
import sys

import pytest
import yaml
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from dualread.apps.main import main
from dualread.schema.explained import json_schema, settings
from dualread.schema.study import Config
from dualread.study.config import resolve, without_nulls
from dualread.study.files import laid_over
from tests.study.embedded import EMBEDDED, ROOT, merged, problems

STUDIES = [EMBEDDED, *(yaml.safe_load(path.read_text()) for path in sorted(ROOT.glob("workflow/studies/*.yaml")))]
GIVEN = [without_nulls(laid_over(EMBEDDED, study)) for study in STUDIES]


@pytest.mark.parametrize("given", GIVEN, ids=lambda given: given["study"])
def test_a_typed_config_is_written_as_it_was_read(given):
    written = Config.model_validate(given).as_mapping()
    assert json.dumps(written, sort_keys=True) == json.dumps(
        given, sort_keys=True
    )  # 1 is not 1.0 in a key of the store


def test_every_key_is_explained():
    found = {place: (words, meaning) for place, words, meaning in settings()}
    assert [place for place, (_, meaning) in found.items() if not meaning] == []
    assert found["replay.kappa"] == ("number, above 0, at most 100, required", "Temperature of the visual pooling.")
    assert found["metrics.bootstrap.replicates"][0] == "integer, at least 0, required"
    assert found["datasets.<name>.pairing.splits"][0] == "list of `train` or `validation` or `test`, required"


def test_the_json_schema_of_a_config_accepts_every_study():
    validator = Draft202012Validator(json_schema())
    for given in GIVEN:
        validator.validate(given)


def test_the_page_of_all_settings_is_that_of_the_declarations(capsys):
    assert main(["schema", "--markdown"]) == 0
    page = capsys.readouterr().out
    assert page == (ROOT / "docs/settings.md").read_text()
    assert "| `views.<name>.image` | name or section | What is done to the image" in page


def test_the_program_prints_a_section_a_table_or_both(capsys):
    assert main(["schema", "contrasts"]) == 0
    said = capsys.readouterr().out
    assert "contrasts.parquet" in said
    assert "contrasts.<name>.baseline" in said
    assert main(["schema", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()
    assert main(["schema", "grpo"]) == 0
    said = capsys.readouterr().out
    assert "plugins.training.{dcpo,grpo,state_signal,vl_calibration}.group_size" in said
    assert "plugins.rollouts" not in said
    assert main(["schema", "replays"]) == 1
    assert "Did you mean 'replay'?" in capsys.readouterr().err


def test_a_config_is_not_changed_after_it_was_checked():
    with pytest.raises(ValidationError, match="frozen"):
        resolve(EMBEDDED).study = "another"


def test_all_problems_of_all_sections_are_named_at_once():
    changes = {
        "seeds": "17",
        "replay": {"kappa": None, "kapa": 0.1},
        "methods": {"psr": {"lable": "x", "group": 3}},
    }
    lines = problems(changes).splitlines()
    places = [line.removeprefix("config.yaml: ").partition(": ")[0] for line in lines]
    assert places == ["methods.psr.group", "methods.psr.lable", "replay.kapa", "replay.kappa", "seeds"]


@pytest.mark.parametrize("seed", [17, "17"])
def test_the_seed_of_a_checkpoint_is_a_number_however_yaml_reads_its_key(seed):
    own = {
        "checkpoints": {"medgemma-tiny": {seed: {"folder": "."}}},
        "training": None,
        "reward": None,
        "settings": None,
    }
    given = without_nulls(merged(EMBEDDED, {"actors": {"rlvr": own}}))
    assert list(Config.model_validate(given).actors["rlvr"].checkpoints["medgemma-tiny"]) == [17]


def test_a_job_starts_without_the_models():
    program = "import sys, dualread.store.run; print(*sorted({'jsonschema', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"


def test_a_table_of_settings_does_not_depend_on_the_models():
    program = "import sys, dualread.training.settings; print(*sorted({'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "\n"
