"""The payload guard beside the bare engine and beside its peers, on the same bodies in one run.

    python benchmarks/payload.py [--peer PYTHON] [--short]

`PYTHON` is one that has agent-airlock, openapi-core, jsonschema and fastjsonschema; without it the peers are skipped,
which is said. The documents of GitHub and Kubernetes are in ../shared/data/openapi; where they are absent only the
small body is measured. Bodies are made from the schemas with a fixed seed: valid, not typical. Exits with 1 when a
budget is exceeded; that of the small body needs the peer.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from jsonschema_rs import Draft202012Validator
from timing import row

from theodolite.api.payload import OpenAPIDriftGuard
from theodolite.contracts import read
from theodolite.contracts.document import is_object
from theodolite.core.arguments import is_mapping, is_sequence
from theodolite.detectors.payload.engine import Checker

DATA = Path(__file__).parents[2] / "shared" / "data" / "openapi"
GITHUB, KUBERNETES = DATA / "github-rest-api.min.json", DATA / "kubernetes-1.13-swagger2.json"

# It times each peer on one body: "name microseconds" a line, or "name -" where it cannot do it.
SCRIPT = """
import importlib.metadata, json, logging, sys, time, warnings
warnings.simplefilter("ignore"); logging.disable(logging.CRITICAL)
given = json.load(sys.stdin)
body, schema, spec = given["body"], given["schema"], given["spec"]
operation, path, method = given["operation"], given["path"], given["method"]

def best(work):
    work(); start = time.thread_time(); work(); once = max(time.thread_time() - start, 1e-7)
    loops = max(1, int(0.02 / once))
    found = []
    for _ in range(given["rounds"]):
        start = time.thread_time()
        for _ in range(loops):
            work()
        found.append((time.thread_time() - start) / loops)
    return min(found) * 1e6

def airlock():
    from agent_airlock import OpenAPIDriftGuard
    guard = OpenAPIDriftGuard(spec=spec)
    assert guard.evaluate(operation_id=operation, args=body).allowed
    return lambda: guard.evaluate(operation_id=operation, args=body)

def python_jsonschema():
    import jsonschema
    validator = jsonschema.Draft202012Validator(schema)
    assert validator.is_valid(body)
    return lambda: validator.is_valid(body)

def fast():
    import fastjsonschema
    check = fastjsonschema.compile({"$schema": "http://json-schema.org/draft-07/schema#", **schema})
    check(body)
    return lambda: check(body)

def core():
    from openapi_core import Config, OpenAPI
    from openapi_core.testing import MockRequest
    api = OpenAPI.from_dict(spec, config=Config(spec_validator_cls=None))
    data = json.dumps(body).encode()
    host = (spec.get("servers") or [{"url": "http://localhost"}])[0]["url"]
    request = MockRequest(host, method, path, data=data, content_type="application/json")
    api.validate_request(request)
    return lambda: api.validate_request(request)

for name, make in (
    ("agent-airlock", airlock), ("jsonschema", python_jsonschema), ("fastjsonschema", fast), ("openapi-core", core)
):
    version = importlib.metadata.version(name)
    try:
        print(name, version, best(make()), flush=True)
    except Exception as error:
        print(name, version, "-", type(error).__name__, flush=True)
