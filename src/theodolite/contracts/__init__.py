"""What tools may be called with, read from any form that it is published in.

`read` takes an OpenAPI or Swagger document, a list of tools or a JSON Schema, and gives the contracts that calls are
checked against; `split` says which argument of a call belongs to which part of its contract.
"""

from __future__ import annotations

from theodolite.contracts.reading import read
from theodolite.contracts.splitting import Given, Split, Splitter, split

__all__ = ("Given", "Split", "Splitter", "read", "split")
