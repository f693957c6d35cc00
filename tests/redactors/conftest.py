"""A loaded machine is no fault of the code: no generated example has a deadline."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
