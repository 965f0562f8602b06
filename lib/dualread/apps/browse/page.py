"""The browse page of a study: what it shows, read from the results folder, and the one file that loads nothing else.

The page gets columns instead of records: the answers of an actor and the confidences of a method are lists with one
item per question, in the order of the questions. That keeps the page small.
"""

import json
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

import dualread.reporting
from dualread.artifacts.tables import from_rows, read_parts, read_table
from dualread.data.images import open_image
from dualread.errors import ArtifactError, ConfigError, did_you_mean
from dualread.evaluation.side_by_side import FIXED_PREFIX, ORIGINAL
from dualread.grading.claim_labels.base import question_of
from dualread.progress import STEPS, NotedStep, duration, read_steps, track
from dualread.reporting.pages import digest, environment, labels_of
from dualread.schema.columns import CLAIMS, GENERATIONS, GRADED, MANIFEST, PAIRS, PREDICTIONS, TRAIN_LOG
from dualread.schema.tables import FigureLayout, Labeled
from dualread.store.digest import MANIFEST_NAME
from dualread.store.manifest import read_manifest
from dualread.store.place import read_study

_FOLDER = Path(__file__).parent
_SHARED = Path(dualread.reporting.__file__).parent  # the look of the other pages
_MOST_BYTES = 400_000_000  # of the data; browsers read no text of 512 MB, and show an empty page without a word
# The image of a question and the one of its donor; other conditions are controls, which the page leaves out.
SIDES = ("original", "donor")
_SIDES_OF_REPORTS = {"original": ORIGINAL, "donor": FIXED_PREFIX}
_OF_CLAIMS = ("start", "end", "label", "sample_id")
_LONGEST_SIDE = 320  # pixels of an embedded picture
_PICTURE = {"format": "WEBP", "quality": 82, "method": 4}
_SECONDS = "seconds"  # of a step of a training, by which its log names them
_DOTS_PER_INCH = 150


