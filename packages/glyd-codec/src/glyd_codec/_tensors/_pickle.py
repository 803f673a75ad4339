# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Pickles of PyTorch files, read without running anything.

Opcodes are taken apart by the standard library; what they say is done on a stack of
plain values. A function that is to be called is looked up in a table of few names that
stand for tensors and containers; of any other only the name is kept, and an object
of it is an `Unknown`. So nothing is imported, nothing is called, and nothing grows
beyond what the pickle has bytes for.
"""

from __future__ import annotations

import math
import pickletools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from glyd_codec._errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable

_DIMS_MAX = 64
_WRAPPERS_MAX = 8  # of a tensor: subclass, parameter, …
_SIZE_MAX = 1 << 62


@dataclass(frozen=True, slots=True)
class Global:
    """A name that the pickle asks for, such as a class."""

    module: str
    name: str


@dataclass(frozen=True, slots=True)
class Storage:
    """Numbers in a file of their own: the name of that file, of their type, and how many there are."""

    key: str
    type_name: str
    n: int


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A view of a storage. Offset and strides count elements; type_name is that of the storage unless it is set."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type_name: str

    @property
    def is_contiguous(self) -> bool:
        """Whether its elements lie one after the other, in order."""
        expected = 1
        for n, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if n != 1 and stride != expected:
                return 0 in self.shape
            expected *= n
        return True

    @property
    def span(self) -> int:
        """Elements from the first to the last one."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))


@dataclass(slots=True, eq=False)
class Unknown:
    """An object of a class that is not known here, and what was put into it."""

    what: Any
    items: dict[Any, Any] = field(default_factory=dict)
    elements: list[Any] = field(default_factory=list)
    state: Any = None


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _SIZE_MAX


def _tensor(storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any, dtype: Any = None) -> StoredTensor:  # noqa: ARG001 - flags, hooks
    sizes = (*shape, *strides) if isinstance(shape, tuple) and isinstance(strides, tuple) else (-1,)
    if not isinstance(storage, Storage) or not all(map(_is_size, (offset, *sizes))):
        raise ValueError("a tensor without storage, shape or strides")
    if len(shape) != len(strides) or len(shape) > _DIMS_MAX or math.prod(n for n in shape if n) > _SIZE_MAX:
        raise ValueError(f"a tensor of shape {shape[:_DIMS_MAX]} and strides {strides[:_DIMS_MAX]}")
    named = dtype.name if isinstance(dtype, Global) and dtype.module == "torch" else storage.type_name
    return StoredTensor(storage, offset, shape, strides, named)


def _tensor_of_dtype(
    storage: Any, offset: Any, shape: Any, strides: Any, grad: Any, hooks: Any, dtype: Any, *rest: Any
) -> StoredTensor:
    return _tensor(storage, offset, shape, strides, grad, hooks, *rest, dtype=dtype)


def _ordered(pairs: Any = ()) -> dict[Any, Any]:
    return {_key(k): v for k, v in pairs}


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): _ordered,
    ("torch", "Size"): lambda sizes=(): tuple(sizes),
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_tensor_v3"): _tensor_of_dtype,
    ("torch._utils", "_rebuild_parameter"): lambda data, *rest: data,  # noqa: ARG005
    ("torch._utils", "_rebuild_parameter_with_state"): lambda data, *rest: data,  # noqa: ARG005
}
_OF_A_TYPE = {("torch._tensor", "_rebuild_from_type_v2"), ("torch._tensor", "_rebuild_from_type")}


def _reduce(function: Any, args: Any) -> Any:
    """Return what a call gives, if it is one of those known here."""
    if not isinstance(args, tuple):
        raise ValueError("a call without arguments")  # noqa: TRY004 - a fault of the file
    for _ in range(_WRAPPERS_MAX):
        if not isinstance(function, Global):
            return Unknown(function)
        name = (function.module, function.name)
        if name in _OF_A_TYPE and len(args) >= 3 and isinstance(args[2], tuple):
            function, args = args[0], args[2]
        else:
            known = _KNOWN.get(name)
            return known(*args) if known else Unknown(function)
    raise ValueError(f"a tensor wrapped more than {_WRAPPERS_MAX} times")


def _key(value: Any) -> Any:
    """Return a key of a dictionary, as it is if it is simple: tuples can be too deep to be hashed."""
    if value is None or isinstance(value, (str, int, float, bytes)):
        return value
    return Unknown(value)


