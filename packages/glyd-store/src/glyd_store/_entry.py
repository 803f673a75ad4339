# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Entries of the journal: the sidecars that say what was committed (docs/store-format.md)."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, NamedTuple

import glyd
from glyd_store._errors import IntegrityError, StoreVersionError
from glyd_store._hashing import new_sha256

if TYPE_CHECKING:
    from typing import Any

_MAGIC = b"glydjnl1"
_HEAD = struct.Struct("<8s32sI")
JSON_NBYTES_MAX = 1 << 30
"""Room that the JSON of an entry may take: more is no entry of ours."""

FORMAT = 1
DECODES_MAX = 32
"""Frames that are decoded for one content, at most; more than a few only where the deltas are small (`_bases`)."""

FINGERPRINT_NBYTES = 6
"""What is kept of a fingerprint: enough to tell apart those of a million contents."""


# No dataclasses here and in what a put or get needs besides: importing those costs 6 ms, and a class 0.5.


class Place:
    """Where the bytes of a content are.

    Attributes
    ----------
    kind
        "payload": a frame within the entry; "stream": all of a stream; "member": a range
        of the content of a stream; "opened": what `glyd.close_streams` makes of the base.
    stream
        SHA-256 of the stream; empty for a payload and what is opened.
    offset, nbytes
        Of the frame in the payload, or offset in the content of the stream.
    """

    __slots__ = ("kind", "nbytes", "offset", "stream")

    def __init__(self, kind: str, stream: bytes = b"", offset: int = 0, nbytes: int = 0) -> None:
        self.kind = kind
        self.stream = stream
        self.offset = offset
        self.nbytes = nbytes

    def to_list(self) -> list[Any]:
        """Return it as JSON has it."""
        if self.kind == "payload":
            return ["payload", self.offset, self.nbytes]
        if self.kind == "stream":
            return ["stream", self.stream.hex()]
        if self.kind == "opened":
            return ["opened"]
        return ["member", self.stream.hex(), self.offset]

    @classmethod
    def from_list(cls, found: list[Any]) -> Place:
        """Return the place that JSON describes."""
        kind = found[0]
        if kind == "payload":
            return cls("payload", b"", _count(found[1]), _count(found[2]))
        if kind == "stream":
            return cls("stream", _hash(found[1]))
        if kind == "member":
            return cls("member", _hash(found[1]), _count(found[2]))
        if kind == "opened":
            return cls("opened")
        raise ValueError(f"no place is called {kind!r}")


class Content:
    """Bytes that objects have, stated once however many there are."""

    __slots__ = ("at", "base", "check", "family", "fingerprints", "member", "sha256", "size")

    def __init__(
        self,
        sha256: bytes,
        size: int,
        at: Place,
        base: bytes | None = None,
        family: str = "",
        member: int = 0,
        fingerprints: tuple[int, ...] = (),
        check: bytes | None = None,
    ) -> None:
        self.sha256 = sha256
        self.size = size
        self.at = at
        self.base = base
        self.family = family
        self.member = member
        self.fingerprints = fingerprints
        self.check = check

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        out: dict[str, Any] = {"sha256": self.sha256.hex(), "size": self.size, "at": self.at.to_list()}
        if self.base is not None:
            out["base"] = self.base.hex()
        if self.family:
            out["family"], out["member"] = self.family, self.member
        if self.check is not None:
            out["check"] = self.check.hex()
        if self.fingerprints:
            out["fp"] = b"".join(value.to_bytes(FINGERPRINT_NBYTES, "big") for value in self.fingerprints).hex()
        return out

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Content:
        """Return the content that JSON describes."""
        raw = bytes.fromhex(found.get("fp", ""))
        base = found.get("base")
        if base is None and found["at"][0] == "opened":
            raise ValueError("opened content without a base")
        return cls(
            _hash(found["sha256"]),
            _count(found["size"]),
            Place.from_list(found["at"]),
            None if base is None else _hash(base),
            str(found.get("family", "")),
            _count(found.get("member", 0)),
            tuple(
                int.from_bytes(raw[at : at + FINGERPRINT_NBYTES], "big")
                for at in range(0, len(raw), FINGERPRINT_NBYTES)
            ),
            _hash(found["check"], 16) if "check" in found else None,
        )


class Version(NamedTuple):
    """An object: one version under one name."""

    id: int
    name: str
    time: int
    sha256: bytes
    size: int
    tags: dict[str, str]
    deleted: int | None = None

    def to_list(self) -> list[Any]:
        """Return it as JSON has it."""
        out = [self.id, self.name, self.time, self.sha256.hex(), self.size, self.tags]
        return out if self.deleted is None else [*out, self.deleted]

    @classmethod
    def from_list(cls, found: list[Any]) -> Version:
        """Return the object that JSON describes."""
        number, name, time, sha256, size, tags = found[:6]
        deleted = int(found[6]) if len(found) > 6 else None
        return cls(_count(number), str(name), int(time), _hash(sha256), _count(size), dict(tags), deleted)


class Stream(NamedTuple):
    """A file of the store that holds a frame."""

    id: bytes
    nbytes: int
    size: int


