"""The auditor's bundle: a zip file of records, and of all that is needed to verify them without this package.

`writing` makes it. `verify` is the script in it, which imports nothing of the package.
"""

from theodolite.stores.bundle.writing import write_bundle

__all__ = ("write_bundle",)
