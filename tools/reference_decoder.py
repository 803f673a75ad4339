# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Decode glyd frames slowly and strictly: a second reader, written from the format pages alone.

It follows docs/format.md and the spec.md of native/src/block, huffman, fields, base, record, cold, deflate and object in their order, shares
nothing with the library and refuses whatever breaks a *must* that a reader can see. Tests hold the two
against each other; whoever writes another decoder can start here.

    python tools/reference_decoder.py FILE [BASE] > CONTENT
    python tools/reference_decoder.py -D DICTIONARY FILE > CONTENT

Nothing is limited: an input of a few bytes can stand for gigabytes of content.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from reference_base import base_id, decode_base
from reference_blocks import decode_lz
from reference_bytes import Bytes, FormatError, unzigzag
from reference_cold import decode_cold
from reference_cold_tables import CONTENT_MAX, model_memory
from reference_dictionary import decode_dictionary, dictionary_memory
from reference_fields import decode_weights
from reference_filter import decode_filtered
from reference_objects import Dictionary
from reference_opened import decode_opened, opened_memory
from reference_rows import decode_records
from reference_xxh3 import xxh3_64

FRAME_MAGIC: Final = bytes.fromhex("9D474C59")
SKIPPABLE_MAGIC: Final = bytes.fromhex("9D474C53")
VERSION: Final = 1
BASE_RECORD: Final = 1
EXTENSIONS_MAX: Final = 1 << 20
PAYLOAD_SLACK: Final = 4096
DICTIONARY_RECORD: Final = 3
DICTIONARY_ID_SIZE: Final = 4
RECORDS: Final = 5
COLD: Final = 7
OPENED: Final = 9


class Header:
    """A frame header; reading it moves the source to the first segment."""

    def __init__(self, source: Bytes, base: bytes | None, dictionary: bytes | None) -> None:
        start = source.at
        source.take(4, "magic number")
        version = source.number(1, "version")
        if version != VERSION:
            raise FormatError("version", start, f"version {version}, {VERSION} expected")
        flags = source.number(1, "flags")
        source.number(1, "level id")
        segment_log = source.number(1, "segment log")
        memory_code = source.number(1, "memory code")
        self.content_size = source.varint("content size") if flags & 4 else None
        extensions = source.part(0, "no extension records")
        if flags & 16:
            size = source.varint("size of the extension records")
            source.require(size <= EXTENSIONS_MAX, f"{size} bytes of extension records")
            extensions = source.part(size, "extension records")
        hashed = source.data[start : source.at]
        check = source.number(4, "header check")
        source.require(check == xxh3_64(hashed) % (1 << 32), f"header check {check:#x}")

        if flags & 0xE0 or flags & 3 == 3:
            raise FormatError("feature", start, f"flags {flags:#x}")
        source.require(bool(flags & 12), "neither content size nor trailer")
        source.require(10 <= segment_log <= 30, f"segment log {segment_log}")
        source.require(self.content_size is None or self.content_size < 1 << 63, f"content size {self.content_size}")
        self.check_size = (0, 4, 8)[flags & 3]
        self.has_trailer = bool(flags & 8)
        self.segment_max = 1 << segment_log
        record_types = []
        self.base: bytes | None = None
        self.dictionary: bytes | None = None
        record = dictionary_id = None
        self.has_records = self.has_cold = self.has_opened = False
        while extensions.left:
            record_types.append(extensions.varint("record type"))
            part = extensions.part(extensions.varint("record length"), "extension record")
            if record_types[-1] == BASE_RECORD:
                extensions.require(record is None, "a second base record")
                record = part
            if record_types[-1] == DICTIONARY_RECORD:
                extensions.require(record_types.count(DICTIONARY_RECORD) == 1, "a second dictionary record")
                if part.left == DICTIONARY_ID_SIZE:
                    dictionary_id = part.number(DICTIONARY_ID_SIZE, "id of the dictionary")
            if record_types[-1] == RECORDS:
                extensions.require(record_types.count(RECORDS) == 1, "a second records record")
                self.has_records = part.left == 0  # with data it is one of a later version
            if record_types[-1] == COLD:
                extensions.require(record_types.count(COLD) == 1, "a second cold record")
                self.has_cold = part.left == 0
            if record_types[-1] == OPENED:
                extensions.require(record_types.count(OPENED) == 1, "a second opened record")
                self.has_opened = part.left == 0
        expected = memory_code_for(
            self.segment_max,
            self.content_size,
            has_base=record is not None,
            has_dictionary=dictionary_id is not None,
            has_records=self.has_records,
            has_cold=self.has_cold,
            has_opened=self.has_opened,
        )
        source.require(memory_code == expected, f"memory code {memory_code}, {expected} expected")
        for record_type in record_types:
            known = record_type == BASE_RECORD or (record_type == RECORDS and self.has_records)
            known = known or (record_type == DICTIONARY_RECORD and dictionary_id is not None)
            known = known or (record_type == COLD and self.has_cold) or (record_type == OPENED and self.has_opened)
            if record_type % 2 and not known:
                raise FormatError("feature", start, f"extension record of type {record_type}")
        source.require(record is None or dictionary_id is None, "a base and a dictionary")
        if record is not None:
            self.base = check_base(record, base)
        if dictionary_id is not None:
            self.dictionary = check_dictionary(dictionary_id, start, dictionary)


