"""The embedded model's weights, and xllamacpp's own OpenAI-compatible server on loopback.

For tests of adapters that speak the protocol, any of these is an argument of a test:

- `weights`: the path of the weights; the test skips, saying so, where they are not pulled.
- `local_server`: a function of a path (and `api_key="..."`, if wanted) that gives a context manager of a base URL:
  `with local_server(weights) as base_url: OpenAI(base_url=base_url, api_key="none")`.
- `local_base_url`: the base URL of one such server for the whole run, `http://127.0.0.1:PORT/v1`, without a key.

It answers /chat/completions, /completions, /responses and /models, streams, and knows `logprobs`, `top_logprobs`,
`seed`, `tools`, `response_format` and `logit_bias`. It has one slot: calls wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from theodolite.models.local.weights import SMOLLM2


@contextmanager
def _serving(path: Path, *, api_key: str = "") -> Generator[str, None, None]:
    """Serve the weights on a free port of 127.0.0.1, and give the base URL."""
    xllamacpp = pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = 8192, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.verbosity, params.ui, params.warmup = -1, False, False
    if api_key:
        params.api_keys = [api_key]
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server  # stops it: it has no other end


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the embedded model."""
    path = SMOLLM2.path()
    if not path.is_file():
        pytest.skip("the weights are not on this machine: theodolite models pull")
    return path


@pytest.fixture(scope="session")
def local_server() -> Callable[..., AbstractContextManager[str]]:
    """Serve weights for as long as a `with` block lasts."""
    return _serving


@pytest.fixture(scope="session")
def local_base_url(weights: Path) -> Iterator[str]:
    """The base URL of a server that lasts as long as the tests do."""
    with _serving(weights) as base_url:
        yield base_url
