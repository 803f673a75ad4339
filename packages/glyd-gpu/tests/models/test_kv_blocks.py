# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Packed blocks: what is read is what was written, and continuous batching makes the tokens of the plain cache."""

import random

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import ContinuousBatchingConfig, GenerationConfig

import glyd_gpu
from glyd_gpu._kv_blocks import FreedBlocks, KvBlocks
from glyd_gpu._matrices import bits

HEADS, CHANNELS, N_BLOCKS = 2, 16, 12
SMALL = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 96,
    "vocab_size": 211,
    "max_position_embeddings": 2048,
}


class Tokens:
    """A scheduler of requests, and a plain tensor of slots beside the packed blocks."""

    def __init__(self, stride, n_layers, seed):
        self.stride = stride
        self.trash = N_BLOCKS * stride, (N_BLOCKS + 1) * stride
        self.blocks = KvBlocks(n_layers, HEADS, CHANNELS, stride=stride, padding=self.trash, device=torch.device("cpu"))
        shape = (2, (N_BLOCKS + 2) * stride, HEADS, CHANNELS)
        self.plain = [torch.zeros(shape, dtype=torch.bfloat16) for _ in range(n_layers)]
        self.free = list(range(N_BLOCKS))
        self.tables, self.lengths = {}, {}
        self.random = random.Random(seed)
        self.torch = torch.Generator().manual_seed(seed)

    def slots(self, name, first, n):
        return [self.tables[name][i // 128] * self.stride + i % 128 for i in range(first, first + n)]

    def fits(self, name, n):
        table = self.tables.setdefault(name, [])
        self.lengths.setdefault(name, 0)
        while len(table) * 128 < self.lengths[name] + n:
            if not self.free:
                return False
            table.append(self.free.pop(self.random.randrange(len(self.free))))
        return True

    def step(self, news, *, reads=True, n_pad=0):
        """Requests get new tokens together; compare what every layer is shown."""
        news = [(name, n) for name, n in news if self.fits(name, n)]
        write = [s for name, n in news for s in self.slots(name, self.lengths[name], n)]
        for name, n in news:
            self.lengths[name] += n
        read = [s for name, _ in news for s in self.slots(name, 0, self.lengths[name])] if reads else []
        write += [self.trash[1]] * n_pad
        read += [self.trash[0]] * (n_pad if reads else 0)
        for layer, plain in enumerate(self.plain):
            scale = torch.exp2(torch.arange(CHANNELS) % 7 - 3.0)
            new = torch.randn((2, len(write), HEADS, CHANNELS), generator=self.torch) * scale
            new = new.to(torch.bfloat16)
            plain[:, write] = new
            plain[:, self.trash[0]] = 0
            shown = self.blocks.update(layer, new[0], new[1], torch.tensor(read), torch.tensor(write))
            for which in range(2):
                expected = plain[which, read] if reads else new[which]
                assert torch.equal(bits(shown[which].contiguous()), bits(expected))

    def end(self, name, *, forget):
        for block in self.tables.pop(name):
            if forget:
                self.blocks.forget([block])
            self.free.append(block)
        del self.lengths[name]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("one"), st.integers(0, 2), st.sampled_from([1, 2, 127, 128, 129, 300])),
        st.tuples(st.just("all"), st.integers(0, 3), st.just(1)),
        st.tuples(st.just("prompt"), st.integers(0, 2), st.sampled_from([5, 128, 256])),
        st.tuples(st.just("end"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("back"), st.integers(0, 2), st.sampled_from([1, 100, 200])),
    ),
    max_size=12,
)


@settings(max_examples=40, deadline=None)
@given(STEPS, st.sampled_from([128, 512]), st.sampled_from([1, 3]), st.integers(0, 99))
def test_what_is_read_is_what_was_written(steps, stride, n_layers, seed):
    tokens = Tokens(stride, n_layers, seed)
    tokens.step([("r0", 140), ("r1", 3)])
    for step, which, n in steps:
        name = f"r{which}"
        if step == "one":
            tokens.step([(name, n)])
        elif step == "all":
            tokens.step([(one, 1) for one in list(tokens.tables)], n_pad=which)
        elif step == "prompt" and name not in tokens.tables:
            tokens.step([(name, n)], reads=False, n_pad=1)
        elif step == "end" and name in tokens.tables:
            tokens.end(name, forget=n)
        elif step == "back" and name in tokens.tables:  # written once more from there on, into a packed block
            tokens.lengths[name] = max(tokens.lengths[name] - n, 0)
            tokens.step([(name, 1)])


