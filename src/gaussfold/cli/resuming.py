"""Where in its input a training run stands, and whether a run that is resumed has the same input before it."""

from __future__ import annotations

from gaussfold.cli.errors import USAGE, Failure
from gaussfold.data.chunks import Chunk
from gaussfold.data.fingerprint import Fingerprint


class Resume:
    """The place of a run: passes done, rows taken of the one it is in, and the fingerprint of what it has read.

    Parameters
    ----------
    run
        Where the run was that is to go on, as a model file has it: ``passes`` and ``rows`` to skip, and ``input``, the
        fingerprint of the first ``seen`` rows (files of older versions have none); or that it was ``finished``. That is
        all a finished run leaves: the model is the same then whether it was made in one run or in several.
        Empty: a new run.
    passes
        How many are wanted.
    """

    def __init__(self, run: dict[str, int], passes: int) -> None:
        self._old, self._passes = run, passes
        self._checked = "input" not in run
        self.first_pass = passes if run.get("finished") else run.get("passes", 0)
        self._pass, self._rows, self._seen = self.first_pass, 0, Fingerprint()

    def begin_pass(self, k: int) -> None:
        """Another pass begins, at the first row of the input."""
        self._pass, self._rows, self._seen = k, 0, Fingerprint()

    def new_rows(self, chunk: Chunk) -> Chunk:
        """The rows of the next chunk that are yet to be learned; the others are compared with what was learned."""
        if not self._checked and self._rows + len(chunk) >= self._old["seen"]:
            left = self._old["seen"] - self._rows
            seen = self._seen.after(chunk.rows(0, left)) if left < len(chunk) else chunk.seen or self._seen.after(chunk)
            self._compare(seen)
        old = self._known_rows - self._rows
        if old <= 0:
            return chunk
        known = chunk.rows(0, min(old, len(chunk)))
        self._take(known)
        return chunk.rows(len(known))

    @property
    def _known_rows(self) -> int:
        """Rows of this pass that were learned before."""
        return self._old.get("rows", 0) if self._pass == self.first_pass else 0

    def _compare(self, seen: Fingerprint) -> None:
        if seen.to_number() != self._old["input"]:
            self._refuse(f"the first {self._old['seen']} rows of the input are not those that it has read")
        self._checked = True

    def _refuse(self, why: str) -> None:
        msg = f"--resume: {why}; give the same input with the same options, or go on with other data without --resume"
        raise Failure(msg, USAGE)

    def taken(self, chunk: Chunk) -> dict[str, int]:
        """Count rows that were learned; return the place, as a model file has it."""
        self._take(chunk)
        place = {"passes": self._pass, "rows": self._rows, "finished": 0}
        return place | {"seen": self._rows, "input": self._seen.to_number()}

    def _take(self, chunk: Chunk) -> None:
        self._rows += len(chunk)
        self._seen = self._seen.after(chunk) if chunk.seen is None else chunk.seen

    def end_pass(self) -> None:
        """The input is over."""
        if not self._checked and self._rows < self._old["seen"]:
            self._refuse(f"the input has {self._rows} rows, and the model has read {self._old['seen']} of another")
        self._checked = True

    def finished(self) -> dict[str, int]:
        """The place after all passes."""
        return {"passes": self._passes, "rows": 0, "finished": 1}
