# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
"""Write the golden files of frames against a base, in native/tests/golden_base.

    python tools/make_base_golden.py            generated frames and broken headers, from the tools alone
    python tools/make_base_golden.py encoded    what the glyd package that is installed writes

NAME.glyd is a frame and NAME.base its base. manifest.txt has a line for each: name, the status that reading
it with that base must give (status.h; 0 is success), and size and XXH3-64 of the content. Files once released
stay: a change here may add to them, never alter what is there.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Final

from base_generator import broken_headers, trained, valid_difference_frame, valid_frame, versions
from reference_bytes import FormatError
from reference_decoder import decode
from reference_xxh3 import xxh3_64

GOLDEN: Final = Path(__file__).resolve().parent.parent / "native" / "tests" / "golden_base"
STATUS: Final = {"header": 13, "corrupt": 20, "base wrong": 31}
FILE_MAX: Final = 2500


def line(name: str, data: bytes, base: bytes) -> str:
    """Return the line of the manifest for a frame."""
    try:
        content = decode(data, base)
    except FormatError as error:
        return f"{name} {STATUS[error.category]} 0 0"
    return f"{name} 0 {len(content)} {xxh3_64(content):x}"


def main() -> int:
    """Write the files and the manifest."""
    GOLDEN.mkdir(exist_ok=True)
    found: dict[str, tuple[bytes, bytes]] = {}
    if sys.argv[1:] == ["encoded"]:
        import glyd  # noqa: PLC0415 -- what is installed, and only here

        for seed in range(4):
            for level in (level for level in glyd.LEVELS if level != "cold"):  # which takes no base
                rng = random.Random(seed)  # noqa: S311 -- test data
                base, new = versions(rng)
                frame = glyd.compress(new, level, base=base, segment_size=2048)  # type: ignore[arg-type]
                found[f"encoded-{level}-{seed}"] = frame, base
        for kind, share in (("bf16", 0.02), ("bf16", 1), ("fp16", 0.3), ("fp32", 0.02)):
            base, new = trained(random.Random(5), kind, 5000, share)  # noqa: S311 -- test data
            found[f"encoded-trained-{kind}-{share}"] = glyd.compress(new, base=base), base
    else:
        for seed in range(60):
            data, base, _ = valid_frame(random.Random(seed), seed % 3)  # noqa: S311 -- test data
            if len(data) <= FILE_MAX:
                found[f"generated-{seed:02}"] = data, base
            data, base, _ = valid_difference_frame(random.Random(seed), check_kind=seed % 3)  # noqa: S311 -- test data
            if len(data) <= FILE_MAX and len(base) <= FILE_MAX:
                found[f"generated-difference-{seed:02}"] = data, base
        for name, (data, base, _) in broken_headers().items():
            found[f"broken-{name.replace('^', '-')}"] = data, base
    manifest = GOLDEN / "manifest.txt"
    old = manifest.read_text(encoding="utf-8").splitlines() if manifest.is_file() else []
    lines = {entry.split()[0]: entry for entry in old}
    for name, (data, base) in found.items():
        (GOLDEN / f"{name}.glyd").write_bytes(data)
        (GOLDEN / f"{name}.base").write_bytes(base)
        lines[name] = line(name, data, base)
    manifest.write_text("\n".join(lines[name] for name in sorted(lines)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
