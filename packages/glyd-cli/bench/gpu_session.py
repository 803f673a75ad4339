# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""All that serving and the packed KV cache have to show on a GPU, in one command with a time limit.

python gpu_session.py serving|kv|all [--budget SECONDS] [--out FILE] [--only NAME,…] [--rehearse]

Every step is a process of its own: one that fails, hangs or breaks the GPU's context leaves the others. Its lines are
printed as they come and also go to FILE; a step gets what is left of the budget, at most its own limit. ``--rehearse``
runs the same steps with a tiny shape, on the CPU where there is no GPU. The most telling steps come first.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
GPU = HERE.parents[1] / "glyd-gpu" / "bench"
PYTHON = sys.executable

QWEN3_8B = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "hidden_act": "silu",
    "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936, "max_position_embeddings": 40960,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000, "tie_word_embeddings": False, "eos_token_id": 1, "bos_token_id": None,
}  # fmt: skip
TINY = QWEN3_8B | {
    "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 100_352, "max_position_embeddings": 4096,
}  # fmt: skip


@dataclass
class Step:
    """A command: what it is called, and the seconds that it may take at most."""

    name: str
    command: list[str]
    limit_s: float
    environment: dict[str, str] = field(default_factory=dict)


def serving(config, folder, *, tiny):
    """Return the steps of serving: the figures first that no run had yet."""
    bench = [PYTHON, str(HERE / "bench_serving.py"), str(config)]
    sizes = ["--concurrent", "1,2" if tiny else "1,8,32,128", "--prompt", "20" if tiny else "128"]
    sizes += ["--new", "6" if tiny else "48", "--context", "256" if tiny else "2048"]
    layouts = ["--layouts", "bf16,mma12,tiered"]
    context = ["--context", "300" if tiny else "32768"]
    return [
        Step("check", [PYTHON, str(HERE / "check_engine.py")], 120),
        Step("serve", [*bench, *sizes, *layouts], 260),
        Step("start", [PYTHON, str(HERE / "bench_start.py"), str(config), str(folder), *context], 240),
        Step("serve-eager", [*bench, *sizes, *layouts, "--no-graphs"], 200),
        Step("serve-kv", [*bench, *sizes, "--layouts", "mma12", "--kv", "packed"], 120),
    ]


def kv(config, _folder, *, tiny):
    """Return the steps of the packed KV cache: right first, then fast."""
    cpu = ["--device", "cpu"] if tiny and not has_gpu() else []
    check = [PYTHON, str(GPU / "check_kv.py"), *cpu]
    bench = [PYTHON, str(GPU / "bench_kv.py"), *cpu]
    model = [PYTHON, str(GPU / "bench_kv_model.py"), str(config)]
    small = ["--batch", "2", "--prompt", "300", "--new", "4"]
    one, many = (small, small) if tiny else (["--batch", "1", "--prompt", "8192"], ["--batch", "16"])
    return [
        Step("kv-check", check, 120),
        Step("kv-bench-quick", [*bench, "--quick"], 90),
        Step("kv-model-8k", [*model, *one], 100),
        Step("kv-model-32k", [*model, *many], 240),
        *([] if cpu else [Step("kv-check-long", [*check, "--long"], 150), Step("kv-bench", bench, 200)]),
    ]


def has_gpu():
    """Say whether there is a GPU, without torch."""
    return any(Path(f"/dev/nvidia{n}").exists() for n in range(16))


class Log:
    """Prints lines at once, and keeps them in a file."""

    def __init__(self, path):
        self.start = time.monotonic()
        self.path = path

    def __call__(self, text):
        line = f"{time.monotonic() - self.start:7.1f} {text}"
        print(line, flush=True)
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


def run(step, seconds, log):
    """Run a step for so long at most; return how it ended."""
    log(f"== {step.name}: at most {seconds:.0f} s: {' '.join(step.command[1:])}")
    start = time.monotonic()
    process = subprocess.Popen(
        step.command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1", **step.environment},
        cwd=HERE,
        start_new_session=True,
    )

    def read():
        for line in process.stdout:
            log(f"{step.name}: {line.rstrip()}")

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        end = f"exit {process.wait(timeout=seconds)}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        end = "cut off"
    reader.join(timeout=10)
    log(f"== {step.name}: {end} after {time.monotonic() - start:.1f} s")
    return end


def main(arguments=None):
    """Run the steps that the command line names; 0 when all ended well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("serving", "kv", "all"))
    parser.add_argument("--budget", type=float, default=570, help="seconds in all (570)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where lines are kept as well")
    parser.add_argument("--only", metavar="NAME,…", help="these steps alone")
    parser.add_argument("--rehearse", action="store_true", help="a tiny shape")
    parser.add_argument("--folder", type=Path, help="where models are written (a temporary folder)")
    options = parser.parse_args(arguments)
    log = Log(options.out)
    ends = {}
    with tempfile.TemporaryDirectory(prefix="glyd-gpu-session-") as temporary:
        folder = options.folder or Path(temporary)
        config = folder / ("tiny" if options.rehearse else "qwen3-8b")
        config.mkdir(parents=True, exist_ok=True)
        text = json.dumps(TINY if options.rehearse else QWEN3_8B)
        (config / "config.json").write_text(text, encoding="utf-8")
        parts = {"serving": [serving], "kv": [kv], "all": [kv, serving]}[options.part]
        steps = [step for part in parts for step in part(config, folder / "models", tiny=options.rehearse)]
        names = options.only.split(",") if options.only else [step.name for step in steps]
        unknown = set(names) - {step.name for step in steps}
        if unknown:
            parser.error(f"no step {', '.join(sorted(unknown))}: there are {', '.join(step.name for step in steps)}")
        for step in (step for step in steps if step.name in names):
            left = options.budget - (time.monotonic() - log.start)
            ends[step.name] = run(step, min(left, step.limit_s), log) if left > 5 else "no time left"
    log("summary: " + ", ".join(f"{name}: {end}" for name, end in ends.items()))
    return int(any(end != "exit 0" for end in ends.values()))


if __name__ == "__main__":
    sys.exit(main())
