"""What a study asks a service: its shards and views as batches of requests, and which of them are answered."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.apps.ask.sending import RequestBatch, write_requests
from dualread.artifacts.tables import read_table
from dualread.data.questions.audit import LINKED
from dualread.errors import ArtifactError, ConfigError
from dualread.models.conditions import asked
from dualread.models.service.requests import ServiceRequest, body_of, image_url, requests_of
from dualread.models.service.responses import Found, Responses, read_responses
from dualread.schema.answers import Service, ShardSpec
from dualread.schema.columns import MANIFEST, PAIRS
from dualread.schema.groups import GroupAnswersSpec
from dualread.schema.study import Config
from dualread.stages.group_answers import compared_answers, judge_requests
from dualread.study.artifacts import StudyArtifacts
from dualread.study.asked import contract_of, shard_spec
from dualread.study.shards import ShardOrView, StudyShards

_README = """Put the output files of the service here: JSON lines (*.jsonl) in the output format of the Batch API.
`dualread ask --run` appends its responses to sent.jsonl. See docs/given-answers.md.
"""


class Asking:
    """A study whose answers are given; `folders` are those of its actors' answers, without repetition."""

    def __init__(self, config: Config, files: Sequence[Path], *, images: str = "data", linked: bool = False) -> None:
        """Set the study, its files, how images travel (`image_url`), and whether pictures behind links may be sent."""
        self.config, self._files, self._url_of, self._linked = config, files, image_url(images), linked
        self._shards = StudyShards(config)
        self._actors = {
            name: Path(actor.answers.folder)
            for name, actor in config.actors.items()
            if actor.answers is not None and name in self._shards.answering
        }
        artifacts = StudyArtifacts(config, self._shards, f"results/{config.study}", lambda *_: "")
        entries = (entry for run in artifacts.runs() for entry in artifacts.group_answers(run)[1])
        self._judged = [entry for entry in entries if "responses" in entry["inputs"]]
        of_judges = [Path(entry["inputs"]["responses"]).parent for entry in self._judged]
        self.folders = list(dict.fromkeys((*self._actors.values(), *of_judges)))
        if not self.folders:
            raise ConfigError(
                f"{config.study}: no method judges an actor whose answers are given. Expected"
                " `answers: {folder: ...}` in an entry of `actors`, or a `service` in the `groups` of a view."
            )

    def batches(self, folder: Path) -> Iterator[RequestBatch]:
        """Yield what is asked whose answers are in `folder`, each view after the answers that it is about."""
        responses = read_responses(folder / "responses")
        if judged := [entry for entry in self._judged if Path(entry["inputs"]["responses"]).parent == folder]:
            yield _judging(judged, responses)
        actors = [actor for actor, its_folder in self._actors.items() if its_folder == folder]
        for backbone, actor in product(self.config.backbones, actors):
            service = self._shards.service(backbone, actor)
            answers: dict[ShardOrView, dict[str, str]] = {}
            unanswered: dict[ShardOrView, int] = {}
            for shard in self._shards.generated(actor):
                spec, replied, valid = shard_spec(self.config, actor, shard), Found(responses), dict[str, str]()
                about = answers[shard[:3]] if spec.answer_contract is not None else None
                parse = plugins.load("contracts", contract_of(self.config, actor, shard[0], shard[2])).parse
                requests = partial(self._requests, shard, spec, service, about)
                for request, reply in replied.replies(requests()):
                    # About answers that are not valid, the actor is not asked.
                    if len(shard) == 3 and (answer := parse(reply.choices[0].text).answer) is not None:
                        valid[request.question.sample_id] = answer
                if len(shard) == 3:
                    answers[shard], unanswered[shard] = valid, replied.n_missing
                manifest = self._folder("manifests", shard)
                yield RequestBatch(
                    requests=requests,
                    body=partial(body_of, manifest=manifest, url_of=self._url_of),
                    replied=replied,
                    name="/".join((backbone, actor, *shard)),
                    waiting=unanswered[shard[:3]] if about is not None else 0,
                )

    def _requests(
        self, shard: ShardOrView, spec: ShardSpec, service: Service, about: Mapping[str, str] | None
    ) -> Iterator[ServiceRequest]:
        manifest, pairs = read_table(self._folder("manifests", shard) / "manifest.parquet", MANIFEST), None
        if self._shards.needs_pairs(shard[2]):
            pairs = read_table(self._folder("pairs", shard) / "pairs.parquet", PAIRS)
        shown = {"prompt": spec.prompt.name, "hints": spec.prompt.hints, "images": spec.images}
        return requests_of(spec, service, asked(manifest, **shown, draws=spec.draws or 1, pairs=pairs, answers=about))

    def _folder(self, kind: str, shard: ShardOrView) -> Path:
        """Return the artifact with the questions of a shard, or with their donors, if its images may be sent."""
        folder = Path("results", self.config.study, kind, *shard[:2])
        if not (folder / "MANIFEST.json").is_file():
            files = " ".join(map(str, self._files))
            raise ArtifactError(
                f"{folder}: the questions are not there yet. Build them first: snakemake --cores 2 --configfile {files}"
                " -- questions"
            )
        if kind == "manifests" and not self._linked:
            linked = pl.read_parquet(folder / "audit.parquet").filter(pl.col("step") == LINKED)
            if linked.height:
                raise ConfigError(
                    f"{'/'.join(shard[:2])}: {linked['reason'][0]}. A data set of somebody else may link any file of"
                    " yours. Look at them, and give --linked to ask about them all the same."
                )
        return folder


