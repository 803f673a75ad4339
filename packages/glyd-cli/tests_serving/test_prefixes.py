# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""System prompts kept in files: written at the second use, put back at the start, and never another's."""

import asyncio
import hashlib
import json
import os
import threading

import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import save_file

import glyd
import glyd_gpu
from glyd_cli.errors import FileError, UsageError
from glyd_cli.serve import ServeOptions, parse_serve
from glyd_cli.serving import prefixes
from glyd_cli.serving.api_types import Message
from glyd_cli.serving.chat import n_shared, prompt_of
from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.loading import make_engine
from glyd_cli.serving.prefixes import Prefix, Prefixes, fingerprint, key_of
from glyd_cli.serving.transformers_engine import TransformersEngine, describe_model

SHARED = [7 * i % 500 for i in range(300)]
GREEDY = Sampling(max_tokens=12, temperature=0.0, ignore_eos=True, n_logprobs=0)


@pytest.fixture
def start(loaded, tmp_path):
    """Start engines on one folder; they are stopped at the end."""
    started, said = [], []

    def new(model=None, **kw):
        model, tokenizer = model or loaded[0], loaded[1]
        files = Prefixes(tmp_path / "kept", model, page=64, exact=False, say=said.append)
        engine = TransformersEngine(
            model, tokenizer, describe_model(model, "tiny"), n_slots=4, kv_tokens=4096, prefixes=files, **kw
        )
        started.append(engine)
        engine.start()
        return engine

    new.said = said
    yield new
    for engine in started:
        engine.stop()


def ask(engine, prompt, shared=300):
    async def steps():
        return [step async for step in engine.generate(prompt, GREEDY, n_shared=shared)]

    return asyncio.run(steps())


def files(tmp_path):
    return sorted((tmp_path / "kept").glob("*/*"))


@pytest.mark.parametrize("paged", [False, True])
def test_what_is_put_back_is_what_was_computed(start, tmp_path, loaded, paged):
    """The file has the cache's bits; tokens are those of an engine that computed all of it."""
    one = start(paged=paged)
    assert one.restored[0] == 0
    ask(one, [*SHARED, 3])
    assert files(tmp_path) == []  # it may never come again
    expected = ask(one, [*SHARED, 5, 6])
    ask(one, [*SHARED, 8])
    one.stop()
    (path,) = files(tmp_path)
    assert path.name == key_of(SHARED[:256]) + ".safetensors"
    assert path.parent.stat().st_mode & 0o77 == 0
    kept = one._prefixes.read(path)
    assert kept.ids == SHARED[:256]
    if not paged:  # the engine's own computation, in other steps: not always the same bits
        with torch.no_grad():
            cache = loaded[0](torch.tensor([SHARED[:256]]), use_cache=True).past_key_values
        for (k, v), layer in zip(kept.layers, cache.layers, strict=True):
            for found, right in ((k, layer.keys), (v, layer.values)):
                assert (found - right[0].transpose(0, 1)).abs().max() < 0.1
    two = start(paged=paged)
    assert two.restored[0] == 256
    n_run = []
    runner = two._manager.batch_processor.model_runner
    run = runner._forward_process_and_sample
    io = two._manager.batch_processor.inputs_and_outputs

    def draw_of(future):
        return future.state.logit_processor_kwargs.get("draw")

    def counted(*args):
        # the last token of what was put back may still come, alone or beside these
        asked = [f for f in io.requests_in_batch if not isinstance(draw_of(f), prefixes.Restore)]
        n_run.extend([sum(f.query_length for f in asked)] if asked else [])
        run(*args)

    runner._forward_process_and_sample = counted
    again = ask(two, [*SHARED, 5, 6])
    assert n_run[0] == len(SHARED) + 2 - 256  # the rest was found
    assert [s.token for s in again] == [s.token for s in expected]
    assert [s.logprob for s in again] == pytest.approx([s.logprob for s in expected], abs=0.1)


