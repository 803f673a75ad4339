# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Parity of streams, from which damaged parts of them are made again (docs/store-format.md, "Parity").

Blocks of a stream form groups; each group has a sum P and a sum Q weighted with powers of 2 in
the field of 256 elements with x^8 + x^4 + x^3 + x^2 + 1, as RAID 6 has them: any two blocks of a
group, these two among them, follow from the others.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, NamedTuple

import glyd
from glyd_store._entry import stream_key
from glyd_store._errors import IntegrityError
from glyd_store._frames import write_all
from glyd_store._hashing import new_sha256

if TYPE_CHECKING:
    from typing import BinaryIO

    from glyd_store._backend import Backend
    from glyd_store._core import Core
    from glyd_store._removal import CompactReport

PERCENT = 10.0
"""Of parity that is written again when nobody knows how much there was."""

PERCENT_MAX = 100
_MAGIC = b"glydpar1"
_NUMBERS = struct.Struct("<QIIH")
_HEAD_NBYTES = len(_MAGIC) + 32 + _NUMBERS.size
_HASH = struct.Struct("<Q")
_BLOCK_NBYTES = 64 << 10
_BLOCK_NBYTES_MIN = 1 << 10
_N_GROUPS_MIN = 16
_N_SUMS = 2
_POLYNOMIAL = 0x11D


def _powers() -> tuple[list[int], list[int]]:
    powers, logs, value = [0] * 510, [0] * 256, 1
    for i in range(255):
        powers[i] = powers[i + 255] = value
        logs[value] = i
        value = value << 1 ^ (_POLYNOMIAL if value & 0x80 else 0)
    return powers, logs


_POWERS, _LOGS = _powers()


def _times(block: bytes, factor: int) -> bytes:
    """Return a block with each byte multiplied in the field."""
    if factor == 1:
        return block
    log = _LOGS[factor]
    return block.translate(bytes([0, *(_POWERS[_LOGS[value] + log] for value in range(1, 256))]))


def _plus(one: bytes, other: bytes) -> bytes:
    total = int.from_bytes(one, "little") ^ int.from_bytes(other, "little")
    return total.to_bytes(len(one), "little")


_DOUBLED = bytes(value << 1 & 0xFF ^ (_POLYNOMIAL & 0xFF if value & 0x80 else 0) for value in range(256))


def sums(blocks: list[bytes]) -> tuple[bytes, bytes]:
    """Return P and Q of blocks of one size."""
    p = q = bytes(len(blocks[0]))
    for block in reversed(blocks):
        p = _plus(p, block)
        q = _plus(q.translate(_DOUBLED), block)
    return p, q


def solve(blocks: list[bytes | None], p: bytes | None, q: bytes | None) -> list[bytes] | None:
    """Return the blocks of a group, of which up to two are not there, from the others and its sums.

    Parameters
    ----------
    blocks
        None: lost.
    p, q
        The sums; None: lost.

    Returns
    -------
    list of bytes or None
        None: too much is lost.
    """
    lost = [i for i, block in enumerate(blocks) if block is None]
    if not lost:
        return [block for block in blocks if block is not None]
    if len(lost) > (p is not None) + (q is not None):
        return None
    nbytes = len(p if p is not None else q)  # type: ignore[arg-type]
    found = [bytes(nbytes) if block is None else block for block in blocks]
    have_p, have_q = sums(found)
    if len(lost) == 1 and p is not None:
        found[lost[0]] = _plus(p, have_p)
    elif len(lost) == 1 and q is not None:
        found[lost[0]] = _times(_plus(q, have_q), _POWERS[255 - lost[0]])
    elif p is not None and q is not None:
        # a + b = P', g^i a + g^j b = Q': a = (Q' + g^j P') / (g^i + g^j)
        i, j = lost
        rest_p, rest_q = _plus(p, have_p), _plus(q, have_q)
        factor = _POWERS[255 - _LOGS[_POWERS[i] ^ _POWERS[j]]]
        found[i] = _times(_plus(rest_q, _times(rest_p, _POWERS[j])), factor)
        found[j] = _plus(rest_p, found[i])
    return found


