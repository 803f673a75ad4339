# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The verbs of the command."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from glyd_store._errors import IntegrityError, ObjectNotFoundError, StoreError
from glyd_store._store import Store
from glyd_store.cli._arguments import UsageError, build_parser
from glyd_store.cli._errors import Exit, describe, shown
from glyd_store.cli._report import as_json, print_facts, print_objects, progress, size_text
from glyd_store.cli._signals import SIGNALS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from glyd_store._check_report import CheckReport
    from glyd_store._info import ObjectInfo


_LARGE_NBYTES = 8 << 20


class _FilePath(os.PathLike[str]):
    """A path of a file; ``pathlib`` takes 3 ms to load."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __fspath__(self) -> str:
        return self._path


def run(options: argparse.Namespace, prog: str) -> int:
    """Do what the command line says; return the exit code."""
    if options.verb == "audit":
        from glyd_store.cli._audit import audit  # noqa: PLC0415 - rarely needed

        return audit(options)
    if options.verb == "completion":
        return _completion(options, prog)
    verb: Callable[[Store, argparse.Namespace], int] = globals()[f"_{options.verb}"]
    total = _total(options)
    if options.verb == "put" and (total is None or total >= _LARGE_NBYTES):
        from glyd_store.cli._heap import keep_freed  # noqa: PLC0415 - not worth it for little

        keep_freed()
    with progress(options, total) as tell:
        store = Store(
            options.store,
            level=getattr(options, "level", "max"),
            threads=options.threads,
            lock_timeout_s=options.wait,
            cache=options.cache,
            break_lock=options.break_lock,
            progress=tell,
            parity=getattr(options, "parity", 0.0),
            open_streams=getattr(options, "open", False),
        )
        with store:
            return verb(store, options)


def _total(options: argparse.Namespace) -> int | None:
    if options.verb != "put":
        return None
    sizes = [os.path.getsize(path) for path in options.files if os.path.isfile(path)]
    return sum(sizes) if sizes and len(sizes) == len(options.files) else None


def reference(text: str, store: Store) -> str | int:
    """Return what OBJECT means: @ID, a name, or else an id."""
    if text.startswith("@") and text[1:].isascii() and text[1:].isdigit():
        return int(text[1:])
    if text.isascii() and text.isdigit() and len(text) < 19:
        try:
            store.info(text)
        except LookupError:
            return int(text)
    return text


def _completion(options: argparse.Namespace, prog: str) -> int:
    try:
        import shtab  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError("completion scripts need another package: pip install 'glyd-store[completion]'") from None
    print(shtab.complete(build_parser(prog), options.shell))
    return Exit.OK


# ---- put and get


def _put(store: Store, options: argparse.Namespace) -> int:
    tags = dict(options.tag)
    if options.command is not None:
        _told(options, _put_command(store, options, tags))
        return Exit.OK
    store.keep_large(len(options.files) > 1)
    for path in options.files:
        if path == "-":
            _told(options, _put_stdin(store, options, tags))
            continue
        if os.path.isdir(path):
            raise StoreError(f"{path} is a folder: put an archive of it (tar), or its files")
        name = options.name if options.name is not None else path
        _told(options, store.put(name, _FilePath(path), tags=tags))
    return Exit.OK


def _told(options: argparse.Namespace, info: ObjectInfo) -> None:
    if options.json:
        print(as_json(info), flush=True)
    elif not options.quiet:
        sizes = f"{size_text(info.size)} in {size_text(info.stored_nbytes)}"
        print(f"{shown(info.name)}: stored as {info.id}, {sizes}", file=sys.stderr, flush=True)


def _spool(source: BinaryIO) -> BinaryIO:
    import tempfile  # noqa: PLC0415 - costs 10 ms

    spool = cast("BinaryIO", tempfile.TemporaryFile())
    try:
        while chunk := source.read(1 << 20):
            spool.write(chunk)
    except BaseException:
        spool.close()
        raise
    return spool


def _put_stdin(store: Store, options: argparse.Namespace, tags: dict[str, str]) -> ObjectInfo:
    with _spool(sys.stdin.buffer) as spool:
        if spool.tell() == 0 and not options.allow_empty:
            raise StoreError("standard input is empty; nothing was stored (--allow-empty stores it)")
        spool.seek(0)
        return store.put(options.name, spool, tags=tags)


def _put_command(store: Store, options: argparse.Namespace, tags: dict[str, str]) -> ObjectInfo:
    """Store what a command prints, unless it fails: half a dump is no dump."""
    import subprocess  # noqa: PLC0415 - costs 10 ms

    # in a group of its own, to end all of it when we are stopped
    process = None
    try:
        with SIGNALS.held():
            process = subprocess.Popen(options.command, shell=True, stdout=subprocess.PIPE, start_new_session=True)  # noqa: S602
        assert process.stdout is not None  # noqa: S101 - for mypy
        with process.stdout as out, _spool(cast("BinaryIO", out)) as spool:
            code = process.wait()
            if code != 0:
                how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
                raise StoreError(f"the command {how}; nothing was stored")
            if spool.tell() == 0 and not options.allow_empty:
                raise StoreError("the command printed nothing; nothing was stored (--allow-empty stores it)")
            spool.seek(0)
            return store.put(options.name, spool, tags=tags)
    except BaseException:
        if process is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise


def _get(store: Store, options: argparse.Namespace) -> int:
    info = store.info(reference(options.object, store))
    if options.range is not None:
        return _get_range(store, options, info)
    if options.output is None:
        store.get_into(info, sys.stdout.buffer)
    elif os.path.exists(options.output) and not os.path.isfile(options.output):
        with open(options.output, "wb", buffering=0) as file:  # a device or a pipe
            store.get_into(info, cast("BinaryIO", file))
    else:
        store.get_into(info, _FilePath(options.output))
    return Exit.OK


def _get_range(store: Store, options: argparse.Namespace, info: ObjectInfo) -> int:
    start, end = options.range
    if start >= info.size:
        raise UsageError(f"the object has {info.size} bytes; the range starts at {start}")
    left = (info.size if end is None else min(end, info.size)) - start
    out = sys.stdout.buffer if options.output is None else open(options.output, "wb")
    try:
        with store.open(info) as file:
            file.seek(start)
            while left:
                piece = file.read(min(left, 1 << 20))
                if not piece:
                    raise IntegrityError(f"object {info.id} ends early")
                out.write(piece)
                left -= len(piece)
        out.flush()
    finally:
        if options.output is not None:
            out.close()
    return Exit.OK


def _tensors(store: Store, options: argparse.Namespace) -> int:
    info = store.info(reference(options.object, store))
    with store.open_tensors(info, "bytes") as tensors:
        if options.tensor is not None:
            if options.tensor not in tensors.keys():  # noqa: SIM118 - no dict
                raise ObjectNotFoundError(f"object {info.id} has no tensor {options.tensor!r}")
            data = tensors.get_tensor(options.tensor)
            if options.output is None:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            else:
                with open(options.output, "wb") as file:
                    file.write(data)
            return Exit.OK
        for name in tensors.offset_keys():
            part = tensors.get_slice(name)
            if options.json:
                print(json.dumps({"name": name, "dtype": part.get_dtype(), "shape": part.get_shape()}))
            else:
                print(f"{part.get_dtype():<8} {'x'.join(map(str, part.get_shape())):<20} {shown(name)}")
    return Exit.OK


def _restore(store: Store, options: argparse.Namespace) -> int:
    lost: list[str] = []

    def failed(info: ObjectInfo, error: IntegrityError) -> None:
        lost.append(info.name)
        print(f"glyd-store: {shown(info.name)}: {describe(error)}", file=sys.stderr)

    n = 0
    for info, path in store.restore(options.out, at=options.at, failed=failed if options.keep_going else None):
        n += 1
        if options.json:
            print(as_json(info, path=path))
    if not options.json and not options.quiet:
        print(f"{n} objects restored to {shown(options.out)}", file=sys.stderr)
    if lost:
        print(f"glyd-store: {len(lost)} objects cannot be read; run 'check'", file=sys.stderr)
    return Exit.CORRUPT if lost else Exit.OK


# ---- looking


def _list(store: Store, options: argparse.Namespace) -> int:
    if options.deleted:
        print_objects(store.list(deleted=True), options)
    else:
        print_objects(store.list() if options.all else store.newest(), options)
    return Exit.OK


def _versions(store: Store, options: argparse.Namespace) -> int:
    print_objects(store.versions(options.name), options)
    return Exit.OK


def _find(store: Store, options: argparse.Namespace) -> int:
    print_objects(store.find(options.pattern), options)
    return Exit.OK


def _stats(store: Store, options: argparse.Namespace) -> int:
    found = store.stats()
    facts: dict[str, object] = {name: getattr(found, name) for name in type(found).__slots__}
    print_facts({**facts, "ratio": round(found.ratio, 2)}, options)
    return Exit.OK


def _du(store: Store, options: argparse.Namespace) -> int:
    for name, n, size, stored in store.du():
        if options.json:
            print(json.dumps({"name": name, "n_versions": n, "size": size, "stored_nbytes": stored}))
        else:
            print(f"{n:>6} {size_text(size):>10} {size_text(stored):>10}  {shown(name)}")
    return Exit.OK


# ---- removing


def _delete(store: Store, options: argparse.Namespace) -> int:
    infos = [store.info(reference(text, store)) for text in options.objects]
    _deleted(store.delete(infos), options)
    return Exit.OK


def _deleted(infos: list[ObjectInfo], options: argparse.Namespace, what: str = "deleted") -> None:
    for info in infos:
        if options.json:
            print(as_json(info, what=what))
        elif not options.quiet:
            print(f"{what} {info.id}  {shown(info.name)}", file=sys.stderr)


def _undelete(store: Store, options: argparse.Namespace) -> int:
    numbers = [text.removeprefix("@") for text in options.objects]
    if not all(text.isascii() and text.isdigit() for text in numbers):
        raise UsageError("undelete takes ids (see list --deleted)")
    _deleted(store.undelete(map(int, numbers)), options, "took back")
    return Exit.OK


def _prune(store: Store, options: argparse.Namespace) -> int:
    kept, others = store.prune(options.policy, dry_run=options.dry_run)
    _deleted(others, options, "would delete" if options.dry_run else "deleted")
    if not options.quiet and not options.json:
        print(f"{len(kept)} versions kept, {len(others)} not", file=sys.stderr)
    return Exit.OK


def _compact(store: Store, options: argparse.Namespace) -> int:
    found = store.compact(grace=options.grace, dry_run=options.dry_run, level=options.again)
    print_facts({name: getattr(found, name) for name in type(found).__slots__}, options)
    return Exit.OK


def _rebase(store: Store, options: argparse.Namespace) -> int:
    for text in options.objects:
        _told(options, store.rebase(reference(text, store)))
    return Exit.OK


# ---- soundness


def _check(store: Store, options: argparse.Namespace) -> int:
    found = store.check(read_data=options.read_data, decode=options.decode, resume=options.resume)
    print_problems(found, options)
    return Exit.OK if found.ok else Exit.CORRUPT


def print_problems(found: CheckReport, options: argparse.Namespace) -> None:
    """Print what a check found."""
    facts: dict[str, object] = {name: getattr(found, name) for name in type(found).__slots__ if name != "problems"}
    if options.json:
        problems = [
            {"key": p.key, "what": p.what, "advice": p.advice, "objects": [{"id": i, "name": n} for i, n in p.objects]}
            for p in found.problems
        ]
        print(json.dumps({"ok": found.ok, **facts, "problems": problems}))
        return
    for problem in found.problems:
        print(f"damaged: {shown(problem.what)}")
        for number, name in problem.objects:
            print(f"  concerns {number}  {shown(name)}")
        if problem.advice:
            print(f"  {problem.advice}")
    if found.ok and not options.quiet:
        print(f"{found.n_objects} objects, {found.n_streams} streams: no damage found", file=sys.stderr)


def _repair(store: Store, options: argparse.Namespace) -> int:
    found = store.repair(options.sources)
    if not options.json:
        for key in found.repaired:
            print(f"repaired: {key}")
    assert found.remaining is not None  # noqa: S101 - set by repair
    print_problems(found.remaining, options)
    return Exit.OK if found.remaining.ok else Exit.CORRUPT


def _rebuild(store: Store, options: argparse.Namespace) -> int:
    damaged = store.rebuild()
    for error in damaged:
        print(f"damaged: {shown(str(error))}")
    if not options.quiet:
        print(f"the index has {store.stats().n_objects} objects", file=sys.stderr)
    return Exit.CORRUPT if damaged else Exit.OK