def test_blocks_are_let_go():
    tokens = Tokens(128, 2, 1)
    held, first = [], 0
    for number in range(30):
        tokens.step([(f"r{number}", 500)])
        held.append(tokens.blocks.held)
        assert held[-1].n_tokens == 500
        assert held[-1].nbytes < 0.95 * held[-1].plain_nbytes  # 116 of 500 tokens plain
        tokens.end(f"r{number}", forget=True)
        assert tokens.blocks.held.nbytes == tokens.blocks.held.n_tokens == 0
        first = first or tokens.blocks.allocated_nbytes
    assert tokens.blocks.allocated_nbytes <= first


def test_shared_blocks():
    tokens = Tokens(128, 2, 2)
    tokens.step([("a", 256)])
    tokens.tables["b"], tokens.lengths["b"] = tokens.tables["a"][:1], 128
    tokens.step([("a", 1), ("b", 1)])  # the block that both read stands twice, right behind itself
    tokens.lengths["a"] = 128
    tokens.tables["a"] = tokens.tables["a"][:1]
    tokens.step([("a", 1), ("b", 1)])


def test_other_shapes_are_refused():
    blocks = KvBlocks(2, 2, 16, stride=128, padding=(), device=torch.device("cpu"))
    keys = torch.zeros((1, 2, 16), dtype=torch.bfloat16)
    slot, nothing = torch.tensor([0]), torch.tensor([], dtype=torch.int64)
    with pytest.raises(glyd_gpu.ShapeError, match=r"take bf16 \(1, 2, 16\), found \(1, 2, 16\) of torch.float32"):
        blocks.update(0, keys, keys.float(), nothing, slot)
    with pytest.raises(glyd_gpu.ShapeError, match="layer 1 reads 0 and writes 1 slots, the first does not"):
        blocks.update(1, keys, keys, nothing, slot)


def test_a_queue_says_what_comes_back():
    said = []
    queue = FreedBlocks([1, 2], said.extend)
    queue.append(3)
    queue.extend([4, 5])
    assert list(queue) == [1, 2, 3, 4, 5]
    assert said == [3, 4, 5]


def new_model(kind="Llama", **config):
    torch.manual_seed(3)
    made = getattr(transformers, f"{kind}ForCausalLM")(getattr(transformers, f"{kind}Config")(**{**SMALL, **config}))
    with torch.no_grad():
        for parameter in made.parameters():
            if parameter.dim() > 1:  # enough spread that the tokens differ
                parameter.normal_(0, 0.3)
    return made.to(torch.bfloat16).eval()


def new_manager(model, n_tokens=128):
    page = "page_size" if hasattr(ContinuousBatchingConfig, "page_size") else "block_size"
    config = ContinuousBatchingConfig(
        **{page: n_tokens}, num_blocks=40, max_batch_tokens=96, max_requests_per_batch=5, use_cuda_graph=False
    )
    generation = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0, max_new_tokens=90)
    return model.init_continuous_batching(generation_config=generation, continuous_batching_config=config)


def answers(manager, prompts):
    # all wait before the first step, so that both managers put the same requests together
    names = [manager.add_request(prompt, max_new_tokens=90) for prompt in prompts]
    manager.start()
    try:
        found = {}
        while len(found) < len(names):
            result = manager.get_result(timeout=600)
            assert result is not None
            assert result.error is None, result.error
            found[result.request_id] = result.generated_tokens
        return [found[name] for name in names]
    finally:
        manager.stop(block=True)


@pytest.mark.parametrize("kind", ["Llama", "Qwen3"])
def test_batches_make_the_same_tokens(kind):
    model = new_model(kind)
    draw = random.Random(5)
    prompts = [[draw.randrange(1, 200) for _ in range(n)] for n in (3, 127, 128, 200, 300, 41)]
    prompts += [prompts[4][:257], prompts[4]]  # blocks that are found again
    plain = answers(new_manager(model), prompts)
    manager = new_manager(model)
    packed = glyd_gpu.use_packed_blocks(manager)
    assert packed.report().nbytes == 0
    assert answers(manager, prompts) == plain
    assert len({tuple(tokens) for tokens in plain}) > 4
    report = packed.report()
    assert report.nbytes < 0.9 * report.plain_nbytes


def test_models_that_are_not_packed():
    with pytest.raises(ValueError, match="the manager's pages have 64"):
        glyd_gpu.use_packed_blocks(new_manager(new_model(), 64))
    with pytest.raises(ValueError, match=r"the model computes in torch\.float32"):
        glyd_gpu.check_packable(new_model().float())
    with pytest.raises(ValueError, match="layers that see all tokens"):
        glyd_gpu.check_packable(new_model("Mistral", sliding_window=64))
    with pytest.raises(ValueError, match=r"layers that see all tokens, and this model has .*sliding_attention"):
        glyd_gpu.check_packable(new_model("Gemma2", sliding_window=64))
    with pytest.raises(ValueError, match="multiple of 16 channels"):
        glyd_gpu.check_packable(new_model(head_dim=24))