def test_prefixes_longer_than_a_step(start, tmp_path):
    """What is put back comes in steps as a prompt does."""
    long = [11 * i % 490 for i in range(700)]
    one = start()
    for last in (1, 2):
        ask(one, [*long, last], shared=700)
    one.stop()
    two = start()
    assert two.restored[0] == 640
    assert [s.token for s in ask(two, [*long, 2], 700)] == [s.token for s in ask(one_without(start), [*long, 2], 0)]


def one_without(start):
    engine = start()
    engine._prefixes._kept.clear()
    return engine


def test_short_and_unrepeated_prefixes_are_not_kept(start, tmp_path):
    engine = start()
    for _ in range(3):
        ask(engine, SHARED, shared=0)
        ask(engine, SHARED[:150], shared=127)
    for i in range(3):
        ask(engine, [i, *SHARED])
    engine.stop()
    assert files(tmp_path) == []


def test_many_at_once_write_one_file(start, tmp_path):
    engine = start()

    async def all_of_them():
        async def one(i):
            return [s async for s in engine.generate([*SHARED, i], GREEDY, n_shared=300)]

        await asyncio.gather(*(one(i) for i in range(12)))

    asyncio.run(all_of_them())
    engine.stop()
    assert len(files(tmp_path)) == 1


def made(tmp_path, loaded, n=3):
    """Return prefixes of random keys and values in files, the oldest first."""
    kept = Prefixes(tmp_path / "kept", loaded[0], page=64, exact=False)
    paths = []
    for number in range(n):
        ids = [number * 20 + i % 19 for i in range(128)]
        layers = [tuple(torch.randn(2, 128, 2, 32).to(torch.bfloat16)) for _ in range(2)]
        paths.append(kept.write(Prefix(ids, layers)))
        os.utime(paths[-1], (1000 + number, 1000 + number))
    return kept, paths


def test_bits_stay(tmp_path, loaded):
    kept = Prefixes(tmp_path / "kept", loaded[0], page=64, exact=False)
    layers = [tuple(torch.randn(2, 192, 2, 32).to(torch.bfloat16)) for _ in range(2)]
    found = kept.read(kept.write(Prefix(list(range(192)), layers)))
    assert found.ids == list(range(192))
    for (k, v), (right_k, right_v) in zip(found.layers, layers, strict=True):
        assert torch.equal(k, right_k)
        assert torch.equal(v, right_v)