class Entry:
    """One commit; members as in docs/store-format.md, and `nbytes` of it when it was read or written."""

    __slots__ = (
        "contents",
        "delete",
        "drop_entries",
        "drop_streams",
        "kind",
        "nbytes",
        "next_id",
        "objects",
        "payload",
        "seq",
        "store",
        "streams",
        "time",
        "undelete",
    )

    def __init__(self, store: str, seq: int, time: int, kind: str, next_id: int) -> None:
        self.store = store
        self.seq = seq
        self.time = time
        self.kind = kind
        self.next_id = next_id
        self.objects: list[Version] = []
        self.contents: list[Content] = []
        self.streams: list[Stream] = []
        self.delete: list[int] = []
        self.undelete: list[int] = []
        self.drop_entries: list[int] = []
        self.drop_streams: list[bytes] = []
        self.payload = b""
        self.nbytes = 0


def entry_key(seq: int) -> str:
    """Return the key of an entry."""
    return f"journal/{seq // 1024:07d}/{seq:010d}.entry"


def entry_seq(key: str) -> int | None:
    """Return the number of the entry that has a key; None when it is no key of an entry."""
    name = key.rpartition("/")[2].removesuffix(".entry")
    if name.isascii() and name.isdigit() and entry_key(int(name)) == key:
        return int(name)
    return None


def stream_key(stream: bytes) -> str:
    """Return the key of a stream."""
    name = stream.hex()
    return f"streams/{name[:2]}/{name}.glyd"


def encode_entry(entry: Entry) -> bytes:
    """Return the bytes of an entry."""
    out: dict[str, Any] = {
        "format": FORMAT,
        "store": entry.store,
        "seq": entry.seq,
        "time": entry.time,
        "kind": entry.kind,
        "next_id": entry.next_id,
    }
    lists: dict[str, list[Any]] = {
        "objects": [v.to_list() for v in entry.objects],
        "contents": [c.to_dict() for c in entry.contents],
        "streams": [[s.id.hex(), s.nbytes, s.size] for s in entry.streams],
        "delete": entry.delete,
        "undelete": entry.undelete,
    }
    out.update({name: found for name, found in lists.items() if found})
    if entry.drop_entries or entry.drop_streams:
        out["drop"] = {"entries": entry.drop_entries, "streams": [s.hex() for s in entry.drop_streams]}
    text = json.dumps(out, separators=(",", ":")).encode("ascii")
    frame = glyd.compress(text, "max", threads=1)  # hashes in hexadecimal: half the bytes
    tail = struct.pack("<I", len(frame)) + frame + entry.payload
    return _MAGIC + new_sha256(tail).digest() + tail


def decode_entry(data: bytes, key: str, store: str | None = None) -> Entry:
    """Return the entry that bytes are.

    Parameters
    ----------
    data
        All bytes of the file.
    key
        Its key, which says the number that it must have.
    store
        Id of the store that it must belong to; None: any.

    Raises
    ------
    IntegrityError
        When they are damaged, or belong elsewhere.
    StoreVersionError
        When the entry is of a newer format.
    """
    if len(data) < _HEAD.size:
        raise IntegrityError(f"{key} is damaged: {len(data)} bytes, at least {_HEAD.size} expected", key=key)
    magic, check, n_json = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise IntegrityError(f"{key} is damaged: it starts with {magic!r}, expected {_MAGIC!r}", key=key)
    found = new_sha256(memoryview(data)[40:]).digest()
    if found != check:
        raise IntegrityError(f"{key} is damaged: SHA-256 {found.hex()[:16]}…, expected {check.hex()[:16]}…", key=key)
    try:
        text = glyd.decompress(data[_HEAD.size : _HEAD.size + n_json], max_size=JSON_NBYTES_MAX, threads=1)
        entry = _from_json(json.loads(text))
    except StoreVersionError:
        raise
    except (glyd.GlydError, ValueError, KeyError, TypeError, IndexError) as error:
        raise IntegrityError(f"{key} is no entry: {type(error).__name__}: {error}", key=key) from None
    if entry.seq != entry_seq(key):
        raise IntegrityError(f"{key} holds the entry {entry.seq}", key=key)
    if store is not None and entry.store != store:
        raise IntegrityError(f"{key} belongs to the store {entry.store}, this is {store}", key=key)
    entry.payload = data[_HEAD.size + n_json :]
    entry.nbytes = len(data)
    return entry


def _from_json(found: dict[str, Any]) -> Entry:
    if found["format"] != FORMAT:
        raise StoreVersionError(f"the entry {found['seq']} is of store format {found['format']}, known is {FORMAT}")
    drop = found.get("drop", {})
    entry = Entry(
        str(found["store"]), _count(found["seq"]), int(found["time"]), str(found["kind"]), _count(found["next_id"])
    )
    entry.objects = [Version.from_list(v) for v in found.get("objects", [])]
    entry.contents = [Content.from_dict(c) for c in found.get("contents", [])]
    entry.streams = [Stream(_hash(i), _count(n), _count(size)) for i, n, size in found.get("streams", [])]
    entry.delete = [_count(i) for i in found.get("delete", [])]
    entry.undelete = [_count(i) for i in found.get("undelete", [])]
    entry.drop_entries = [_count(i) for i in drop.get("entries", [])]
    entry.drop_streams = [_hash(s) for s in drop.get("streams", [])]
    return entry


def _hash(text: Any, n: int = 32) -> bytes:
    out = bytes.fromhex(text)
    if len(out) != n:
        raise ValueError(f"{text!r} is no hash of {n} bytes")
    return out


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise ValueError(f"{value!r} is no count")
    return value