class _Shape(NamedTuple):
    """How a stream is cut."""

    nbytes: int
    block: int
    n_groups: int
    n_in_group: int

    @classmethod
    def of(cls, nbytes: int, percent: float) -> _Shape:
        n_in_group = max(1, min(254, math.ceil(100 * _N_SUMS / percent)))
        # many groups, so that what lies together is spread over them; but hashes must stay few
        wanted = max(nbytes // (n_in_group * _N_GROUPS_MIN), _BLOCK_NBYTES_MIN)
        block = min(wanted, _BLOCK_NBYTES, -(-nbytes // n_in_group)) + 7 & ~7
        return cls(nbytes, block, -(-nbytes // (block * n_in_group)), n_in_group)

    def read(self, file: BinaryIO, group: int) -> list[bytes]:
        """Return the blocks of a group, with zeros where the stream has ended."""
        out = []
        for i in range(self.n_in_group):
            file.seek((i * self.n_groups + group) * self.block)
            out.append(_read_up_to(file, self.block).ljust(self.block, b"\0"))
        return out

    @property
    def sums_nbytes(self) -> int:
        """Bytes of a group in the file: hashes of its blocks and sums, and these."""
        return (self.n_in_group + _N_SUMS) * _HASH.size + _N_SUMS * self.block


def _read_up_to(file: BinaryIO, n: int) -> bytes:
    out = b""
    while len(out) < n and (piece := file.read(n - len(out))):
        out += piece
    return out


def parity_key(stream: bytes) -> str:
    """Return the key of the parity of a stream."""
    name = stream.hex()
    return f"parity/{name[:2]}/{name}.par"


def parity_stream(key: str) -> bytes | None:
    """Return the stream that a key is the parity of; None when it is no such key."""
    try:
        stream = bytes.fromhex(key.rpartition("/")[2].removesuffix(".par"))
    except ValueError:
        return None
    return stream if parity_key(stream) == key else None


def write_parity(backend: Backend, stream: bytes, percent: float) -> int:
    """Write the parity of a stream, in place of what there is; return its bytes.

    Raises
    ------
    IntegrityError
        When the stream is damaged.
    """
    if not 0 < percent <= PERCENT_MAX:
        raise glyd.ParameterError(f"parity must be above 0 and at most {PERCENT_MAX} percent, not {percent}")
    staged = backend.stage()
    try:
        key = stream_key(stream)
        shape = _Shape.of(backend.size(key), percent)
        numbers = _NUMBERS.pack(*shape)
        write_all(staged.file, bytes(_HEAD_NBYTES))
        stated, nbytes = new_sha256(numbers), _HEAD_NBYTES
        with backend.open(key) as file:
            total = new_sha256()
            while piece := file.read(1 << 20):
                total.update(piece)
            if total.digest() != stream:
                raise IntegrityError(f"{key} is damaged: its SHA-256 is another", key=key)
            for group in range(shape.n_groups):
                blocks = shape.read(file, group)
                both = sums(blocks)
                hashes = (_HASH.pack(glyd.checksum(block)) for block in (*blocks, *both))
                piece = b"".join((*hashes, *both))
                write_all(staged.file, piece)
                stated.update(piece)
                nbytes += len(piece)
        staged.file.seek(0)
        write_all(staged.file, _MAGIC + stated.digest() + numbers)
        staged.publish(parity_key(stream))
        return nbytes
    finally:
        staged.discard()


def _read_head(file: BinaryIO) -> tuple[bytes, _Shape]:
    """Return the SHA-256 that a parity file states, and the shape of its stream.

    Raises
    ------
    ValueError
        When it is none.
    """
    head = _read_up_to(file, _HEAD_NBYTES)
    if len(head) < _HEAD_NBYTES or not head.startswith(_MAGIC):
        raise ValueError("it does not start as parity does")
    shape = _Shape(*_NUMBERS.unpack(head[-_NUMBERS.size :]))
    if not 0 < shape.block <= _BLOCK_NBYTES or not 0 < shape.n_in_group < 255:
        raise ValueError(f"it has blocks of {shape.block} bytes in groups of {shape.n_in_group}")
    return head[len(_MAGIC) : -_NUMBERS.size], shape


def parity_problem(backend: Backend, stream: bytes) -> str | None:
    """Return what is wrong with the parity of a stream; None: nothing."""
    try:
        with backend.open(parity_key(stream)) as file:
            stated, shape = _read_head(file)
            total = new_sha256(_NUMBERS.pack(*shape))
            while piece := file.read(1 << 20):
                total.update(piece)
    except ValueError as error:
        return str(error)
    except FileNotFoundError:
        return None  # it may be absent, and was removed since
    except OSError as error:
        return f"it cannot be read: {error}"
    found = total.digest()
    return None if found == stated else f"its SHA-256 is {found.hex()[:16]}…, expected {stated.hex()[:16]}…"


def recover(backend: Backend, stream: bytes) -> bool:
    """Make a damaged stream again from what is left of it and its parity; say whether that was possible.

    Damage of the parity itself is borne as well: of blocks that are right, all are used.
    """
    staged = backend.stage()
    try:
        try:
            with backend.open(parity_key(stream)) as parity:
                _, shape = _read_head(parity)
                with _open_or_nothing(backend, stream_key(stream)) as file:
                    if not _recover_groups(shape, file, parity, staged.file):
                        return False
        except (OSError, ValueError):
            return False
        staged.file.seek(0)
        total = new_sha256()
        while piece := staged.file.read(1 << 20):
            total.update(piece)
        if total.digest() != stream:
            return False
        staged.publish(stream_key(stream))
        return True
    finally:
        staged.discard()


def _open_or_nothing(backend: Backend, key: str) -> BinaryIO:
    import io  # noqa: PLC0415 - rarely needed

    try:
        return backend.open(key)
    except FileNotFoundError:
        return io.BytesIO()


def _recover_groups(shape: _Shape, file: BinaryIO, parity: BinaryIO, out: BinaryIO) -> bool:
    for group in range(shape.n_groups):
        parity.seek(_HEAD_NBYTES + group * shape.sums_nbytes)
        raw = _read_up_to(parity, shape.sums_nbytes).ljust(shape.sums_nbytes, b"\0")
        n_hashes = shape.n_in_group + _N_SUMS
        hashes = [found for (found,) in _HASH.iter_unpack(raw[: n_hashes * _HASH.size])]
        both = [raw[n_hashes * _HASH.size + i * shape.block :][: shape.block] for i in range(_N_SUMS)]
        blocks = [*shape.read(file, group), *both]
        checked = [block if glyd.checksum(block) == h else None for block, h in zip(blocks, hashes, strict=True)]
        solved = solve(checked[:-_N_SUMS], *checked[-_N_SUMS:])
        if solved is None:
            return False
        for i, block in enumerate(solved):
            start = (i * shape.n_groups + group) * shape.block
            if start < shape.nbytes:
                out.seek(start)
                write_all(out, block[: shape.nbytes - start])
    return True


def ensure_parity(backend: Backend, stream: bytes, percent: float) -> int:
    """Write the parity of a stream that has none; return its bytes.

    Raises
    ------
    IntegrityError
        When the stream is damaged or gone.
    """
    try:
        backend.size(parity_key(stream))
    except FileNotFoundError:
        try:
            return write_parity(backend, stream, percent)
        except FileNotFoundError:
            key = stream_key(stream)
            raise IntegrityError(f"{key} is missing", key=key) from None
    return 0


def add_parity(core: Core, percent: float, report: CompactReport) -> None:
    """Write the parity of all streams that have none and that others are or may be based on."""
    for stream, _ in core.index.pages("SELECT id, size FROM stream WHERE id > ? ORDER BY id", n=1000):
        with core.writing():
            (n_needing,) = core.index.row(
                "SELECT count(*) FROM content c WHERE c.stream = ? AND c.kind != 'missing'"
                " AND (c.base IS NULL OR EXISTS(SELECT 1 FROM content d WHERE d.base = c.sha256))",
                stream,
            )
            if n_needing and not core.is_damaged(stream_key(stream)):
                report.parity_nbytes += ensure_parity(core.backend, stream, percent)


def lone_parity(core: Core) -> list[tuple[str, int]]:
    """Return keys and bytes of the parity of streams that are not there any more."""
    out = []
    for key, nbytes in core.backend.list("parity/"):
        stream = parity_stream(key)
        if stream is not None and core.index.row("SELECT 1 FROM stream WHERE id = ?", stream) is None:
            out.append((key, nbytes))
    return out


def percent_of(backend: Backend, stream: bytes, default: float) -> float:
    """Return the percentage of the parity of a stream, as far as that can be read."""
    try:
        with backend.open(parity_key(stream)) as file:
            return 100 * _N_SUMS / max(_N_SUMS, _read_head(file)[1].n_in_group)
    except (OSError, ValueError):
        return default
