"""A small model that runs on this machine, without a key and without a network: xllamacpp on weights in a GGUF file.

It makes inquiries, probes and demonstrations real. Nothing is claimed about what it detects: in our measurements the
bundled weights did not read a policy, so their answers are no evidence about an agent.
"""

from theodolite.models.local.model import LocalModel

__all__ = ("LocalModel",)
