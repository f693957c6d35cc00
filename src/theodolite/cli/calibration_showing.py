"""What a calibration artefact says, and how two differ: from a file to the exit status."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from theodolite.cli.choices import Form, ShortForm
from theodolite.cli.exits import FINDING, NOTHING, say
from theodolite.cli.looks import Look
from theodolite.cli.output import check_drawable, opened, spared, write_blocks
from theodolite.cli.telling import tell
from theodolite.config.grading import artefact_of
from theodolite.core.calibration import Calibration
from theodolite.reports.calibration.difference import blocks as differing
from theodolite.reports.calibration.difference import differences
from theodolite.reports.calibration.parts import blocks, title
from theodolite.reports.escaping import ascii_json, inert
from theodolite.reports.layout import counted
from theodolite.reports.limits import NAME

__all__ = ("differ", "show")


def show(file: Path, form: Look, output: Path | None = None) -> int:
    """Tell what an artefact says, as JSON the artefact itself; return the exit status.

    Raises CalibrationError for a file that is no artefact, ConfigError where the output cannot be written, or where
    there is nothing to draw, and MissingExtraError for a picture where nobody can draw it.
    """
    spared(output, file)
    artefact = artefact_of(file)
    if form is Look.PNG:
        check_drawable(Form.PNG, output)
    written = _written(artefact, form)
    with opened(output) as stream:
        if written is None:
            write_blocks(blocks(artefact), stream, terminal=output is None and sys.stdout.isatty())
        else:
            stream.write(written)
    if output is not None:
        say(f"{title(artefact)}: {artefact.status}")
    return NOTHING


def differ(before: Path, after: Path, form: ShortForm, output: Path | None = None) -> int:
    """Tell how an artefact differs from an earlier one; return the exit status, 1 where it does.

    Raises as `show` does.
    """
    spared(output, before, after)
    found = differences(artefact_of(before), artefact_of(after))
    tell(found if form is ShortForm.JSON else differing(found), output)
    if output is not None:
        names = f"{inert(found.before, NAME)} -> {inert(found.after, NAME)}"
        say(f"{names}: {counted(len(found.changes), 'difference')}")
    return FINDING if found.changes else NOTHING


def _written(artefact: Calibration, form: Look) -> bytes | None:
    """Return the artefact in a form for machines or pictures; None for text. Each is imported when it is used."""
    if form is Look.JSON:
        return ascii_json(artefact.document())
    if form is Look.HTML:
        from theodolite.reports.calibration.page import paged  # noqa: PLC0415 - as above

        return paged(artefact, version("theodolite"))
    if form is Look.PNG:
        from theodolite.reports.calibration.image import imaged  # noqa: PLC0415 - as above

        return imaged(artefact)
    return None
