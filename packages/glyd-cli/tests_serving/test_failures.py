# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What can go wrong: each has one line of its own with its cause and what to do, and an exit code; no traceback."""

import io
import json
import os
import shutil
import signal
import socket
import sys

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import glyd
from glyd_cli import machine
from glyd_cli.__main__ import main
from glyd_cli.serving import causes, loading


@pytest.fixture
def command():
    """Run the command in this process; signals are as before when it is done."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(n) for n in numbers]
    yield lambda *args: main([os.fspath(a) for a in args])
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.fixture
def fails(capfd, monkeypatch, tmp_path, command):
    """Run the command in this process, where the machine can be made up; return its one line."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)

    def run(*args, code):
        capfd.readouterr()
        assert command(*args) == code
        out, err = capfd.readouterr()
        assert out == ""
        assert err.startswith("glyd: ")
        assert err.count("\n") == 1, err
        assert "Traceback" not in err
        assert len(err) < 500
        return err

    return run


@pytest.fixture
def copy(model_path, tmp_path):
    """Return a copy of the model that a test may break."""
    return shutil.copytree(model_path, tmp_path / "model")


def edit(path, **fields):
    found = json.loads(path.read_text())
    found.update(fields)
    path.write_text(json.dumps(found))


# ---- the machine -----------------------------------------------------------