def check_base(record: Bytes, base: bytes | None) -> bytes:
    """Read a base record; return the base if it is the one."""
    name, size = record.take(16, "id of the base"), record.varint("size of the base")
    record.require(size < 1 << 63, f"base of {size} bytes")
    record.require(record.left == 0, f"{record.left} bytes after the size of the base")
    if base is None:
        raise FormatError("base missing", record.at, f"base {name.hex()} of {size} bytes")
    if len(base) != size or base_id(base) != name:
        raise FormatError("base wrong", record.at, f"base {name.hex()} of {size} bytes, {len(base)} found")
    return base


def check_dictionary(name: int, at: int, dictionary: bytes | None) -> bytes:
    """Return the content of the dictionary if it is the one."""
    if dictionary is None:
        raise FormatError("dictionary missing", at, f"dictionary {name:#x}")
    parsed = Dictionary(dictionary)
    if parsed.id != name:
        raise FormatError("dictionary wrong", at, f"dictionary {name:#x}, {parsed.id:#x} found")
    return parsed.content


def memory_code_for(
    segment_max: int,
    content_size: int | None,
    *,
    has_base: bool,
    has_dictionary: bool,
    has_records: bool,
    has_cold: bool,
    has_opened: bool,
) -> int:
    """Return the smallest memory code that is enough."""
    content = segment_max if content_size is None else min(segment_max, content_size)
    need = content * (3 if has_base else 2) + PAYLOAD_SLACK + (1 << 20)
    most = content
    if has_opened:
        more, most = opened_memory(content)
        need += more
    need += 3 * most + (4 << 20) if has_records else 0
    least = 0
    if has_dictionary:
        more, least = dictionary_memory(content)
        need += more
    need += max(model_memory(most), least) if has_cold else 0
    return next(m for m in range(256) if (8 + m % 8) * 2 ** (m // 8) * 1024 >= need)


def decode_segment(source: Bytes, kind: int, header: Header, left: int | None, inner_max: int = 0) -> bytes:
    """Decode a segment whose kind has been read; inner_max: it is inside another one, and may have so much content."""
    if kind not in {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}:
        raise FormatError("feature", source.at - 1, f"segment kind {kind}")
    source.require(not inner_max or kind not in {5, 9, 10}, f"segment of kind {kind} inside an opened one")
    source.require(kind != 9 or header.has_opened, "opened segment in a frame without an opened record")
    source.require(kind != 5 or header.base is not None, "a base segment without a base")
    source.require(kind != 10 or header.dictionary is not None, "a segment stored with a dictionary, without one")
    source.require(kind != 4 or header.has_records, "record segment in a frame without records")
    source.require(kind != 7 or header.has_cold, "cold segment in a frame without a cold record")
    size = source.varint("segment content size")
    most = inner_max or header.segment_max
    source.require(1 <= size <= most, f"segment of {size} bytes, at most {most} expected")
    source.require(kind != 7 or size <= CONTENT_MAX, f"cold segment of {size} bytes, at most {CONTENT_MAX} expected")
    source.require(left is None or size <= left, f"segment of {size} bytes, {left} left of the content size")
    payload_size = source.varint("segment payload size")
    source.require(1 <= payload_size <= size + PAYLOAD_SLACK, f"payload of {payload_size} bytes for {size}")
    source.require(kind != 1 or payload_size == size, f"raw payload of {payload_size} bytes for {size}")
    source.require(kind != 2 or payload_size == 1, f"fill payload of {payload_size} bytes")
    check = source.number(header.check_size, "segment check")
    payload = source.part(payload_size, "segment payload")
    if kind == 1:
        content = payload.take(size, "raw payload")
    elif kind == 2:
        content = payload.take(1, "fill payload") * size
    elif kind == 3:
        content = decode_lz(payload, size)
    elif kind == 4:
        content = decode_records(payload, size)
    elif kind == 5:
        content = decode_base(payload, size, header.base or b"")
    elif kind == 6:
        content = decode_weights(payload, size, header.base)
    elif kind == 7:
        content = decode_cold(payload, size)
    elif kind == 8:
        content = decode_filtered(payload, size)
    elif kind == 10:
        content = decode_dictionary(payload, size, header.dictionary or b"", has_cold=header.has_cold)
    else:
        content = decode_opened(
            payload, size, lambda part, most, rest: decode_segment(part, part.number(1, "kind"), header, rest, most)
        )
    if header.check_size and check != xxh3_64(content) % (1 << (8 * header.check_size)):
        raise FormatError("checksum", source.at, f"content does not match its check {check:#x}")
    return content


def check_trailer(source: Bytes, frame_start: int, segment_max: int, entries: list[tuple[int, int]]) -> None:
    """Read a trailer from its 0 byte on; entries are content size and stored size of the segments met."""
    start = source.at
    source.require(source.number(1, "trailer") == 0, "no trailer where it must start")
    n = source.varint("number of segments")
    source.require(n == len(entries), f"index of {n} segments, {len(entries)} met")
    content_size, stored_size = segment_max, 0
    for entry in entries:
        content_size += unzigzag(source.varint("content size"))
        stored_size += unzigzag(source.varint("stored size"))
        source.require((content_size, stored_size) == entry, f"index has {content_size, stored_size}, met {entry}")
    total = source.number(8, "content size of the frame")
    source.require(total == sum(size for size, _ in entries), f"content size {total}")
    frame_size = source.number(8, "frame size")
    trailer_size = source.number(4, "trailer size")
    hashed = source.data[start : source.at]
    check = source.number(4, "trailer check")
    source.require(frame_size == source.at - frame_start, f"frame size {frame_size}")
    source.require(trailer_size == source.at - start, f"trailer size {trailer_size}")
    source.require(check == xxh3_64(hashed) % (1 << 32), f"trailer check {check:#x}")


def decode_frame(data: bytes, start: int, out: bytearray, base: bytes | None, dictionary: bytes | None) -> int:
    """Decode the frame that starts there; return where it ends."""
    header = Header(source := Bytes(data, start, len(data), bad="header", short="truncated"), base, dictionary)
    source.bad = "corrupt"
    left = header.content_size
    entries: list[tuple[int, int]] = []
    while left != 0:
        segment_start = source.at
        kind = source.number(1, "segment kind")
        if kind == 0:
            source.require(left is None, f"segments end {left} bytes before the content size")
            source.at -= 1
            break
        content = decode_segment(source, kind, header, left)
        out += content
        entries.append((len(content), source.at - segment_start))
        left = None if left is None else left - len(content)
    if header.has_trailer:
        check_trailer(source, start, header.segment_max, entries)
    return source.at


def skip_frame(data: bytes, start: int) -> int:
    """Pass over the skippable frame that starts there; return where it ends."""
    source = Bytes(data, start, len(data), bad="header", short="truncated")
    source.take(8, "magic number and tag")
    size = source.number(8, "size")
    check = source.number(4, "header check")
    source.require(check == xxh3_64(data[start : start + 16]) % (1 << 32), f"header check {check:#x}")
    source.take(size, "skippable data")
    return source.at


def decode(data: bytes, base: bytes | None = None, dictionary: bytes | None = None) -> bytes:
    """Return the content of a stream; raise FormatError unless it is valid, base and dictionary those it names, if any."""
    if not data:
        raise FormatError("truncated", 0, "no bytes")
    out = bytearray()
    at = 0
    while at < len(data):
        magic = data[at : at + 4]
        if magic == FRAME_MAGIC:
            at = decode_frame(data, at, out, base, dictionary)
        elif magic == SKIPPABLE_MAGIC:
            at = skip_frame(data, at)
        elif FRAME_MAGIC.startswith(magic) or SKIPPABLE_MAGIC.startswith(magic):
            raise FormatError("truncated", at, f"{len(magic)} bytes of a magic number")
        else:
            raise FormatError("trailing" if at else "magic", at, f"no magic number: {magic.hex()}")
    return bytes(out)


def main() -> int:
    """Decode the file named; 0 when it is valid."""
    words = sys.argv[1:]
    has_dictionary = words[:1] == ["-D"]
    if len(words) not in ({3} if has_dictionary else {1, 2}):
        sys.stderr.write("usage: reference_decoder.py FILE [BASE] > CONTENT, or -D DICTIONARY FILE > CONTENT\n")
        return 2
    try:
        files = [Path(name).read_bytes() for name in words[has_dictionary:]]
        content = decode(files[1], None, files[0]) if has_dictionary else decode(*files)
    except FormatError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.buffer.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
