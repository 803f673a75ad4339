# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Reading contents: where they are, their bases, ranges of them.

File length: one idea, whichever way a content lies.
"""

from __future__ import annotations

import io
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple, cast

import glyd
from glyd_store._cache import BASE_IN_MEMORY_NBYTES, IN_MEMORY_NBYTES
from glyd_store._entry import DECODES_MAX, Content, Place, entry_key, stream_key
from glyd_store._errors import IndexDamagedError, IntegrityError, ObjectNotFoundError
from glyd_store._frames import WRITTEN_NBYTES, copy_content, verify
from glyd_store._hashing import Hasher, file_pieces
from glyd_store._journal import read_entry
from glyd_store._ranges import ContentFile, Range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO, TypeVar

    from glyd_store._core import Core

    T = TypeVar("T")

_ATTEMPTS = DECODES_MAX + 10
"""Each frame of a chain may be moved just before it is opened, as `compact` with a level moves one after the other."""

_UNSIGNED = (1 << 64) - 1
_BASE_PIECE_NBYTES = 16 << 20

_LENT_MIN = 1 << 20
"""Streams from here on are read into memory that was used before: fresh pages cost more than the reading."""


class Row(NamedTuple):
    """A content as the index has it."""

    number: int
    sha256: bytes
    size: int
    seq: int
    kind: str
    stream: bytes | None
    offset: int
    nbytes: int
    base: bytes | None
    family: str | None
    member: int | None
    check: bytes | None

    @property
    def key(self) -> str:
        """The file that its bytes are in."""
        return stream_key(self.stream) if self.stream is not None else entry_key(self.seq)


_SELECT = "SELECT id, sha256, size, seq, kind, stream, offset, nbytes, base, family, member, xxh FROM content"


def find_content(core: Core, sha256: bytes) -> Row | None:
    """Return the content with a hash."""
    found = core.index.row(f"{_SELECT} WHERE sha256 = ?", sha256)
    return None if found is None else Row(*found)


def content_by_number(core: Core, number: int) -> Row:
    """Return the content with a number of the index."""
    return Row(*core.index.row(f"{_SELECT} WHERE id = ?", number))


def restated(core: Core, row: Row, at: Place, base: bytes | None) -> Content:
    """Return what an entry says of a content that is now at another place."""
    values = core.index.rows("SELECT value FROM fingerprint WHERE content = ? ORDER BY value", row.number)
    fingerprints = tuple(value & _UNSIGNED for (value,) in values)
    return Content(row.sha256, row.size, at, base, row.family or "", row.member or 0, fingerprints, row.check)


def chain_of(core: Core, row: Row) -> list[Row]:
    """Return a content and its bases, the root last.

    Raises
    ------
    IntegrityError
        When a base is not in the store, or there are too many.
    """
    chain = [row]
    while (base := chain[-1].base) is not None:
        below = find_content(core, base)
        if below is None or below.kind == "missing":
            raise IntegrityError(
                f"the base {base.hex()[:16]}… of {row.sha256.hex()[:16]}… is not in the store",
                key=row.key,
                advice=ADVICE,
            )
        chain.append(below)
        if len(chain) - (row.kind == "opened") > DECODES_MAX:
            raise IntegrityError(f"content {row.sha256.hex()[:16]}… has more than {DECODES_MAX - 1} bases", key=row.key)
    return chain


def read_again(core: Core, read: Callable[[], T], may: Callable[[], bool] = lambda: True) -> T:
    """Return what a function reads; call it again as often as a writer has moved meanwhile what it reads.

    Parameters
    ----------
    core
        The store.
    read
        Looks up in the index what it reads.
    may
        Whether it may be called again.
    """
    for _ in range(_ATTEMPTS):
        seq = core.index.seq
        try:
            return read()
        except ObjectNotFoundError:
            raise
        except (glyd.GlydError, FileNotFoundError):
            if core.refresh().seq == seq or not may():
                raise
    return read()


def stored_of(core: Core, row: Row) -> Row:
    """Return the content whose bytes are in the store: where streams were opened that is what they were opened to.

    Raises
    ------
    IntegrityError
        When that is not in the store.
    """
    return chain_of(core, row)[1] if row.kind == "opened" else row


ADVICE = "run 'check' to see what else is concerned; 'repair' may bring it back"


def own_file(core: Core, row: Row) -> BinaryIO:
    """Open the file that holds the frame of a content."""
    if row.kind == "missing":
        raise IntegrityError(
            f"what the journal said of content {row.sha256.hex()[:16]}… is damaged", key=row.key, advice=ADVICE
        )
    try:
        if row.kind == "payload":
            entry = read_entry(core.backend, row.seq)
            frame = entry.payload[row.offset : row.offset + row.nbytes]
            if len(frame) != row.nbytes:
                raise IntegrityError(f"{row.key} lacks {row.nbytes - len(frame)} bytes of payload", key=row.key)
            return io.BytesIO(frame)
        if row.stream is None:
            raise IndexDamagedError(
                f"the index has a content of kind {row.kind!r} without a stream", key=core.index.path
            )
        return core.backend.open(stream_key(row.stream))
    except FileNotFoundError:
        raise IntegrityError(f"{row.key} is missing", key=row.key, advice=ADVICE) from None


def open_content(core: Core, row: Row, threads: int = 0) -> BinaryIO:
    """Return a content as a file that can seek; ranges are checked by the checks of their segments.

    Of its bases only what a range goes back to is decoded. Where its bytes are moved meanwhile they are
    read at their new place.
    """
    with ExitStack() as stack:
        raw = _open_raw(core, row, stack, threads)
        return ContentFile(raw, stack.pop_all())


def _open_raw(core: Core, row: Row, stack: ExitStack, threads: int) -> Range:
    if row.kind == "opened":
        return Range(io.BytesIO(get_content(core, row, threads)), 0, row.size, _never_moved)
    start = row.offset if row.kind == "member" else 0
    base = _layers(core, chain_of(core, row)[1:], stack)
    wild = False  # orders of reads that need all of the base

    def another(error: Exception) -> tuple[BinaryIO, int]:
        nonlocal wild
        if isinstance(error, glyd.LimitError):
            if wild or row.base is None:
                raise error
            wild = True
        return read_again(core, opened)

    def opened() -> tuple[BinaryIO, int]:
        now = find_content(core, row.sha256)
        if now is None or now.kind == "missing":
            raise ObjectNotFoundError(f"content {row.sha256.hex()[:16]}… was removed while it was read")
        if now.kind == "opened":
            return io.BytesIO(get_content(core, now, threads)), 0
        below = chain_of(core, now)[1:]
        base = _decode_chain(core, below, stack, threads) if wild and below else _layers(core, below, stack)
        return _open_frame(core, now, base, stack, threads), now.offset if now.kind == "member" else 0

    return Range(_open_frame(core, row, base, stack, threads), start, row.size, another)


def _never_moved(error: Exception) -> tuple[BinaryIO, int]:
    """Say what went wrong with a content in memory."""
    raise error


def _open_frame(core: Core, row: Row, base: glyd.Base | None, stack: ExitStack, threads: int) -> BinaryIO:
    file = stack.enter_context(own_file(core, row))
    return cast("BinaryIO", stack.enter_context(glyd.open(file, base=base, threads=threads)))


def open_as_base(core: Core, row: Row, stack: ExitStack, threads: int = 0) -> glyd.Base:
    """Return a whole content, decoded, to be a base."""
    chain = chain_of(core, row)
    cached = core.bases.get(row.sha256)
    if cached is not None:
        return cached
    below = _layers(core, chain[1:], stack)
    try:
        with own_file(core, row) as file:
            return _decode_base(core, file, row, below, stack, threads)
    except glyd.LimitError:
        return _decode_chain(core, chain, stack, threads)


def _layers(core: Core, chain: list[Row], stack: ExitStack) -> glyd.Base | None:
    """Return the first of a content and its bases as a base that is decoded as far as it is asked for."""
    base: glyd.Base | None = None
    missing = chain
    for i, link in enumerate(chain):
        base = core.bases.get(link.sha256)
        if base is not None:
            missing = chain[:i]
            break
    for link in reversed(missing):
        with own_file(core, link) as file:
            base = glyd.Base.from_frames(_mapped_or_read(core, file, link, stack), base=base)
    return base


def _read(core: Core, file: BinaryIO, row: Row) -> bytes | memoryview:
    """Return the frame of a content, in memory that is used again where it is not little."""
    nbytes = core.index.value("SELECT nbytes FROM stream WHERE id = ?", row.stream) or 0  # payload is little
    if nbytes < _LENT_MIN or not hasattr(file, "readinto"):
        return file.read()
    room, n = core.memory.lend(nbytes), 0
    while n < nbytes and (more := file.readinto(room[n:])):
        n += more
    more_than_stated = file.read(1)
    return room[:n].toreadonly() if not more_than_stated else bytes(room) + more_than_stated + file.read()


def _mapped_or_read(core: Core, file: BinaryIO, row: Row, stack: ExitStack) -> BinaryIO | bytes | memoryview:
    """Return a stream in memory, or where it is large as a file that can be mapped."""
    if row.size <= IN_MEMORY_NBYTES:
        return _read(core, file, row)  # what is mapped could not say that the disk fails
    try:
        file.fileno()
    except (OSError, AttributeError):
        import tempfile  # noqa: PLC0415 - costs 10 ms

        spool = stack.enter_context(tempfile.TemporaryFile())
        for piece in file_pieces(file):
            spool.write(piece)
        spool.flush()
        spool.seek(0)
        return spool
    return file


def _decode_chain(core: Core, chain: list[Row], stack: ExitStack, threads: int) -> glyd.Base:
    """Return the first of a content and its bases as a base, all of them decoded as a whole.

    This is for contents that take their base in such an order that `_layers` would decode it many times.
    """
    base: glyd.Base | None = None
    with ExitStack() as mine:
        for link in reversed(chain):
            with ExitStack() as parts:
                file = parts.enter_context(own_file(core, link))
                base = _decode_base(core, file, link, base, parts, threads)
                mine.close()  # the base of the base has done its work
                mine.push(parts.pop_all())
        stack.push(mine.pop_all())
    assert base is not None  # noqa: S101 - a chain has a link
    return base


def _decode_base(
    core: Core, file: BinaryIO, row: Row, below: glyd.Base | None, stack: ExitStack, threads: int
) -> glyd.Base:
    if row.size <= BASE_IN_MEMORY_NBYTES:
        memory = core.memory.lend(row.size)
        n = glyd.decompress_into(file.read(), memory, base=below, threads=threads)
        base = glyd.Base(memory[:n].toreadonly())
        core.bases.put(row.sha256, base)
        return base
    import tempfile  # noqa: PLC0415 - costs 10 ms

    spool = stack.enter_context(tempfile.TemporaryFile())
    with glyd.open(file, base=below, threads=threads) as frame:
        while piece := frame.read(_BASE_PIECE_NBYTES):
            spool.write(piece)
    spool.flush()
    spool.seek(0)
    return stack.enter_context(glyd.Base(spool))


def _decode(core: Core, row: Row, decode: Callable[[bytes | memoryview, glyd.Base | None], T]) -> T:
    """Decode a content that fits into memory by a function that takes its frame and its base."""
    chain = chain_of(core, row)
    with ExitStack() as stack:
        with own_file(core, row) as file:
            frame = _read(core, file, row)
        base = _layers(core, chain[1:], stack)
        try:
            return decode(frame, base)
        except glyd.LimitError:
            if base is None:
                raise
            return decode(frame, _decode_chain(core, chain[1:], stack, 0))


def read_content(
    core: Core, row: Row, write: Callable[[memoryview], object] | None, threads: int = 0, *, thorough: bool = False
) -> None:
    """Give a whole content to a function, piece by piece, and raise unless it is what its hash says.

    Parameters
    ----------
    core
        The store.
    row
        The content.
    write
        Takes the pieces, which are only valid during the call; None: the content is only checked.
    threads
        As for `glyd.open`.
    thorough
        Check its SHA-256 in any case.

    Raises
    ------
    IntegrityError
        When it cannot be read or is not what it should be; the message names the file. Of
        contents that fit into memory nothing is written then.
    """
    with _blaming(core, row):
        if row.kind == "opened":
            data = memoryview(_closed(core, row, threads))
            verify(data, row, f"the content in {row.key}", threads, thorough=thorough)
            if write is not None:
                for start in range(0, len(data), WRITTEN_NBYTES):
                    write(data[start : start + WRITTEN_NBYTES])
        elif row.kind == "member" or row.size > IN_MEMORY_NBYTES:
            with ExitStack() as stack:
                file = cast("BinaryIO", _open_raw(core, row, stack, threads))
                copy_content(file, write, row, f"the content in {row.key}", threads, thorough=thorough)
        else:
            is_base = core.index.row("SELECT 1 FROM content WHERE base = ?", row.sha256) is not None
            with core.memory.lend(row.size) as out:
                into = out
                n = _decode(
                    core, row, lambda frame, base: glyd.decompress_into(frame, into, base=base, threads=threads)
                )
                verify(out[:n], row, f"the content in {row.key}", threads, thorough=thorough)
                if is_base:  # the next one read may be based on it
                    core.bases.put(row.sha256, glyd.Base(out.toreadonly()))
                if write is not None:
                    for start in range(0, len(out), WRITTEN_NBYTES):
                        write(out[start : start + WRITTEN_NBYTES])


def _closed(core: Core, row: Row, threads: int) -> bytes:
    """Return a content of which opened streams are stored."""
    return glyd.close_streams(get_content(core, stored_of(core, row), threads), max_size=row.size)


def get_content(core: Core, row: Row, threads: int = 0) -> bytes:
    """Return a whole content, and raise as `read_content` does."""
    if row.kind == "opened":
        with _blaming(core, row):
            data = _closed(core, row, threads)
            verify(data, row, f"the content in {row.key}", threads)
            return data
    if row.kind == "member" or row.size > IN_MEMORY_NBYTES:
        out = bytearray()
        read_content(core, row, out.extend, threads)
        return bytes(out)
    with _blaming(core, row):
        data = _decode(
            core,
            row,
            lambda frame, base: glyd.decompress(frame, base=base, max_size=row.size, threads=threads),
        )
        verify(data, row, f"the content in {row.key}", threads)
        return data


@contextmanager
def _blaming(core: Core, row: Row) -> Iterator[None]:
    """Turn what says that a content cannot be read into an error that names the file."""
    try:
        yield
    except ObjectNotFoundError:
        raise
    except (
        glyd.FormatError,
        glyd.WrongBaseError,
        glyd.LimitError,
        glyd.BufferTooSmallError,
        FileNotFoundError,
    ) as error:
        raise _blame(core, row, str(error)) from error
    except IntegrityError as error:
        if error.advice:
            raise
        raise _blame(core, row, str(error)) from None


def _blame(core: Core, row: Row, what: str) -> IntegrityError:
    """Return the error for a content that cannot be read: the file of the first frame that is not its hash."""
    for link in reversed(chain_of(core, row)):
        if link.stream is not None and hash_file(core, link.key) != link.stream:
            return IntegrityError(f"{link.key} is damaged: its SHA-256 is another", key=link.key, advice=ADVICE)
    return IntegrityError(f"{row.key} is damaged: {what}", key=row.key, advice=ADVICE)


def hash_file(core: Core, key: str, progress: Callable[[int], None] | None = None) -> bytes | None:
    """Return the SHA-256 of a file of the store; None when it cannot be read."""
    try:
        with core.backend.open(key) as file, Hasher() as total:
            for piece in file_pieces(file):
                total.update(piece)
                if progress is not None:
                    progress(len(piece))
            return total.digest()
    except OSError:
        return None
