# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed caches: layers against those of transformers, step by step, and generation with both."""

import copy

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

import glyd_codec
import glyd_gpu
from glyd_gpu import GlydKVCache, _kv_attention, kv_cache
from glyd_gpu._matrices import bits
from glyd_gpu.kv_cache import PackedLayer, PackedSlidingWindowLayer

SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 211,
}
WINDOW = 150


def states(batch, heads, n, channels, generator):
    """Return keys, or values, whose channels differ in size."""
    scale = torch.exp2(torch.arange(channels) % 7 - 3.0)
    return (torch.randn((batch, heads, n, channels), generator=generator) * scale).to(torch.bfloat16)


def check_same(plain, packed):
    for a, b in ((plain.keys, packed.keys), (plain.values, packed.values)):
        assert a.shape == b.shape
        assert torch.equal(bits(a), bits(b))
    assert plain.get_seq_length() == packed.get_seq_length()
    assert plain.get_mask_sizes(3) == packed.get_mask_sizes(3)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("update"), st.sampled_from([1, 2, 17, 127, 128, 129, 300])),
        st.tuples(st.just("crop"), st.sampled_from([0, 1, 5, 128, 200])),
        st.tuples(st.just("reorder"), st.integers(0, 99)),
        st.tuples(st.just("repeat"), st.just(2)),
        st.tuples(st.just("select"), st.integers(0, 99)),
        st.tuples(st.just("move"), st.just(0)),
    ),
    min_size=1,
    max_size=9,
)


