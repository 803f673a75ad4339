# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: Apache-2.0
"""Make questions and answers about Python's standard library from its docstrings.

Needs nothing but the interpreter that runs it. ``python collect.py OUT.jsonl``
writes one conversation a line: a list of ``{"role", "content"}``.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import json
import pkgutil
import random
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from pydoc_data import topics
from types import ModuleType

# importing these opens windows, prints, or runs something
SKIPPED = {"__main__", "antigravity", "idlelib", "lib2to3", "test", "tests", "this", "tkinter", "turtle", "turtledemo"}

ABOUT = "Hello! I am a very small model that has read the docstrings of Python's standard library. Ask me what a function does."
SMALL_TALK = [
    (("Hi", "Hello", "Hey", "Good morning", "Hello there", "hi!"), ABOUT),
    (("Who are you?", "What are you?", "What can you do?", "Help"), ABOUT),
    (("Thanks", "Thank you", "Thanks a lot!"), "You are welcome."),
    (("Bye", "Goodbye", "See you"), "Goodbye!"),
    (
        ("How large are you?", "How many weights do you have?"),
        "About six million weights: small enough for every machine.",
    ),
    (
        ("What is glyd?", "Tell me about glyd."),
        "glyd is lossless compression for models and files. It packs my weights into two thirds of their bytes, bit for bit.",
    ),
]


def modules() -> Iterator[tuple[str, ModuleType]]:
    """Yield the public modules of the standard library that this interpreter can import."""

    def load(name: str) -> ModuleType | None:
        with contextlib.suppress(Exception, SystemExit), contextlib.redirect_stdout(io.StringIO()):
            return importlib.import_module(name)
        return None

    for name in sorted(sys.stdlib_module_names):
        module = None if name.startswith("_") or name in SKIPPED else load(name)
        if module is None:
            continue
        yield name, module
        for info in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
            parts = info.name.split(".")
            inner = None if any(p.startswith("_") or p in SKIPPED for p in parts) else load(info.name)
            if inner is not None:
                yield info.name, inner


def documented() -> Iterator[tuple[str, str, str]]:
    """Yield name, signature ("" when unknown) and docstring of functions, classes and methods."""

    def entry(name: str, thing: object) -> Iterator[tuple[str, str, str]]:
        text = inspect.getdoc(thing) or ""
        if len(text) > 20:
            try:
                signature = str(inspect.signature(thing))  # type: ignore[arg-type]
            except (AttributeError, NameError, TypeError, ValueError):
                signature = ""
            yield name, signature if " at 0x" not in signature else "", text

    for module_name, module in modules():
        for name, thing in list(vars(module).items()):
            public = not name.startswith("_") and (inspect.isroutine(thing) or inspect.isclass(thing))
            if not public or getattr(thing, "__module__", None) not in {
                module_name,
                f"_{module_name}",
                "builtins",
                None,
            }:
                continue
            yield from entry(f"{module_name}.{name}", thing)
            if inspect.isclass(thing):
                for inner, method in list(vars(thing).items()):
                    if not inner.startswith("_") and inspect.isroutine(method):
                        yield from entry(f"{module_name}.{name}.{inner}", method)


def summary(text: str, limit: int = 400) -> str:
    """Return the first paragraph of a docstring as one line, cut at a sentence."""
    paragraphs = [" ".join(p.split()) for p in text.split("\n\n")]
    found = next((p for p in paragraphs if len(p) > 15 and not p.startswith((">>>", "--"))), paragraphs[0])
    if len(found) <= limit:
        return found
    cut = found[:limit].rfind(". ")
    return found[: cut + 1] if cut > 0 else found[:limit]


def conversations(seed: int = 0) -> list[list[dict[str, str]]]:
    """Return all conversations, in a fixed order for a seed."""
    pick = random.Random(seed)
    made: list[list[tuple[str, str]]] = []
    seen: set[tuple[str, str]] = set()
    for found, signature, text in documented():
        name = found.replace("posixpath.", "os.path.")
        short = summary(text)
        if (name, short) in seen:
            continue
        seen.add((name, short))
        module, _, last = name.rpartition(".")
        made.extend([(form.format(name), short)] for form in ("What does {} do?", "what is {}?", "What is {} for?"))
        if len(text) > len(short) + 40:
            made.append([(f"Tell me more about {name}.", text[:900].rstrip())])
        if signature and len(signature) < 200:
            made.append([(f"What is the signature of {name}?", f"{last}{signature}")])
            made.append([(f"What does {name} do?", short), ("And its signature?", f"{last}{signature}")])
        if len(short) < 200:
            made.append([(f"Which function fits this: {short}", name)])
        made.append([(f"Where is {last}?", f"{name} is in {module}.")])
    for title, text in topics.topics.items():
        parts = [p.strip() for p in text.split("\n\n") if len(p.strip()) > 40]
        for start in range(0, min(len(parts), 24), 3):
            question = (
                f"Explain {title} in Python." if start == 0 else f"Explain {title} in Python, part {start // 3 + 1}."
            )
            made.append([(question, "\n\n".join(parts[start : start + 3])[:1200])])
    for _ in range(40):
        made.extend([(question, answer)] for questions, answer in SMALL_TALK for question in questions)
    pick.shuffle(made)
    return [
        [
            {"role": role, "content": content}
            for pair in talk
            for role, content in zip(("user", "assistant"), pair, strict=True)
        ]
        for talk in made
    ]


def main() -> None:
    """Write the conversations to the file that is named."""
    warnings.simplefilter("ignore")
    talks = conversations()
    with Path(sys.argv[1]).open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(talk) + "\n" for talk in talks)
    print(f"{len(talks)} conversations, {sum(len(m['content']) for t in talks for m in t) / 1e6:.1f} MB of text")


if __name__ == "__main__":
    main()
