# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Putting objects into a store."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeAlias

import glyd
from glyd_store._bases import ALIKE_MIN, find_base, n_members
from glyd_store._cache import IN_MEMORY_NBYTES, loaded_max
from glyd_store._contents import find_content, open_as_base
from glyd_store._entry import Content, Place, Stream, Version, stream_key
from glyd_store._errors import IntegrityError
from glyd_store._frames import HashingFile, copy_content, verify, write_frame
from glyd_store._index import encode_name
from glyd_store._info import object_by_id
from glyd_store._packing import Packer, pack_waiting
from glyd_store._resemblance import fingerprints_of_delta
from glyd_store._source import open_source

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import BinaryIO

    from _typeshed import ReadableBuffer

    from glyd_store._backend import Staged
    from glyd_store._contents import Row
    from glyd_store._core import Core
    from glyd_store._entry import Entry
    from glyd_store._info import ObjectInfo
    from glyd_store._source import Source

SMALL_NBYTES = 256 << 10
"""Contents below this are gathered into packs."""

OPENED_MIN = 1.1
"""Times the bytes of a content that it must have with its streams opened: of some twentieth at least."""

NAME_NBYTES_MAX = 65_535
PAYS = 0.8
"""Part of the bytes alone that a delta may take."""

SURE = 0.02
"""Part of a content from which no one asks what it takes alone, as there is next to nothing left to save; but where
a new chain starts: tables that stand alone may take a hundredth themselves, and what follows then has short chains."""

RECORDS_PAY = 0.9
"""Part of the bytes that samples may take as records, so that a content without base is written that way."""

SEGMENTS = {"max": 16 << 20}
"""Sizes of the segments of contents without a base where they are not those of the level: twice what level max has
takes 1.3% off wheels of 57 MB, and what depends on them is rarely read in parts."""

_SAMPLE_NBYTES = 512 << 10
_RECORDS_SAMPLE_NBYTES = 64 << 10
_N_SAMPLES = 4


def check_name(name: str) -> None:
    """Raise unless a text can be a name.

    Raises
    ------
    ParameterError
        When it is empty, too long, or holds half of a surrogate pair.
    """
    if not isinstance(name, str):
        raise TypeError(f"a name is a str, not {type(name).__name__}")
    try:
        n = len(encode_name(name))
    except UnicodeEncodeError:
        raise glyd.ParameterError(f"the name {name!r} holds half of a surrogate pair") from None
    if not 1 <= n <= NAME_NBYTES_MAX:
        raise glyd.ParameterError(f"a name has 1 … {NAME_NBYTES_MAX} bytes of UTF-8, not {n}")


Frame: TypeAlias = "tuple[Staged, HashingFile]"
"""A frame without a name."""