@settings(max_examples=25, deadline=None)
@given(STEPS, st.sampled_from([None, 2, 100, 150, 257]), st.booleans(), st.sampled_from([(16, 16), (48, 32)]))
def test_layers_do_the_same(steps, window, record, channels):
    if window is None:
        plain, packed = DynamicLayer(), PackedLayer()
    else:
        plain, packed = DynamicSlidingWindowLayer(window), PackedSlidingWindowLayer(window)
        if record:
            plain.activate_past_recording()
            packed.activate_past_recording()
    generator = torch.Generator().manual_seed(len(steps))
    batch = 2
    for step, n in [("update", 140), *steps]:
        if step == "update":
            new = [states(batch, 2, n, c, generator) for c in channels]
            for a, b in zip(plain.update(*new), packed.update(*new), strict=True):
                assert torch.equal(bits(a), bits(b))
            if window is not None and record:  # transformers' way: a crop follows, of what is not accepted
                plain.crop(-(n // 2))
                packed.crop(-(n // 2))
        elif step == "crop":
            if window is not None and record and plain.get_seq_length() >= window:
                continue  # what the crop before let go cannot come back
            refused = []
            most = plain.keys.shape[2] - 1
            for layer in (plain, packed):
                try:
                    layer.crop(-min(n, most))
                except RuntimeError as error:
                    refused.append(str(error))
            assert len(refused) in {0, 2}
            assert len(set(refused)) < 2
        elif step == "reorder":
            beams = torch.randint(0, batch, (batch,), generator=torch.Generator().manual_seed(n))
            plain.reorder_cache(beams)
            packed.reorder_cache(beams)
        elif step == "repeat" and batch < 5:
            plain.batch_repeat_interleave(n)
            packed.batch_repeat_interleave(n)
            batch *= n
        elif step == "select":
            chosen = torch.tensor([n % batch, 0])
            plain.batch_select_indices(chosen)
            packed.batch_select_indices(chosen)
            batch = 2
        elif step == "move":
            packed.offload()
            packed.prefetch()
        check_same(plain, packed)
    packed.reset()
    assert packed.get_seq_length() == 0
    assert packed.nbytes == 0


@pytest.mark.parametrize("channels", [64, 80, 96, 128, 256])
def test_bytes(channels):
    layer = PackedLayer()
    x = states(2, 3, 1024, channels, torch.Generator().manual_seed(1))
    layer.update(x, x.flip(2))
    assert torch.equal(layer.keys, x)
    assert layer.nbytes < 0.70 * 2 * 2 * x.numel()
    cache = GlydKVCache()
    cache.update(x, x.flip(2), 0)
    report = cache.report()
    assert (report.n_tokens, report.plain_nbytes, report.plain_layers) == (1024, 4 * x.numel(), {})
    assert report.nbytes == layer.nbytes == cache.layers[0].nbytes


def test_beams_share_pages():
    layer = PackedLayer()
    x = states(1, 2, 256, 64, torch.Generator().manual_seed(1))
    layer.update(x, x)
    one = layer.nbytes
    layer.batch_repeat_interleave(5)
    assert layer.nbytes == one
    layer.reorder_cache(torch.tensor([4, 4, 0, 1, 1]))
    assert layer.nbytes == one
    assert torch.equal(layer.values, x.expand(5, -1, -1, -1))


def test_chunks_stay_few():
    layer = PackedLayer()
    generator = torch.Generator().manual_seed(2)
    whole = states(2, 1, 70 * 128, 16, generator)
    for first in range(0, whole.shape[2], 64):
        layer.update(whole[:, :, first : first + 64], whole[:, :, first : first + 64])
    for store in layer.stores:
        assert len(store.chunks) <= 8  # 70 pages a head came one at a time
        assert store.n_pages == 70
    assert torch.equal(layer.keys, whole)
    layer.batch_select_indices(torch.tensor([1, 1, 0]))
    layer.crop(-300)
    assert torch.equal(layer.values, whole[[1, 1, 0], :, :-300])


def test_what_nobody_sees_is_let_go():
    layer = PackedLayer()
    generator = torch.Generator().manual_seed(1)
    for _ in range(3):
        layer.update(states(8, 1, 128, 64, generator), states(8, 1, 128, 64, generator))
    full = layer.nbytes
    kept = layer.keys[5]
    layer.batch_select_indices(torch.tensor([5]))
    assert layer.nbytes < full / 7
    assert torch.equal(layer.keys[0], kept)
    sliding = PackedSlidingWindowLayer(512)
    for _ in range(40):
        sliding.update(states(1, 1, 100, 64, generator), states(1, 1, 100, 64, generator))
    assert sliding.nbytes < 2 * 64 * 2 * (512 + 256)


def test_memory_of_a_prompt_is_not_kept():
    layer = PackedLayer()
    x = states(1, 1, 1000, 64, torch.Generator().manual_seed(1))
    layer.update(x, x)
    for store in layer.stores:
        assert store.tail.untyped_storage().nbytes() == 2 * 64 * (1000 - 7 * 128)


FAMILIES = {
    "llama": ("LlamaConfig", {}),
    "qwen3": ("Qwen3Config", {}),
    "mistral": ("MistralConfig", {"sliding_window": WINDOW}),
    "gemma3": ("Gemma3TextConfig", {"sliding_window": WINDOW, "hidden_activation": "gelu_pytorch_tanh"}),
    "phi3": ("Phi3Config", {"pad_token_id": 0, "head_dim": 16}),
}


@pytest.fixture(scope="module")
def models():
    """Return a function that makes a model of a family, once."""
    made = {}

    def make(name):
        if name not in made:
            kind, arguments = FAMILIES[name]
            torch.manual_seed(5)
            config = getattr(transformers, kind)(**SMALL | {"eos_token_id": None, "bos_token_id": 1} | arguments)
            model = AutoModelForCausalLM.from_config(config).to(torch.bfloat16).eval()
            for parameter in model.parameters():  # logits that differ from one another
                torch.nn.init.normal_(parameter, 1.0 if parameter.dim() < 2 else 0.0, 0.2)
            made[name] = model
        return made[name]

    return make


def generate(model, cache, ids, **arguments):
    torch.manual_seed(9)
    return model.generate(
        ids,
        past_key_values=cache,
        max_new_tokens=arguments.pop("max_new_tokens", 20),
        pad_token_id=0,
        return_dict_in_generate=True,
        output_logits=True,
        **arguments,
    )


def check_generates(model, ids, **arguments):
    plain_cache = DynamicCache(config=model.config)
    packed_cache = GlydKVCache(model.config)
    plain = generate(model, plain_cache, ids, **arguments)
    packed = generate(model, packed_cache, ids, **arguments)
    assert torch.equal(plain.sequences, packed.sequences)
    for a, b in zip(plain.logits, packed.logits, strict=True):
        assert torch.equal(a, b)
    return packed_cache


@pytest.mark.parametrize("name", FAMILIES)
def test_generation_is_the_same(name, models, monkeypatch):
    monkeypatch.setattr(kv_cache, "LEAST_WINDOW", 100)
    model = models(name)
    ids = torch.randint(2, 200, (3, 250))
    mask = torch.ones_like(ids)
    mask[1, :131] = 0  # shorter prompts, padded on the left
    mask[2, :249] = 0
    cache = check_generates(model, ids, attention_mask=mask, max_new_tokens=14)
    kinds = {type(layer) for layer in cache.layers}
    assert kinds <= {PackedLayer, PackedSlidingWindowLayer}
    assert (PackedSlidingWindowLayer in kinds) == ("sliding_window" in FAMILIES[name][1])
    assert all(layer.stores[0].n_pages for layer in cache.layers)


@pytest.mark.parametrize(
    "arguments",
    [{"num_beams": 3}, {"do_sample": True, "num_return_sequences": 2}, {"prompt_lookup_num_tokens": 4}],
    ids=["beams", "several", "assisted"],
)
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_ways_of_generating(name, arguments, models, monkeypatch):
    monkeypatch.setattr(kv_cache, "LEAST_WINDOW", 100)
    ids = torch.randint(2, 9, (1, 60)).repeat(1, 3)
    check_generates(models(name), ids, max_new_tokens=18, **arguments)


def test_short_windows_stay_plain(models):
    cache = check_generates(models("mistral"), torch.randint(2, 200, (1, 200)), max_new_tokens=3)
    report = cache.report()
    assert report.plain_layers == dict.fromkeys(range(3), f"a window of {WINDOW} tokens")
    assert report.nbytes == report.plain_nbytes > 0


def test_a_prefix_is_reused(models):
    model = models("qwen3")
    prefix = torch.randint(2, 200, (1, 300))
    cache = GlydKVCache(model.config)
    with torch.no_grad():
        model(prefix, past_key_values=cache)
    for seed in range(2):
        torch.manual_seed(seed)
        ids = torch.cat([prefix, torch.randint(2, 200, (1, 7))], 1)
        mine = generate(model, copy.deepcopy(cache), ids)
        fresh = generate(model, GlydKVCache(model.config), ids)
        assert torch.equal(mine.sequences, fresh.sequences)
    assert cache.get_seq_length() == 300


def test_from_pretrained(models, tmp_path):
    models("qwen3").save_pretrained(tmp_path / "plain")
    glyd_codec.pack_model(tmp_path / "plain", tmp_path / "packed")
    ids = torch.randint(2, 200, (1, 200))
    results = []
    for kind in ("plain", "packed"):
        model = glyd_gpu.from_pretrained(tmp_path / "packed", kv_cache=kind, device="cpu")
        out = model.generate(
            ids, max_new_tokens=12, pad_token_id=0, return_dict_in_generate=True, output_logits=True, do_sample=False
        )
        results.append(out)
        assert type(out.past_key_values) is (GlydKVCache if kind == "packed" else DynamicCache)
    assert torch.equal(results[0].sequences, results[1].sequences)
    assert all(torch.equal(a, b) for a, b in zip(results[0].logits, results[1].logits, strict=True))
    cache = DynamicCache(config=model.config)  # whoever brings a cache keeps it
    assert (
        model.generate(ids, max_new_tokens=2, past_key_values=cache, return_dict_in_generate=True).past_key_values
        is cache
    )


def test_refused():
    layer = PackedLayer()
    x = torch.zeros(1, 1, 3, 64)
    with pytest.raises(glyd_gpu.ShapeError, match=r"\(1, 1, 3, 64\) of torch\.float32: load the model in bf16"):
        layer.update(x, x)
    y = torch.zeros(1, 1, 3, 40, dtype=torch.bfloat16)
    with pytest.raises(glyd_codec.ParameterError, match="multiple of 16 channels, 512 at most; not 40"):
        layer.update(y, y)
    z = torch.zeros(1, 1, 3, 64, dtype=torch.bfloat16, device="meta")
    with pytest.raises(glyd_gpu.UnsupportedDeviceError, match="keys are on meta"):
        layer.update(z, z)
    results = []  # of a positive number, which some versions of transformers take for a length
    for layer in (DynamicLayer(), PackedLayer()):
        layer.update(x.bfloat16(), x.bfloat16())
        try:
            layer.crop(2)
            results.append(layer.get_seq_length())
        except ValueError as error:
            results.append(str(error))
    assert results[0] == results[1]


@pytest.mark.parametrize("name", FAMILIES)
def test_steps_on_pages(name, models, monkeypatch):
    """Steps that see pages instead of decoded copies: the same tokens, and logits of another order of sums."""
    monkeypatch.setattr(kv_cache, "LEAST_WINDOW", 100)
    model = copy.deepcopy(models(name))
    ids = torch.randint(2, 200, (3, 243))
    mask = torch.ones_like(ids)
    mask[1, :131] = 0
    mask[2, :242] = 0
    plain = generate(model, DynamicCache(config=model.config), ids, attention_mask=mask)
    _kv_attention.register(model)
    calls = []
    monkeypatch.setattr(_kv_attention, "attend", lambda *a, real=_kv_attention.attend: calls.append(a) or real(*a))
    packed = generate(model, GlydKVCache(model.config, direct=True), ids, attention_mask=mask)
    assert len(calls) == 19 * 3  # every step of every layer
    assert torch.equal(plain.sequences, packed.sequences)
    for a, b in zip(plain.logits, packed.logits, strict=True):
        assert (a - b).abs().max() < 0.05 * a.abs().max()


def test_tokens_hidden_between_others(models):
    model = copy.deepcopy(models("llama"))
    _kv_attention.register(model)
    ids = torch.randint(2, 200, (1, 140))
    mask = torch.ones_like(ids)
    mask[0, 50] = 0
    with pytest.raises(RuntimeError, match="only padding on the left"):
        generate(model, GlydKVCache(model.config, direct=True), ids, attention_mask=mask)


def test_attention_that_is_not_known(models):
    model = copy.deepcopy(models("llama"))
    model.set_attn_implementation("eager")
    with pytest.raises(glyd_codec.ParameterError, match="attends with eager, not sdpa"):
        kv_cache.install(model, direct=True)
    layer = PackedLayer()
    layer.direct = True
    x = states(1, 2, 130, 64, torch.Generator().manual_seed(1))
    layer.update(x, x)
    marked, new = layer.update(x[:, :, :1], x[:, :, :1])
    with pytest.raises(glyd_codec.ParameterError, match="attends with softcap"):
        _kv_attention.paged_attention(model, x[:, :, :1], marked, new, None, softcap=30.0)


def test_offloading_decodes(monkeypatch):
    """The pages of an offloaded layer are gone when its attention runs: it is given decoded ones."""
    monkeypatch.setattr(torch, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    config = transformers.LlamaConfig(num_hidden_layers=2)
    assert not any(layer.direct for layer in GlydKVCache(config, direct=True, offloading=True).layers)
    assert all(layer.direct for layer in GlydKVCache(config, direct=True).layers)
