"""What a command reads, and how: the files, what their rows mean, and how many bad ones may be left out."""

from __future__ import annotations

from dataclasses import dataclass

from gaussfold.cli.errors import fail
from gaussfold.data.chunks import Chunk
from gaussfold.data.readers import Stream
from gaussfold.data.reading import Reading, Roles


@dataclass(frozen=True)
class Inputs:
    """Paths (or "-"), the reading of their rows, and what the user says about columns."""

    paths: list[str]
    reading: Reading
    roles: Roles
    skip_bad: int

    def stream(
        self,
        reading: Reading | None = None,
        *,
        keep_names: bool = False,
        tags: bool = False,
        fingerprint: bool = False,
    ) -> Stream:
        """Return the rows, read as these options say, or as a model does."""
        return Stream(
            self.paths, reading or self.reading, self.roles, max_bad=self.skip_bad, keep_names=keep_names, tags=tags,
            fingerprint=fingerprint,
        )  # fmt: skip

    def report_bad(self, chunk: Chunk, most: int | None = None) -> None:
        """Tell which records of a chunk were skipped."""
        for record in chunk.bad[:most] if self.skip_bad else []:
            fail(f"skipped {record}", 0)
