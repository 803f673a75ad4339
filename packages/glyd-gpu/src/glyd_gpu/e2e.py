# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``python -m glyd_gpu.e2e MODEL``: a whole model in bf16 and packed, side by side.

MODEL is a checkpoint, a name of the hub, or a directory with a configuration
only: then weights are drawn at random where the model runs. The bf16 model is
measured first; then its matrices are packed in place, each is compared with what
it decodes to, and the same is measured again: the same code, attention, cache and
captured step for both.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

import glyd_gpu
from glyd_gpu import _e2e_kv, _e2e_quality
from glyd_gpu._decoding import Decoder, use_grouped_attention
from glyd_gpu._energy import Meter
from glyd_gpu._errors import ParameterError, UnsupportedDeviceError
from glyd_gpu._kv_cuda import check_device
from glyd_gpu._merge import merge_modules, unmerge_modules
from glyd_gpu._merge_plain import merge_plain, split_plain
from glyd_gpu._pack_live import pack_modules
from glyd_gpu._random_weights import has_weights, random_model
from glyd_gpu._step_parts import use_step_parts
from glyd_gpu.modules import set_exact

SEED = 20261130
ENERGY_S = 1.0
SPEED_SHARE = 0.75  # of the memory that is free: as `glyd_gpu.from_pretrained` chooses


@dataclass
class Batch:
    """What one batch size measured: milliseconds, tokens of all sequences a second, joules a token."""

    prompt_ms: float = 0.0
    step_ms: float = 0.0
    tokens_s: float = 0.0
    joules: float | None = None
    state: str = ""
    first_tokens: list[int] = field(default_factory=list)
    identical: str = ""


@dataclass
class Result:
    """What was measured of one form of the model."""

    name: str
    why: str = ""
    weights_nbytes: int = 0
    bits_per_weight: float = 16.0
    peak_nbytes: int = 0
    packed_s: float = 0.0
    batches: dict[int, Batch] = field(default_factory=dict)
    first_token_ms: float = 0.0
    busy: dict[str, Any] = field(default_factory=dict)
    quality: dict[str, Any] = field(default_factory=dict)