def _judging(entries: Sequence[Mapping[str, Any]], responses: Responses) -> RequestBatch:
    """Return what a judge is asked about the samples that are there, each text once."""
    there = []
    for entry in entries:
        files = {name: Path(path) for name, path in entry["inputs"].items() if name != "responses"}
        if all(file.is_file() for file in files.values()):
            spec = GroupAnswersSpec.from_spec(entry["spec"], entry["output"])
            there.append((spec, {name: file.parent for name, file in files.items()}))

    def requests() -> Iterator[ServiceRequest]:
        asked_ids = set[str]()
        for spec, inputs in there:
            for request in judge_requests(spec, [pair for _, pair in compared_answers(spec, inputs)]):
                if request.custom_id not in asked_ids:
                    asked_ids.add(request.custom_id)
                    yield request

    waiting = len(entries) - len(there)
    return RequestBatch.of_judge(requests, responses, name="which answers mean the same", waiting=waiting)


def written(asking: Asking) -> Iterator[str]:
    """Write what is still to be asked into each folder of answers, in place of what was there; yield lines about it."""
    for actor, reasons in asking.config.left_out.items():
        yield from (f"{actor}: the method {method} is left out: {reason}" for method, reason in reasons.items())
    for folder in asking.folders:
        batches = list(asking.batches(folder))
        for batch in batches:
            n, why = batch.replied.n_requests, "; ".join(batch.replied.why)
            yield f"{batch.name}: {n - batch.replied.n_missing} of {n} requests are answered{why and f' ({why})'}"
        responses = read_responses(folder / "responses")  # all requests of which were looked up
        if strange := responses.strange():
            yield (
                f"{responses.folder}: {len(strange)} custom_ids are of no request of this study, such as that of"
                f" {strange[0]}: they answer something else, or an earlier form of a question. They are not read."
            )
        if broken := responses.broken:
            yield f"{responses.folder}: {len(broken)} lines are no response, such as {broken[0]}."
        (folder / "responses").mkdir(parents=True, exist_ok=True)
        (folder / "responses/README.txt").write_text(_README, encoding="utf-8")
        for file, n in write_requests(folder, batches).items():
            yield f"wrote {file}: {n} requests"
        if waiting := sum(batch.waiting for batch in batches):
            yield (
                f"further requests are about {waiting} answers, or shards of samples, that are not there yet: run this"
                " again then"
            )
        elif not any(batch.replied.n_missing for batch in batches):
            yield f"{folder}: everything is answered"
