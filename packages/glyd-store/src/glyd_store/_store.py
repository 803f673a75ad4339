# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""`Store`: the store as a program uses it.

What one operation needs and others do not is imported by it: a command that does one thing
should not wait for the rest.

File length: one class with what users read about it.
"""

# ruff: noqa: PLC0415

from __future__ import annotations

import builtins
import os
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias

import glyd
from glyd_store import _info as infos
from glyd_store._contents import get_content, open_content, read_again, read_content
from glyd_store._core import Core
from glyd_store._frames import write_all
from glyd_store._restore import content_of, write_object
from glyd_store._where import open_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime
    from types import TracebackType
    from typing import BinaryIO

    from _typeshed import ReadableBuffer
    from typing_extensions import Self

    from glyd_store._backend import Backend
    from glyd_store._check_report import CheckReport
    from glyd_store._errors import IntegrityError
    from glyd_store._info import ObjectInfo
    from glyd_store._put import Writer
    from glyd_store._removal import CompactReport
    from glyd_store._repair import RepairReport
    from glyd_store._retention import Policy
    from glyd_store._stats import StoreStats
    from glyd_store._tensors import StoredTensors

    Ref: TypeAlias = "str | int | ObjectInfo"


class Store:
    """A store of versioned objects.

    Parameters
    ----------
    where
        A folder, ``s3://bucket/prefix`` (needs the extra ``s3``), ``memory:``, or a backend.
        The first `put` makes a store in a folder that is empty or does not exist.
    level
        Level of what is put: as for `glyd.compress`.
    threads
        Threads to compress and decode with; 0: one a CPU.
    lock_timeout_s
        Seconds to wait for another writer before LockedError.
    read_only
        Refuse to write.
    cache
        Folder for the index of a store in a bucket; None: the cache folder of the user.
    break_lock
        Take the lock from a writer on another machine that is known to be dead.
    progress
        Told of a step ("read", "write", "decode") and of bytes done in it since the last call.
    parity
        Percentage of parity that what is stored without a base gets, and what another version is based on;
        `compact` adds it where there is none: `repair` makes streams again of which no more is damaged. 0: none.
    open_streams
        Store what gzip, zip and PNG files of up to 64 MiB hold instead of their compressed bytes, which versions have
        hardly in common; reads make the files again bit for bit. Both take seconds for ten megabytes.

    Notes
    -----
    Threads may share an object: writers run one at a time, readers beside them. Other
    processes may read and write the same store: one writes, the others wait or get LockedError.
    """

    def __init__(
        self,
        where: str | os.PathLike[str] | Backend,
        *,
        level: str = "max",
        threads: int = 0,
        lock_timeout_s: float = 10.0,
        read_only: bool = False,
        cache: str | os.PathLike[str] | None = None,
        break_lock: bool = False,
        progress: Callable[[str, int], None] | None = None,
        parity: float = 0,
        open_streams: bool = False,
    ) -> None:
        self.level = _checked(level)
        if not 0 <= parity <= 100:
            raise glyd.ParameterError(f"parity must be 0 … 100 percent, not {parity}")
        self.parity = parity
        self.threads = threads
        self._progress = progress
        self._opens = open_streams
        backend = open_backend(where, cache)
        self._core = Core(backend, lock_timeout_s=lock_timeout_s, break_lock=break_lock, read_only=read_only)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the index, and let go of memory that was kept; the next operation opens it again."""
        self._core.close()
        self._core.bases.clear()
        self._core.memory.clear()

    @property
    def url(self) -> str:
        """What the store was opened by."""
        return self._core.backend.url

    # ---- putting and getting

    def put(
        self,
        name: str,
        data: ReadableBuffer | BinaryIO | os.PathLike[str],
        *,
        tags: Mapping[str, str] | None = None,
    ) -> ObjectInfo:
        """Store an object as the newest version of a name.

        Parameters
        ----------
        name
            Any text of up to 65,535 bytes of UTF-8; slashes and dots mean nothing.
        data
            A buffer, a binary file (from where it stands; what cannot seek is spooled to a
            temporary file first), or the path of a file. It must not change meanwhile.
        tags
            Pairs of text to keep with it.

        Returns
        -------
        ObjectInfo
            What was stored. It is durable.

        Raises
        ------
        StoreError
            When data changed while it was read, or the store cannot be written; nothing was stored.
        OSError
            When reading or writing fails; nothing was stored.
        """
        return self._writer().put(name, data, tags)

    def keep_large(self, keeps: bool) -> None:
        """Say whether more versions of 64 to 256 MiB are to come, one after the other.

        Parameters
        ----------
        keeps
            Each is then held in memory, where the machine has enough, and need not be decoded to be the base of the
            next. Without a word it is so from the second one on.
        """
        self._core.keeps_large = keeps

    def put_many(
        self, items: Iterable[tuple[str, ReadableBuffer | BinaryIO | os.PathLike[str]]]
    ) -> Iterator[ObjectInfo]:
        """Store many objects; small ones are written some thousand at a time.

        Parameters
        ----------
        items
            Pairs of name and data as for `put`.

        Yields
        ------
        ObjectInfo
            For each object when it is durable: small ones come later than they were taken.
        """
        yield from self._writer().put_many(items)

    def _writer(self) -> Writer:
        from glyd_store._put import Writer

        return Writer(self._core, self.level, self.threads, self._progress, self.parity, opens=self._opens)

    def get(self, ref: Ref) -> bytes:
        """Return the content of an object, checked against its hash.

        Parameters
        ----------
        ref
            A name (its newest version), an id, or what the store said of the object.

        Raises
        ------
        ObjectNotFoundError
            When there is no such object.
        IntegrityError
            When it cannot be read; the message names the file that is damaged.
        """
        info = self.info(ref)
        return read_again(self._core, lambda: get_content(self._core, content_of(self._core, info), self.threads))

    def get_into(self, ref: Ref, out: BinaryIO | os.PathLike[str]) -> ObjectInfo:
        """Write the content of an object to a binary file or a path.

        A path appears when all is written and checked. With a file that is only known
        at the end: an exception says that what was written is not the object.
        """
        if isinstance(out, os.PathLike):
            info = self.info(ref)
            write_object(self._core, info, os.fspath(out), self.threads)
            return info
        info = self.info(ref)
        n_written = 0

        def counted(piece: memoryview) -> None:
            nonlocal n_written
            n_written += len(piece)
            write_all(out, piece)
            if self._progress:
                self._progress("decode", len(piece))

        read_again(
            self._core,
            lambda: read_content(self._core, content_of(self._core, info), counted, self.threads),
            lambda: n_written == 0,
        )
        return info

    def open(self, ref: Ref) -> BinaryIO:
        """Return the content of an object as a file that can seek.

        Reads decode what they touch and are checked by the checks of the frames; only `get`
        checks the hash of the whole.
        """
        info = self.info(ref)
        return read_again(self._core, lambda: open_content(self._core, content_of(self._core, info), self.threads))

    def open_tensors(self, ref: Ref, framework: str = "numpy", device: str = "cpu") -> StoredTensors:
        """Open the tensors of an object that is a safetensors, GGUF or PyTorch file, without reading them.

        A tensor, or a range of its rows, takes the segments that it lies in, and what of the
        versions before these go back to.

        Parameters
        ----------
        ref
            As for `get`.
        framework, device
            What tensors become, "numpy" ("np"), "torch" ("pt") or "bytes", and where torch puts them.

        Returns
        -------
        StoredTensors
            With ``keys``, ``get_tensor``, ``get_slice`` and ``metadata``; a context manager.

        Raises
        ------
        FormatError
            When the object is none of these.
        """
        from glyd_store._tensors import StoredTensors

        return StoredTensors(self.open(ref), framework, device)

    # ---- looking

    def info(self, ref: Ref) -> ObjectInfo:
        """Return what the store knows of an object."""
        return infos.resolve(self._core, ref)

    def list(self, *, deleted: bool = False) -> Iterator[ObjectInfo]:
        """Yield all objects in the order in which they were put; the deleted ones instead, if asked for."""
        return infos.iter_objects(self._core, deleted=deleted)

    def newest(self) -> Iterator[ObjectInfo]:
        """Yield the newest version of each name, in order of names."""
        return infos.iter_newest(self._core)

    def versions(self, name: str) -> Iterator[ObjectInfo]:
        """Yield the versions of a name, the oldest first.

        Raises
        ------
        ObjectNotFoundError
            When there is none.
        """
        self.info(name)
        return infos.iter_versions(self._core, name)

    def find(self, pattern: str) -> Iterator[ObjectInfo]:
        """Yield the newest versions of the names that match a pattern with ``*``, ``?`` and ``[…]``."""
        import fnmatch

        return (info for info in self.newest() if fnmatch.fnmatchcase(info.name, pattern))

    def stats(self) -> StoreStats:
        """Return sums over the store."""
        from glyd_store._stats import read_stats

        return read_stats(self._core)

    def du(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield for each name: the name, its versions, bytes of their contents, bytes these take in the store."""
        from glyd_store._stats import iter_sums

        return iter_sums(self._core)

    # ---- removing

    def delete(self, refs: Iterable[int | ObjectInfo]) -> builtins.list[ObjectInfo]:
        """Delete objects by id; they can be had back until `compact`.

        Returns
        -------
        list of ObjectInfo
            What was deleted.
        """
        from glyd_store._removal import delete_objects

        return delete_objects(self._core, refs)

    def undelete(self, ids: Iterable[int]) -> builtins.list[ObjectInfo]:
        """Take deletions back."""
        from glyd_store._removal import undelete_objects

        return undelete_objects(self._core, ids)

    def prune(
        self, policy: Policy, *, dry_run: bool = False
    ) -> tuple[builtins.list[ObjectInfo], builtins.list[ObjectInfo]]:
        """Delete the versions that a policy does not keep.

        Returns
        -------
        tuple
            Objects kept and objects deleted (with ``dry_run``: that would be).
        """
        from glyd_store._retention import prune

        return prune(self._core, policy, dry_run=dry_run)

    def compact(
        self, *, grace: timedelta = timedelta(0), dry_run: bool = False, level: str | None = None
    ) -> CompactReport:
        """Remove from the disk what was deleted longer than a grace period ago, and what else nothing needs.

        Parameters
        ----------
        grace, dry_run
            Spare what was deleted less than this ago; only say what would be removed.
        level
            Write streams of a lower level again at this one, as they take time that `put` has not.
        """
        from glyd_store._removal import compact

        grace_ns = grace // timedelta(microseconds=1) * 1000
        report = compact(self._core, grace_ns=grace_ns, dry_run=dry_run, level=_checked(level or self.level))
        if level is not None and not dry_run:
            from glyd_store._recode import recode

            recode(self._core, level, report, self.threads, self._progress)
        if self.parity and not dry_run:
            from glyd_store._parity import add_parity

            add_parity(self._core, self.parity, report)
        return report

    def rebase(self, ref: Ref) -> ObjectInfo:
        """Store the content of an object alone again: reads of it then decode one frame."""
        from glyd_store._recode import rebase

        return rebase(self._core, ref, self.level, self.threads)

    # ---- soundness

    def check(self, *, read_data: float = 0.0, decode: bool = False, resume: bool = False) -> CheckReport:
        """Look for damage, and name all objects that depend on what is damaged.

        Parameters
        ----------
        read_data
            Share of the streams to read and hash: 0 (look at sizes only) … 1 (all).
        decode
            Read all of them, and decode every content as well.
        resume
            Go on where a check that was interrupted stopped reading.
        """
        from glyd_store._check import Checker

        return Checker(self._core, self._progress).run(read_data, decode=decode, resume=resume)

    def repair(self, sources: Iterable[str | os.PathLike[str]] = ()) -> RepairReport:
        """Repair what can be: sidecars from the index; contents from files that still have them.

        Parameters
        ----------
        sources
            Files, and folders of files, outside the store.
        """
        from glyd_store._repair import repair

        return repair(self._core, sources, self.level)

    def rebuild(self) -> builtins.list[IntegrityError]:
        """Make the index again from the journal.

        Returns
        -------
        list of IntegrityError
            What of the journal cannot be read.
        """
        return self._core.rebuild()

    def restore(
        self,
        out: str | os.PathLike[str],
        *,
        at: datetime | None = None,
        failed: Callable[[ObjectInfo, IntegrityError], None] | None = None,
    ) -> Iterator[tuple[ObjectInfo, str]]:
        """Write the newest version of every name below a folder.

        Parameters
        ----------
        out
            A folder that is empty or does not exist. Names become safe paths below it.
        at
            As the store was at this time; None: now.
        failed
            Told of objects that cannot be read; None: the first of them raises.

        Yields
        ------
        tuple
            What was written, and its path.
        """
        from glyd_store._restore import restore

        yield from restore(self._core, os.fspath(out), None if at is None else infos.to_ns(at), failed, self.threads)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the lock over several operations."""
        with self._core.writing():
            yield


def _checked(level: str) -> str:
    if level not in glyd.LEVELS:
        raise glyd.ParameterError(f"level must be one of {', '.join(glyd.LEVELS)}; not {level!r}")
    return level
