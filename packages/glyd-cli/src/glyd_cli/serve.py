# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``glyd run`` and ``glyd serve``: what can be checked without torch, then over to the serving package."""

from __future__ import annotations

import argparse
import importlib.util
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from glyd_cli import machine
from glyd_cli.arguments import Parser
from glyd_cli.errors import Exit, UsageError
from glyd_cli.serve_checks import check_model, listen, missing_packages, read_keys

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal

    from glyd_cli.report import Reporter

_HOST = re.compile(r"[A-Za-z0-9_.-]+|\[?[0-9A-Fa-f:.]+\]?")
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@dataclass
class ServeOptions:
    """A command line of ``run`` or ``serve``, understood.

    Attributes
    ----------
    model
        Directory or hub id.
    others
        More models to serve behind the same port.
    graphs
        Steps of answers are captured in CUDA graphs; None: where that can be.
    kv
        How keys and values are held; auto: plain, since steps with packed ones take longer.
    prefix_dir
        Folder in which system prompts' keys and values are kept for the next start; None: they are not.
    idle_unload
        Seconds without a request after which a model is unloaded; None: never.
    host, port
        Where the API listens; port 0 takes a free one, None (run) 8000 or a free one.
    context
        Window wanted, None: the model's own or what memory allows.
    slots, queue
        Requests that run, and that wait, at once.
    prompt
        ``-p``: answer this and exit.
    engine
        What runs the model; auto: vLLM where it is installed and there is a GPU.
    engine_flags
        What follows ``--``: flags of vLLM's.
    """

    verb: str = "run"
    model: str = ""
    others: list[str] = field(default_factory=list)
    idle_unload: float | None = None
    host: str = "127.0.0.1"
    port: int | None = None
    context: int | None = None
    slots: int | None = None
    queue: int = 256
    layout: Literal["auto", "tiered", "mma12"] = "auto"
    exact: bool = False
    verify: bool = False
    graphs: bool | None = None
    kv: Literal["auto", "plain", "packed"] = "auto"
    prefix_dir: str | None = None
    device: str | None = None
    name: str | None = None
    alias: list[str] = field(default_factory=list)
    revision: str | None = None
    prompt: str | None = None
    system: str | None = None
    think: bool = True
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    api_key_file: str | None = None
    allow_host: list[str] = field(default_factory=list)
    trust_remote_code: bool = False
    page: bool = True
    engine: Literal["auto", "vllm", "transformers"] = "auto"
    engine_flags: list[str] = field(default_factory=list)

    def each(self) -> list[ServeOptions]:
        """Return options of each model alone, in order."""
        return [replace(self, model=model, others=[]) for model in (self.model, *self.others)]


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:10]) <= 1 << 24:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {1 << 24}")
    return int(text)