@pytest.mark.parametrize("damage", ["bit", "cut", "empty", "other", "name", "tokens", "nothing"])
def test_a_damaged_file_is_left_out_and_named(start, tmp_path, loaded, damage):
    _, (bad, *good) = made(tmp_path, loaded)
    data = bytearray(bad.read_bytes())
    if damage == "bit":
        data[len(data) // 2] ^= 4
    elif damage == "cut":
        del data[-100:]
    elif damage == "empty":
        data.clear()
    if damage in {"bit", "cut", "empty"}:
        bad.write_bytes(data)
    elif damage == "other":
        save_file({"x": torch.zeros(3)}, bad)
    elif damage == "name":
        bad.rename(bad.with_name("0" * 32 + bad.suffix))
    elif damage == "tokens":
        with safe_open(bad, framework="pt") as file:
            tensors, facts = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
        tensors["ids"][0, 0] += 1
        save_file(tensors, bad, facts)
    else:
        bad.unlink()
    engine = start()
    assert engine.restored[0] == 128 * len(good)
    assert len(start.said) == (damage != "nothing")
    assert all("a prefix is left out: " in text for text in start.said)
    assert len(ask(engine, SHARED)) == 12


def test_a_file_of_another_shape_is_left_out(start, tmp_path, loaded):
    """Whoever moves files between folders of models gets no wrong keys."""
    kept = Prefixes(tmp_path / "kept", loaded[0], page=64, exact=False)
    for heads, channels, n_layers in ((4, 32, 2), (2, 16, 2), (2, 32, 1)):
        layers = [tuple(torch.randn(2, 128, heads, channels).to(torch.bfloat16)) for _ in range(n_layers)]
        config = transformers.Qwen3Config(
            **{**loaded[0].config.to_dict(), "num_hidden_layers": n_layers, "layer_types": None}
        )
        cache = glyd_gpu.GlydKVCache(config)
        for number, layer in enumerate(layers):
            cache.update(*(x.transpose(0, 1).unsqueeze(0) for x in layer), number)
        ids = [heads * 10 + channels + i % 9 for i in range(128)]
        cache.save(kept.folder / f"{key_of(ids)}.safetensors", ids=torch.tensor([ids]))
    engine = start()
    assert engine.restored[0] == 0
    assert len(start.said) == 3


def test_the_oldest_goes(tmp_path, loaded, monkeypatch):
    monkeypatch.setattr(prefixes, "MOST", 2)
    kept, paths = made(tmp_path, loaded, 2)
    os.utime(paths[0], (2000, 2000))  # used since
    ids = list(range(128))
    layers = [tuple(torch.zeros(2, 128, 2, 32).to(torch.bfloat16)) for _ in range(2)]
    new = kept.write(Prefix(ids, layers))
    assert {p.name for p in kept.stored()} == {paths[0].name, new.name}


def test_use_is_noted(tmp_path, loaded):
    kept, paths = made(tmp_path, loaded, 1)
    prefix = kept.read(paths[0])
    kept.known(prefix)
    before = paths[0].stat().st_mtime
    assert kept.wanted([*prefix.ids, 1], 128) == 0
    assert paths[0].stat().st_mtime > before
    paths[0].unlink()  # by another server
    assert kept.wanted([*prefix.ids, 1], 128) == 0


def test_half_of_the_room_stays_free(loaded, tmp_path):
    kept, paths = made(tmp_path, loaded, 3)
    model, tokenizer = loaded
    info = describe_model(model, "tiny", context=256)
    engine = TransformersEngine(model, tokenizer, info, n_slots=2, kv_tokens=512, prefixes=kept)
    engine.start()
    try:
        assert engine.restored[0] == 256
        assert kept._kept == {path.stem for path in paths[1:]}  # those used last
    finally:
        engine.stop()


def test_models_are_told_apart(loaded, long_path):
    model = loaded[0]
    found = fingerprint(model)
    assert found == fingerprint(glyd_gpu.from_pretrained(long_path, device="cpu"))
    others = [glyd_gpu.from_pretrained(long_path, device="cpu") for _ in range(2)]
    with torch.no_grad():
        others[0].model.norm.weight[0] += 1
    others[1].config.rope_parameters = {"rope_type": "default", "rope_theta": 5.0}
    plain = transformers.AutoModelForCausalLM.from_pretrained(long_path)
    mma12 = glyd_gpu.from_pretrained(long_path, device="cpu", layout="tiered")
    found_all = {found, fingerprint(model, exact=True), *map(fingerprint, (*others, plain, mma12))}
    assert len(found_all) == 6


def test_what_a_prompt_shares(loaded):
    tokenizer = loaded[1]

    def turns(*texts):
        return [Message(role="user" if i else "system", content=t) for i, t in enumerate(texts)]

    system = "the lazy dog " * 20
    one, two = (prompt_of(tokenizer, turns(system, text)) for text in ("the fox", "over"))
    n = n_shared(tokenizer, turns(system, "the fox"), one)
    assert n == n_shared(tokenizer, turns(system, "over"), two) > 20
    assert one[:n] == two[:n]
    assert "lazy dog" in tokenizer.decode(one[:n])
    assert "fox" not in tokenizer.decode(one[:n])
    alone = turns("x", "hello")[1:]
    assert n_shared(tokenizer, alone, prompt_of(tokenizer, alone)) == 0


def test_over_the_api(long_path, new_server, tmp_path):
    options = ServeOptions(verb="serve", model=str(long_path), prefix_dir=str(tmp_path / "kept"), slots=2)
    messages = [{"role": "system", "content": "the quick brown fox " * 40}]

    def serve():
        return new_server(long_path, engine=lambda *loaded: make_engine(options, *loaded))

    def say(server, text):
        body = {"messages": [*messages, {"role": "user", "content": text}], "max_tokens": 8, "temperature": 0}
        return server.post("/v1/chat/completions", body).json()["choices"][0]["message"]["content"]

    one = serve()
    first = [say(one, text) for text in ("one", "two", "three")]
    one.engine.stop()
    assert len(files(tmp_path)) == 1
    two = serve()
    assert two.engine.restored[0] >= 128
    assert [say(two, text) for text in ("one", "two", "three")] == first


def test_what_cannot_be_written_is_said_once(start, tmp_path, monkeypatch):
    engine = start()
    seen = threading.Event()

    def full(*_, **__):
        seen.set()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(glyd_gpu.GlydKVCache, "save", full)
    for last in (1, 2, 3):
        ask(engine, [*SHARED, last])
    engine.stop()
    assert seen.is_set()
    assert len(start.said) == 1
    assert "a prefix of 256 tokens cannot be kept: " in start.said[0]


def test_a_full_disk_is_said(loaded, tmp_path, monkeypatch):
    """What safetensors makes of errors of the system does not end the thread that writes."""

    def fails(tensors, file, facts):
        save_file(tensors, os.path.join(file, "missing"), facts)

    said = []
    kept = Prefixes(tmp_path / "kept", loaded[0], page=64, exact=False, say=said.append)
    layers = [tuple(torch.randn(2, 128, 2, 32).to(torch.bfloat16)) for _ in range(2)]
    monkeypatch.setattr("glyd_gpu._kv_saving.save_file", fails)
    for first in (1, 2):
        kept._to_write.put(Prefix(list(range(first, first + 128)), layers))
    kept._to_write.put(None)
    kept._write_all()
    assert len(said) == 2
    assert all("a prefix of 128 tokens cannot be kept: " in text and "cannot be written: " in text for text in said)
    assert list(kept.folder.iterdir()) == []


@pytest.mark.parametrize("value", [5.0, float("nan"), 1j])
def test_tokens_of_another_type_are_damage(loaded, tmp_path, value):
    kept, (bad, *_) = made(tmp_path, loaded)
    with safe_open(bad, framework="pt") as file:
        tensors, facts = {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["glyd_kv"])  # noqa: SIM118
    tensors["ids"] = torch.full((1, 128), value)
    facts["sha256"]["ids"] = hashlib.sha256(tensors["ids"].numpy().tobytes()).hexdigest()
    save_file(tensors, bad, {"glyd_kv": json.dumps(facts)})
    with pytest.raises(glyd.CorruptDataError, match="tokens are torch"):
        kept.read(bad)


def test_refused(loaded, long_path, tmp_path, save_model):
    with pytest.raises(UsageError, match="--prefix-dir: not with --kv packed"):
        parse_serve("serve", [str(long_path), "--prefix-dir", "x", "--kv", "packed"])
    with pytest.raises(UsageError, match="--prefix-dir: not with vLLM"):
        parse_serve("serve", [str(long_path), "--prefix-dir", "x", "--engine", "vllm"])
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match=r"not a directory|exists"):
        Prefixes(tmp_path / "file", loaded[0], page=64, exact=False)
    odd = save_model(tmp_path / "odd", use_sliding_window=True, layer_types=["full_attention", "sliding_attention"])
    options = ServeOptions(verb="serve", model=str(odd), prefix_dir=str(tmp_path / "kept"))
    with pytest.raises(UsageError, match="--prefix-dir: packed blocks are for layers that see all tokens"):
        make_engine(options, glyd_gpu.from_pretrained(odd, device="cpu"), loaded[1])
    assert not (tmp_path / "kept").exists()
