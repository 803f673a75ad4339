# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Dictionaries: what small content of one kind has in common, learned once."""

from __future__ import annotations

import operator
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from glyd_codec._buffers import BytesOut, borrow, scratch, to_bytes
from glyd_codec._errors import ParameterError, limit_error, status_error, truncated
from glyd_codec._native import ffi, lib
from glyd_codec._params import native_limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from _typeshed import ReadableBuffer

    from glyd_codec._limits import Limits

DICTIONARY_SIZE_MIN: int = lib.GLYD_DICTIONARY_SIZE_MIN
DICTIONARY_SIZE_MAX: int = lib.GLYD_DICTIONARY_SIZE_MAX
OBJECT_SIZE_MAX: int = lib.GLYD_OBJECT_MAX
_SAMPLES_MAX = 1 << 30  # bytes of samples in memory
_FORMS = ("raw", "compact", "blocks")


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What an object says of itself.

    Attributes
    ----------
    dictionary_id
        `Dictionary.id` of the dictionary that it was stored with.
    content_nbytes
        Bytes of content.
    stored_nbytes
        Bytes of the object, with its header.
    form
        "raw", "compact" or "blocks"; raw ones need no dictionary.
    check_nbytes
        Bytes of checksum: 0, 2 or 4.
    """

    dictionary_id: int
    content_nbytes: int
    stored_nbytes: int
    form: str
    check_nbytes: int


class Dictionary:
    """What small pieces of content of one kind have in common: messages, rows, JSON documents.

    A dictionary stores each piece by itself, as an *object*: far smaller than a frame,
    readable with this dictionary alone. Train one with `train_dictionary`, keep its `data`
    (every object needs it), and use it for content that resembles the samples.

    Parameters
    ----------
    data
        The bytes of a trained dictionary; copied.

    Raises
    ------
    FormatError
        When data is no dictionary, or is damaged.
    TypeError, BufferError
        When data is no C-contiguous buffer.
    MemoryError
        When there is not enough memory: a dictionary takes its size and about 200 KB.

    Notes
    -----
    Threads may share an object and use it at the same time.

    Examples
    --------
    >>> dictionary = train_dictionary(b'{"id": %d, "name": "user %d"}' % (i, i) for i in range(1000))
    >>> packed = dictionary.compress(b'{"id": 4711, "name": "user 4711"}')
    >>> dictionary.decompress(packed)
    b'{"id": 4711, "name": "user 4711"}'
    """

    def __init__(self, data: ReadableBuffer) -> None:
        self._data = bytes(data)
        holder = ffi.new("glyd_dictionary **")
        src = borrow(self._data)
        status = lib.glyd_dictionary_create(holder, src, len(src), ffi.NULL)
        if status != lib.GLYD_OK:
            raise status_error(status)
        self._native: Any = ffi.gc(holder[0], lib.glyd_dictionary_free)
        self._lock = threading.Lock()
        self._is_indexed = False
        self._local = threading.local()

    @property
    def data(self) -> bytes:
        """The dictionary as bytes, to be stored."""
        return self._data

    @property
    def id(self) -> int:
        """Number below 2^32 that names the dictionary in its objects: a hash of its bytes."""
        return int(lib.glyd_dictionary_id(self._native))

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return len(self._data)

    def __repr__(self) -> str:
        """Return the id and the size."""
        return f"Dictionary(id={self.id:#010x}, nbytes={self.nbytes})"

    def __reduce__(self) -> tuple[type[Dictionary], tuple[bytes]]:
        """Pickle the bytes."""
        return Dictionary, (self._data,)

    def compress(self, data: ReadableBuffer, *, checksum: bool = True) -> bytes:
        """Store content as an object.

        Parameters
        ----------
        data
            Any C-contiguous buffer of at most 16 MiB. Up to some 100 KiB a dictionary gains
            something; larger content is better off in a frame (`compress` with ``dictionary``).
        checksum
            Store a checksum of 4 bytes.

        Returns
        -------
        bytes
            The object, at most 19 bytes larger than data. The same on every machine.

        Raises
        ------
        ParameterError
            For data beyond 16 MiB.
        TypeError, BufferError
            For data that is no C-contiguous buffer.
        MemoryError
            When there is not enough memory.
        """
        encoder = self._encoder(check_size=4 if checksum else 0)
        src = borrow(data)
        try:
            size = len(src)
            if size > OBJECT_SIZE_MAX:
                raise ParameterError(
                    f"an object holds at most {OBJECT_SIZE_MAX} bytes, not {size}: use glyd.compress",
                    expected=OBJECT_SIZE_MAX,
                    found=size,
                )
            cap = int(lib.glyd_object_bound(size))
            out = scratch(cap)
            out_len = ffi.new("size_t *")
            status = lib.glyd_object_compress(encoder, out, cap, src, size, out_len)
            if status != lib.GLYD_OK:
                raise status_error(status)
            return to_bytes(out, out_len[0])
        finally:
            ffi.release(src)

    def decompress(self, data: ReadableBuffer, *, max_size: int | None = None, limits: Limits | None = None) -> bytes:
        """Return the content of all objects in data, one after the other.

        Parameters
        ----------
        data
            One or more whole objects and nothing else, in any C-contiguous buffer.
        max_size
            Bytes that the content may have; None: no limit but that of objects, 16 MiB each.
        limits
            Further limits; ``max_size`` goes before its ``max_output``.

        Returns
        -------
        bytes
            The content.

        Raises
        ------
        TruncatedError
            When data ends within an object, or is empty.
        FormatError, CorruptDataError, ChecksumError, UnsupportedVersionError
            When data is not what this version can read.
        WrongBaseError
            When an object was stored with another dictionary.
        LimitError
            When the content exceeds a limit.
        MemoryError
            When there is not enough memory.
        """
        native = native_limits(limits)
        most = max_size if max_size is not None else limits.max_output if limits is not None else None
        name = "max_size" if max_size is not None else "max_output"
        if native:
            native.max_output = 0  # counted here, over all objects
        src = borrow(data)
        try:
            sizes = _sizes(src)
            total = sum(size for _, size in sizes)
            if most is not None and total > operator.index(most):
                raise limit_error(name, most, total)
            out = BytesOut(total)
            error = ffi.new("glyd_error *")
            lengths = ffi.new("size_t[2]")
            done = 0
            for at, size in sizes:
                status = lib.glyd_object_decompress(
                    out.memory + done,
                    size,
                    src + at,
                    len(src) - at,
                    self._native,
                    native,
                    ffi.NULL,
                    lengths,
                    lengths + 1,
                    error,
                )
                if status != lib.GLYD_OK:
                    raise status_error(status, error, shift=at)
                done += size
            return out.take()
        finally:
            ffi.release(src)

    def native(self) -> Any:
        """Return the ``glyd_dictionary *``, which lives as long as this handle does."""
        return self._native

    def _encoder(self, check_size: int) -> Any:
        """Return this thread's encoder for a size of checks."""
        encoders: dict[str, Any] = self._local.__dict__
        encoder = encoders.get(str(check_size))
        if encoder is None:
            with self._lock:
                if not self._is_indexed:
                    status = lib.glyd_dictionary_index(self._native)
                    if status != lib.GLYD_OK:
                        raise status_error(status)
                    self._is_indexed = True
            holder = ffi.new("glyd_object_encoder **")
            status = lib.glyd_object_encoder_create(holder, self._native, check_size, ffi.NULL)
            if status != lib.GLYD_OK:
                raise status_error(status)
            dictionary = self._native

            def free(native: Any, dictionary: Any = dictionary) -> None:  # noqa: ARG001 - which must live as long
                lib.glyd_object_encoder_free(native)

            encoder = ffi.gc(holder[0], free)
            encoders[str(check_size)] = encoder
        return encoder


