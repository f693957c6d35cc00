"""The guard of calls against a contract, under the names that its users come from."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Thread

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from theodolite.api.payload import (
    DriftMode,
    Mover,
    OpenAPIDivergenceKind,
    OpenAPIDriftDecision,
    OpenAPIDriftGuard,
    OpenAPIDriftVerdict,
    OpenAPIDriftViolation,
    ShapeDrift,
    openapi_doc_drift_guard_defaults,
    vaccinate_openapi,
)
from theodolite.contracts import read
from theodolite.core.contract import Kind
from theodolite.core.errors import ConfigError


class Payment(BaseModel):
    amount: int


USER: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "email": {"type": "string"},
        "age": {"type": "integer"},
        "nickname": {"type": "string"},
        "address": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["email", "age"],
    "additionalProperties": False,
}
SPEC: Mapping[str, object] = {
    "openapi": "3.1.0",
    "info": {"title": "Users", "version": "1"},
    "paths": {
        "/users": {
            "post": {
                "operationId": "createUser",
                "requestBody": {"required": True, "content": {"application/json": {"schema": USER}}},
                "responses": {"200": {"description": "made"}},
            }
        },
        "/users/{id}": {
            "get": {
                "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}],
                "responses": {"200": {"description": "found"}},
            }
        },
        "/notes": {
            "post": {
                "operationId": "addNotes",
                "requestBody": {
                    "content": {"application/json": {"schema": {"type": "array", "items": {"type": "string"}}}}
                },
                "responses": {"200": {"description": "made"}},
            }
        },
    },
}
USER_FIELDS = ("email", "age", "nickname", "address", "tags")
GOOD: Mapping[str, object] = {"email": "a@b.co", "age": 3}


def untyped(call: Callable[..., object]) -> Callable[..., object]:
    """Return a function as a caller without a type checker sees it."""
    return call


def decided(args: object, *, mode: str = "strict", operation: str = "createUser") -> OpenAPIDriftDecision:
    return OpenAPIDriftGuard(spec=SPEC, drift_mode=mode).evaluate(operation_id=operation, args=args)


class TestDecisions:
    @pytest.mark.parametrize("mode", list(DriftMode))
    def test_a_call_that_fits_is_allowed_in_every_mode(self, mode: DriftMode) -> None:
        decision = decided(GOOD, mode=mode)
        assert (decision.allowed, decision.verdict, decision.divergences) == (True, OpenAPIDriftVerdict.ALLOW, ())
        assert (decision.repair, decision.retry, decision.known_operation) == (None, "", True)

    @pytest.mark.parametrize(
        ("mode", "allowed", "verdict"),
        [
            ("strict", False, OpenAPIDriftVerdict.DENY_DRIFT),
            ("warn", True, OpenAPIDriftVerdict.ALLOW_WARN),
            ("shadow", True, OpenAPIDriftVerdict.ALLOW_SHADOW),
        ],
    )
    def test_drift_is_refused_told_or_returned(self, mode: str, *, allowed: bool, verdict: OpenAPIDriftVerdict) -> None:
        decision = decided({"email": "a@b.co"}, mode=mode)
        assert (decision.allowed, decision.verdict) == (allowed, verdict)
        assert [(one.kind, one.field) for one in decision.divergences] == [
            (OpenAPIDivergenceKind.MISSING_REQUIRED, "age")
        ]

    @pytest.mark.parametrize(
        ("args", "expected"),
        [
            ({**GOOD, "age": "old"}, "type_mismatch age type_mismatch integer string"),
            ({**GOOD, "age": None}, "type_mismatch age null_not_allowed integer null"),
            ({**GOOD, "mail": 1}, "unknown_field mail unknown_field"),
            ({**GOOD, "address": {}}, "missing_required address.city missing_required"),
            ({**GOOD, "tags": ["a", 5]}, "type_mismatch tags[1] type_mismatch string integer"),
            ({**GOOD, "tags": '["a"]'}, "type_mismatch tags double_encoded array string"),
        ],
    )
    def test_a_divergence_says_what_where_and_which_types(self, args: object, expected: str) -> None:
        (one,) = decided(args).divergences
        said = f"{one.kind.value} {one.field} {one.exactly.value} {one.expected} {one.observed}"
        assert said.startswith(expected)

    @pytest.mark.parametrize("mode", list(DriftMode))
    @pytest.mark.parametrize("name", ["createuser", "", "GET /users", None, 5, ["createUser"]])
    def test_an_unknown_operation_is_refused_or_marked(self, mode: DriftMode, name: object) -> None:
        evaluate: Callable[..., OpenAPIDriftDecision] = OpenAPIDriftGuard(spec=SPEC, drift_mode=mode).evaluate
        decision = evaluate(operation_id=name, args=GOOD)
        strict = mode is DriftMode.STRICT
        assert (decision.allowed, decision.known_operation, decision.divergences) == (not strict, False, ())
        assert (decision.verdict is OpenAPIDriftVerdict.DENY_UNKNOWN_OPERATION) is strict
        assert "no operation" in decision.detail
        assert "There is " in decision.retry or "Did you mean" in decision.retry

    def test_who_names_no_known_operation_is_told_those_that_are_near(self) -> None:
        guard = OpenAPIDriftGuard(spec=SPEC)
        retry = guard.evaluate(operation_id="createUsr-hunter2", args=GOOD).retry
        assert 'Did you mean "createUser"' in retry
        assert "hunter2" not in retry
        assert (
            'There is "createUser", "GET /users/{id}", "addNotes"' in guard.evaluate(operation_id="x", args=GOOD).retry
        )

    def test_operations_without_an_id_are_reached_by_method_and_path(self) -> None:
        assert decided({"id": 5}, operation="GET /users/{id}").allowed
        (one,) = decided({}, operation="GET /users/{id}").divergences
        assert (one.kind.value, one.field) == ("missing_required", "id")

    def test_no_arguments_are_none_of_a_body_that_may_be_absent(self) -> None:
        assert decided(None, operation="addNotes").allowed
        assert not decided(None).allowed

    def test_a_body_that_is_no_object_is_given_as_it_is(self) -> None:
        assert decided(["a"], operation="addNotes").allowed
        assert not decided([5], operation="addNotes").allowed

    def test_a_plan_and_a_message_come_with_a_refusal_and_change_nothing(self) -> None:
        args = {"email": "a@b.co", "age": "7"}
        decision = decided(args)
        assert decision.repair is not None
        assert [step.op.value for step in decision.repair.steps] == ["coerce"]
        assert "/age" in decision.retry
        assert args == {"email": "a@b.co", "age": "7"}

    def test_what_is_not_declared_is_observed_where_that_is_asked_for(self) -> None:
        tool = [{"name": "pay", "inputSchema": {"type": "object", "properties": {"amount": {"type": "integer"}}}}]
        args = {"amount": 1, "ammount": 2}
        decision = OpenAPIDriftGuard(spec=tool, observe=True).evaluate(operation_id="pay", args=args)
        assert decision.allowed
        assert [(one.exactly, one.field) for one in decision.observations] == [(Kind.UNDECLARED_FIELD, "ammount")]
        assert OpenAPIDriftGuard(spec=tool).evaluate(operation_id="pay", args=args).observations == ()

    @given(
        st.recursive(
            st.just("hunter2-Q7x") | st.integers() | st.none(),
            lambda inner: st.dictionaries(st.sampled_from([*USER_FIELDS, "city", "x"]), inner) | st.lists(inner),
        )
    )
    def test_no_value_of_a_call_is_repeated(self, args: object) -> None:
        assert "hunter2-Q7x" not in repr(decided(args))


class TestLog:
    def test_warn_writes_one_record_a_call_and_the_other_modes_none(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.DEBUG):
            for mode in DriftMode:
                decided({"email": 5, "age": "x"}, mode=mode)
                decided(GOOD, mode=mode)
        (record,) = caplog.records
        assert (record.name, record.levelname) == ("theodolite.payload", "WARNING")
        assert vars(record)["operation_id"] == "createUser"
        assert vars(record)["divergences"] == ["type_mismatch:/email", "type_mismatch:/age"]

    def test_a_log_that_cannot_be_written_stops_no_call(self) -> None:
        class Broken(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                raise OSError(record.name)

        log, broken = logging.getLogger("theodolite.payload"), Broken()
        log.addHandler(broken)
        try:
            assert decided({}, mode="warn").verdict is OpenAPIDriftVerdict.ALLOW_WARN
            assert decided({}, mode="warn", operation="other").allowed

            @vaccinate_openapi(SPEC, drift_mode="warn")("createUser")
            def create_user(email: str) -> str:
                return email

            assert create_user("a@b.co") == "a@b.co"
        finally:
            log.removeHandler(broken)


CONTROL = "\x1b[2J\nERROR forged line\u202e\r##vso[task.complete]"
SECRET = "sk-live-4f9a8b7c6d5e4f3a2b1c0d9e"
MAPS = [
    {
        "name": "op",
        "inputSchema": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"m": {"type": "object", "additionalProperties": {"type": "integer"}}},
        },
    }
]


def is_inert(text: str) -> bool:
    return text.isprintable() and "##vso[" not in text


class TestHostileNames:
    @pytest.mark.parametrize("args", [{CONTROL: 1}, {"m": {CONTROL: "x"}}, {"m": {"a": {CONTROL: 1}}}])
    def test_what_a_terminal_or_a_log_would_obey_is_spelled_out(
        self, args: object, caplog: pytest.LogCaptureFixture
    ) -> None:
        for mode in ("strict", "warn"):
            decision = OpenAPIDriftGuard(spec=MAPS, drift_mode=mode).evaluate(operation_id="op", args=args)
            assert is_inert(decision.detail)
            assert is_inert(str(OpenAPIDriftViolation(decision)).replace("\n", ""))
            assert not any(line.startswith("ERROR") for line in str(OpenAPIDriftViolation(decision)).splitlines())
            assert all(is_inert(one.field) for one in decision.divergences)
        [record] = caplog.records
        assert is_inert(record.getMessage())
        assert all(map(is_inert, vars(record)["divergences"]))

    @given(st.text())
    def test_names_of_any_text_do_nothing(self, name: str) -> None:
        guard = OpenAPIDriftGuard(spec=MAPS, observe=True)
        for args in ({name: 1}, {"m": {name: "x"}}):
            decision = guard.evaluate(operation_id="op", args=args)
            assert is_inert(decision.detail)
            assert all(is_inert(one.field) for one in (*decision.divergences, *decision.observations))

    @pytest.mark.parametrize("args", [{SECRET: 1}, {"m": {SECRET: "x"}}])
    def test_a_name_that_is_a_secret_is_cut_short(self, args: object, caplog: pytest.LogCaptureFixture) -> None:
        decision = OpenAPIDriftGuard(spec=MAPS, drift_mode="warn").evaluate(operation_id="op", args=args)
        [one] = decision.divergences
        assert one.pointer.endswith(SECRET)
        [record] = caplog.records
        for text in (decision.detail, one.field, record.getMessage(), repr(vars(record)["divergences"])):
            assert SECRET[:20] in text
            assert SECRET[:21] not in text

    def test_pointers_and_fields_are_bounded(self) -> None:
        rest = {"operationId": "op", "parameters": [{"name": "n", "in": "query", "schema": {"type": "integer"}}]}
        paths = {"/": {"get": rest}}
        spec = {"openapi": "3.1.0", "info": {"title": "", "version": ""}, "paths": paths}
        guards = [OpenAPIDriftGuard(spec=spec, observe=True), OpenAPIDriftGuard(spec=MAPS)]
        told = [guard.evaluate(operation_id="op", args={"x" * 100_000: 1, "n": "a"}) for guard in guards]
        for one in (one for decision in told for one in (*decision.divergences, *decision.observations)):
            assert max(len(one.pointer), len(one.field)) <= 512
        assert all(len(decision.detail) < 1_000 for decision in told)

    def test_a_hostile_operation_is_told_inertly(self, caplog: pytest.LogCaptureFixture) -> None:
        guard = OpenAPIDriftGuard(spec=[{"name": CONTROL, "inputSchema": {"required": ["a"]}}], drift_mode="warn")
        for name in (CONTROL, "##vso[task.complete]", SECRET):
            decision = guard.evaluate(operation_id=name, args={})
            assert is_inert(decision.detail)
            assert is_inert(decision.retry.replace("\n", ""))
        assert len(caplog.records) == 3
        assert all(is_inert(vars(record)["operation_id"]) for record in caplog.records)
        assert SECRET not in repr([vars(record) for record in caplog.records])


class TestGiven:
    @pytest.mark.parametrize("spec", [None, 5, "openapi.json", b"{}", object()])
    def test_what_is_no_document_is_said_at_once(self, spec: object) -> None:
        make = untyped(OpenAPIDriftGuard)
        with pytest.raises(ConfigError, match="spec is a document"):
            make(spec=spec)

    def test_it_is_said_how_a_file_or_text_is_given(self) -> None:
        make = untyped(OpenAPIDriftGuard)
        for spec in ("openapi.json", '{"openapi": "3.1.0"}'):
            with pytest.raises(ConfigError, match=r"json\.loads or yaml\.safe_load, and give a file as pathlib\.Path"):
                make(spec=spec)

    @pytest.mark.parametrize("ending", ["json", "yaml"])
    def test_a_file_is_read(self, tmp_path: Path, ending: str) -> None:
        file = tmp_path / f"users.{ending}"
        file.write_text(json.dumps(SPEC), encoding="utf-8")
        guard = OpenAPIDriftGuard(spec=file)
        assert guard.evaluate(operation_id="createUser", args=GOOD).allowed
        assert not guard.evaluate(operation_id="createUser", args=[]).allowed
        file.write_text('{"openapi": 3}', encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"users\.{ending}: "):
            OpenAPIDriftGuard(spec=file)
        with pytest.raises(ConfigError, match="gone: cannot be read"):
            OpenAPIDriftGuard(spec=tmp_path / "gone")

    def test_a_plain_schema_of_a_file_has_its_name(self, tmp_path: Path) -> None:
        file = tmp_path / "pay.json"
        file.write_text('{"type": "object", "required": ["amount"]}', encoding="utf-8")
        guard = OpenAPIDriftGuard(spec=file)
        assert guard.evaluate(operation_id="pay", args={"amount": 1}).allowed
        assert not guard.evaluate(operation_id="pay", args={}).allowed

    def test_a_model_is_the_operation_of_its_name(self) -> None:
        guard = OpenAPIDriftGuard(spec=Payment)
        assert guard.evaluate(operation_id="Payment", args={"amount": 1}).allowed
        [one] = guard.evaluate(operation_id="Payment", args={"amount": "1"}).divergences
        assert (one.field, one.expected) == ("amount", "integer")
        make = untyped(OpenAPIDriftGuard)
        with pytest.raises(ConfigError, match="give the model's class"):
            make(spec=Payment(amount=1))

    @pytest.mark.parametrize("mode", ["STRICT", "", None, 5, "deny"])
    def test_modes_are_three(self, mode: object) -> None:
        make = untyped(OpenAPIDriftGuard)
        with pytest.raises(ConfigError, match="strict, warn, shadow"):
            make(spec=SPEC, drift_mode=mode)

    def test_contracts_that_were_read_are_taken_as_they_are(self) -> None:
        contracts = read(SPEC)
        assert OpenAPIDriftGuard(spec=contracts).contracts is contracts


class TestVaccine:
    def test_positional_arguments_are_bound_by_name(self) -> None:
        @vaccinate_openapi(SPEC)("createUser")
        def create_user(email: str, age: int, nickname: str | None = None) -> tuple[str, int, str | None]:
            return email, age, nickname

        assert create_user("a@b.co", 3) == ("a@b.co", 3, None)
        assert create_user("a@b.co", age=3, nickname="x") == ("a@b.co", 3, "x")
        wrong = untyped(create_user)
        with pytest.raises(OpenAPIDriftViolation) as raised:
            wrong("a@b.co", "three")
        assert raised.value.decision.divergences[0].field == "age"

    def test_a_missing_argument_is_drift_and_no_type_error(self) -> None:
        @vaccinate_openapi(SPEC)("createUser")
        def create_user(email: str, age: int) -> None:
            raise AssertionError(email, age)

        wrong = untyped(create_user)
        with pytest.raises(OpenAPIDriftViolation, match="missing_required:age"):
            wrong(email="a@b.co")

    @pytest.mark.parametrize("mode", ["warn", "shadow"])
    def test_other_modes_let_the_function_run(self, mode: str) -> None:
        @vaccinate_openapi(SPEC, drift_mode=mode)("createUser")
        def create_user(email: str, age: object) -> object:
            return email, age

        assert create_user("a@b.co", "three") == ("a@b.co", "three")

    def test_an_async_function_is_checked_when_it_is_awaited(self) -> None:
        ran: list[object] = []

        @vaccinate_openapi(SPEC)("createUser")
        async def create_user(email: str, age: object) -> str:
            await anyio.lowlevel.checkpoint()
            ran.append(age)
            return email

        assert inspect.iscoroutinefunction(create_user)
        assert anyio.run(create_user, "a@b.co", 3) == "a@b.co"
        with pytest.raises(OpenAPIDriftViolation):
            anyio.run(create_user, "a@b.co", "three")
        assert ran == [3]

    def test_parameters_may_have_other_names(self) -> None:
        @vaccinate_openapi(SPEC)("createUser", names={"mail": "email", "years": "age"})
        def create_user(mail: str, years: int) -> str:
            return f"{mail} {years}"

        assert create_user("a@b.co", 3) == "a@b.co 3"

    def test_a_method_is_checked_without_its_object(self) -> None:
        class Users:
            @vaccinate_openapi(SPEC)("createUser")
            def create(self, email: str, age: int, **more: object) -> object:
                return email, age, more

        assert Users().create("a@b.co", 3, nickname="x") == ("a@b.co", 3, {"nickname": "x"})
        with pytest.raises(OpenAPIDriftViolation, match="unknown_field:nick"):
            Users().create("a@b.co", 3, nick="x")

    def test_an_unknown_operation_fails_at_decoration_and_names_some(self) -> None:
        with pytest.raises(ConfigError, match=r"no operation 'creatUser'.*createUser"):
            vaccinate_openapi(SPEC)("creatUser")

    def test_a_decorator_without_an_operation_says_how_to_name_it(self) -> None:
        def create_user(email: str, age: int) -> None:
            del email, age

        bare = untyped(vaccinate_openapi(SPEC))
        with pytest.raises(
            ConfigError, match=r'name the operation: .*operation_id="\.\.\."\) above create_user; it has'
        ):
            bare(create_user)
        with pytest.raises(ConfigError, match=r"name the operation: .*createUser"):
            bare(None)

    def test_arguments_without_names_fail_at_decoration(self) -> None:
        with pytest.raises(ConfigError, match=r"\*args"):

            @vaccinate_openapi(SPEC)("createUser")
            def create_user(*args: object) -> object:
                return args

    def test_the_wrapped_function_keeps_its_name_and_signature(self) -> None:
        def create_user(email: str, age: int) -> None:
            """Make one."""
            del email, age

        wrapped = vaccinate_openapi(SPEC)("createUser")(create_user)
        assert (wrapped.__name__, wrapped.__doc__) == ("create_user", "Make one.")
        assert inspect.signature(wrapped) == inspect.signature(create_user)


def test_the_preset_has_the_keys_that_its_users_know() -> None:
    assert openapi_doc_drift_guard_defaults(spec=SPEC, drift_mode="warn") == {
        "preset_id": "openapi_doc_drift_guard_2026_05_17",
        "severity": "medium",
        "default_action": "allow",
        "advisory_url": "https://arxiv.org/abs/2605.14312",
        "drift_mode": "warn",
        "spec": SPEC,
    }


WRONG: Mapping[str, object] = {"email": "a", "age": "three"}
RIGHT: Mapping[str, object] = {"email": "a", "age": 3}


def tracking(baseline: int = 100, *, observe: bool = False) -> OpenAPIDriftGuard:
    return OpenAPIDriftGuard(spec=SPEC, track=ShapeDrift(baseline=baseline), observe=observe)


def test_a_rise_is_told_once_by_the_call_that_shows_it() -> None:
    guard = tracking()
    told = [guard.evaluate(operation_id="createUser", args=WRONG if n >= 300 else RIGHT) for n in range(330)]
    [(call, shift)] = [(n, shift) for n, decision in enumerate(told) for shift in decision.shifts]
    assert call >= 300
    assert (shift.operation, shift.pointer, shift.kind, shift.since) == ("createUser", "/age", Kind.TYPE_MISMATCH, 301)
    assert not told[call].allowed
    assert told[call].observations == ()


@given(st.lists(st.booleans(), max_size=60))
def test_rates_count_every_call_also_the_valid_ones(calls: list[bool]) -> None:
    guard = tracking(baseline=60)
    for wrong in calls:
        guard.evaluate(operation_id="POST /users", args=WRONG if wrong else RIGHT)
        guard.evaluate(operation_id="unheard_of", args={})
    if not any(calls):
        assert guard.rates() == ()
        return
    [rate] = guard.rates()
    assert (rate.operation_id, rate.pointer, rate.exactly) == ("createUser", "/age", Kind.TYPE_MISMATCH)
    assert rate.kind is OpenAPIDivergenceKind.TYPE_MISMATCH
    assert (rate.before.k, rate.before.n, rate.now.n) == (sum(calls), len(calls), 0)
    low, high = rate.before.interval
    assert 0 <= low <= high <= 1


def test_what_is_only_observed_counts_where_it_is_looked_for() -> None:
    notes = {"type": "object", "properties": {"a": {"type": "string"}}}
    for observe in (True, False):
        guard = OpenAPIDriftGuard(spec=[{"name": "n", "inputSchema": notes}], track=True, observe=observe)
        assert guard.evaluate(operation_id="n", args={"b": 1}).allowed
        kinds = [(rate.pointer, rate.exactly) for rate in guard.rates()]
        assert kinds == ([("/*", Kind.UNDECLARED_FIELD)] if observe else [])


@given(st.lists(st.dictionaries(st.text(min_size=1), st.text(), min_size=1), min_size=1, max_size=5))
def test_no_name_that_a_call_made_up_is_counted(calls: list[dict[str, str]]) -> None:
    guard = OpenAPIDriftGuard(spec=MAPS, track=True, observe=True)
    for made_up in calls:
        guard.evaluate(operation_id="op", args={"m": made_up})
        guard.evaluate(operation_id="op", args={f"made up {name}": 1 for name in made_up})
    assert {rate.pointer for rate in guard.rates()} == {"/m/*", "/*"}


def test_a_guard_that_does_not_track_keeps_nothing() -> None:
    guard = OpenAPIDriftGuard(spec=SPEC)
    assert guard.evaluate(operation_id="createUser", args=WRONG).shifts == ()
    assert (guard.drift, guard.rates()) == (None, ())


def test_what_is_tracked_is_saved_and_goes_on() -> None:
    guard = tracking()
    for _ in range(50):
        guard.evaluate(operation_id="createUser", args=WRONG)
    saved = msgspec.json.encode(guard.drift)
    other = OpenAPIDriftGuard(spec=SPEC, track=msgspec.json.decode(saved, type=ShapeDrift))
    for one in (guard, other):
        one.evaluate(operation_id="createUser", args=RIGHT)
    assert guard.rates() == other.rates() != ()


def test_another_kind_of_track_is_refused() -> None:
    with pytest.raises(ConfigError, match="track is True, False or a ShapeDrift"):
        OpenAPIDriftGuard(spec=SPEC, track="yes")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - as untyped hosts do


def test_no_call_is_lost_between_threads() -> None:
    guard = tracking(baseline=10_000)

    def work() -> None:
        for _ in range(200):
            guard.evaluate(operation_id="createUser", args=WRONG)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [rate] = guard.rates()
    assert (rate.before.k, rate.before.n) == (800, 800)


@pytest.mark.parametrize(
    ("args", "mover"),
    [
        ({"a": 1}, Mover.CONTRACT),
        ({"b": 1}, Mover.BOTH),
        ({"a": 1, "b": 1}, Mover.NEITHER),
        ({}, Mover.MODEL),
        (None, Mover.MODEL),
    ],
)
def test_the_same_call_against_both_contracts_says_who_moved(args: object, mover: Mover) -> None:
    old, new = (OpenAPIDriftGuard(spec=[{"name": "n", "inputSchema": {"required": [key]}}], track=True) for key in "ab")
    assert new.attribute(operation_id="n", args=args, pinned=old) is mover
    assert new.rates() == old.rates() == ()


def test_an_operation_that_came_or_went_is_the_contracts_doing() -> None:
    old, new = (OpenAPIDriftGuard(spec=[{"name": name, "inputSchema": {}}]) for name in ("before", "after"))
    assert new.attribute(operation_id="before", pinned=old) is Mover.CONTRACT
    assert new.attribute(operation_id="after", pinned=old) is Mover.BOTH
    assert new.attribute(operation_id="neither", pinned=old) is Mover.MODEL


def test_what_has_no_schema_is_allowed_and_said_to_be_unchecked() -> None:
    guard = OpenAPIDriftGuard(spec=[{"type": "bash_20250124", "name": "bash"}])
    decision = guard.evaluate(operation_id="bash", args={"command": "ls"})
    assert decision.allowed
    assert "not checked" in decision.detail