class Writer:
    """Puts objects with one set of options.

    Parameters
    ----------
    core
        The store.
    level, threads
        As for `glyd.compress`.
    progress
        Told of bytes of content as they are read (first pass) and written (second).
    parity
        Percentage of parity that large contents get which have no base, or on which another is based.
    opens
        Store what compressed streams hold, where contents have them.
    """

    def __init__(
        self,
        core: Core,
        level: str,
        threads: int = 0,
        progress: Callable[[str, int], None] | None = None,
        parity: float = 0,
        *,
        opens: bool = False,
    ) -> None:
        self.core = core
        self._opens = opens
        self.level = level
        self.threads = threads
        self.level_of_deltas = "ultra" if level == "cold" else level  # its model takes no base
        self._progress = progress
        self._parity = parity

    def _tell(self, step: str) -> Callable[[int], None] | None:
        progress = self._progress
        return None if progress is None else lambda n: progress(step, n)

    def put(
        self, name: str, data: ReadableBuffer | BinaryIO | os.PathLike[str], tags: Mapping[str, str] | None = None
    ) -> ObjectInfo:
        """Put one object; see `glyd_store.Store.put`."""
        check_name(name)
        core = self.core
        core.check_writable()
        with open_source(data, name) as source:
            source.load(core.memory, loaded_max() if core.keeps_large else None)
            source.scan(small=SMALL_NBYTES, threads=self.threads, progress=self._tell("read"))
            with core.writing():
                entry = core.new_entry("put")
                with core.making_streams() as made:
                    if self.is_stored(source.sha256):
                        pass
                    elif source.size < SMALL_NBYTES:
                        self._add_payload(entry, source)
                    elif not (self._is_to_open(source) and self._add_opened(entry, source, name, made)):
                        self._add_stream(entry, source, name, made)
                    core.keeps_large |= source.size > IN_MEMORY_NBYTES
                    number = self._add_object(entry, name, source, tags)
                    entry.drop_streams = self._replaced(entry)
                    core.commit(entry)
                core.remove([stream_key(stream) for stream in entry.drop_streams])
                pack_waiting(core, self.level)
                return object_by_id(core.index, number)

    def put_many(
        self, items: Iterable[tuple[str, ReadableBuffer | BinaryIO | os.PathLike[str]]]
    ) -> Iterator[ObjectInfo]:
        """Put many objects, small ones a pack at a time; see `glyd_store.Store.put_many`."""
        core = self.core
        core.check_writable()
        packer = Packer(core, self.level)
        for name, data in items:
            check_name(name)
            with open_source(data, name) as source:
                source.scan(small=SMALL_NBYTES, threads=self.threads, progress=self._tell("read"))
                if source.size < SMALL_NBYTES:
                    packer.add(name, source.read_all(), source.sha256)
                else:
                    source.rewind()
                    yield from packer.flush(self)
                    yield self.put(name, source.file)
            if packer.is_full:
                yield from packer.flush(self)
        yield from packer.flush(self)

    def is_stored(self, sha256: bytes) -> bool:
        """Say whether a content is in the store, and whole as far as can be seen without reading it."""
        row = find_content(self.core, sha256)
        if row is None or row.kind == "missing":
            return False
        if row.kind == "opened":
            return row.base is not None and self.is_stored(row.base)
        if self.core.is_damaged(row.key):
            return False
        try:
            nbytes = self.core.backend.size(row.key)
        except FileNotFoundError:
            return False
        if row.stream is None:
            return bool(nbytes == self.core.index.value("SELECT nbytes FROM entry WHERE seq = ?", row.seq))
        return bool(nbytes == self.core.index.value("SELECT nbytes FROM stream WHERE id = ?", row.stream))

    def _replaced(self, entry: Entry) -> list[bytes]:
        """Return the damaged streams that contents have been in until now, to be dropped."""
        rows = (find_content(self.core, content.sha256) for content in entry.contents)
        before = {row.stream for row in rows if row is not None and row.kind == "stream" and row.stream is not None}
        return sorted(before - {stream.id for stream in entry.streams})

    def _add_object(self, entry: Entry, name: str, source: Source, tags: Mapping[str, str] | None) -> int:
        number = entry.next_id
        entry.next_id += 1
        entry.objects.append(
            Version(
                number, name, entry.time, source.sha256, source.size, {str(k): str(v) for k, v in (tags or {}).items()}
            )
        )
        return number

    def _add_payload(self, entry: Entry, source: Source) -> None:
        data = source.read_all()
        frame = glyd.compress(data, self.level, threads=1)  # type: ignore[arg-type]
        if glyd.decompress(frame, max_size=len(data), threads=1) != data:
            raise IntegrityError(f"{source.name}: what was compressed does not come back; nothing was stored")
        entry.contents.append(Content(source.sha256, source.size, Place("payload", b"", 0, len(frame))))
        entry.payload = frame

    # ---- large contents

    def _is_to_open(self, source: Source) -> bool:
        """Say whether streams of a content are to be opened: as it was before, as others may be based on either form."""
        row = find_content(self.core, source.sha256)
        return self._opens if row is None else row.kind == "opened"

    def _add_opened(self, entry: Entry, source: Source, name: str, made: list[bytes]) -> bool:
        """Store a content with its compressed streams opened, if there are some and it takes less; say whether it was."""
        if source.data is None:
            return False
        opened = glyd.open_streams(source.data, verify=False)
        if opened is None or len(opened) < OPENED_MIN * source.size:
            return False
        if glyd.close_streams(opened) != source.data:
            raise IntegrityError(f"{source.name}: what was opened does not come back; nothing was stored")
        with open_source(opened, source.name) as inside:
            inside.scan(small=0, threads=self.threads)
            if not self.is_stored(inside.sha256) and not self._add_stream(entry, inside, name, made, source.size):
                return False
            entry.contents.append(
                Content(source.sha256, source.size, Place("opened"), inside.sha256, check=source.check)
            )
        return True

    def _add_stream(self, entry: Entry, source: Source, name: str, made: list[bytes], most: int | None = None) -> bool:
        """Store a content as a stream; with a limit only if it takes no more bytes: say whether it was."""
        core = self.core
        found = find_base(core, source, name)
        written = None if found is None else self._try_delta(source, *found)
        (staged, out), base = written or (self.write(source, None), None)
        try:
            if most is not None and out.nbytes > most:
                return False
            stream = out.sha256
            made_here = core.index.row("SELECT 1 FROM stream WHERE id = ?", stream) is None
            if made_here:
                made.append(stream)
            staged.publish(stream_key(stream))
        finally:
            staged.discard()
        if self._parity and base is None:
            from glyd_store._parity import write_parity  # noqa: PLC0415 - most have none

            write_parity(core.backend, stream, self._parity)
        family, member = source.sha256.hex()[:16], 0
        if base is not None and base.family is not None:
            family, member = base.family, n_members(core, base.family)
        entry.streams.append(Stream(stream, out.nbytes, source.size))
        at = Place("stream", stream)
        sha256 = None if base is None else base.sha256
        kept = source.fingerprints if base is None else fingerprints_of_delta(source.fingerprints)
        content = Content(source.sha256, source.size, at, sha256, family, member, kept, source.check)
        entry.contents.append(content)
        if source.data is not None and source.is_ours:  # the next version may be based on it
            core.bases.put(source.sha256, glyd.Base(source.data))
        return True

    def _try_delta(self, source: Source, base: Row, alike: float, is_nearest: bool) -> tuple[Frame, Row | None] | None:
        """Write a content against a base, and alone when that may be smaller; None: neither was done."""
        with ExitStack() as stack:
            try:
                decoded = open_as_base(self.core, base, stack, self.threads)
                if self._parity and base.stream is not None:
                    from glyd_store._parity import ensure_parity  # noqa: PLC0415 - most have none

                    ensure_parity(self.core.backend, base.stream, self._parity)
            except (IntegrityError, glyd.FormatError, glyd.WrongBaseError) as error:
                # a base that cannot be read is no base, for this or any later version
                key = getattr(error, "key", None) or base.key
                self.core.note_damage([IntegrityError(str(error), key=key)])
                return None
            if alike < ALIKE_MIN and not self._sample_pays(source, decoded):
                return None
            delta = self.write(source, decoded)
        if self._pays(delta[1].nbytes, source, is_nearest):
            return delta, base
        try:
            plain = self.write(source, None)
        except BaseException:
            delta[0].discard()
            raise
        if delta[1].nbytes < plain[1].nbytes:
            plain[0].discard()
            return delta, base
        delta[0].discard()
        return plain, None

    def _pays(self, nbytes: int, source: Source, is_nearest: bool) -> bool:
        """Say whether a delta takes so little that no one need ask what the content takes alone."""
        if is_nearest and nbytes <= SURE * source.size:
            return True
        alone = self._estimate_alone(source)
        return nbytes <= PAYS * (alone if is_nearest else alone * self._share_as_records(source))

    def _estimate_alone(self, source: Source) -> float:
        """Return about how many bytes a content takes without a base, from samples."""
        n, taken = 0, 0
        for piece in self._samples(source, _SAMPLE_NBYTES):
            n += len(piece)
            taken += len(glyd.compress(piece, self.level, threads=self.threads))  # type: ignore[arg-type]
        return source.size * taken / n if n else 0.0

    def _samples(self, source: Source, nbytes: int) -> Iterator[bytes | memoryview]:
        step = max(source.size // _N_SAMPLES, nbytes)
        for offset in range(0, source.size, step):
            yield source.part(offset, nbytes)

    def _sample_pays(self, source: Source, base: glyd.Base) -> bool:
        """Say whether pieces of a content are smaller with a base that shares no places with it."""
        alone, against = 0, 0
        for piece in self._samples(source, _SAMPLE_NBYTES):
            alone += len(glyd.compress(piece, self.level, threads=self.threads))  # type: ignore[arg-type]
            against += len(glyd.compress(piece, self.level_of_deltas, base=base, threads=self.threads))  # type: ignore[arg-type]
        return against <= PAYS * alone

    def _share_as_records(self, source: Source) -> float:
        """Return the part that pieces of a content take as columns of tables and logs; 1: they are no smaller."""
        if self.level == "cold":  # has none
            return 1.0
        plain, records = 0, 0
        for piece in self._samples(source, _RECORDS_SAMPLE_NBYTES):
            nbytes = len(glyd.compress(piece, self.level, threads=1))  # type: ignore[arg-type]
            plain += nbytes
            if nbytes >= len(piece):  # noise, of which columns are no smaller; to try takes ten times as long
                records += nbytes
                continue
            records += len(glyd.compress(piece, self.level, records=True, threads=1))  # type: ignore[arg-type]
        return min(1.0, records / plain) if plain else 1.0

    def write(self, source: Source, base: glyd.Base | None) -> Frame:
        """Write a content as a frame without a name, and read it back."""
        staged = self.core.backend.stage()
        try:
            out = HashingFile(staged.file)
            progress = self._tell("write")
            level = self.level if base is None else self.level_of_deltas
            records = base is None and self._share_as_records(source) <= RECORDS_PAY
            segment_size = SEGMENTS.get(level) if base is None else None
            if source.data is not None and source.size <= IN_MEMORY_NBYTES:
                frame = glyd.compress(
                    source.data,
                    level,  # type: ignore[arg-type]
                    base=base,
                    records=records,
                    threads=self.threads,
                    segment_size=segment_size,
                )
                out.write(frame)
                if progress:
                    progress(source.size)
            else:
                write_frame(
                    out, source.pieces(), source.size, level, threads=self.threads, base=base, records=records,
                    segment_size=segment_size, progress=progress,
                )  # fmt: skip
            self._read_back(staged.file, source, base)
            return staged, out
        except BaseException:
            staged.discard()
            raise

    def _read_back(self, file: BinaryIO, source: Source, base: glyd.Base | None) -> None:
        """Make sure that what was written gives the content that was hashed."""
        file.seek(0)
        try:
            if source.size <= IN_MEMORY_NBYTES:
                with self.core.memory.lend(source.size) as back:
                    n = glyd.decompress_into(file.read(), back, base=base, threads=self.threads)
                    verify(back[:n], source, source.name, self.threads)
            else:
                with glyd.open(file, base=base, threads=self.threads) as frame:
                    copy_content(frame, None, source, source.name, self.threads)  # type: ignore[arg-type]
        except IntegrityError:
            total = source.sha256
            source.scan(small=1 << 62)
            if source.sha256 != total:
                raise source.changed() from None
            raise
