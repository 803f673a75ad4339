# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Steps that attend on the pages of the cache, on the CPU's form of their kernel: every token is the model's own."""

import asyncio
import random
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
import transformers

from glyd_cli.errors import UsageError
from glyd_cli.serve import ServeOptions
from glyd_cli.serving import pages
from glyd_cli.serving.engine import Sampling
from glyd_cli.serving.kv_room import kv_bytes_a_token, kv_room
from glyd_cli.serving.loading import attends_on_pages
from glyd_cli.serving.paged import ATTENTION, Plan, _causal, paged_attention
from glyd_cli.serving.pages import Group, Pages, why_not
from glyd_cli.serving.transformers_engine import TransformersEngine, describe_model


@pytest.fixture
def engine(loaded):
    model, tokenizer = loaded
    made = TransformersEngine(model, tokenizer, describe_model(model, "tiny"), n_slots=4, kv_tokens=4096, paged=True)
    made.start()
    yield made
    made.stop()


def prompt_of(n, seed):
    draw = random.Random(seed)
    return [draw.randrange(3, 500) for _ in range(n)]


async def ask(engine, prompt, n, **rules):
    given = Sampling(max_tokens=n, temperature=0.0, ignore_eos=True, n_logprobs=0, **rules)
    return [step async for step in engine.generate(prompt, given)]


def check(model, prompt, steps):
    """Every token is (one of) the likeliest by the model alone on all that came before, with its probability."""
    usual, model.config._attn_implementation = model.config._attn_implementation, "sdpa"
    try:
        with torch.no_grad():
            logits = model(torch.tensor([prompt + [s.token for s in steps]])).logits[0, len(prompt) - 1 : -1].float()
    finally:
        model.config._attn_implementation = usual
    table = logits.log_softmax(-1)
    for step, row in zip(steps, table, strict=True):
        assert abs(row[step.token] - step.logprob) < 0.25  # sums of bf16 products in other orders
        assert row.max() - row[step.token] < 0.25


def test_tokens_are_the_models_own(engine, loaded):
    """More requests than slots; prompts of a token, of many pages, and longer than a step; answers over pages."""
    sizes = [(1, 70), (300, 40), (64, 5), (63, 3), (700, 9), (129, 12), (7, 100)]
    prompts = [prompt_of(n, n) for n, _ in sizes]

    async def all_of_them():
        return await asyncio.gather(*(ask(engine, p, m) for p, (_, m) in zip(prompts, sizes, strict=True)))

    answers = asyncio.run(all_of_them())
    assert [len(a) for a in answers] == [m for _, m in sizes]
    for prompt, steps in zip(prompts, answers, strict=True):
        check(loaded[0], prompt, steps)


WINDOWS = {
    "mixed, of other than whole pages": ("Qwen3", {"layer_types": ["sliding_attention", "full_attention"]}, 100),
    "more of one kind": ("Qwen3", {"layer_types": ["full_attention"] + ["sliding_attention"] * 3}, 64),
    "all": ("Mistral", {}, 130),
    "gemma": ("Gemma3Text", {"layer_types": ["sliding_attention", "full_attention"], "head_dim": 64}, 70),
    "a token": ("Qwen3", {"layer_types": ["full_attention", "sliding_attention"]}, 1),
}


def windowed(kind, changed, window):
    sizes = {
        "vocab_size": 512, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "head_dim": 32,
        "num_key_value_heads": 2, "max_position_embeddings": 1024, "eos_token_id": 1, "pad_token_id": 0,
        "bos_token_id": None, "use_sliding_window": True, "sliding_window": window,
        "num_hidden_layers": len(changed.get("layer_types", "xx")), "initializer_range": 0.15,
    }  # fmt: skip
    torch.manual_seed(1)
    config = getattr(transformers, f"{kind}Config")(**{**sizes, **changed})
    return transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).eval()


@pytest.mark.parametrize("case", WINDOWS)
def test_layers_with_windows(loaded, case):
    """Rings that are not full, full and gone round; prompts shorter and longer than the window and than a step."""
    model = windowed(*WINDOWS[case])
    assert why_not(model) is None
    info = describe_model(model, "tiny")
    engine = TransformersEngine(model, loaded[1], info, n_slots=4, kv_tokens=4096, paged=True)
    sizes = [(1, 160), (300, 40), (99, 4), (100, 3), (101, 3), (700, 12), (7, 90)]
    prompts = [prompt_of(n, n) for n, _ in sizes]

    async def all_of_them():
        return await asyncio.gather(*(ask(engine, p, m) for p, (_, m) in zip(prompts, sizes, strict=True)))

    engine.start()
    try:
        answers = asyncio.run(all_of_them())
        groups = {group.window for group in Pages(engine._manager.batch_processor.cache).groups}
        assert groups == {0, WINDOWS[case][2]} - ({0} if case == "all" else set())
    finally:
        engine.stop()
    for prompt, steps in zip(prompts, answers, strict=True):
        check(model, prompt, steps)