"""


class Work(NamedTuple):
    """One body of one operation. `flat` are the parameters that a whole call needs beside it."""

    name: str
    spec: Mapping[str, object]
    operation: str
    method: str
    path: str
    schema: Mapping[str, object]
    body: Mapping[str, object]
    flat: Mapping[str, object]


def found(node: object, *keys: str) -> Mapping[str, object]:
    """Return the object below some keys of a document."""
    for key in keys:
        assert is_mapping(node)
        node = node[key]
    assert is_mapping(node)
    return {str(key): value for key, value in node.items()}


def target(document: object, reference: str) -> Mapping[str, object]:
    """Return what a local `$ref` leads to."""
    return found(document, *[key.replace("~1", "/").replace("~0", "~") for key in reference[2:].split("/")])


def references(node: object) -> Iterator[str]:
    """Yield the `$ref`s in a schema."""
    if is_mapping(node):
        for key, value in node.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from references(value)
    elif is_sequence(node):
        for value in node:
            yield from references(value)


def bundled(document: object, schema: Mapping[str, object]) -> dict[str, object]:
    """Return a schema with all that it leads to, for engines that are given one schema."""
    whole: dict[str, object] = dict(schema)
    todo, done = list(references(schema)), set[str]()
    while todo:
        reference = todo.pop()
        if reference not in done:
            done.add(reference)
            node = target(document, reference)
            place: dict[str, object] = whole
            *above, name = reference[2:].split("/")
            for key in above:
                below = place.setdefault(key, {})
                assert is_object(below)
                place = below
            place[name.replace("~1", "/").replace("~0", "~")] = node
            todo.extend(references(node))
    return whole


def made(document: object, schema: Mapping[str, object], rng: random.Random, depth: int, share: float) -> object:
    """Return a value that fits a schema: all that is required, and `share` of the rest, down to some depth."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        return made(document, target(document, reference), rng, depth, share)
    options = schema.get("enum")
    if is_sequence(options):
        return rng.choice(options)
    text = {"date-time": "2026-01-02T03:04:05Z", "int-or-string": "http"}.get(str(schema.get("format")))
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if kind == "object":
        required = schema.get("required")
        needed = frozenset(required if is_sequence(required) else ())
        fields = (
            {
                name: made(document, found(schema, "properties", name), rng, depth - 1, share)
                for name in found(schema, "properties")
                if name in needed or (depth > 0 and rng.random() < share)
            }
            if "properties" in schema
            else {}
        )
        if is_mapping(schema.get("additionalProperties")):
            rest = found(schema, "additionalProperties")
            fields.update({f"label{place}": made(document, rest, rng, depth - 1, share) for place in range(2)})
        return fields
    if kind == "array":
        return [made(document, found(schema, "items"), rng, depth - 1, share) for _ in range(2)]
    return {"integer": rng.randrange(1, 60), "number": 0.5, "boolean": True}.get(
        str(kind), text or f"v{rng.randrange(10**6):06}"
    )


def size(value: object) -> int:
    """Return the bytes of a value as JSON."""
    return len(json.dumps(value, separators=(",", ":")))


def small() -> Work:
    """Return a body of five flat fields."""
    schema = {
        "type": "object",
        "properties": {
            "email": {"type": "string"}, "age": {"type": "integer"}, "admin": {"type": "boolean"},
            "score": {"type": "number"}, "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["email", "age"],
        "additionalProperties": False,
    }  # fmt: skip
    operation = {
        "operationId": "createUser",
        "requestBody": {"content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": "made"}},
    }
    info = {"title": "users", "version": "1"}
    spec = {"openapi": "3.1.0", "info": info, "paths": {"/users": {"post": operation}}}
    body = {"email": "a@b.example", "age": 41, "admin": False, "score": 0.5, "tags": ["x", "y"]}
    return Work("small, 5 fields", spec, "createUser", "post", "/users", schema, body, {})


def github(spec: Mapping[str, object]) -> Work:
    """Return the body of GitHub's scoped tokens."""
    path = "/applications/{client_id}/token/scoped"
    schema = found(spec, "paths", path, "post", "requestBody", "content", "application/json", "schema")
    body = found(made(spec, schema, random.Random(1), 5, 1.0))
    name = f"GitHub scope-token, {size(body):,} bytes"
    where = path.replace("{client_id}", "x")
    return Work(name, spec, "apps/scope-token", "post", where, bundled(spec, schema), body, {"client_id": "x"})


