"""What a function was called with, by the names of a contract, before it runs: what is checked is what runs."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from functools import wraps
from types import TracebackType
from typing import ParamSpec, Protocol, TypeVar
from weakref import WeakKeyDictionary

from theodolite.core.arguments import is_mapping
from theodolite.core.errors import ConfigError
from theodolite.core.text import brief

__all__ = ("Check", "checked_before")

P = ParamSpec("P")
T = TypeVar("T")

_BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Check(Protocol):
    """Looks at the arguments of a call before it runs, and raises where it must not."""

    def __call__(self, given: Mapping[str, object], twice: tuple[str, ...]) -> None:
        """Take the arguments by the names of the contract, and the names that two of them would have."""
        ...


def checked_before(function: Callable[P, T], names: Mapping[str, str] | None, check: Check) -> Callable[P, T]:
    """Return a function that looks at its arguments before it runs; it is of the same sort, name and signature.

    `names` leads from a Python name to that of the contract, within `**kwargs` too. What Python itself binds is no
    argument: the object of a method, the class of a class method. A coroutine is checked when it is awaited, a
    generator when it is first asked.

    Raises ConfigError for what is no function, for one with `*args`, which have no names, and for `names` that name no
    parameter, or that give two of them one name.
    """
    wrapped: object = function
    if not isinstance(wrapped, classmethod | staticmethod):
        return _guarded(function, _Binding(function, names), check)
    inner: Callable[P, T] = getattr(function, "__func__")  # noqa: B009 - neither sort of method has a type that fits
    of_class = isinstance(wrapped, classmethod)
    made = _guarded(inner, _Binding(inner, names, takes_class=of_class), check)
    # No type says that Python calls the two by what is inside.
    if of_class:
        return classmethod(made)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportReturnType, reportUnknownVariableType]
    return staticmethod(made)


class _Binding:
    """Binds the arguments of calls of one function to the names of a contract."""

    def __init__(
        self, function: Callable[..., object], names: Mapping[str, str] | None, *, takes_class: bool = False
    ) -> None:
        self._signature = _signature(function)
        self._names = _texts(names)
        parameters = self._signature.parameters.values()
        self._positional = [one.name for one in parameters if one.kind in _BY_PLACE]
        self._keywords = {one.name for one in parameters if one.kind in _BY_NAME}
        self._open = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters)
        self._takes_class = takes_class
        self._of_class = _owner(function)
        self._name = str(getattr(function, "__name__", ""))
        self._receives: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
        self.made: object = None
        self._refuse(function)

    def _refuse(self, function: Callable[..., object]) -> None:
        parameters = self._signature.parameters.values()
        if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in parameters):
            raise ConfigError(f"{_called(function)} takes *args, which have no names: give its parameters names")
        own = [one.name for one in parameters if one.kind in {*_BY_PLACE, *_BY_NAME}]
        if not self._open:
            for name in self._names.keys() - {*own}:
                raise ConfigError(
                    f"names: {_called(function)} has no parameter {brief(name)}: it has {', '.join(own) or 'none'}"
                )
        taken: dict[str, str] = {}
        for name in dict.fromkeys((*own, *self._names)):
            other = taken.setdefault(self._names.get(name, name), name)
            if other != name:
                raise ConfigError(
                    f"names: {brief(other)} and {brief(name)} would both be {brief(self._names.get(name, name))} of "
                    "the contract, and one of them would not be checked: give each a name of its own"
                )

    def given(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> tuple[dict[str, object], tuple[str, ...]]:
        """Return what was given, by the names of the contract, and the names that were given twice."""
        skipped = 1 if args and (self._takes_class or self._receiver(args[0])) else 0
        pairs = [*zip(self._positional, args, strict=False), *kwargs.items()][skipped:]
        if len(args) > len(self._positional) or not (self._open or kwargs.keys() <= self._keywords):
            self._signature.bind_partial(*args, **kwargs)  # which says what is wrong with the call, as Python does
        found: dict[str, object] = {}
        twice: dict[str, None] = {}
        for name, value in pairs:
            known = self._names.get(name, name)
            if known in found:
                twice[known] = None
            found[known] = value
        return found, tuple(twice)

    def _receiver(self, first: object) -> bool:
        """Whether the first argument is the object, or the class, that a method was called on.

        That is so if the function stands in a class of it and is no static method there. Its name says nothing: plain
        functions have parameters called `self`, too.
        """
        kind = first if isinstance(first, type) else type(first)
        known = self._receives.get(kind)
        if known is None:
            known = self._receives[kind] = any(map(self._stands_in, kind.__mro__))
        return known

    def _stands_in(self, kind: type) -> bool:
        if (kind.__module__, kind.__qualname__) == self._of_class:
            return not isinstance(vars(kind).get(self._name), staticmethod)
        # A function that was put into a class later.
        return any(one is self.made for one in vars(kind).values())


def _signature(function: Callable[..., object]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"{_called(function)} is no function whose parameters can be read: put the decorator right above a def"
        ) from error


def _texts(names: object) -> dict[str, str]:
    if names is None:
        return {}
    if not is_mapping(names):
        raise ConfigError(f"names leads from a Python name to that of the contract, and is no {type(names).__name__}")
    found = {key: value for key, value in names.items() if isinstance(key, str) and isinstance(value, str)}
    if len(found) < len(names):
        raise ConfigError('names leads from text to text: names={"kind": "type"}')
    return found


def _owner(function: Callable[..., object]) -> tuple[str, str]:
    """Return the module and the name of the class that a function was written in, none for one outside of any."""
    qualified = str(getattr(function, "__qualname__", ""))
    owner = qualified.rpartition(".")[0]
    return ("", "") if owner.endswith("<locals>") or not owner else (str(getattr(function, "__module__", "")), owner)


def _called(function: object) -> str:
    name: object = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__name__


def _guarded(function: Callable[P, T], binding: _Binding, check: Check) -> Callable[P, T]:
    """Return a function of the same sort that is checked before it runs."""

    def look(args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        check(*binding.given(args, kwargs))

    made: object
    if inspect.iscoroutinefunction(function):
        made = _awaited(function, look)
    elif inspect.isasyncgenfunction(function):
        made = _streamed(function, look)
    elif inspect.isgeneratorfunction(function):
        made = _yielded(function, look)
    else:
        made = _called_at_once(function, look)
    binding.made = made
    # The T of a coroutine function is its coroutine, that of a generator function its generator, which no type says.
    return made  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


_Look = Callable[[tuple[object, ...], Mapping[str, object]], None]


def _called_at_once(function: Callable[P, T], look: _Look) -> Callable[P, T]:
    @wraps(function)
    def now(*args: P.args, **kwargs: P.kwargs) -> T:
        look(args, kwargs)
        return function(*args, **kwargs)

    return now


def _awaited(function: Callable[P, Awaitable[object]], look: _Look) -> Callable[P, Awaitable[object]]:
    @wraps(function)
    async def later(*args: P.args, **kwargs: P.kwargs) -> object:
        look(args, kwargs)
        return await function(*args, **kwargs)

    return later


def _yielded(
    function: Callable[P, Generator[object, object, object]], look: _Look
) -> Callable[P, Generator[object, object, object]]:
    @wraps(function)
    def yielded(*args: P.args, **kwargs: P.kwargs) -> Generator[object, object, object]:
        look(args, kwargs)
        return (yield from function(*args, **kwargs))

    return yielded


class _Thrown:
    """Holds what is thrown into a generator, whatever it is: it is meant for what runs inside, and raised there."""

    error: BaseException | None = None

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> bool:
        """Take it, but for the end of the generator."""
        if isinstance(error, GeneratorExit):
            return False
        self.error = error
        return True


def _streamed(
    function: Callable[P, AsyncGenerator[object, object]], look: _Look
) -> Callable[P, AsyncGenerator[object, object]]:
    @wraps(function)
    async def streamed(*args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[object, object]:
        look(args, kwargs)
        inner = function(*args, **kwargs)
        try:  # what `yield from` is to other generators: asynchronous ones have none (PEP 525)
            item = await anext(inner)
            while True:
                thrown = _Thrown()
                sent: object = None
                with thrown:
                    sent = yield item
                item = await (inner.asend(sent) if thrown.error is None else inner.athrow(thrown.error))
        except StopAsyncIteration:
            return
        finally:
            await inner.aclose()

    return streamed