def test_long_prompts_see_their_windows():
    """Blocks of queries: each sees what the whole would."""
    draw = torch.Generator().manual_seed(3)
    q = torch.randn((2500, 4, 16), generator=draw)
    k, v = torch.randn((2, 2800, 2, 16), generator=draw)
    rows, columns = torch.arange(300, 2800).unsqueeze(1), torch.arange(2800)
    for window in (1, 700, 1300):
        mask = (columns <= rows) & (columns > rows - window)
        of_all = (x.transpose(0, 1).unsqueeze(0) for x in (q, k, v))
        expected = F.scaled_dot_product_attention(*of_all, attn_mask=mask, scale=0.25, enable_gqa=True)
        assert torch.allclose(_causal(q, k, v, 0.25, window), expected[0].transpose(0, 1), atol=1e-5)


def test_pages_are_shared_and_used_again(engine, loaded):
    """The second request finds the pages of the first's prompt; then so many others that pages change hands."""
    prompt = prompt_of(400, 1)
    first = asyncio.run(ask(engine, prompt, 20))
    cache = engine._manager.batch_processor.cache
    again = asyncio.run(ask(engine, prompt + prompt_of(30, 2), 20))
    check(loaded[0], prompt, first)
    check(loaded[0], prompt + prompt_of(30, 2), again)
    for seed in range(3, 9):
        other = prompt_of(700, seed)
        check(loaded[0], other, asyncio.run(ask(engine, other, 30)))
    assert cache is engine._manager.batch_processor.cache


def test_who_goes_away_leaves_the_others(engine, loaded):
    prompts = [prompt_of(90, seed) for seed in range(4)]

    async def leave(prompt):
        answer = engine.generate(prompt, Sampling(max_tokens=200, ignore_eos=True))
        async for _ in answer:
            break
        await answer.aclose()

    async def together():
        kept = asyncio.gather(*(ask(engine, p, 30) for p in prompts[:2]))
        await asyncio.gather(*(leave(p) for p in prompts[2:]))
        return await kept

    for prompt, steps in zip(prompts, asyncio.run(together()), strict=False):
        check(loaded[0], prompt, steps)
    assert engine.load().n_running == 0


def test_seeds_and_limits(engine):
    """Tokens are drawn by each request's own rules, whatever the order of rows."""
    prompt = prompt_of(20, 3)

    async def drawn(seed, **rules):
        given = Sampling(max_tokens=12, temperature=1.0, seed=seed, ignore_eos=True, **rules)
        return [s.token async for s in engine.generate(prompt, given)]

    async def all_of_them():
        return await asyncio.gather(drawn(1), ask(engine, prompt_of(300, 4), 12), drawn(1, top_k=1), drawn(2))

    one, _, likeliest, two = asyncio.run(all_of_them())
    assert one == asyncio.run(drawn(1))
    assert one != two
    assert likeliest == [s.token for s in asyncio.run(ask(engine, prompt, 12))]


def test_the_model_is_as_before_afterwards(loaded, engine):
    model, tokenizer = loaded
    expected = asyncio.run(ask(engine, prompt_of(70, 5), 30))
    engine.stop()
    info = describe_model(model, "tiny")
    made = TransformersEngine(model, tokenizer, info, n_slots=1, kv_tokens=256, paged=True, parts=True)
    made.start()
    assert model.config._attn_implementation == ATTENTION
    assert any("forward" in m.__dict__ for m in model.modules() if type(m).__name__ == "Qwen3RMSNorm")
    assert asyncio.run(ask(made, prompt_of(70, 5), 30)) == expected  # on the CPU the operators are torch's operations
    made.stop()
    assert model.config._attn_implementation == "sdpa"
    assert not any("forward" in m.__dict__ for m in model.modules() if type(m).__name__ == "Qwen3RMSNorm")
    assert model(torch.tensor([[5, 6, 7]])).logits.isfinite().all()


