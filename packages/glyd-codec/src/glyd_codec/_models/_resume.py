# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Where a packed model grows: a run that was stopped is continued by the next.

Beside the output OUT lies ``.OUT.glyd-tmp`` with ``lock`` (held by the run that
writes), ``journal`` and ``model``, which becomes OUT at the end. A line of the
journal is the checksum of its JSON text, a space, and that text: first what the
run makes from what, then a line for each tensor, after its bytes were written.
Nothing waits for the disk, so after a crash a line may be there without its bytes:
whoever continues compares both.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import stat
from typing import TYPE_CHECKING

from glyd_codec._models._matrix import checksum_text
from glyd_codec._models._output import output_path

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_DUE_NBYTES = 1 << 25  # of tensors that a run may lose when it is killed


@contextlib.contextmanager
def resumable_directory(dst: str | os.PathLike[str], source: str, job: dict[str, Any]) -> Iterator[Workplace]:
    """Give the place where a directory grows that is renamed to ``dst`` at the end.

    What failed is removed. What was stopped (by an exception that is no `Exception`)
    stays, if any tensor was done.

    Parameters
    ----------
    dst, source
        As `output_path`.
    job
        What an earlier run must have been told to be continued.

    Raises
    ------
    BlockingIOError
        Another run is writing ``dst``.
    FileExistsError, ParameterError
        As `output_path`.
    """
    path = output_path(dst, source)
    parent, name = os.path.split(path)
    outer = os.path.join(parent, f".{name[:200]}.glyd-tmp")
    lock = _lock(outer, path)
    try:
        place = Workplace(outer, job)
        try:
            yield place
            place.close()
            os.rename(place.folder, path)
        except BaseException as error:
            place.close()
            if not isinstance(error, Exception) and place.n_entries:
                raise
            shutil.rmtree(outer, ignore_errors=True)
            raise
        shutil.rmtree(outer, ignore_errors=True)
    finally:
        os.close(lock)


def _lock(outer: str, path: str) -> int:
    """Make the directory if need be; return the descriptor that holds its lock."""
    while True:
        with contextlib.suppress(FileExistsError):
            os.mkdir(outer, 0o700)
        try:
            status = os.lstat(outer)
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise FileExistsError(errno.EEXIST, "is in the way: no directory of this user", outer)
            name = os.path.join(outer, "lock")
            lock = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | getattr(os, "O_CLOEXEC", 0), 0o600)
        except FileNotFoundError:  # the run that had it has just ended
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.stat(name), os.fstat(lock)):
                return lock
        except FileNotFoundError:
            pass
        except BlockingIOError:
            os.close(lock)
            raise BlockingIOError(errno.EAGAIN, "another run is writing it", path) from None
        except OSError as error:  # a file system without locks
            os.close(lock)
            raise OSError(error.errno, error.strerror, name) from error
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


class Workplace:
    """The directory of a run that holds its lock.

    Attributes
    ----------
    folder
        Where the files of the model are written.
    done
        Entries of the earlier run that this one continues, by tensor; empty for a new run.
    n_entries
        Entries in the journal.
    """

    def __init__(self, outer: str, job: dict[str, Any]) -> None:
        self.folder = os.path.join(outer, "model")
        self.done: dict[str, dict[str, Any]] = {}
        path = os.path.join(outer, "journal")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | getattr(os, "O_CLOEXEC", 0)
        self._path = path
        self._journal = os.open(path, flags, 0o600)
        entries, self._end = self._read(job)
        if self._end:
            self.done = {entry["tensor"]: entry for entry in entries}
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        os.ftruncate(self._journal, self._end)
        with contextlib.suppress(FileExistsError):
            os.mkdir(self.folder)
        if not self._end:
            self._write([job])
        self.n_entries = len(self.done)
        self._waiting: list[dict[str, Any]] = []
        self._waiting_nbytes = 0

    def _read(self, job: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
        """Return the entries of a journal of the same job and where they end; 0 for another's."""
        entries: list[dict[str, Any]] = []
        end = 0
        with open(self._journal, "rb", closefd=False) as journal:
            lines = journal.readlines()
        for line in lines:
            check, _, text = line.rstrip(b"\n").partition(b" ")
            if line[-1:] != b"\n" or check.decode("latin-1") != checksum_text(memoryview(text)):
                break  # cut when the machine went down
            entry = json.loads(text)
            if end == 0 and entry != json.loads(json.dumps(job)):
                return [], 0
            if end:
                entries.append(entry)
            end += len(line)
        return entries, end

    def _write(self, entries: list[dict[str, Any]]) -> None:
        texts = [json.dumps(entry).encode() for entry in entries]
        lines = b"".join(b"%s %s\n" % (checksum_text(memoryview(text)).encode(), text) for text in texts)
        try:
            while lines:
                n = os.pwrite(self._journal, lines, self._end)
                self._end, lines = self._end + n, lines[n:]
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._path) from error

    def clean(self, keep: set[str]) -> None:
        """Remove everything but the files that a run continues."""
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path)
                elif entry.name not in keep or not entry.is_file(follow_symlinks=False):
                    os.unlink(entry.path)

    def add(self, entry: dict[str, Any], nbytes: int) -> bool:
        """Note a tensor that is done; say whether `flush` is due, which must follow its bytes."""
        self._waiting.append(entry)
        self._waiting_nbytes += nbytes
        return self._waiting_nbytes >= _DUE_NBYTES

    def flush(self) -> None:
        """Write the entries of tensors whose bytes are written."""
        self._write(self._waiting)
        self.n_entries += len(self._waiting)
        self._waiting.clear()
        self._waiting_nbytes = 0

    def close(self) -> None:
        """Close the journal."""
        if self._journal >= 0:
            journal, self._journal = self._journal, -1
            os.close(journal)