def kubernetes(spec: Mapping[str, object]) -> Work:
    """Return the body of a pod, the one of 240 seeds whose size is nearest to 8,107 bytes."""
    schema: Mapping[str, object] = {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"}
    pods = [made(spec, schema, random.Random(seed), 7, share) for seed in range(60) for share in (0.3, 0.4, 0.5, 0.6)]
    body = found(min(pods, key=lambda pod: abs(size(pod) - 8_107)))
    name = f"Kubernetes create pod, {size(body):,} bytes"
    path = "/api/v1/namespaces/x/pods"
    flat = {"namespace": "x"}
    return Work(name, spec, "createCoreV1NamespacedPod", "post", path, bundled(spec, schema), body, flat)


def best(work: Callable[[], object], rounds: int) -> float:
    """Return the CPU time of one call in microseconds: the best of some rounds of 20 ms."""
    work()
    start = time.thread_time()
    work()
    loops = max(1, int(0.02 / max(time.thread_time() - start, 1e-7)))
    times: list[float] = []
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(loops):
            work()
        times.append((time.thread_time() - start) / loops)
    return min(times) * 1e6


def peers(python: Path, work: Work, rounds: int) -> dict[str, float]:
    """Print what each peer takes for a body, and return it."""
    given = {**work._asdict(), "rounds": rounds}
    done = subprocess.run(  # noqa: S603 - the Python that the person names
        [python, "-W", "ignore", "-c", SCRIPT], input=json.dumps(given), stdout=subprocess.PIPE, text=True, check=True
    )
    times: dict[str, float] = {}
    for line in done.stdout.splitlines():
        name, version, took, *why = line.split()
        if took == "-":
            print(f"  {name} {version}: cannot ({' '.join(why)})")
        else:
            times[name] = float(took)
    return times


def measured(work: Work, python: Path | None, rounds: int) -> bool:
    """Measure one body on all sides; return whether ours keeps its budgets."""
    print(f"{work.name}:")
    guard = OpenAPIDriftGuard(spec=work.spec)
    flat = {**work.flat, **work.body}
    decision = guard.evaluate(operation_id=work.operation, args=flat)
    assert decision.allowed, decision.detail
    engine = Draft202012Validator(dict(work.schema), offline=True)
    assert engine.is_valid(work.body)
    # One after the other and again, so that what else the machine does meets both.
    bare, ours = float("inf"), float("inf")
    for _ in range(3):
        bare = min(bare, best(lambda: engine.is_valid(work.body), rounds))
        ours = min(ours, best(lambda: guard.evaluate(operation_id=work.operation, args=flat), rounds))
    row("  jsonschema-rs alone", bare, "us")
    met = row("  evaluate", ours, "us", budget=round(1.5 * bare + 5.0, 2), ratio=ours / bare)
    for name, took in (peers(python, work, rounds) if python else {}).items():
        row(f"  {name}", took, "us", ratio=took / ours)
        if name == "agent-airlock" and work.flat == {}:
            met = row("  evaluate, beside agent-airlock", ours, "us", budget=round(took / 2, 2)) and met
    return met


def load() -> bool:
    """Measure what it takes to load the largest document; return whether that is within budget."""
    content = GITHUB.read_bytes()
    rounds = [_loaded(content) for _ in range(3)]
    print(f"GitHub, {len(content) / 1e6:.1f} MB:")
    row("  read", min(read_ for read_, _ in rounds), "s")
    row("  compile", min(compiled for _, compiled in rounds), "s")
    return row("  load", min(map(sum, rounds)), "s", budget=1.5)


def _loaded(content: bytes) -> tuple[float, float]:
    start = time.thread_time()
    contracts = read(json.loads(content))
    between = time.thread_time()
    Checker(contracts)
    return between - start, time.thread_time() - between


def main() -> int:
    """Measure each body, then the load."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, metavar="PYTHON", help="a Python that has the peers")
    parser.add_argument("--short", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    rounds = 3 if options.short else 15
    if options.peer is None:
        print("the peers were skipped: name a Python that has them with --peer")
    print("CPU of one valid body in microseconds, best of some rounds; ratios are to `evaluate`, its own to the engine")
    met = measured(small(), options.peer, rounds)
    if not DATA.exists():
        print("skipped: the documents of ../shared/data/openapi are absent")
        return 0 if met else 1
    for make, file in ((github, GITHUB), (kubernetes, KUBERNETES)):
        met = measured(make(json.loads(file.read_bytes())), options.peer, rounds) and met
    return 0 if load() and met else 1


if __name__ == "__main__":
    sys.exit(main())
