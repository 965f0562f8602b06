"""What a study asks a service: its shards and views as requests, in files, and which of them are answered."""

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import polars as pl

from dualread import plugins
from dualread.artifacts.tables import read_table
from dualread.data.questions.audit import LINKED
from dualread.errors import ArtifactError, ConfigError
from dualread.models.conditions import asked
from dualread.models.service.requests import ImageUrl, ServiceRequest, body_of, line_of, requests_of
from dualread.models.service.responses import Found, Responses, read_responses
from dualread.schema.answers import Service, ShardSpec
from dualread.schema.columns import MANIFEST, PAIRS
from dualread.schema.study import Config
from dualread.study.asked import contract_of, shard_spec
from dualread.study.shards import ShardOrView, StudyShards

# The limits of OpenAI's Batch API, the narrowest that we know: requests, and bytes with room to spare.
_MOST_LINES, _MOST_BYTES = 50_000, 190_000_000
_SHOWN = 3
_README = """Put the output files of the service here: JSON lines (*.jsonl) in the output format of the Batch API.
`dualread ask --run` appends its responses to sent.jsonl. See docs/given-answers.md.
"""


@dataclass(frozen=True, kw_only=True)
class RequestBatch:
    """The requests of one shard or view.

    Attributes:
        backbone: Whose answers.
        actor: The actor.
        shard: The shard or view.
        manifest: The artifact with the images.
        requests: Gives all that can be asked by now, again and again in the same order; none is kept in memory.
        replied: Which of them are answered.
        waiting: Answers that are not there yet, about which the view will ask.
    """

    backbone: str
    actor: str
    shard: ShardOrView
    manifest: Path
    requests: Callable[[], Iterator[ServiceRequest]]
    replied: Found
    waiting: int

    def open(self) -> Iterator[ServiceRequest]:
        """Return the requests that are not answered."""
        return compress(self.requests(), self.replied.is_open)

    def body(self, request: ServiceRequest, url_of: ImageUrl) -> dict[str, Any]:
        """Return the body of a call: the image, and then the text."""
        return body_of(request, self.manifest, url_of)


class Asking:
    """A study whose answers are given.

    Attributes:
        config: The study.
        folders: The folder of the answers of each actor, without repetition.
    """

    def __init__(self, config: Config, files: Sequence[Path], *, linked: bool = False) -> None:
        """Set the study, its files, which messages name, and whether pictures behind links may be sent.

        Raises:
            ConfigError: No answer that the study judges is given.
        """
        self.config, self._files, self._shards, self._linked = config, files, StudyShards(config), linked
        self._actors = {
            name: Path(actor.answers.folder)
            for name, actor in config.actors.items()
            if actor.answers is not None and name in self._shards.answering
        }
        self.folders = list(dict.fromkeys(self._actors.values()))
        if not self._actors:
            raise ConfigError(
                f"{config.study}: no method judges an actor whose answers are given. Expected"
                " `answers: {folder: ...}` in an entry of `actors`."
            )

    def batches(self, folder: Path) -> Iterator[RequestBatch]:
        """Yield what is asked whose answers are in `folder`, each view after the answers that it is about."""
        responses = read_responses(folder / "responses")
        for backbone in self.config.backbones:
            for actor, its_folder in self._actors.items():
                if its_folder == folder:
                    yield from self._of_actor(backbone, actor, responses)

    def _of_actor(self, backbone: str, actor: str, responses: Responses) -> Iterator[RequestBatch]:
        service = self._shards.service(backbone, actor)
        answers: dict[ShardOrView, dict[str, str]] = {}
        unanswered: dict[ShardOrView, int] = {}
        for shard in self._shards.generated(actor):
            spec, replied = shard_spec(self.config, actor, shard), Found(responses)
            about = answers[shard[:3]] if spec.answer_contract is not None else None
            requests = partial(self._requests, shard, spec, service, about)
            replies = replied.replies(requests())
            if len(shard) == 3:
                # About answers that are not valid, the actor is not asked.
                parse = plugins.load("contracts", contract_of(self.config, actor, shard[0], shard[2])).parse
                parsed = ((request.question.sample_id, parse(reply.choices[0].text)) for request, reply in replies)
                answers[shard] = {sample_id: made.answer for sample_id, made in parsed if made.answer is not None}
                unanswered[shard] = replied.n_missing
            else:
                deque(replies, maxlen=0)  # looks them all up
            yield RequestBatch(
                backbone=backbone,
                actor=actor,
                shard=shard,
                manifest=self._images(shard),
                requests=requests,
                replied=replied,
                waiting=unanswered[shard[:3]] if about is not None else 0,
            )

    def _requests(
        self, shard: ShardOrView, spec: ShardSpec, service: Service, about: Mapping[str, str] | None
    ) -> Iterator[ServiceRequest]:
        manifest, pairs = read_table(self._place("manifests", shard) / "manifest.parquet", MANIFEST), None
        if self._shards.needs_pairs(shard[2]):
            pairs = read_table(self._place("pairs", shard) / "pairs.parquet", PAIRS)
        questions = asked(
            manifest,
            prompt=spec.prompt.name,
            hints=spec.prompt.hints,
            images=spec.images,
            draws=spec.draws or 1,
            pairs=pairs,
            answers=about,
        )
        return requests_of(spec, service, questions)

    def _images(self, shard: ShardOrView) -> Path:
        place = self._place("manifests", shard)
        linked = pl.read_parquet(place / "audit.parquet").filter(pl.col("step") == LINKED)
        if linked.height and not self._linked:
            raise ConfigError(
                f"{'/'.join(shard[:2])}: {linked['reason'][0]}. A data set of somebody else may link any file of yours."
                " Look at them, and give --linked to ask about them all the same."
            )
        return place

    def _place(self, kind: str, shard: ShardOrView) -> Path:
        place = Path("results", self.config.study, kind, *shard[:2])
        if not (place / "MANIFEST.json").is_file():
            files = " ".join(map(str, self._files))
            raise ArtifactError(
                f"{place}: the questions are not there yet. Build them first: snakemake --cores 2 --configfile {files}"
                " -- questions"
            )
        return place


