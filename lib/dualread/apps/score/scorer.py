"""`Scorer`: load a fitted reader with its actor, and ask about any image."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from dualread.apps.score import ScorerChoice
from dualread.apps.score.answering import OpenActor
from dualread.apps.score.distance import unusual
from dualread.apps.score.loading import ChosenReaders, LoadedScorer
from dualread.apps.score.readings import decision_of, in_halves
from dualread.apps.score.results import Failed, Question, Scored, shown
from dualread.digests import digest_of
from dualread.errors import ConfigError
from dualread.schema.data import CtWindows, ct_windows_of

if TYPE_CHECKING:
    from dualread.apps.score.results import GivenImage

BATCH_SIZE = 16


class Scorer:
    """An actor and the readers of its answers, in memory.

    Attributes:
        method: The method whose reader gives the confidence.
        notes: What differs from what the readers were fitted on; empty unless others were allowed.
        bits: How many bits of 16-bit gray images count where their files do not say it; None if nobody said it.
        ct_windows: Through which CT in DICOM is shown, see `dualread.data.dicom`; None for what files say.
        digest: Digest of all that a result depends on besides the question: readers, actor, prompt and threshold.
    """

    def __init__(
        self,
        loaded: LoadedScorer[OpenActor],
        *,
        batch_size: int = BATCH_SIZE,
        bits: int | None = None,
        ct_windows: CtWindows | None = None,
    ):
        self.method = loaded.readers.method
        self.notes = loaded.notes
        reading = [bits, *(ct_windows or ())]
        self.digest = loaded.digest if reading == [None] else digest_of([loaded.digest, *reading])
        self.bits, self.ct_windows = bits, ct_windows
        self._loaded = loaded
        self._batch_size = batch_size

    @classmethod
    def load(
        cls,
        reader: str | Path,
        checkpoint: str | Path | None = None,
        *,
        base: str | Path | None = None,
        methods: Sequence[str] = (),
        target_risk_percent: int | None = None,
        certified: bool = False,
        prompt: str | None = None,
        revision: str | None = None,
        allow_other: bool = False,
        plugins: str | Sequence[str] = (),
        batch_size: int = BATCH_SIZE,
        bits: int | None = None,
        ct_windows: Sequence[Sequence[float]] | None = None,
    ) -> "Scorer":
        """Load a reader and the actor whose answers it judges.

        Args:
            reader: A reader.safetensors or its folder, `results/<study>/readers/<backbone>/<actor>/<seed>/<method>`; a
                folder that `dualread export` wrote; or the id of a repository of the hub with such a folder.
            checkpoint: The actor's folder, `results/<study>/actors/<backbone>/<actor>/<seed>`; the folder of its
                checkpoint; or its repository of the hub, as "owner/name@revision". Not needed if the actor travels
                with the reader.
            base: If `checkpoint` is a LoRA adapter: what it was trained on, given in the same way.
            methods: Other methods whose confidence is wanted; their readers are beside the reader.
            target_risk_percent: Whose threshold decides; by default that of the smallest target risk.
            certified: Whether the certified threshold decides, instead of the empirical one.
            prompt: A prompt of the library to use instead of the reader's.
            revision: The commit, tag or branch of the reader's repository of the hub.
            allow_other: Whether to score although the checkpoint, a prompt, or how states are read is not as it was
                when the reader was fitted. Every result then says so.
            plugins: Other packages, or single modules of them, that the reader's file may name: their code runs.
            batch_size: Number of questions that are answered at once.
            bits: How many bits of 16-bit gray images count, 9 to 16, where their files do not say it.
            ct_windows: Three windows (low, high) of Hounsfield units through which CT in DICOM is shown, as in the
                entry of the data set that the reader was fitted on.

        Raises:
            UntrustedNameError: The reader's file names a module of a package that `plugins` does not.
            ConfigError: There is no such method, prompt or threshold, `bits` is no such number, or `ct_windows` are not
                three windows.
            ArtifactError: There is no such reader or checkpoint, a file is damaged, or the checkpoint, a prompt or the
                states differ from those on which the reader was fitted.
        """
        if bits is not None and not 9 <= bits <= 16:
            raise ConfigError(f"bits {bits}: expected 9 to 16, the bits that count in 16-bit gray images.")
        windows = ct_windows_of(ct_windows)
        choice = ScorerChoice(
            reader=reader,
            checkpoint=checkpoint,
            base=base,
            methods=methods,
            target_risk_percent=target_risk_percent,
            certified=certified,
            prompt=prompt,
            revision=revision,
            allow_other=allow_other,
            plugins=plugins,
        )
        loaded = ChosenReaders.load(choice).with_actor(partial(OpenActor, batch_size=batch_size))
        return cls(loaded, batch_size=batch_size, bits=bits, ct_windows=windows)

    def __call__(
        self,
        image: "GivenImage | Sequence[GivenImage]",
        question: str,
        *,
        options: Sequence[str] = (),
        answer_type: str | None = None,
        donor: "GivenImage | Sequence[GivenImage] | None" = None,
    ) -> Scored:
        """Answer a question about an image, and say how far the answer can be trusted; arguments as in `Question`.

        Raises:
            DataError: An image cannot be read, or the question is empty, too long, or contains control tokens.
            ReaderError: A reader does not fit the actor's states.
        """
        asked = Question(image=image, question=question, options=options, answer_type=answer_type, donor=donor)
        return self.together([asked])[0]

    def each(self, questions: Iterable[Question]) -> Iterator[Scored | Failed]:
        """Yield the result of each question, in order; a question that fails says why and stops no other one."""
        waiting = iter(questions)
        while batch := list(islice(waiting, self._batch_size)):
            yield from in_halves(
                batch, self.together, lambda error: Failed(error=str(error).strip() or type(error).__name__)
            )

    def together(self, questions: Sequence[Question]) -> list[Scored]:
        """Return the results of one batch; the first question that fails raises an error, see `__call__`."""
        loaded = self._loaded
        how = {"required": loaded.needs.requirements, "bits": self.bits, "ct_windows": self.ct_windows}
        originals = [shown(asked, asked.image, loaded.actor.encoder, **how) for asked in questions]
        donors = {
            i: shown(asked, asked.donor, loaded.actor.encoder, **how)
            for i, asked in enumerate(questions)
            if asked.donor is not None
        }
        read = loaded.readers.readings(loaded.actor.answer([*originals, *donors.values()]))
        donor_of = dict(zip(donors, read[len(originals) :], strict=True))
        return [
            Scored(
                **vars(reading),
                decision=decision_of(reading, loaded.readers.threshold),
                donor=donor_of.get(i),
                notes=(
                    *self.notes,
                    *unusual(reading.distance_percentile),
                    *(f"image: {note}" for note in originals[i].notes),
                    *(f"donor's image: {note}" for note in (donors[i].notes if i in donors else ())),
                ),
            )
            for i, reading in enumerate(read[: len(originals)])
        ]