@pytest.fixture
def no_cuda(monkeypatch):
    """Make PyTorch see no GPU, whatever there is."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def there_is(*, card=True, built="13.0", runs=(13, 0)):
        monkeypatch.setattr(machine, "has_card", lambda: card)
        monkeypatch.setattr(torch.version, "cuda", built)
        monkeypatch.setattr(machine, "cuda_of_driver", lambda: runs)

    return there_is


@pytest.mark.parametrize(
    ("there", "says"),
    [
        ({"card": False}, "no NVIDIA GPU here: --device cpu"),
        ({"built": None}, "built for the CPU: install the build for CUDA"),
        ({"runs": None}, "no driver that works: install NVIDIA's"),
        ({"runs": (12, 4)}, "the driver runs CUDA 12.4, and this PyTorch was built for 13.0: update NVIDIA's driver to 580"),
        ({}, "is CUDA_VISIBLE_DEVICES set to hide it?"),
    ],
    ids=["no GPU", "torch for the CPU", "no driver", "old driver", "hidden GPU"],
)  # fmt: skip
def test_a_gpu_that_was_asked_for(fails, model_path, no_cuda, there, says):
    no_cuda(**there)
    err = fails("run", model_path, "-p", "x", "--device", "cuda", code=2)
    assert says in err


def test_a_gpu_that_is_not_used_is_said(command, capfd, model_path, no_cuda):
    no_cuda(runs=(12, 4))
    assert command("run", model_path, "-p", "x", "--max-tokens", "1") == 0
    assert "glyd: on the CPU, since the driver runs CUDA 12.4" in capfd.readouterr().err


def test_a_gpu_number_that_is_not_there(fails, model_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert "2 GPUs here, counted from 0" in fails("run", model_path, "-p", "x", "--device", "cuda:2", code=2)


def test_other_devices(fails, model_path):
    assert "--device is cpu or cuda" in fails("run", model_path, "-p", "x", "--device", "tpu", code=1)
    assert "--device is cpu or cuda" in fails("run", model_path, "-p", "x", "--device", "mps", code=1)


def with_memory(monkeypatch, nbytes):
    monkeypatch.setattr(machine, "memory", lambda: machine.Memory(nbytes, nbytes))


def test_no_memory_for_the_weights(fails, model_path, monkeypatch):
    with_memory(monkeypatch, 100_000)
    err = fails("run", model_path, "-p", "x", code=1)
    assert "of memory (tiered), 100 kB are free: glyd fit says what fits" in err


def test_no_memory_for_a_packed_model(fails, model_path, monkeypatch, tmp_path):
    glyd.pack_model(model_path, tmp_path / "packed")
    with_memory(monkeypatch, 100_000)
    assert "of memory (tiered), 100 kB are free" in fails("run", "packed", "-p", "x", code=1)


def test_no_gpu_memory(fails, model_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (300_000_000, 80 * 10**9))
    err = fails("run", model_path, "-p", "x", code=1)
    assert "of the GPU's memory (tiered), 300 MB are free: glyd fit says what fits; --device cpu" in err


def test_memory_that_runs_out_while_loading(fails, model_path, monkeypatch):
    def full(*args, **kw):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nMore lines")

    monkeypatch.setattr(loading.glyd_gpu, "from_pretrained", full)
    assert "not enough GPU memory" in fails("run", model_path, "-p", "x", code=1)

    def no_memory(*args, **kw):
        raise MemoryError

    monkeypatch.setattr(loading.glyd_gpu, "from_pretrained", no_memory)
    assert "not enough memory" in fails("run", model_path, "-p", "x", code=4)


def test_a_context_that_memory_does_not_hold(fails, model_path, monkeypatch):
    with_memory(monkeypatch, 700_000)
    err = fails("run", model_path, "-p", "x", "--context", "256", code=1)
    assert "--context 256 takes 131 kB for its KV cache" in err
    assert "or less" in err


def test_a_context_longer_than_the_model(fails, model_path):
    assert "--context 9999 is more than the model's window of 256" in fails(
        "run", model_path, "-p", "x", "--context", "9999", code=1
    )


def test_a_prompt_longer_than_the_window(fails, model_path):
    assert "the window of this model holds 256" in fails("run", model_path, "-p", "x " * 500, code=1)


def test_no_prompt(fails, model_path):
    assert "the prompt is empty" in fails("run", model_path, "-p", " ", code=1)


def test_a_prompt_that_is_no_text(fails, model_path, monkeypatch):
    for option in ("--prompt", "--system"):
        assert f"{option} is no text in UTF-8" in fails("run", model_path, option, "caf\udce9", code=1)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"caf\xe9"), encoding="utf-8"))
    assert "standard input is no text in UTF-8: byte 3" in fails("run", model_path, "--port", "0", code=1)


@pytest.mark.parametrize("seed", ["99999999999999999999", "1.5", "x"])
def test_a_seed_that_is_none(fails, model_path, seed):
    assert "is no whole number from -2^63 to 2^64 - 1" in fails("run", model_path, "--seed", seed, code=1)


def test_more_at_once_than_a_step_has_tokens(fails, model_path):
    err = fails("run", model_path, "-p", "x", "--slots", "257", "--device", "cpu", code=1)
    assert "--slots 257: 256 at most on cpu" in err


def test_missing_packages(fails, model_path, monkeypatch):
    from glyd_cli import serve

    monkeypatch.setattr(serve, "missing_packages", lambda: ["uvicorn", "fastapi"])
    assert "needs uvicorn, fastapi: python -m pip install 'glyd-cli[serve]'" in fails("run", model_path, code=1)


# ---- where it listens ------------------------------------------------------


def test_a_port_that_is_taken(fails, model_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        err = fails("serve", model_path, "--port", str(port), code=2)
    assert f"127.0.0.1:{port}: another program listens there: name another port with --port" in err


def test_a_port_that_is_none(fails, model_path):
    assert "no port" in fails("serve", model_path, "--port", "99999", code=1)


def test_an_address_of_another_machine(fails, model_path, monkeypatch):
    monkeypatch.setenv("GLYD_API_KEY", "secret")
    assert "cannot listen there" in fails("serve", model_path, "--host", "192.0.2.1", code=2)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "::zz", "300.1.1.1"])
def test_an_address_that_is_none(fails, model_path, monkeypatch, host):
    def unknown(*_):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setenv("GLYD_API_KEY", "secret")
    monkeypatch.setattr(socket.socket, "bind", unknown)  # whatever the names here lead to
    err = fails("serve", model_path, "--host", host, code=2)
    assert f"{host}:8000: cannot listen there: no address and no host name that is known" in err


def test_no_address_and_no_name(fails, model_path):
    assert "--host is empty" in fails("serve", model_path, "--host", "", code=1)
    for name in ("http://chat.example.org", "chat.example.org/", ""):
        err = fails("serve", model_path, "--allow-host", name, code=1)
        assert "--allow-host takes the name of a host alone" in err


def test_an_open_address_without_a_key(fails, model_path, monkeypatch):
    monkeypatch.delenv("GLYD_API_KEY", raising=False)
    assert "set a key in GLYD_API_KEY first" in fails("serve", model_path, "--host", "0.0.0.0", code=1)


# ---- the model -------------------------------------------------------------


def test_no_such_directory(fails):
    assert "./nope: no such directory" in fails("run", "./nope", code=2)


def test_gguf_and_pickles(fails, tmp_path):
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    assert "GGUF files hold quantized weights" in fails("run", "weights.gguf", code=2)
    (tmp_path / "old").mkdir()
    assert "no config.json there" in fails("run", "old", code=2)
    (tmp_path / "old" / "config.json").write_text("{}")
    (tmp_path / "old" / "pytorch_model.bin").write_bytes(b"x")
    assert "only pytorch_model.bin: save the model as safetensors" in fails("run", "old", code=2)


def test_a_shard_that_is_cut(fails, copy):
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    assert "model.safetensors" in fails("run", copy, "-p", "x", code=3)


def test_a_header_that_is_no_header(fails, copy):
    (copy / "model.safetensors").write_bytes(b"\xff" * 100)
    assert "model.safetensors" in fails("run", copy, "-p", "x", code=3)


def test_a_shard_of_the_index_that_is_not_there(fails, copy):
    names = dict.fromkeys(("a", "b"), "model-00001-of-00002.safetensors")
    (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": names}))
    assert "model-00001-of-00002.safetensors" in fails("run", copy, "-p", "x", code=3)


def test_a_flipped_bit_of_a_packed_model(fails, model_path, tmp_path):
    glyd.pack_model(model_path, tmp_path / "packed")
    weights = tmp_path / "packed" / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[len(data) // 2] ^= 1
    weights.write_bytes(data)
    assert "model.safetensors" in fails("run", "packed", "-p", "x", "--verify", code=3)


def test_weights_of_another_type(fails, copy):
    model = transformers.AutoModelForCausalLM.from_pretrained(copy).half()
    model.save_pretrained(copy)
    assert "bf16" in fails("run", copy, "-p", "x", code=1)


def test_quantized_checkpoints(fails, copy):
    edit(copy / "config.json", quantization_config={"quant_method": "gptq", "bits": 4})
    assert "is quantized (gptq): load the bf16 checkpoint" in fails("run", copy, "-p", "x", code=1)


def test_an_architecture_that_is_not_known(fails, copy):
    edit(copy / "config.json", model_type="qwen99", architectures=["Qwen99ForCausalLM"])
    assert "does not know its architecture: update it" in fails("run", copy, "-p", "x", code=2)


def test_code_that_comes_with_a_model(fails, copy):
    auto = {"AutoConfig": "code.Config", "AutoModelForCausalLM": "code.Model"}
    edit(copy / "config.json", model_type="own_kind", auto_map=auto)
    (copy / "code.py").write_text("raise SystemExit('must not run')")
    assert "--trust-remote-code runs it, if you trust its authors" in fails("run", copy, "-p", "x", code=2)


def test_a_configuration_that_is_no_json(fails, copy):
    (copy / "config.json").write_text("{nonsense")
    assert "config.json" in fails("run", copy, "-p", "x", code=3)


@pytest.mark.parametrize("name", ["generation_config.json", "tokenizer_config.json", "tokenizer.json"])
@pytest.mark.parametrize("text", ["", "{nonsense", "[1, 2]", "[" * 100_000])
def test_other_configurations_that_are_none(fails, copy, name, text):
    (copy / name).write_text(text)
    assert f"glyd: {name}: " in fails("run", copy, "-p", "x", code=3)


@pytest.mark.parametrize(
    ("changed", "code", "says"),
    [
        ({"vocab_size": 500}, 3, "embed_tokens.weight is [512, 128] in the files, and [500, 128] by config.json"),
        ({"hidden_size": 256}, 3, "is [512, 128] in the files, and [512, 256] by config.json: they are not of one"),
        ({"num_key_value_heads": 1}, 2, "its weights have other sizes than config.json says"),
        ({"num_hidden_layers": 3, "layer_types": None}, 3, "weights of the model are in none of its files: model.layers.2"),
        ({"tie_word_embeddings": False}, 3, "1 weights of the model are in none of its files: lm_head.weight"),
        ({"max_position_embeddings": -4}, 3, "config.json: max_position_embeddings is -4"),
        ({"num_attention_heads": 0}, 2, "is its configuration right?"),
        ({"hidden_act": "nonsense"}, 2, "'nonsense' (KeyError): is its configuration right?"),
        ({"num_hidden_layers": "two"}, 2, "expected int, got str"),
        ({"sliding_window": 0, "layer_types": ["full_attention", "sliding_attention"]}, 1, "cannot be served: "),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else None,
)  # fmt: skip
def test_a_configuration_that_is_of_another_model(fails, copy, changed, code, says):
    edit(copy / "config.json", use_sliding_window=True, **changed)
    assert says in fails("run", copy, "-p", "x", code=code)


def test_weights_that_are_in_no_file(fails, copy):
    weights = load_file(copy / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    err = fails("run", copy, "-p", "x", code=3)
    assert "1 weights of the model are in none of its files: model.layers.1.mlp.up_proj.weight" in err


def test_advice_that_is_no_number(fails, copy):
    (copy / "generation_config.json").write_text('{"do_sample": true, "temperature": "hot"}')
    assert "generation_config.json: temperature is 'hot', no number" in fails("run", copy, "-p", "x", code=3)


def test_no_tokenizer_and_a_broken_one(fails, copy):
    (copy / "tokenizer.json").write_text("{}")
    assert "its tokenizer cannot be loaded: " in fails("run", copy, "-p", "x", code=2)
    (copy / "tokenizer.json").unlink()
    assert "no tokenizer.json there: copy the tokenizer files" in fails("run", copy, "-p", "x", code=2)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("BertModel", "makes embeddings and writes no text: serve it (/v1/embeddings)"),
        ("BertForSequenceClassification", "neither writes text nor makes embeddings (BertForSequenceClassification)"),
    ],
)
def test_a_model_that_writes_no_text(fails, copy, kind, says):
    config = transformers.BertConfig(
        hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64, vocab_size=512
    )
    getattr(transformers, kind)(config).to(torch.bfloat16).save_pretrained(copy)
    assert says in fails("run", copy, "-p", "x", code=1)


def test_a_file_that_may_not_be_read():
    error = PermissionError(13, "Permission denied", "model.safetensors")
    assert causes.cause_of(error) == "model.safetensors may not be read: change its permissions"
