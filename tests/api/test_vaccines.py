"""`vaccinate_openapi`: what is checked is what runs, of every sort of function."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from theodolite.api.payload import (
    OpenAPIDriftGuard,
    OpenAPIDriftViolation,
    ShapeDrift,
    vaccinate_openapi,
)
from theodolite.core.errors import ConfigError

FIELDS = ("a", "b", "self", "cls")
TOOL = [
    {
        "name": "op",
        "inputSchema": {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in FIELDS},
            "additionalProperties": False,
        },
    }
]
VACCINE = vaccinate_openapi(TOOL)


def untyped(call: object) -> Callable[..., object]:
    """Return a function as a caller without a type checker sees it."""
    assert callable(call)
    made: Callable[..., object] = call
    return made


def refused(call: Callable[..., object], *args: object, **kwargs: object) -> bool:
    try:
        call(*args, **kwargs)
    except OpenAPIDriftViolation:
        return True
    return False


def two(x: object, y: object) -> object:
    return x, y


def further(**more: object) -> object:
    return more


class TestObjects:
    def test_a_plain_function_has_no_object_whatever_its_parameters_are_called(self) -> None:
        @VACCINE("op")
        def f(self: object) -> object:
            return self

        @VACCINE("op")
        def g(cls: object, a: object = 0) -> object:
            return cls, a

        for call in (f, g):
            assert refused(call, "bad")
            assert not refused(call, 1)
        assert refused(g, 1, "bad")

    def test_of_a_method_the_object_is_left_out_whatever_it_is_called(self) -> None:
        class Own:
            @VACCINE("op")
            def usual(self, a: object) -> object:
                return a

            @VACCINE("op")
            def unusual(this, a: object) -> object:  # noqa: N805 - some do
                return a

        class Heir(Own):
            def usual(self, a: object) -> object:
                return super().usual(a)

        for owner in (Own(), Heir()):
            for call in (owner.usual, owner.unusual):
                assert call(1) == 1
                assert refused(call, "bad")
        assert Own.usual(Own(), 1) == 1
        assert refused(Own.usual, Own(), "bad")

    def test_a_function_that_is_put_into_a_class_later_is_a_method_of_it(self) -> None:
        @VACCINE("op")
        def f(self: object, a: object) -> object:
            return self, a

        own: object = type("Own", (), {"f": f})()
        method = untyped(getattr(own, "f"))  # noqa: B009 - a checker does not know it
        assert not refused(method, 1)
        assert refused(method, "bad")
        assert refused(f, "bad", 1)

    def test_class_methods_and_static_ones_are_taken_in_either_order(self) -> None:
        class Own:
            @VACCINE("op")
            @classmethod
            def inner_class(cls, a: object) -> object:
                return cls, a

            @classmethod
            @VACCINE("op")
            def outer_class(cls, a: object) -> object:
                return cls, a

            @VACCINE("op")
            @staticmethod
            def inner_static(a: object) -> object:
                return a

            @staticmethod
            @VACCINE("op")
            def outer_static(a: object) -> object:
                return a

            @staticmethod
            @VACCINE("op")
            def named_so(self: object) -> object:  # noqa: PLW0211 # pyright: ignore[reportSelfClsParameterName] - as it may be
                return self

        for owner in (Own, Own()):
            of_class: list[Callable[..., object]] = [untyped(owner.inner_class), untyped(owner.outer_class)]
            for call in of_class:
                assert call(1) == (Own, 1)
                assert refused(call, "bad")
            for call in (untyped(owner.inner_static), untyped(owner.outer_static), untyped(owner.named_so)):
                assert call(1) == 1
                assert refused(call, "bad")
                assert refused(call, Own())

    @pytest.mark.parametrize("sort", [property(), 5, "f", None])
    def test_what_is_no_function_is_refused_with_what_to_do(self, sort: object) -> None:
        with pytest.raises(ConfigError, match="right above a def"):
            untyped(VACCINE("op"))(sort)


class TestNames:
    def test_two_arguments_of_one_name_are_drift(self) -> None:
        ran: list[object] = []

        @VACCINE("op")
        def f(a: object, /, **more: object) -> None:
            ran.append((a, more))

        for first, second in ((1, 1), ("bad", 1), (1, "bad")):
            with pytest.raises(OpenAPIDriftViolation, match="unknown_field:a") as raised:
                f(first, a=second)
            assert raised.value.decision.repair is None
        assert ran == []

        @vaccinate_openapi(TOOL, drift_mode="shadow")("op")
        def g(a: object, /, **more: object) -> None:
            ran.append((a, more))

        g("bad", a=1)
        assert ran == [("bad", {"a": 1})]

    def test_names_count_within_further_arguments_too(self) -> None:
        @VACCINE("op", names={"x": "a"})
        def f(**more: object) -> object:
            return more

        assert f(x=1) == {"x": 1}
        assert refused(f, x="bad")
        assert refused(f, x=1, a=1)
        assert not refused(f, x=1, b=1)

    def test_two_names_for_one_are_refused_where_the_decorator_is_made(self) -> None:
        both = {"x": "a", "y": "a"}
        functions: list[Callable[..., object]] = [two, further]
        for function in functions:
            with pytest.raises(ConfigError, match="'x' and 'y' would both be 'a'"):
                VACCINE("op", names=both)(function)
        with pytest.raises(ConfigError, match="'x' and 'y' would both be 'x'"):
            VACCINE("op", names={"y": "x"})(two)

    def test_names_may_be_swapped(self) -> None:
        @VACCINE("op", names={"a": "b", "b": "a"})
        def f(a: object, b: object) -> object:
            return a, b

        assert f(1, 2) == (1, 2)

    def test_a_name_that_is_no_parameter_is_refused_where_the_decorator_is_made(self) -> None:
        with pytest.raises(ConfigError, match="no parameter 'aa': it has x, y"):
            VACCINE("op", names={"aa": "a"})(two)

    @pytest.mark.parametrize("names", [5, [("x", "a")], {"x": 5}, {5: "a"}])
    def test_names_are_a_mapping_of_text(self, names: object) -> None:
        with pytest.raises(ConfigError, match="names"):
            untyped(untyped(VACCINE)("op", names=names))(two)

    @given(
        st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(["x", "y", "a", "b"])),
        st.dictionaries(st.sampled_from([*FIELDS, "x", "y"]), st.integers() | st.text()),
        st.lists(st.integers() | st.text(), max_size=1),
    )
    def test_what_runs_is_what_was_checked(
        self, turned: Mapping[str, str], more: Mapping[str, object], first: list[object]
    ) -> None:
        ran: list[object] = []

        def f(a: object = 0, /, **kwargs: object) -> None:
            ran.extend([a, *kwargs.values()])

        names = {python: name for name, python in turned.items()}
        try:
            guarded = VACCINE("op", names=names)(f)
        except ConfigError:
            return
        if not refused(guarded, *first, **more):
            assert not any(isinstance(value, str) for value in ran)


class TestSorts:
    def test_an_asynchronous_generator_stays_one(self) -> None:
        heard: list[object] = []

        @VACCINE("op")
        async def f(a: object) -> AsyncGenerator[object, object]:
            try:
                heard.append((yield a))
                yield 2
            except KeyError as error:
                yield error
            finally:
                heard.append("closed")

        assert inspect.isasyncgenfunction(f)

        async def work() -> None:
            assert [item async for item in f(1)] == [1, 2]
            spoken = f(1)
            assert [await anext(spoken), await spoken.asend("heard")] == [1, 2]
            await spoken.aclose()
            thrown = f(1)
            await anext(thrown)
            assert isinstance(await thrown.athrow(KeyError()), KeyError)
            await thrown.aclose()
            with pytest.raises(OpenAPIDriftViolation):
                await anext(f("bad"))

        anyio.run(work)
        assert heard == [None, "closed", "heard", "closed", "closed"]

    def test_a_generator_stays_one(self) -> None:
        @VACCINE("op")
        def f(a: object) -> Generator[object, object, object]:
            heard = yield a
            return heard

        assert inspect.isgeneratorfunction(f)
        made = f(1)
        assert next(made) == 1
        with pytest.raises(StopIteration) as raised:
            made.send("heard")
        assert raised.value.value == "heard"
        with pytest.raises(OpenAPIDriftViolation):
            next(f("bad"))


class TestReady:
    def test_a_ready_guard_is_taken_with_all_that_it_does(self) -> None:
        guard = OpenAPIDriftGuard(spec=TOOL, drift_mode="shadow", track=ShapeDrift())

        @vaccinate_openapi(guard=guard)("op")
        def f(a: object) -> object:
            return a

        assert f("bad") == "bad"
        [rate] = guard.rates()
        assert (rate.pointer, rate.before.k) == ("/a", 1)

    def test_a_guard_or_a_spec_is_given_and_not_both(self) -> None:
        guard = OpenAPIDriftGuard(spec=TOOL)
        make = untyped(vaccinate_openapi)
        with pytest.raises(ConfigError, match="a ready guard has its spec"):
            make(spec=TOOL, guard=guard)
        with pytest.raises(ConfigError, match="a ready guard has its spec"):
            make(guard=guard, drift_mode="warn")
        with pytest.raises(ConfigError, match="give a spec, or a ready guard"):
            make()