def _sizes(src: Any) -> list[tuple[int, int]]:
    """Return offset and content size of every object."""
    info = ffi.new("glyd_object_info *")
    sizes = []
    at = 0
    while at < len(src) or at == 0:
        _read_header(src, at, info)
        sizes.append((at, int(info.content_size)))
        at += int(info.header_size) + int(info.payload_size)
    return sizes


def _read_header(src: Any, at: int, info: Any) -> None:
    if len(src) == 0:
        raise truncated(0, "the first object: 0 bytes are no object")
    status = lib.glyd_object_read_header(src + at, len(src) - at, info)
    if status == lib.GLYD_E_TRUNCATED:
        raise truncated(len(src), f"the object that starts at byte {at}")
    if status != lib.GLYD_OK:
        error = ffi.new("glyd_error *")
        error.found = int.from_bytes(bytes(ffi.buffer(src + at, min(2, len(src) - at))), "little")
        error.expected = lib.GLYD_OBJECT_MAGIC if status == lib.GLYD_E_MAGIC else error.found
        raise status_error(lib.GLYD_E_TRAILING if status == lib.GLYD_E_MAGIC and at else status, error, shift=at)


def read_object_info(data: ReadableBuffer) -> ObjectInfo:
    """Return what the object at the start of data says of itself, without decoding it.

    Parameters
    ----------
    data
        A whole object, and perhaps more behind it, in any C-contiguous buffer.

    Returns
    -------
    ObjectInfo
        The dictionary it needs, its sizes, its form.

    Raises
    ------
    TruncatedError
        When data ends within the object, or is empty.
    FormatError, UnsupportedVersionError
        When no object starts there, or one that this version cannot read.
    TypeError, BufferError
        When data is no C-contiguous buffer.
    """
    info = ffi.new("glyd_object_info *")
    src = borrow(data)
    try:
        _read_header(src, 0, info)
    finally:
        ffi.release(src)
    return ObjectInfo(
        dictionary_id=int(info.dictionary_id),
        content_nbytes=int(info.content_size),
        stored_nbytes=int(info.header_size) + int(info.payload_size),
        form=_FORMS[info.form],
        check_nbytes=int(info.check_size),
    )