def is_text(text: str) -> bool:
    """Say whether text from outside was UTF-8: Python keeps what was not as surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _seed(text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,20}", text) or not -(1 << 63) <= int(text) < 1 << 64:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from -2^63 to 2^64 - 1")
    return int(text)


def _duration(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)(s|m|h|)", text)
    seconds = float(found[1]) * {"s": 1, "m": 60, "h": 3600, "": 1}[found[2]] if found else 0
    if not seconds:
        raise argparse.ArgumentTypeError(f"{text!r} is no time, such as 90s, 10m or 2h")
    return seconds


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text[:6]) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port (0 … 65535; 0: any that is free)")
    return int(text)


def build_serve_parser() -> argparse.ArgumentParser:
    """Return the parser of what follows ``run`` and ``serve``; destinations are fields of `ServeOptions`."""
    parser = Parser(prog="glyd", add_help=False, allow_abbrev=False)
    add = parser.add_argument
    add("--host", metavar="ADDRESS")
    add("--port", metavar="N", type=_port)
    add("--engine", choices=("auto", "vllm", "transformers"))
    add("--context", metavar="N", type=_count)
    add("--slots", metavar="N", type=_count)
    add("--queue", metavar="N", type=_count)
    add("--layout", choices=("auto", "tiered", "mma12"))
    add("--exact", action="store_true", default=None)
    add("--verify", action="store_true", default=None)
    add("--graphs", action=argparse.BooleanOptionalAction)
    add("--kv", choices=("auto", "plain", "packed"))
    add("--prefix-dir", metavar="DIR")
    add("--device", metavar="NAME")
    add("--name", metavar="ID")
    add("--alias", metavar="ID", action="append")
    add("--revision", metavar="REV")
    add("--idle-unload", metavar="TIME", type=_duration)
    add("--api-key-file", metavar="FILE")
    add("--allow-host", metavar="NAME", action="append")
    add("--trust-remote-code", action="store_true", default=None)
    add("-p", "--prompt", metavar="TEXT")
    add("--system", metavar="TEXT")
    add("--no-think", dest="think", action="store_false", default=None)
    add("--temperature", type=float)
    add("--max-tokens", metavar="N", type=_count)
    add("--seed", metavar="N", type=_seed)
    add("-h", "--help", dest="help", action="store_true", default=None)
    add("model", metavar="MODEL", nargs="*")
    return parser


_RUN_ONLY = ("prompt", "system", "think", "temperature", "max_tokens", "seed")


def parse_serve(verb: str, words: Sequence[str]) -> ServeOptions | None:
    """Understand what follows the verb; None asks for the help page.

    Raises
    ------
    UsageError
        For options that do not exist, contradict each other or lack a value.
    """
    words, flags = list(words), []
    if "--" in words:
        words, flags = words[: words.index("--")], words[words.index("--") + 1 :]
    try:
        given = vars(build_serve_parser().parse_intermixed_args(words))
    except argparse.ArgumentError as error:
        raise UsageError(str(error).removeprefix("argument ")) from None
    if given.pop("help"):
        return None
    models = given.pop("model")
    if not models or not all(models) or (verb == "run" and len(models) > 1):
        n = "one MODEL" if verb == "run" else "MODEL …"
        raise UsageError(f"{verb} takes {n}: a directory or the id of a model on the hub; found {len(models)}")
    if verb == "run" and given["idle_unload"] is not None:
        raise UsageError("--idle-unload goes with serve")
    if len(models) > 1:
        for name in ("name", "revision"):
            if given[name] is not None:
                raise UsageError(f"--{name} goes with one model, found {len(models)}")
    if verb == "serve":
        for name in _RUN_ONLY:
            if given[name] is not None:
                raise UsageError(f"--{name.replace('_', '-')} goes with run")
    options = ServeOptions(verb=verb, model=models[0], **{k: v for k, v in given.items() if v is not None})
    options.others = models[1:]
    options.engine_flags = flags
    if (flags or options.engine == "vllm") and options.kv == "packed":
        raise UsageError("--kv packed: not with vLLM, whose pages are its own (--kv-cache-dtype and others follow --)")
    if options.prefix_dir is not None and options.kv == "packed":
        raise UsageError("--prefix-dir: not with --kv packed, whose cache is of another kind")
    if options.prefix_dir is not None and (flags or options.engine == "vllm"):
        raise UsageError("--prefix-dir: not with vLLM, which keeps prefixes in memory alone")
    if (flags or options.engine == "vllm") and (options.others or options.idle_unload is not None):
        what = "several models behind one port" if options.others else "--idle-unload"
        raise UsageError(f"{what}: not with vLLM, which runs one model in a process of its own")
    if flags and options.engine == "transformers":
        raise UsageError(f"{flags[0]}: what follows -- goes to vLLM, and --engine transformers runs without it")
    for name in ("prompt", "system"):
        if not is_text(getattr(options, name) or ""):
            raise UsageError(f"--{name} is no text in UTF-8")
    strange = next((name for name in options.allow_host if not _HOST.fullmatch(name)), None)
    if strange is not None:
        raise UsageError(f"--allow-host takes the name of a host alone, as chat.example.org; found {strange!r}")
    if options.temperature is not None and not 0 <= options.temperature <= 2:
        raise UsageError(f"--temperature is from 0 to 2, found {options.temperature}")
    return options


def run_serve_verb(options: ServeOptions, reporter: Reporter) -> Exit:
    """Check what can be checked at once, then load and serve the model.

    Raises
    ------
    UsageError
        Something is missing that the user can install or change.
    FileError
        The model cannot be read, or the port is taken.
    """
    missing = missing_packages()
    if missing:
        raise UsageError(f"{options.verb} needs {', '.join(missing)}: python -m pip install 'glyd-cli[serve]'")
    for one in options.each():
        check_model(one)
    keys = read_keys(options.api_key_file)
    if not options.host:
        raise UsageError("--host is empty: 127.0.0.1 is this machine alone, 0.0.0.0 every address")
    if options.host not in _LOOPBACK and not keys:
        raise UsageError(
            f"--host {options.host} opens the model to the network: set a key in GLYD_API_KEY first, or "
            "in a file for --api-key-file (clients send it as their API key)"
        )
    listener = None
    if options.prompt is None:
        listener = listen(options)
    options.engine = chosen_engine(options)
    from glyd_cli.serving.verbs import serve_model  # noqa: PLC0415 - imports torch

    return serve_model(options, reporter, listener, keys)


def chosen_engine(options: ServeOptions) -> Literal["vllm", "transformers"]:
    """Return what runs the model.

    Raises
    ------
    UsageError
        vLLM is asked for, or flags of its, and it is not there.
    """
    there = importlib.util.find_spec("vllm") is not None
    if options.engine == "vllm" or options.engine_flags:
        if not there:
            raise UsageError("vLLM is not installed in this Python: python -m pip install vllm")
        return "vllm"
    on_gpu = options.device is None or options.device.startswith("cuda")
    alone = not options.others and options.idle_unload is None and options.kv != "packed"
    alone = alone and options.prefix_dir is None
    if options.engine == "auto" and there and on_gpu and alone and machine.cards():
        return "vllm"
    return "transformers"


HELP = """\
glyd run MODEL      chat with a model in this terminal, with an API and a page beside it
glyd serve MODEL …  an OpenAI API for other programs, with one model or several

  MODEL is a directory (a bf16 checkpoint or what glyd pack made of one) or the
  id of a model on the Hugging Face hub. Weights are held packed, bit for bit.

      --host ADDRESS     listen there (127.0.0.1); others need GLYD_API_KEY
      --port N           8000; 0: any that is free
      --allow-host NAME  answer for this host name too (behind a proxy)
      --context N        tokens of a conversation at most
      --engine NAME      vllm, transformers, or auto: vLLM where it and a GPU are there
      --slots N          requests that run at once (8; vLLM 256)
      --queue N          requests that wait at most (256)
      --layout NAME      auto, tiered (smallest) or mma12 (fastest)
      --exact            logits with the very bits of the bf16 model
      --idle-unload TIME unload a model after that time without a request (10m);
                         it is loaded again when asked for
      --verify           check every byte of a packed directory first
      --graphs, --no-graphs  on a GPU, capture the steps of answers (CUDA graphs);
                         without either, where the model's attention allows it
      --kv FORM          keys and values plain, or packed (bit for bit, about 30%
                         fewer bytes, slower steps); auto is plain for now
      --prefix-dir DIR   keep system prompts that come again there, computed, for
                         the next start (packed, bit for bit)
      --device NAME      cpu, cuda, cuda:1 …
      --name ID          id of the model in the API
      --alias ID         another id that the (first) model answers to; may be repeated
      --revision REV     of a model on the hub
      --trust-remote-code  run code that comes with the model

run:
  -p, --prompt TEXT      answer this and exit; so does a prompt on standard input
      --system TEXT      system prompt
      --no-think         ask models that think first not to
      --temperature X, --max-tokens N, --seed N

  In the chat: /bye /clear /again /system TEXT /think /nothink /save FILE
  /load FILE /help; lines between \"\"\" and \"\"\" are one message

What follows -- goes to vLLM: -- --tensor-parallel-size 2

GLYD_API_KEY in the environment, or a line of --api-key-file FILE: clients must
send one as their API key.
"""
