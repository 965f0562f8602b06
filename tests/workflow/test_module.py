"""Another workflow uses this one as a module: from another folder, with another config, and with rules of its own."""

import os
import subprocess
import sys

import pytest
import yaml

from dualread.apps import main as program
from tests.workflow.checkout import ROOT, Checkout

pytestmark = pytest.mark.long

OUTER = """
configfile: "config/ours.yaml"


rule count:
    input:
        "tables/data.csv",
    output:
        "counted.txt",
    shell:
        "wc -l < {input} > {output}; echo ${{OMP_WAIT_POLICY-unset}} >> {output}"


module dualread:
    snakefile:
        config["snakefile"]
    config:
        config["study"]
    MORE


use rule * from dualread as dualread_*
"""


@pytest.fixture
def outer(tmp_path):
    """The folder of a workflow that counts the lines of a table of a study; and how to run it."""
    checkout = Checkout.create(tmp_path / "dualread")
    folder = tmp_path / "ours"
    (folder / "config").mkdir(parents=True)
    study = yaml.safe_load((ROOT / "workflow/studies/micro.yaml").read_text()) | {"study": "counted"}
    (folder / "link").symlink_to(checkout.folder)
    config = {"snakefile": "../dualread/Snakefile", "study": study}

    def run(*words, more=""):
        (folder / "Snakefile").write_text(OUTER.replace("MORE", more))
        (folder / "config/ours.yaml").write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *words]
        environment = {**os.environ, "PYTHONPATH": str(checkout.folder / "lib")}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        return done.stdout + done.stderr

    run.folder, run.config = folder, config
    return run


def test_rules_of_a_module_run_beside_others(outer, monkeypatch, capsys):
    said = outer()
    assert "(100%) done" in said, said
    n_lines, waits = (outer.folder / "counted.txt").read_text().split()
    assert int(n_lines) > 1
    assert waits == "unset"  # what our jobs export does not reach rules of others
    assert (outer.folder / "results/counted/results.lock").exists()
    assert "Nothing to be done" in outer()
    outer.config["snakefile"] = "link/Snakefile"
    assert "Nothing to be done" in outer()
    monkeypatch.chdir(outer.folder)
    assert program.main(["verify", "tables/data.tex"]) == 0
    assert "; of this configuration" in capsys.readouterr().out
    assert program.main(["explain", "tables/data.tex", "--again"]) == 0
    assert "nothing has changed" in capsys.readouterr().out
    # A rule of theirs runs again when its command is edited, as they are used to; ours do when a setting is.
    again = outer("-n", more="\n\nOTHER = 1")
    assert "Nothing to be done" in again
    outer.config["study"]["phantoms"]["slake"]["questions_per_image"] = 7
    again = outer("-n")
    assert "dualread_draw_phantom" in again
    assert "count" in again


def test_a_prefix_is_refused_with_what_to_do(outer):
    said = outer("-n", more='prefix:\n        "there"')
    assert "module dualread: has a prefix" in said
    assert "snakemake --directory FOLDER" in said


def test_a_mistake_in_the_config_of_a_module_is_one_sentence(outer):
    outer.config["study"]["tables"]["main"] = {"metods": ["psr"]}
    said = outer("-n")
    assert "metods" in said
    assert "Traceback" not in said