def written(asking: Asking, url_of: ImageUrl) -> Iterator[str]:
    """Write what is still to be asked into each folder of answers, in place of what was written before.

    Yields:
        Lines about requests and responses, for people.
    """
    for actor, reasons in asking.config.left_out.items():
        for method, reason in reasons.items():
            yield f"{actor}: the method {method} is left out: {reason}"
    for folder in asking.folders:
        batches = list(asking.batches(folder))
        for batch in batches:
            n, why = batch.replied.n_requests, batch.replied.why
            reasons = f" ({'; '.join(why[:_SHOWN])}{'; ...' if len(why) > _SHOWN else ''})" if why else ""
            name = "/".join((batch.backbone, batch.actor, *batch.shard))
            yield f"{name}: {n - batch.replied.n_missing} of {n} requests are answered{reasons}"
        responses = read_responses(folder / "responses")  # all requests of which were looked up
        if (strange := responses.strange())[0]:
            yield (
                f"{responses.folder}: {strange[0]} custom_ids are of no request of this study, such as that of"
                f" {strange[1]}: they answer something else, or an earlier form of a question. They are not read."
            )
        if responses.n_broken:
            yield f"{responses.folder}: {responses.n_broken} lines are no response, such as {responses.first_broken}."
        n_missing = sum(batch.replied.n_missing for batch in batches)
        waiting = sum(batch.waiting for batch in batches)
        (folder / "responses").mkdir(parents=True, exist_ok=True)
        (folder / "responses/README.txt").write_text(_README, encoding="utf-8")
        for file, n in write_requests(folder, batches, url_of):
            yield f"wrote {file}: {n} requests"
        if waiting:
            yield f"up to {waiting} further requests are about answers that are not there yet: run this again then"
        elif not n_missing:
            yield f"{folder}: everything is answered"


def write_requests(folder: Path, batches: Sequence[Any], url_of: ImageUrl) -> Iterator[tuple[Path, int]]:
    """Write files that a batch service takes, in place of earlier ones, and yield each with its number of requests."""
    for old in folder.glob("requests-*.jsonl"):
        old.unlink()
    lines = (
        json.dumps(line_of(request, batch.body(request, url_of))).encode() + b"\n"
        for batch in batches
        for request in batch.open()
    )
    line, number = next(lines, None), 0
    while line is not None:
        number += 1
        path, n, size = folder / f"requests-{number:03d}.jsonl", 0, 0
        with path.open("wb") as file:
            while line is not None and (not n or (n < _MOST_LINES and size + len(line) <= _MOST_BYTES)):
                file.write(line)
                n, size, line = n + 1, size + len(line), next(lines, None)
        yield path, n
