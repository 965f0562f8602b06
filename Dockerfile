# Three images. The first two write to the folder that is mounted as /data, as the user that --user names.
#
#   docker build -t dualread .
#   docker run --rm --user $(id -u) -v "$PWD:/data" dualread evaluate predictions.csv --pairs pairs.csv --out mine
#
#   docker build -t dualread-study --target study .
#   docker run --rm --user $(id -u) -v "$PWD:/data" dualread-study --cores 8
#
#   docker build -t dualread-serve --target serve .
#   docker run --rm -p 127.0.0.1:8000:8000 -e DUALREAD_API_KEY=secret -v "$PWD/mine:/bundle:ro" dualread-serve
#
# The second and third have the build of torch for CPUs; `--build-arg TORCH=cu130` chooses that for CUDA 13, and
# `docker run --gpus all` shows it the GPUs. No other build is taken: without its index, pip stops.

ARG TORCH=cpu

# The workflow with its locked packages, as `make env` installs them.
FROM python:3.11-slim AS study
RUN apt-get update && apt-get install --yes --no-install-recommends make && rm -rf /var/lib/apt/lists/*
WORKDIR /dualread
COPY . .
ARG TORCH
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/$TORCH
RUN sed -i "s/$/+$TORCH/" envs/torch.txt && make env
# Snakemake asks for the user's name and a home, which a number alone does not have.
ENV PATH=/dualread/.venv/bin:$PATH USER=dualread HOME=/tmp
WORKDIR /data
ENTRYPOINT ["snakemake", "--snakefile", "/dualread/Snakefile", "--workflow-profile", "/dualread/workflow/profiles/default"]
CMD ["--cores", "all"]

# `dualread serve` with transformers; the bundle brings the model.
FROM python:3.11-slim AS serve
WORKDIR /dualread
COPY pyproject.toml MANIFEST.in README.md LICENSE ./
COPY envs/torch.txt envs/torch.txt
COPY lib lib
ARG TORCH
ARG PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/$TORCH
RUN pip install --no-cache-dir "$(cat envs/torch.txt)+$TORCH" ".[serve]"
ENV HOME=/tmp HF_HUB_OFFLINE=1
USER nobody
EXPOSE 8000
# The server itself is told to end (docker stop), and answers what it has begun.
ENTRYPOINT ["dualread", "serve", "/bundle", "--host", "0.0.0.0"]

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
