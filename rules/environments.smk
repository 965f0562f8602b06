# Environments besides Snakemake's own, for plugins that declare one (`ENVIRONMENT`). Made once, from a lock file, on the
# machine that runs Snakemake: it needs a package index.
#
# REQUIRES envs/
# PROVIDES results/environments/<lock file>-<digest>/


ENGINE_ENVIRONMENT = environment_of("generation", config["generation"]["engine"])


# torch comes first and without hashes where the lock leaves its build to the machine (envs/README.md).
rule make_environment:
    output:
        "results/environments/{lock}-{digest}/READY",
    wildcard_constraints:
        lock="[a-z-]+",
        digest="[0-9a-f]{16}",
    localrule: True
    params:
        folder=subpath(output[0], parent=True),
        # Functions of the output, so that another spelling of these paths is no reason to make it again.
        envs=lambda wildcards, output: REPOSITORY / "envs",
        python=lambda wildcards, output: sys.executable,
    shell:
        """
        echo 'installing envs/{wildcards.lock}.lock into {params.folder} (once; some minutes)' >&2
        {params.python:q} -m venv --clear {params.folder}
        pip="{params.folder}/bin/python -m pip --disable-pip-version-check --quiet --quiet install"
        grep -q '^torch==' {params.envs:q}/{wildcards.lock}.lock || $pip -r {params.envs:q}/torch.txt
        $pip --require-hashes --no-deps -r {params.envs:q}/{wildcards.lock}.lock
        touch {output}
        """


# `snakemake --cores 1 environments` makes those of the study and says where they are.
rule environments:
    input:
        ENGINE_ENVIRONMENT or [],
    localrule: True
    shell:
        "echo {input}"
