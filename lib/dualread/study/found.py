"""Which artifacts a run shows without computing them: what is there, or entries of the store."""

from dualread.store.digest import MANIFEST_NAME
from dualread.store.job import Entry
from dualread.store.key import Action
from dualread.store.manifest import Manifest
from dualread.study.stale import Plan


class StoredArtifacts:
    """Looks the artifacts of a plan up as their jobs will."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: dict[str, Manifest | None] = {}

    def has(self, entry: Entry) -> bool:
        """Return whether nothing has to be computed for an entry of a job."""
        return str(entry.output) in self._plan.jobs and self.manifest(str(entry.output)) is not None

    def manifest(self, output: str) -> Manifest | None:
        """Return what the run will show in a place; None if it has to be computed, or depends on what has to be."""
        if output not in self._known:
            self._known[output] = self._manifest(output)
        return self._known[output]

    def _manifest(self, output: str) -> Manifest | None:
        entry, digests = self._plan.jobs[output][1], {}
        for name, path in entry.inputs.items():
            if path.name == MANIFEST_NAME and (read := str(path.parent)) in self._plan.jobs:
                if (manifest := self.manifest(read)) is None:
                    return None
                digests[name] = manifest.digest
        made = self._plan.made(output)
        now = self._plan.action(output, made)
        now = Action(**{**now.fields(), "inputs": {**now.inputs, **digests}})
        return made if made and self._plan.holds(now, made, entry) else self._plan.stored(now.key)