class _Machine:
    """The stack of one pickle."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []  # what was on the stack when a mark was set
        self.memo: dict[int, Any] = {}

    def pop_mark(self) -> list[Any]:
        items = self.stack
        self.stack = self.marks.pop()
        return items

    def run(self, data: bytes) -> Any:
        arg: Any
        for opcode, arg, _ in pickletools.genops(data):
            name = opcode.name
            if name == "STOP":
                return self.stack[-1]
            if name in _CONSTANTS:
                self.stack.append(arg)
            elif name in _PUTS:
                self.memo[len(self.memo) if arg is None else arg] = self.stack[-1]
            elif name in _GETS:
                self.stack.append(self.memo[arg])
            else:
                step = getattr(self, f"_{name.lower()}", None)
                if step is None:
                    raise ValueError(f"the opcode {name}, which has no place in such a file")
                step(arg)
        raise ValueError("it does not end")

    def _nothing(self, arg: Any) -> None:
        pass

    _proto = _frame = _nothing

    def _mark(self, arg: Any) -> None:  # noqa: ARG002
        self.marks.append(self.stack)
        self.stack = []

    def _pop(self, arg: Any) -> None:  # noqa: ARG002
        if self.stack:
            self.stack.pop()
        else:
            self.pop_mark()

    def _pop_mark(self, arg: Any) -> None:  # noqa: ARG002
        self.pop_mark()

    def _dup(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.append(self.stack[-1])

    def _none(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.append(None)

    def _newtrue(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.append(True)

    def _newfalse(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.append(False)

    def _empty_list(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.append([])

    _empty_set = _empty_list

    def _empty_tuple(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.append(())

    def _empty_dict(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.append({})

    def _list(self, arg: Any) -> None:  # noqa: ARG002
        items = self.pop_mark()
        self.stack.append(items)

    _frozenset = _list

    def _tuple(self, arg: Any) -> None:  # noqa: ARG002
        items = self.pop_mark()
        self.stack.append(tuple(items))

    def _last(self, n: int) -> None:
        items = tuple(self.stack[-n:])
        if len(items) < n:
            raise ValueError("too few values for a tuple")
        self.stack[-n:] = [items]

    def _tuple1(self, arg: Any) -> None:  # noqa: ARG002
        self._last(1)

    def _tuple2(self, arg: Any) -> None:  # noqa: ARG002
        self._last(2)

    def _tuple3(self, arg: Any) -> None:  # noqa: ARG002
        self._last(3)

    def _dict(self, arg: Any) -> None:  # noqa: ARG002
        items = self.pop_mark()
        self.stack.append({})
        self._put_items(items)

    def _put_items(self, items: list[Any]) -> None:
        target = self.stack[-1]
        into = target.items if isinstance(target, Unknown) else target
        if not isinstance(into, dict) or len(items) % 2:
            raise ValueError("keys and values for something that takes none")
        for key, value in zip(items[::2], items[1::2], strict=True):
            into[_key(key)] = value

    def _setitem(self, arg: Any) -> None:  # noqa: ARG002
        value, key = self.stack.pop(), self.stack.pop()
        self._put_items([key, value])

    def _setitems(self, arg: Any) -> None:  # noqa: ARG002
        self._put_items(self.pop_mark())

    def _put_elements(self, items: list[Any]) -> None:
        target = self.stack[-1]
        into = target.elements if isinstance(target, Unknown) else target
        if not isinstance(into, list):
            raise ValueError("elements for something that takes none")  # noqa: TRY004 - a fault of the file
        into.extend(items)

    def _append(self, arg: Any) -> None:  # noqa: ARG002
        value = self.stack.pop()
        self._put_elements([value])

    def _appends(self, arg: Any) -> None:  # noqa: ARG002
        self._put_elements(self.pop_mark())

    _additems = _appends

    def _global(self, arg: str) -> None:
        module, _, name = arg.partition(" ")
        self.stack.append(Global(module, name))

    def _stack_global(self, arg: Any) -> None:  # noqa: ARG002
        name, module = self.stack.pop(), self.stack.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise ValueError("a name that is no text")  # noqa: TRY004 - a fault of the file
        self.stack.append(Global(module, name))

    def _reduce(self, arg: Any) -> None:  # noqa: ARG002
        args, function = self.stack.pop(), self.stack.pop()
        self.stack.append(_reduce(function, args))

    def _newobj(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.pop()
        self.stack.append(Unknown(self.stack.pop()))

    def _newobj_ex(self, arg: Any) -> None:
        self.stack.pop()
        self._newobj(arg)

    def _obj(self, arg: Any) -> None:  # noqa: ARG002
        self.stack.append(Unknown(self.pop_mark()[0]))

    _inst = _obj

    def _build(self, arg: Any) -> None:  # noqa: ARG002
        state = self.stack.pop()
        if isinstance(self.stack[-1], Unknown):
            self.stack[-1].state = state

    def _binpersid(self, arg: Any) -> None:  # noqa: ARG002
        kind, storage_type, key, _, n = self.stack.pop()
        if kind != "storage" or not isinstance(storage_type, Global) or not isinstance(key, str) or not _is_size(n):
            raise ValueError("a reference that is no storage")
        self.stack.append(Storage(key, storage_type.name, n))


_CONSTANTS = {
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
}  # fmt: skip
_PUTS = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
_GETS = {"GET", "BINGET", "LONG_BINGET"}


def read_pickle(data: bytes, name: str) -> Any:
    """Return what a pickle of a PyTorch file holds, as plain values.

    Parameters
    ----------
    data
        The pickle.
    name
        Of the file, for messages.

    Returns
    -------
    object
        Numbers, texts, lists, tuples, dictionaries, `StoredTensor` and `Unknown`.

    Raises
    ------
    FormatError
        It is damaged, or asks for something that no such file needs.
    """
    try:
        return _Machine().run(data)
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, Warning) as error:
        raise FormatError(f"{name}: its pickle cannot be read: {error}") from None
