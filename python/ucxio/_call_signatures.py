"""The signatures of functions, from their annotations."""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

__all__ = [
    "CallContext",
    "Described",
    "describe",
    "f32",
    "i8",
    "i16",
    "i32",
    "i64",
    "u8",
    "u16",
    "u32",
    "u64",
]

_deepest = 16


@dataclasses.dataclass(frozen=True, slots=True)
class _Wire:
    """The wire type of a number."""

    word: str


i8: TypeAlias = Annotated[int, _Wire("i8")]
i16: TypeAlias = Annotated[int, _Wire("i16")]
i32: TypeAlias = Annotated[int, _Wire("i32")]
i64: TypeAlias = Annotated[int, _Wire("i64")]
u8: TypeAlias = Annotated[int, _Wire("u8")]
u16: TypeAlias = Annotated[int, _Wire("u16")]
u32: TypeAlias = Annotated[int, _Wire("u32")]
u64: TypeAlias = Annotated[int, _Wire("u64")]
f32: TypeAlias = Annotated[float, _Wire("f32")]

_scalars: dict[object, str] = {bool: "bool", int: "i64", float: "f64", str: "text", bytes: "bytes"}


@dataclasses.dataclass(frozen=True, slots=True)
class CallContext:
    """The facts of a call, for a function whose first parameter is annotated with this class.

    Attributes
    ----------
    identity : str
        The caller: ``owner``, ``token "build"``, ``user 1000`` or ``anybody``.
    """

    identity: str
    _core: Any = dataclasses.field(repr=False)

    @property
    def remaining(self) -> float | None:
        """Seconds until the caller gives up. None where it did not say so."""
        left: float | None = self._core.remaining
        return left

    @property
    def is_given_up(self) -> bool:
        """Whether the caller has given up, or has gone."""
        return bool(self._core.is_given_up)


@dataclasses.dataclass(slots=True)
class Described:
    """A signature, and what its text does not say."""

    text: str
    records: dict[str, type]
    takes_context: bool


def describe(function: Callable[..., object]) -> Described:
    """Return the signature of a function.

    Raises
    ------
    TypeError
        A parameter, or the result, has no annotation, or one without a wire type.
    """
    shown = getattr(function, "__qualname__", repr(function))
    try:
        parameters = inspect.signature(function, eval_str=True)
    except NameError as unknown:
        raise TypeError(f"an annotation of {shown} can not be read: {unknown}") from unknown
    found = Described("", {}, False)
    arguments = []
    for number, each in enumerate(parameters.parameters.values()):
        if each.kind not in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD):
            raise TypeError(f"{shown}: {each} has no place among the arguments of a call")
        if number == 0 and each.annotation is CallContext:
            found.takes_context = True
            continue
        if each.annotation is each.empty:
            raise TypeError(f"{shown}: the parameter {each.name} has no annotation")
        arguments.append(_type_of(each.annotation, f"{shown}: {each.name}", found.records, 0))
    result = parameters.return_annotation
    if result is parameters.empty:
        raise TypeError(f"{shown}: the result has no annotation; `-> None` where there is none")
    where = f"{shown}: the result"
    answer = "nil" if result in (None, type(None)) else _type_of(result, where, found.records, 0)
    found.text = f"({','.join(arguments)})->{answer}"
    return found


def _type_of(annotation: Any, where: str, records: dict[str, type], depth: int) -> str:
    if depth > _deepest:
        raise TypeError(f"{where} has types within each other that are deeper than {_deepest}")
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        words = [each.word for each in parts[1:] if isinstance(each, _Wire)]
        return words[0] if words else _type_of(parts[0], where, records, depth)

    def within(*some: Any) -> str:
        return ",".join(_type_of(each, where, records, depth + 1) for each in some)

    if origin in (Union, types.UnionType):
        others = [each for each in parts if each is not type(None)]
        if len(others) == 1 and len(others) < len(parts):
            return f"optional<{_type_of(others[0], where, records, depth)}>"
    elif origin is list:
        return f"list<{within(*parts)}>"
    elif origin is dict:
        return f"map<{within(*parts)}>"
    elif origin is tuple and parts and ... not in parts:
        return f"tuple<{within(*parts)}>"
    elif dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return _record_of(annotation, where, records, depth)
    elif isinstance(annotation, type) and annotation in _scalars:
        return _scalars[annotation]
    raise TypeError(f"{where} has no wire type: {annotation!r}")


def _record_of(kind: type, where: str, records: dict[str, type], depth: int) -> str:
    name = kind.__name__
    if records.setdefault(name, kind) is not kind:
        raise TypeError(f"{where}: two classes have the name {name}")
    hints = get_type_hints(kind, include_extras=True)
    fields = [
        f"{each.name}:{_type_of(hints[each.name], where, records, depth + 1)}"
        for each in dataclasses.fields(kind)
    ]
    if not fields:
        raise TypeError(f"{where}: {name} has no fields")
    return f"{name}{{{','.join(fields)}}}"