def test_which_models_can(loaded, save_model, tmp_path):
    model, _ = loaded
    assert why_not(model) is None
    options = ServeOptions(verb="serve", model="tiny")
    assert not attends_on_pages(options, model, "plain")  # on the CPU oneDNN's attention is the faster one

    def like(**changed):
        config = transformers.Qwen3Config(**{**model.config.to_dict(), **changed})
        config._attn_implementation = changed.get("attends", "sdpa")
        made = type("Model", (), {"config": config, "dtype": changed.get("dtype", torch.bfloat16)})()
        made.device = torch.device("cuda")
        return made

    assert why_not(like()) is None
    assert attends_on_pages(options, like(), "plain")
    assert not attends_on_pages(options, like(), "packed")
    refused = {
        "computes in torch.float32": like(dtype=torch.float32),
        "of other kinds: chunked_attention": like(layer_types=["chunked_attention"] * 2),
        "of other kinds: full_attention, sliding_attention": like(
            layer_types=["full_attention", "sliding_attention"], model_type="gpt_oss"
        ),
        "heads of 20 channels": like(head_dim=20),
        "attends with eager": like(attends="eager"),
        "attention is of another kind": like(attn_logit_softcapping=30.0),
    }
    for reason, odd in refused.items():
        assert reason in why_not(odd)
        assert not attends_on_pages(options, odd, "plain")
        options.graphs = True
        with pytest.raises(UsageError, match=f"--graphs: steps of tiny cannot be captured, since .*{reason}"):
            attends_on_pages(options, odd, "plain")
        options.graphs = False


def test_another_version_of_the_cache(loaded, monkeypatch):
    """What keeps pages in a way that is not known here is left to transformers."""
    assert pages._knows_cache()

    class PagedAttentionCache:
        def __init__(self):
            self.sheets = {}

    monkeypatch.setattr(pages.batch_cache, "PagedAttentionCache", PagedAttentionCache)
    assert why_not(loaded[0]) == "this version of transformers keeps its cache in another way"


def test_attention_that_is_not_known_is_refused():
    x = torch.zeros((1, 2, 3, 8), dtype=torch.bfloat16)
    for name in ("softcap", "s_aux"):
        with pytest.raises(ValueError, match=f"attends with {name}: not on pages"):
            paged_attention(torch.nn.Identity(), x, x, x, None, glyd_pages=(None, None), **{name: 2})
    with pytest.raises(ValueError, match="no pages"):
        paged_attention(torch.nn.Identity(), x, x, x, None)
    layer = torch.nn.Identity()
    layer.layer_idx = 3
    pages = SimpleNamespace(layer=lambda _: (0, x, x), groups=[Group({}, 64, 64, 0)])
    with pytest.raises(ValueError, match="layer 3 sees 2 tokens, and its pages are of 0"):
        paged_attention(layer, x, x, x, None, glyd_pages=(pages, Plan()), sliding_window=2)


def test_room(loaded):
    """No masks are counted, but what lies between the products of a step; the engine takes what was counted."""
    model, tokenizer = loaded
    nbytes, token = 50_000_000, kv_bytes_a_token(model)
    between = 256 * (8 * 128 + 3 * 256) * 2
    assert kv_room(model, nbytes, paged=True) == (nbytes - between) // token > kv_room(model, nbytes)
    assert kv_room(model, 1000, paged=True) == 0
    made = TransformersEngine(model, tokenizer, describe_model(model, "tiny"), n_slots=2, kv_tokens=4096, paged=True)
    made.start()
    try:
        config = made._manager.continuous_batching_config
        assert config.max_memory_percent > 100  # transformers' own count has masks
        assert len(asyncio.run(ask(made, [5, 6, 7], 3))) == 3
    finally:
        made.stop()


def test_room_of_packed_pages_on_a_gpu(loaded):
    model, _ = loaded
    device = type("Device", (), {"type": "cuda"})()
    on_gpu = type("Model", (), {"config": model.config, "device": device, "dtype": model.dtype})()
    nbytes, token = 4_000_000_000, kv_bytes_a_token(model)
    plain, packed = kv_room(on_gpu, nbytes), kv_room(on_gpu, nbytes, kv="packed", n_slots=4)
    # a column of the mask, and three times a layer of two: gathered, and for both query heads of a key head
    beside = 4096 * 2 + 3 * token // 2
    left = nbytes - 4096 * 4096 * 2
    assert plain == left // (token + beside)
    assert packed == int((left - 6 * 128 * token) // (0.7 * token + beside)) > plain
