# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The engine that runs everywhere: transformers' continuous batching.

transformers schedules, pages the KV cache and runs the model; the next token
of each request is drawn here (`glyd_cli.serving.sampling`), so that seeds,
log-probabilities, penalties and grammars work for each request on its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import queue
import threading
import time
from typing import TYPE_CHECKING, Any, Literal

import torch
from transformers import ContinuousBatchingConfig, GenerationConfig
from transformers.generation.continuous_batching.cb_logits_processors import (
    ContinuousBatchingLogitsProcessor,
    ContinuousBatchingLogitsProcessorList,
)
from transformers.generation.logits_process import LogitsProcessorList

import glyd
import glyd_gpu
from glyd_cli.errors import UsageError
from glyd_cli.serving.engine import (
    EngineError,
    KvHeld,
    Load,
    ModelInfo,
    PromptTooLongError,
    QueueFullError,
    Sampling,
    TokenStep,
)
from glyd_cli.serving.grammar import Grammars
from glyd_cli.serving.kv_room import PAGE, STEP_TOKENS, kv_bytes_a_token
from glyd_cli.serving.paged import ATTENTION, PagedSteps
from glyd_cli.serving.prefixes import Prefixes, restore
from glyd_cli.serving.sampling import Draw
from glyd_cli.serving.steps import Steps

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from tokenizers import Tokenizer
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

_ALL_MEMORY = 1000.0  # times what is there: no limit