class Runner:
    """Measures a model in the forms it takes.

    Parameters
    ----------
    model
        In bf16, on one device.
    tokenizer
        Of the model, or None.
    options
        Of the command line.
    """

    def __init__(self, model: Any, tokenizer: Any, options: argparse.Namespace) -> None:
        self.model, self.tokenizer, self.options = model, tokenizer, options
        self.device = model.device
        self.meter = Meter(self.device)
        self.expected: dict[int, torch.Tensor] = {}
        self.logits: torch.Tensor | None = None

    def _sync(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _prompt(self, batch: int, n: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(SEED + batch)
        vocabulary = self.model.config.get_text_config().vocab_size
        return torch.randint(0, vocabulary, (batch, n), generator=generator).to(self.device)

    def measure(self, result: Result) -> Result:
        """Measure everything that was asked for."""
        options = self.options
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(self.device)
        for batch in options.batch:
            result.batches[batch] = self._batch(batch)
        if options.ttft:
            result.first_token_ms = self._first_token()
        if options.profile:
            result.busy = self._profile()
        if self.device.type == "cuda":
            result.peak_nbytes = torch.cuda.max_memory_allocated(self.device)
        self._quality(result)
        return result

    def _batch(self, batch: int) -> Batch:
        options, found = self.options, Batch()
        prompt = self._prompt(batch, options.prompt)
        decoder = Decoder(self.model, batch, options.prompt + options.new + 3)
        decoder.prefill(prompt)
        decoder.capture()
        self._sync()
        started = time.perf_counter()
        decoder.prefill(prompt)
        self._sync()
        found.prompt_ms = (time.perf_counter() - started) * 1e3
        started = time.perf_counter()
        decoder.run(options.new - 1)
        if options.smi:
            found.state = self.meter.state()
        self._sync()
        seconds = time.perf_counter() - started
        found.step_ms = seconds / (options.new - 1) * 1e3
        found.tokens_s = batch * (options.new - 1) / seconds
        tokens = decoder.tokens[:, options.prompt : options.prompt + options.new].cpu()
        found.first_tokens = tokens[0, :8].tolist()
        if batch in self.expected:
            found.identical = f"{int((tokens == self.expected[batch]).sum())} of {tokens.numel()}"
        else:
            self.expected[batch] = tokens
        found.joules = self._joules(decoder, batch)
        return found

    def _joules(self, decoder: Decoder, batch: int) -> float | None:
        """Return the energy of a token while decoding, over `ENERGY_S`: the counter steps every 0.1 s."""
        before, n, started = self.meter.joules(), 0, time.perf_counter()
        if before is None:
            return None
        while time.perf_counter() - started < ENERGY_S:
            decoder.rewind(self.options.prompt)
            decoder.run(self.options.new - 1)
            self._sync()
            n += batch * (self.options.new - 1)
        after = self.meter.joules()
        return None if after is None else (after - before) / n

    def _first_token(self) -> float:
        """Return the median time from a prompt to its first token."""
        prompt = self._prompt(1, self.options.ttft)
        decoder = Decoder(self.model, 1, self.options.ttft + 1)
        times = []
        for _ in range(6):
            self._sync()
            started = time.perf_counter()
            decoder.prefill(prompt)
            self._sync()
            times.append((time.perf_counter() - started) * 1e3)
        return sorted(times[1:])[2]

    def _profile(self) -> dict[str, Any]:
        """Return how long the device works on a step and on a prompt, and the kernels that take it."""
        from torch.profiler import ProfilerActivity, profile  # noqa: PLC0415

        batch, n = self.options.batch[0], self.options.profile
        decoder = Decoder(self.model, batch, self.options.prompt + n + 8)
        prompt = self._prompt(batch, self.options.prompt)
        decoder.prefill(prompt)
        decoder.capture()
        found: dict[str, Any] = {"batch": batch}
        cuda = self.device.type == "cuda"
        kinds = [ProfilerActivity.CUDA] if cuda else [ProfilerActivity.CPU]
        for name, count, work in (("prompt", 1, lambda: decoder.prefill(prompt)), ("step", n, lambda: decoder.run(n))):
            self._sync()
            with profile(activities=kinds) as trace:
                work()
                self._sync()
            events = [
                (e.key, e.self_device_time_total if cuda else e.self_cpu_time_total) for e in trace.key_averages()
            ]
            events.sort(key=lambda e: -e[1])
            found[f"{name}_ms"] = sum(us for _, us in events) / 1e3 / count
            found[f"{name}_kernels"] = {key[:90]: round(us / 1e3 / count, 4) for key, us in events[:12]}
        return found

    @torch.no_grad()
    def _quality(self, result: Result) -> None:
        """Compare with the bf16 model, and measure what was asked for."""
        logits = self.model(self._prompt(2, min(128, self.options.prompt))).logits.float().cpu()
        if self.logits is None:
            self.logits = logits
        else:
            same = (logits.argmax(-1) == self.logits.argmax(-1)).float().mean()
            result.quality["logits_bit_identical"] = bool(torch.equal(logits, self.logits))
            result.quality["next_token_as_bf16"] = float(same)
            result.quality["largest_difference"] = float((logits - self.logits).abs().max())
        if self.options.ppl:
            result.quality["perplexity"] = _e2e_quality.perplexity(self.model, self.tokenizer, self.options.ppl)
        if self.options.mmlu:
            result.quality |= _e2e_quality.mmlu(self.model, self.tokenizer, self.options.mmlu)


def _choose(model: Any, layout: str) -> tuple[str, str]:
    """Return the layout to pack in, and why."""
    if layout != "auto":
        return layout, "asked for"
    nbytes = sum(p.numel() * 2 for p in model.parameters()) * 3 // 4
    if model.device.type != "cuda":
        return "tiered", "the smallest, as there is no GPU"
    total = torch.cuda.get_device_properties(model.device).total_memory
    where = f"{nbytes / 1e9:.1f} GB as mma12, {total / 1e9:.1f} GB of memory"
    return ("mma12", f"fits: {where}") if nbytes <= SPEED_SHARE * total else ("tiered", f"smallest: {where}")


def run(model: Any, tokenizer: Any, options: argparse.Namespace) -> list[Result]:
    """Measure a bf16 model, then packed in every layout that was asked for."""
    model.eval()
    use_grouped_attention(model)
    runner = Runner(model, tokenizer, options)
    results = []

    def measured(result: Result) -> None:
        undo = use_step_parts(model) if options.fused else lambda: None
        runner.measure(result)
        undo()
        results.append(result)
        if not options.json:
            print(text(result, results[0]), flush=True)

    nbytes = sum(p.numel() * p.element_size() for p in model.parameters())
    n_groups = merge_plain(model) if options.merge else 0
    measured(Result("bf16", f"{n_groups} groups of layers merged" if n_groups else "as it is", nbytes))
    split_plain(model)
    if options.baseline:
        return results
    for number, asked in enumerate(options.layout):
        if number:
            glyd_gpu.dequantize(model)
        layout, why = _choose(model, asked)
        report = pack_modules(model, layout)
        if report.wrong:
            raise ParameterError(f"matrices that came back with other bits: {', '.join(report.wrong)}")
        set_exact(model, options.exact)
        if options.merge and not options.exact:
            merge_modules(model)
        sizes = glyd_gpu.report(model)
        measured(
            Result(
                layout + (" exact" if options.exact else ""),
                f"{why}; {report.n_matrices} matrices, every weight decodes to its bits",
                sizes.nbytes + sizes.plain_nbytes,
                bits_per_weight=sizes.bits_per_weight,
                packed_s=report.seconds,
            )
        )
        unmerge_modules(model)
    return results


def text(result: Result, base: Result) -> str:
    """Return the lines of one form of the model."""
    share = "" if result is base else f" ({100 * result.weights_nbytes / base.weights_nbytes:.1f}% of bf16)"
    peak = f", peak {result.peak_nbytes / 1e9:.2f} GB" if result.peak_nbytes else ""
    lines = [f"{result.name}: weights {result.weights_nbytes / 1e9:.3f} GB{share}{peak}; {result.why}"]
    if result is not base:
        lines.append(
            f"  {result.bits_per_weight:.3f} bits a packed weight, packed and compared in {result.packed_s:.2f} s"
        )
    for n, batch in result.batches.items():
        other = base.batches[n]
        ratio = "" if result is base else f", {other.step_ms / batch.step_ms:.3f} × bf16"
        line = (
            f"  batch {n}: {batch.tokens_s:.1f} tokens/s ({batch.tokens_s / n:.1f} a sequence), "
            f"{batch.step_ms:.3f} ms a step{ratio}; prompts {batch.prompt_ms:.1f} ms"
        )
        if batch.joules is not None:
            line += f"; {batch.joules:.4f} J a token"
            if result is not base and other.joules:
                line += f" ({batch.joules / other.joules:.3f} × bf16)"
        line += f"; {batch.state}" if batch.state else ""
        line += f"; tokens identical {batch.identical}" if batch.identical else ""
        lines.append(line)
    if result.first_token_ms:
        ratio = "" if result is base else f" ({result.first_token_ms / base.first_token_ms:.3f} × bf16)"
        lines.append(f"  first token {result.first_token_ms:.2f} ms{ratio}")
    for name in ("prompt", "step") if result.busy else ():
        kernels = "; ".join(f"{ms:.3f} {key}" for key, ms in result.busy[f"{name}_kernels"].items())
        lines.append(f"  busy ms a {name}, batch {result.busy['batch']}: {result.busy[f'{name}_ms']:.3f}: {kernels}")
    lines += [f"  {key.replace('_', ' ')}: {value}" for key, value in result.quality.items()]
    return "\n".join(lines)


def _load(options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the bf16 model and its tokenizer, if it has one."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer  # noqa: PLC0415

    device = torch.device(options.device)
    config = AutoConfig.from_pretrained(options.model)
    if getattr(config, "quantization_config", None) is not None:
        raise ParameterError(f"{options.model} is packed or quantized: name the bf16 checkpoint that it was made from")
    if not has_weights(options.model):
        if options.ppl or options.mmlu:
            raise ParameterError(f"{options.model} has no weights: --ppl and --mmlu say nothing of random ones")
        return random_model(config, device), None
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.bfloat16, device_map={"": device})
    tokenizer = AutoTokenizer.from_pretrained(options.model) if options.ppl or options.mmlu else None
    return model, tokenizer


def _numbers(value: str) -> list[int]:
    found = [int(n) for n in value.split(",")]
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f"{value}: numbers from 1 on")
    return found


def _layouts(value: str) -> list[str]:
    found = value.split(",")
    wrong = sorted(set(found) - {"auto", *glyd_gpu.LAYOUTS})
    if wrong:
        raise argparse.ArgumentTypeError(f"{', '.join(wrong)}: layouts are auto, {', '.join(glyd_gpu.LAYOUTS)}")
    return found


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser("python -m glyd_gpu.e2e", description=str(__doc__).split("\n\n", maxsplit=1)[0])
    parser.add_argument("model", metavar="MODEL", help="directory (a configuration is enough) or name of the hub")
    parser.add_argument("--layout", "--format", type=_layouts, default=["auto"], help="auto, tiered, mma12; or several")
    parser.add_argument("--fused", action="store_true", help="few kernels around the products, of bf16 too")
    parser.add_argument("--merge", action="store_true", help="q, k, v and gate, up as one product each, of bf16 too")
    parser.add_argument("--exact", action="store_true", help="decode each layer and multiply as torch does")
    parser.add_argument("--baseline", action="store_true", help="measure the bf16 model only")
    parser.add_argument("--batch", type=_numbers, default=[1, 8, 32], metavar="N,…", help="sequences at a time")
    parser.add_argument("--prompt", type=int, default=128, metavar="N", help="tokens of each prompt (128)")
    parser.add_argument("--new", type=int, default=128, metavar="N", help="tokens to generate (128)")
    parser.add_argument(
        "--ttft", type=int, default=2048, metavar="N", help="prompt of the first-token time (2048; 0: none)"
    )
    parser.add_argument("--profile", type=int, default=0, metavar="N", help="profile a prompt and N steps")
    parser.add_argument("--ppl", metavar="FILE", help="perplexity of a text")
    parser.add_argument("--mmlu", metavar="N|FILE", help="N questions of MMLU from the hub, or a file of JSON lines")
    parser.add_argument(
        "--kv", choices=("plain", "packed"), default="plain", help="packed: measure a packed cache as well"
    )
    parser.add_argument("--smi", action="store_true", help="print power and clock while decoding")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    options = parser().parse_args(arguments)
    try:
        device = torch.device(options.device)
        if options.kv == "packed":
            check_device(device)
        if device.type == "cuda" and not torch.cuda.is_available():
            raise UnsupportedDeviceError(
                f"--device {options.device}: PyTorch {torch.__version__} sees no CUDA device; --device cpu runs on the CPU"
            )
        if options.prompt < 1 or options.new < 2:
            raise ParameterError(f"--prompt {options.prompt} --new {options.new}: at least 1 and 2 tokens are needed")
        model, tokenizer = _load(options)
        facts = {
            "model": options.model,
            "class": type(model).__name__,
            "n_weights": sum(p.numel() for p in model.parameters()),
            "device": torch.cuda.get_device_name() if model.device.type == "cuda" else "cpu",
            "n_gpus": torch.cuda.device_count(),
            "torch": torch.__version__,
            "captured": model.device.type == "cuda",
        }
        if not options.json:
            print(", ".join(f"{key} {value}" for key, value in facts.items()), flush=True)
        results = run(model, tokenizer, options)
        say = (lambda _: None) if options.json else (lambda line: print(line, flush=True))
        caches = _e2e_kv.run(model, options, say) if options.kv == "packed" else None
    except (glyd_gpu.GpuError, ParameterError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if options.json:
        found = {**facts, "options": vars(options), "results": [asdict(r) for r in results]}
        print(json.dumps(found if caches is None else {**found, "caches": caches}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
