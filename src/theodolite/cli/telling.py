"""An answer that is no report of sessions: blocks for people, or one JSON document, to a file or standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

from msgspec import Struct

from theodolite.cli.output import write_blocks
from theodolite.core.errors import ConfigError
from theodolite.reports.json import encoded
from theodolite.reports.layout import Block

__all__ = ("tell",)


def tell(said: Struct | Iterable[Block], output: Path | None) -> None:
    """Write an answer, a Struct as JSON. Raises ConfigError where the file cannot be written."""
    written = BytesIO()
    if isinstance(said, Struct):
        written.write(encoded(said) + b"\n")
    else:
        write_blocks(said, written, terminal=output is None and sys.stdout.isatty())
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(written.getvalue())
        sys.stdout.buffer.flush()
        return
    try:
        output.write_bytes(written.getvalue())
    except OSError as error:
        raise ConfigError(f"{output} cannot be written ({error.strerror}): name another file") from error