def render(content: Mapping[str, Any]) -> str:
    """Return the page that shows what `collect` returned.

    The security policy in the page's head names the digests of its script and style sheet: no other script runs, and no
    request leaves the page, whatever a question or a completion contains.
    """
    files = (_SHARED / "colors.css", _SHARED / "elements.css", _FOLDER / "browse.css", _FOLDER / "browse.js")
    *styles, script = (path.read_text(encoding="utf-8") for path in files)
    style = "".join(styles)
    # In a script element, "</" would end the element and "<!--" would begin a comment.
    told = {name: value for name, value in content.items() if name != "training"}  # which needs no script
    data = json.dumps(told, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    n = len(content["questions"])
    if (size := len(data.encode())) > _MOST_BYTES:
        fewer = max(n * _MOST_BYTES // size // 2, 1)
        raise ConfigError(
            f"{n} questions of {content['study']} make a page of {size / 1e6:.0f} MB, and browsers show none above"
            f" {_MOST_BYTES / 1e6:.0f} MB. Expected fewer questions: --most {fewer}, or --dataset."
        )
    template = environment(_FOLDER).get_template("browse.html.jinja")
    return template.render(
        study=content["study"],
        script=script,
        style=style,
        data=data,
        part=part_of(content),
        training=content["training"],
        has_questions=bool(n),
        script_digest=digest(script),
        style_digest=digest(style),
    )


def part_of(content: Mapping[str, Any]) -> str:
    """Return the sentence that says which questions a page shows, and how to see others; empty if it shows all."""
    first, n, total = content["skipped"] + 1, len(content["questions"]), content["total"]
    if n == total:
        return ""
    last = first + n - 1
    others = f"--skip {last} shows the next ones" if last < total else "a smaller --skip shows others"
    return f"Questions {first:,} to {last:,} of {total:,}: `dualread browse` with {others}, --most N so many."


def collect(
    study: Path, *, split: str, datasets: list[str] | None = None, skip: int = 0, most: int = 10_000
) -> dict[str, Any]:
    """Return everything that the page shows of a study's results: `most` questions of a split behind the first `skip`.

    They are in the order of the data sets, and of their official files; None for all data sets that have the split.

    Returns:
        study, split; skipped and total, numbers of questions; labels {kind: {name: label}}; training, the result of
            `trainings`, where a training has not ended or no method has read an answer; images [data URI];
            questions [{id, dataset, question, gold, type, options, images, donor}], where `images` are indices and
            `donor` is {gold, images} or null; runs [{backbone, seed, actors, methods}]. `actors` maps an actor to
            {side: [[answer, correct, completion] or null per question]}, and `methods` a method to {actor, imputed,
            side: [confidence or null per question]}. Of a report, answer is how many claims it has, correct is null,
            and the claims follow: [[start, end, label or null, id]]; `methods` then has claims {side: {id:
            confidence}}, where the side donor is the same report, forced on the donor's image.
    """
    runs = sorted(path.parts[-5:-1] for path in _finished(study, "predictions", 4))
    training = trainings(study, all_ended=not runs)
    content = {"study": study.name, "split": split, "skipped": 0, "total": 0, "labels": {}, "training": training}
    if not runs and training:
        return {**content, "images": [], "questions": [], "runs": []}
    chosen = _chosen(study, split, datasets)
    if not runs:
        advice = "Expected the folder of a study that was run, such as results/embedded."
        raise ArtifactError(f"{study}: no predictions in it, and no training. {advice}")
    pictures: dict[str, tuple[int, Path]] = {}  # by the digest of their pixels: equal ones are embedded once
    questions, total = [], 0
    for dataset in track(chosen, total=len(chosen), label="reading questions (data sets)"):
        manifest = read_table(study / "manifests" / dataset / split / "manifest.parquet", MANIFEST)
        part = manifest.sort("source_row", "sample_id").slice(max(skip - total, 0), most - len(questions))
        questions += _questions(study, dataset, split, manifest, part, pictures)
        total += manifest.height
    if not questions:
        raise ConfigError(f"--skip {skip}: {study} has {total} such questions. Skip fewer.")
    places = {question["id"]: place for place, question in enumerate(questions)}
    labels = labels_of(read_manifest(path).action.spec.get("layout", {}) for path in _finished(study, "tables", 1))
    order = list(labels["methods"])
    runs.sort(key=lambda run: (order.index(run[3]) if run[3] in order else len(order), run[3]))
    # An actor that has no seed of its own (0), such as the base model, is shown in each run of its backbone.
    seeds = {(backbone, int(seed)) for backbone, _, seed, _ in runs}
    trained = {backbone for backbone, seed in seeds if seed}
    return {
        **content,
        "skipped": skip,
        "total": total,
        "labels": labels,
        "images": [_picture_of(path) for _, path in pictures.values()],
        "questions": questions,
        "runs": [_run(study, *run, runs, places) for run in sorted(seeds) if run[1] or run[0] not in trained],
    }


def _finished(study: Path, kind: str, depth: int) -> list[Path]:
    return sorted(study.glob("/".join((kind, *"*" * depth, MANIFEST_NAME))))


def _chosen(study: Path, split: str, datasets: list[str] | None) -> list[str]:
    """Return the data sets that are shown, or refuse a split or a data set that the study does not have."""
    places = [path.parts[-3:-1] for path in _finished(study, "manifests", 2)]
    having = [dataset for dataset, its_split in places if its_split == split]
    if not having:
        known = sorted({its_split for _, its_split in places})
        raise ConfigError(
            f"--split {split}: {study} has no questions of this split;"
            f" {'it has ' + ', '.join(known) if known else 'it is not the results folder of a study'}."
        )
    for name in datasets or ():
        if name not in having:
            raise ConfigError(f"--dataset {name}: {study} has no such data set.{did_you_mean(name, having)}")
    return datasets or having


def _questions(
    study: Path,
    dataset: str,
    split: str,
    manifest: pl.DataFrame,
    shown: pl.DataFrame,
    pictures: dict[str, tuple[int, Path]],
) -> Iterator[dict[str, Any]]:
    """Yield the `shown` rows of a `manifest` with their donors; add their pictures."""
    folder, pairs = (study / kind / dataset / split for kind in ("manifests", "pairs"))
    donors: dict[str, str] = {}
    if (pairs / MANIFEST_NAME).exists():
        table = read_table(pairs / "pairs.parquet", PAIRS).join(shown, on="sample_id", how="semi")
        donors = dict(table.select("sample_id", "donor_sample_id").iter_rows())
    lending = manifest.filter(pl.col("sample_id").is_in(list(donors.values())))
    rows = {row["sample_id"]: row for row in lending.iter_rows(named=True)}

    def images(row: Mapping[str, Any]) -> list[int]:
        files = zip(row["pixel_sha256s"], row["image_files"], strict=True)
        return [pictures.setdefault(pixels, (len(pictures), folder / file))[0] for pixels, file in files]

    for row in shown.iter_rows(named=True):
        donor = rows.get(donors.get(row["sample_id"], ""))
        yield {
            **{"id": row["sample_id"], "dataset": dataset, "question": row["question"], "type": row["answer_type"]},
            **{"gold": row["reference_answers"], "options": row["options"], "images": images(row)},
            "donor": {"gold": donor["reference_answers"], "images": images(donor)} if donor else None,
        }


def _run(
    study: Path, backbone: str, seed: int, runs: list[tuple[str, ...]], places: Mapping[str, int]
) -> dict[str, Any]:
    """Return the answers and confidences of the actors of one seed, and of those that have none."""
    shown = [run for run in runs if run[0] == backbone and int(run[2]) in (0, seed)]
    # Runs are sorted, so that this seed of an actor, if it has both, takes the place of "0".
    actors = {actor: "/".join((backbone, actor, actor_seed)) for _, actor, actor_seed, _ in shown}
    return {
        "backbone": backbone,
        "seed": seed,
        "actors": {actor: _answers(study, run, places) for actor, run in actors.items()},
        "methods": {
            method: {"actor": actor, **_confidences(study / "predictions" / actors[actor] / method, places)}
            for _, actor, actor_seed, method in shown
            if actors[actor] == "/".join((backbone, actor, actor_seed))
        },
    }


def _answers(study: Path, run: str, places: Mapping[str, int]) -> dict[str, list]:
    by_side: dict[str, list] = {side: [None] * len(places) for side in SIDES}

    def texts(shard: Path) -> dict[str, str]:
        wanted = (pl.col("sample_index") == 0) & pl.col("sample_id").is_in(list(places))
        written = read_parts(study / "generations" / shard.relative_to(study / "graded"), GENERATIONS)
        return dict(written.filter(wanted).select("sample_id", "text").iter_rows())

    for side, answers in by_side.items():
        for path in sorted((study / "graded" / run).glob(f"*/*/{side}/{MANIFEST_NAME}")):
            written = texts(path.parent)
            graded = read_table(path.with_name("graded.parquet"), GRADED).filter(sample_index=0)
            for sample_id, answer, correct in graded.select("sample_id", "answer", "correct").iter_rows():
                if sample_id in places:
                    answers[places[sample_id]] = [answer, correct, written.get(sample_id)]
    for side, condition in _SIDES_OF_REPORTS.items():
        for path in sorted((study / "graded" / run).glob(f"*/*/{condition}/claims.parquet")):
            claims = read_table(path, CLAIMS).filter(sample_index=0).partition_by("question", as_dict=True)
            for sample_id, text in texts(path.parent.with_name(ORIGINAL)).items():
                rows = claims.get((sample_id,), pl.DataFrame(schema=dict.fromkeys(_OF_CLAIMS, pl.Null)))
                if condition == ORIGINAL or len(rows):
                    told = f"{rows['label'].cast(pl.Int64).sum() or 0} of {len(rows)} claims supported"
                    of_claims = list(map(list, rows.select(_OF_CLAIMS).rows()))
                    by_side[side][places[sample_id]] = [told, None, text, of_claims]
    return by_side


def _confidences(folder: Path, places: Mapping[str, int]) -> dict[str, Any]:
    by_side: dict[str, list] = {side: [None] * len(places) for side in SIDES}
    imputed = {side: [] for side in SIDES}
    table = read_table(folder / "predictions.parquet", PREDICTIONS).with_columns(pl.col("confidence").round(4))
    shown = pl.col("sample_id").is_in(list(places))
    predictions = table.filter(pl.col("condition").is_in(SIDES) & shown)
    columns = ("sample_id", "condition", "confidence", "imputed")
    for sample_id, side, confidence, is_imputed in predictions.select(columns).iter_rows():
        by_side[side][places[sample_id]] = confidence
        if is_imputed:
            imputed[side].append(places[sample_id])
    claims = table.filter(question_of(pl.col("sample_id")).is_in(list(places)) & ~shown)
    of_claims = {
        side: dict(claims.filter(condition=condition).select("sample_id", "confidence").iter_rows())
        for side, condition in _SIDES_OF_REPORTS.items()
    }
    return {**by_side, "imputed": imputed, **({"claims": of_claims} if len(claims) else {})}


def _picture_of(path: Path) -> str:
    image = open_image(path)
    image.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    content = BytesIO()
    image.save(content, **_PICTURE)
    return _data_uri("webp", content)


def _data_uri(kind: str, content: BytesIO) -> str:
    return f"data:image/{kind};base64,{b64encode(content.getvalue()).decode()}"


def trainings(study: Path, *, all_ended: bool = False) -> dict[str, Any] | None:
    """Return a picture of the training curves of a study, as a data URI, and a sentence per training without an end.

    None if there is no training, or if every training has ended and `all_ended` is false.
    """
    ended = {path.parent.parts[-3:]: path for path in study.glob(f"actors/*/*/*/{MANIFEST_NAME}")}
    running, sentences = {}, []
    for path in sorted(study.glob(f"logs/train_actor/*/*/*{STEPS}")):
        run, written = path.with_suffix("").parts[-3:], path.stat().st_mtime
        # One that has taken its last step since the artifact in its place was put there.
        is_later = run not in ended or written > ended[run].lstat().st_ctime
        # A training that was started twice at once may have a step twice.
        if is_later and (steps := {step.step: step for step in read_steps(path)}):
            running[run] = [steps[number] for number in sorted(steps)]
            sentences.append(_sentence(run, running[run], time.time() - written))
    if not running and not all_ended:
        return None
    tables = {run: path.with_name("train_log.parquet") for run, path in ended.items() if run not in running}
    logs = {run: read_table(path, TRAIN_LOG) for run, path in tables.items()}
    logs = {run: log for run, log in logs.items() if "reward" in log["name"]}  # a base has none
    for run, steps in running.items():
        values = [(step.step, *named) for step in steps for named in step.values.items()]
        logs[run] = from_rows([dict(zip(("step", "name", "value"), row, strict=True)) for row in values], TRAIN_LOG)
    if not logs:
        return None
    picture, left_out = _picture(study, logs)
    if left_out:
        sentences.append(f"Not drawn, because there are no more colors: {', '.join(left_out)}.")
    return {"picture": picture, "sentences": sentences}


def _sentence(run: tuple[str, ...], steps: Sequence[NotedStep], ago: float) -> str:
    last, seconds = steps[-1], [noted.values[_SECONDS] for noted in steps if _SECONDS in noted.values]
    told = f"{'/'.join(run)}: step {last.step} of {last.of}, {duration(ago)} ago"
    if not seconds or last.step == last.of:
        return f"{told}."
    mean = sum(seconds) / len(seconds)
    return f"{told}; {mean:.1f} s per step, about {duration(mean * (last.of - last.step))} left while it runs."


def _picture(study: Path, logs: Mapping[tuple[str, ...], pl.DataFrame]) -> tuple[str, list[str]]:
    """Return the picture, and the labels of the actors that are not in it."""
    # Here, because other pages need no matplotlib.
    from dualread.reporting.figures.drawing import COLORS, house_style
    from dualread.reporting.figures.training import draw

    settings = read_study(study).get("settings", {})

    def labeled(place: int, kind: str) -> tuple[Labeled, ...]:
        entries, there = settings.get(kind, {}), {run[place] for run in logs}
        order = [*(name for name in entries if name in there), *sorted(there - entries.keys())]
        return tuple(Labeled(name=name, label=entries.get(name, {}).get("label", name)) for name in order)

    known = labeled(1, "actors")
    actors = known[: len(COLORS)]
    layout = FigureLayout(study=study.name, backbones=labeled(0, "backbones"), actors=actors)
    tables = {f"train_log/{'/'.join(run)}": log for run, log in logs.items()}
    for backbone, actor in product(layout.backbones, actors):
        if not any(run[:2] == (backbone.name, actor.name) for run in logs):
            tables[f"train_log/{backbone.name}/{actor.name}/0"] = from_rows([], TRAIN_LOG)
    content = BytesIO()
    with house_style():
        draw(tables, layout).figure.savefig(content, format="png", dpi=_DOTS_PER_INCH)
    return _data_uri("png", content), [actor.label for actor in known[len(COLORS) :]]
