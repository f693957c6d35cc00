from __future__ import annotations


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name bytes that are not text by their number: they may hold a time, and workers must agree on the name."""
    return f"{len(val)} bytes" if isinstance(val, bytes) and not val.isascii() else None
