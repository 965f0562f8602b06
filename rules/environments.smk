# Environments of engines that cannot run in Snakemake's own and declare another one (`ENVIRONMENT`). Each is made
# once, from a lock file, on the machine that runs Snakemake, which needs a package index for it.
#
# REQUIRES envs/
# PROVIDES results/environments/<lock file>-<digest>/

import hashlib
import sys

from dualread.plugins import declared

# torch comes first and without hashes where the lock leaves its build to the machine (envs/README.md).
RECIPE = """
echo 'installing envs/{wildcards.lock}.lock into {params.folder} (once; some minutes)' >&2
{params.python:q} -m venv --clear {params.folder}
pip="{params.folder}/bin/python -m pip --disable-pip-version-check --quiet --quiet install"
grep -q '^torch==' {params.envs:q}/{wildcards.lock}.lock || $pip -r {params.envs:q}/torch.txt
$pip --require-hashes --no-deps -r {params.envs:q}/{wildcards.lock}.lock
touch {output}
"""


def environment_of(family, engine):
    """The stamp file of the environment in which an engine runs (its ENVIRONMENT); None if that is Snakemake's own.

    A stamp's folder is named by the lock file and by the digest of what is installed and how: studies share it, and an
    edited lock makes another one.
    """
    if not (environment := declared(family, engine, "ENVIRONMENT")):
        return None
    build = config["machine"].get(environment, "cuda")  # of most environments there is one build
    lock = environment if build == "cuda" else f"{environment}-{build}"
    installed = [(REPOSITORY / "envs" / file).read_bytes() for file in ("torch.txt", f"{lock}.lock")]
    digest = hashlib.sha256(b"".join([*installed, f"{sys.version_info[:2]}{RECIPE}".encode()])).hexdigest()
    return f"results/environments/{lock}-{digest[:16]}/READY"


ENGINE_ENVIRONMENT = environment_of("generation", STUDY.generation.engine)
# Of what samples for trainings, by the name that backbones give it; None for the trained model itself.
TRAINING_ENVIRONMENTS = {
    name: environment_of("rollouts", name) if name else None
    for name in dict.fromkeys(map(SHARDS.rollouts_of, STUDY.backbones))
}


rule make_environment:
    output:
        "results/environments/{lock}-{digest}/READY",
    wildcard_constraints:
        lock="[a-z-]+",
        digest="[0-9a-f]{16}",
    localrule: True
    params:
        folder=subpath(output[0], parent=True),
        # As functions, they are no reason to make the environment again if a path is spelled differently.
        envs=lambda wildcards, output: REPOSITORY / "envs",
        python=lambda wildcards, output: sys.executable,
    shell:
        # What a killed pip leaves among temporary files is then removed with the unfinished environment.
        "\n".join(('export TMPDIR="$(realpath {params.folder:q})"', RECIPE))


# `snakemake --cores 1 environments` makes the environments of the study's engines and prints where they are.
rule environments:
    input:
        [stamp for stamp in (ENGINE_ENVIRONMENT, *TRAINING_ENVIRONMENTS.values()) if stamp],
    localrule: True
    shell:
        "echo {input}"