def train_dictionary(samples: Iterable[ReadableBuffer], *, size: int = lib.GLYD_DICTIONARY_SIZE_DEFAULT) -> Dictionary:
    """Learn a dictionary from samples of the content that it is for.

    Parameters
    ----------
    samples
        Pieces of content as they will be stored: some hundred at least, and some 100 times
        the dictionary's size in all, if there are so many. Any will do: with nothing to learn
        (no samples, empty ones, noise) the dictionary is small and of little use.
        At most 1 GiB; of very many an even share is looked at.
    size
        Bytes that the dictionary may have, 2 KiB to 1 MiB.

    Returns
    -------
    Dictionary
        The same for the same samples, on every machine.

    Raises
    ------
    ParameterError
        For a size or samples outside these ranges.
    TypeError, BufferError
        When a sample is no C-contiguous buffer.
    MemoryError
        When there is not enough memory: the samples and about 20 MB.

    Notes
    -----
    The GIL is released. Takes a second or two for some MB of samples. Segments of samples are
    chosen that cover the strings found in most samples, after Liao, Petri, Moffat and Wirth,
    "Effective construction of relative Lempel-Ziv dictionaries", WWW 2016.
    """
    most = operator.index(size)
    if not DICTIONARY_SIZE_MIN <= most <= DICTIONARY_SIZE_MAX:
        raise ParameterError(
            f"size must be {DICTIONARY_SIZE_MIN} … {DICTIONARY_SIZE_MAX} bytes, not {most}", found=most
        )
    if isinstance(samples, (str, bytes, bytearray, memoryview)):
        raise TypeError(f"samples must be pieces of content, one by one, not one {type(samples).__name__}")
    joined = bytearray()
    lengths = []
    for sample in samples:
        with memoryview(sample) as view:
            lengths.append(view.nbytes)
            joined += view
        if len(joined) > _SAMPLES_MAX:
            raise ParameterError(f"samples must have at most {_SAMPLES_MAX} bytes in all", expected=_SAMPLES_MAX)
    out = scratch(most)
    out_len = ffi.new("size_t *")
    src = borrow(joined)
    sizes = ffi.new("size_t[]", lengths or [0])
    status = lib.glyd_dictionary_train(out, most, src, sizes, len(lengths), ffi.NULL, out_len)
    if status != lib.GLYD_OK:
        raise status_error(status)
    return Dictionary(to_bytes(out, out_len[0]))
