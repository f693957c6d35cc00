"""What is kept so that only the operator can read it: the sealer, and the store and the shelf that use it."""

from theodolite.stores.sealing.sealer import Sealer
from theodolite.stores.sealing.shelf import SealedShelf
from theodolite.stores.sealing.store import SealedStore

__all__ = ("SealedShelf", "SealedStore", "Sealer")