class _Noted(ContinuousBatchingLogitsProcessor):
    """Stands where transformers expects a logits processor, and notes which requests get a token.

    `Steps` draws the tokens.
    """

    supported_kwargs: dict[str, type] = {"draw": Draw}  # noqa: RUF012 - the base class declares it so
    ignored_kwargs = ()

    def __init__(self) -> None:
        self.draws: list[Draw | None] = []

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Nothing of ours is in the tensor."""
        int32_tensor.zero_()

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """Note which request each row of the coming logits belongs to."""
        self.draws = [r.state.logit_processor_kwargs.get("draw") for r in requests_with_new_token]
        return torch.zeros(len(self.draws), dtype=torch.int32)

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:  # noqa: ARG002
        """Leave the scores as they are."""
        return scores


class TransformersEngine:
    """Serve a transformers model, packed or not.

    Parameters
    ----------
    model
        A causal language model, loaded.
    tokenizer
        Its tokenizer; a fast one.
    info
        What to say of it.
    n_slots
        Most requests that run at once.
    n_queue
        Most requests that wait beside them.
    kv_tokens
        Room of the KV cache in tokens; None: `n_slots` full windows.
    paged
        Attend on the pages of the cache (`glyd_cli.serving.paged`), which must know the model's attention.
    graphs
        With that, on CUDA: capture steps in CUDA graphs.
    parts
        Norms, rotations and gates by kernels of our own, which add up squares in another order.
    kv
        How keys and values are held: plain, or their full pages packed, bit for bit.
    prefixes
        Files that system prompts are kept in.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerFast,
        info: ModelInfo,
        *,
        n_slots: int = 8,
        n_queue: int = 256,
        kv_tokens: int | None = None,
        paged: bool = False,
        graphs: bool = False,
        parts: bool = False,
        kv: Literal["plain", "packed"] = "plain",
        prefixes: Prefixes | None = None,
    ) -> None:
        self.info = info
        self._prefixes = prefixes
        self.shares = prefixes is not None
        self.restored = (0, 0.0)  # tokens, and the seconds that it took
        self._paged = paged
        self._graphs = graphs and paged and model.device.type == "cuda"
        self._parts = parts
        self._undo: list[Callable[[], object]] = []
        self.tokenizer: Tokenizer = tokenizer._tokenizer  # noqa: SLF001 - the fast tokenizer inside
        self._model = model
        self._n_slots = n_slots
        self._n_queue = n_queue
        self._kv_tokens = max(kv_tokens or n_slots * info.context, info.context)
        self._grammars = Grammars(tokenizer, info.n_vocabulary)
        self._kv_form = kv
        self._packed: glyd_gpu.PackedBatches | None = None
        self._active: set[str] = set()
        self._numbers = itertools.count()
        self._manager: Any = None
        self._made = threading.Event()  # set when the batch is there, or is known not to come
        self._failure: Exception | None = None

    def start(self) -> None:
        """Allocate the KV cache and begin.

        Raises
        ------
        UsageError
            transformers cannot run the model so.
        """
        generation = GenerationConfig(
            do_sample=False, eos_token_id=-1, pad_token_id=0, max_new_tokens=self.info.context, use_cache=True
        )
        device = self._model.device.type
        # transformers has two names for the tokens of a page
        page = "page_size" if hasattr(ContinuousBatchingConfig, "page_size") else "block_size"
        n_page = PAGE[self._kv_form]
        config = ContinuousBatchingConfig(
            **{page: n_page},
            num_blocks=-(-self._kv_tokens // n_page) + self._n_slots,
            max_batch_tokens=max(STEP_TOKENS.get(device, 256), self._n_slots),
            max_requests_per_batch=self._n_slots,
            use_cuda_graph=False,  # `Steps` captures what can be captured
            use_async_batching=False,
            per_request_processors=True,
            max_memory_percent=_ALL_MEMORY,  # `kv_room` has counted: transformers knows neither pages nor packed ones
        )
        usual = self._model.config._attn_implementation  # noqa: SLF001 - no public place for it
        manager = self._model.init_continuous_batching(generation_config=generation, continuous_batching_config=config)
        if self._kv_form == "packed":
            self._packed = glyd_gpu.use_packed_blocks(manager)
        if self._paged:  # before the batch is made, which would allocate masks for transformers' own
            self._model.set_attn_implementation(ATTENTION)
            self._undo.append(lambda: self._model.set_attn_implementation(usual))
        if self._parts:
            self._undo.append(glyd_gpu.use_step_parts(self._model))
        noted = _Noted()
        processors = ContinuousBatchingLogitsProcessorList(LogitsProcessorList([noted]))
        processors.tensors_required = 1
        manager.logit_processor = processors
        make_processor = manager._create_batch_processor  # noqa: SLF001 - made in the engine's thread

        def with_steps() -> Any:
            try:
                made = make_processor()
                if self._paged:
                    PagedSteps(made, context=self.info.context, graphs=self._graphs)
                else:
                    Steps(made.model_runner, lambda: noted.draws)
                if self._prefixes is not None:
                    self._prefixes.connect(made)
            except Exception as error:
                self._failure = error
                raise
            finally:
                self._made.set()
            return made

        manager._create_batch_processor = with_steps  # noqa: SLF001
        self._made.clear()
        self._failure = None
        manager.start()
        self._manager = manager
        while not self._made.wait(0.2) and manager.is_running():
            pass
        if self._failure is not None:
            self.stop()
            cause = str(self._failure).partition("\n")[0] or type(self._failure).__name__
            raise UsageError(f"{self.info.name} cannot be served: {cause}") from self._failure
        if self._prefixes is not None:  # what is put back stays until the room is needed
            self.restored = restore(self._prefixes, manager, self._kv_tokens // 2)
        threading.Thread(target=self._grammars.prepare, name="glyd-grammars", daemon=True).start()

    def stop(self) -> None:
        """End the generation thread; running requests fail."""
        if self._manager is not None:
            self._manager.stop(block=True, timeout=10, hard_stop=True)
            self._manager = None
        if self._prefixes is not None:
            self._prefixes.stop()
        while self._undo:
            self._undo.pop()()

    def load(self) -> Load:
        """Return how much runs (has its first token, or a slot to make it) and waits."""
        n = len(self._active)
        running = min(n, self._n_slots)
        return Load(n_running=running, n_waiting=n - running)

    async def own_metrics(self) -> str:
        """Return nothing: what this engine does is counted around it."""
        return ""

    def kv(self) -> KvHeld:
        """Return what the KV cache takes."""
        if self._kv_form == "packed":
            held = (self._packed or glyd_gpu.PackedBatches()).report()
            return KvHeld(form="packed", nbytes=held.nbytes, plain_nbytes=held.plain_nbytes, room=self._kv_tokens)
        nbytes = self._kv_tokens * kv_bytes_a_token(self._model)
        return KvHeld(form="plain", nbytes=nbytes, plain_nbytes=nbytes, room=self._kv_tokens)

    async def generate(
        self, prompt: list[int], sampling: Sampling, *, n_shared: int = 0
    ) -> AsyncGenerator[TokenStep, None]:
        """Yield the tokens of an answer; see `glyd_cli.serving.engine.Engine`."""
        if len(prompt) >= self.info.context:
            raise PromptTooLongError(len(prompt), self.info.context)
        if len(self._active) >= self._n_slots + self._n_queue:
            raise QueueFullError(f"{self._n_queue} requests wait already")
        manager = self._manager
        if manager is None or not manager.is_running():
            raise EngineError("the engine is not running")
        matcher = self._grammars.matcher(sampling.grammar) if sampling.grammar else None
        ends = self.info.ends(sampling)
        state = Draw(prompt, sampling, matcher, sorted(ends))
        if self._prefixes is not None and n_shared:
            state.keep = self._prefixes.wanted(prompt, n_shared)
        n_most = min(sampling.max_tokens, self.info.context - len(prompt))
        name = f"glyd-{next(self._numbers)}"
        outputs: asyncio.Queue[Any] = asyncio.Queue()
        manager.register_result_handler(name, outputs.put_nowait)
        self._active.add(name)
        finished = False
        try:
            manager.add_request(
                prompt, name, max_new_tokens=n_most, streaming=True, eos_token_id=sorted(ends) or -1, draw=state
            )
            n_given = 0
            while not finished:
                output = await next_output(outputs, manager)
                if output.error:
                    raise EngineError(output.error)
                finished = output.is_finished()
                n_made = len(state.steps)
                while n_given < n_made:
                    step = state.steps[n_given]
                    n_given += 1
                    yield step
        finally:
            self._active.discard(name)
            if not finished:
                manager.cancel_request(name)
                manager.output_router.result_handlers.pop(name, None)
            # what came after a handler was taken away: nobody will fetch it
            with contextlib.suppress(queue.Empty):
                while True:
                    manager.output_router.output_queue.get_nowait()


async def next_output(outputs: asyncio.Queue[Any], manager: Any) -> Any:
    """Wait for what the engine says next.

    Not by `asyncio.wait_for`: before Python 3.12 that loses a cancellation that comes together with an output, and
    an answer nobody waits for would go on.

    Raises
    ------
    EngineError
        The engine stopped.
    """
    getting = asyncio.ensure_future(outputs.get())
    try:
        while not (await asyncio.wait({getting}, timeout=1.0))[0]:
            if not manager.is_running():
                raise EngineError("the engine stopped")
        return getting.result()
    finally:
        getting.cancel()


def describe_model(model: PreTrainedModel, name: str, *, context: int | None = None, layout: str = "bf16") -> ModelInfo:
    """Return what the API says of a model.

    Parameters
    ----------
    model
        Loaded.
    name
        Its id in the API.
    context
        Window wanted; never more than the model's own.
    layout
        How its weights are held.
    """
    held = {t.data_ptr(): t.nbytes for t in itertools.chain(model.parameters(), model.buffers())}
    generation = getattr(model, "generation_config", None)  # encoders have none
    return describe_config(
        model.config, generation, name, context=context, layout=layout, weight_nbytes=sum(held.values())
    )


def describe_config(
    config: PreTrainedConfig,
    generation: GenerationConfig | None,
    name: str,
    *,
    context: int | None,
    layout: str,
    weight_nbytes: int,
) -> ModelInfo:
    """Return what the API says of a model that is known by its configurations; see `describe_model`."""
    text = config.get_text_config()
    own = int(getattr(text, "max_position_embeddings", 0) or context or 4096)
    if own < 1:
        raise glyd.CorruptDataError(f"config.json: max_position_embeddings is {own}")
    ends = generation.eos_token_id if generation is not None else None
    ends = text.eos_token_id if ends is None else ends
    end_tokens = tuple(ends) if isinstance(ends, (list, tuple)) else (() if ends is None else (int(ends),))
    return ModelInfo(
        name=name,
        context=min(context or own, own),
        n_vocabulary=int(text.vocab_size),
        end_tokens=end_tokens,
        layout=layout,
        weight_nbytes=weight_nbytes,
        created=int(time.time()),
        defaults=_advised(generation),
    )


def _advised(config: GenerationConfig | None) -> dict[str, float]:
    """Return the sampling fields of the model's generation config; none when it says not to sample.

    Raises
    ------
    FormatError
        One is no number.
    """
    if config is None or not config.do_sample:
        return {}
    names = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
    found = {n: getattr(config, n) for n in names if getattr(config, n, None) is not None}
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise glyd.CorruptDataError(f"generation_config.json: {name} is {value!r}, no number")
    return {name: float(value) for name, value in found.items()}
