"""What fits into a report of so many bytes, and what had to be left out."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator

__all__ = ("Room",)


class Room:
    """Holds pieces of a report, `size` bytes together at most. Where they are more, those of a higher rank give way.

    Rank 0 is the first: a piece takes the place of pieces of higher ranks, the last ones first, and of none of its own.
    `left_out` counts the pieces that were not held, or not to the end, by rank. State: the pieces.

    >>> room = Room(12)
    >>> [room.add(piece, rank) for piece, rank in ((b"note 1", 1), (b"note 2", 1), (b"a find", 0))]
    [True, True, True]
    >>> list(room.pieces(0, 1)), room.left_out[1]
    ([b'note 1', b'a find'], 1)
    """

    def __init__(self, size: int) -> None:
        self.left_out: Counter[int] = Counter()
        self._free = size
        self._given = 0
        self._sizes: Counter[int] = Counter()
        self._held: defaultdict[int, list[tuple[int, bytes]]] = defaultdict(list)

    def add(self, piece: bytes, rank: int = 0) -> bool:
        """Hold a piece, and return whether there was room for it."""
        size = len(piece)
        if size > self._free + sum(taken for other, taken in self._sizes.items() if other > rank):
            self.left_out[rank] += 1
            return False
        while size > self._free:
            self._give_up(max(other for other, pieces in self._held.items() if pieces))
        self._free -= size
        self._sizes[rank] += size
        self._held[rank].append((self._given, piece))
        self._given += 1
        return True

    def _give_up(self, rank: int) -> None:
        _, piece = self._held[rank].pop()
        self._free += len(piece)
        self._sizes[rank] -= len(piece)
        self.left_out[rank] += 1

    def held(self, rank: int) -> int:
        """Return how many pieces of a rank are held."""
        return len(self._held[rank])

    def pieces(self, *ranks: int) -> Iterator[bytes]:
        """Yield the pieces of some ranks in the order in which they came."""
        yield from (piece for _, piece in heapq.merge(*[self._held[rank] for rank in ranks]))
