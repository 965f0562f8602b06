# Two images. Both write to the folder that is mounted as /data, as the user that --user names.
#
#   docker build -t dualread .
#   docker run --rm --user $(id -u) -v "$PWD:/data" dualread evaluate predictions.csv --pairs pairs.csv --out mine
#
#   docker build -t dualread-study --target study .
#   docker run --rm --user $(id -u) -v "$PWD:/data" dualread-study --cores 8

# The workflow with its locked packages, as `make env` installs them, and the CPU build of torch.
FROM python:3.11-slim AS study
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /dualread
COPY . .
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
RUN make env
# Snakemake asks for the user's name and a home, which a number alone does not have.
ENV PATH=/dualread/.venv/bin:$PATH USER=dualread HOME=/tmp
WORKDIR /data
ENTRYPOINT ["snakemake", "--snakefile", "/dualread/Snakefile", "--workflow-profile", "/dualread/workflow/profiles/default"]
CMD ["--cores", "all"]

# `dualread evaluate` with its figures, and logs of other harnesses.
FROM python:3.13-slim
WORKDIR /dualread
COPY pyproject.toml MANIFEST.in README.md LICENSE ./
COPY lib lib
RUN pip install --no-cache-dir ".[plots,logs]"
ENV HOME=/tmp
WORKDIR /data
ENTRYPOINT ["dualread"]
CMD ["--help"]
