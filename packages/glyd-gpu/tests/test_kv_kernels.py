# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The kernels of pages, compiled for the CPU (tests/emulation): their bytes are the codec's, their sums torch's."""

import ctypes

import pytest
import torch

import glyd_codec
from glyd_gpu._matrices import bits

CHANNELS = (64, 96, 128, 256)


@pytest.fixture(scope="module")
def emulated(compile_kernels):
    return compile_kernels("kv_kernels.cpp")


def values(pages, channels, kind):
    """Return keys or values [pages, 128, channels]."""
    scale = torch.exp2(torch.randint(-3, 4, (pages, 1, channels)).float())
    x = (torch.randn((pages, 128, channels)) * scale).to(torch.bfloat16)
    flat = x.view(-1)
    places = torch.randint(0, flat.numel(), (flat.numel() // 100,))
    if kind == "special":
        flat[places] = torch.randint(-(1 << 15), 1 << 15, places.shape, dtype=torch.int16).view(torch.bfloat16)
        x[:, :, 3] = 0.0
        x[:, ::2, 5] = -0.0
        x[:, :, 7] = 1e-40  # subnormal: exceptions all
    elif kind == "noise":
        x = torch.randint(-(1 << 15), 1 << 15, x.shape, dtype=torch.int16).view(torch.bfloat16)
    elif kind == "one":
        x[:, 77, channels - 1] = 3e38
    return x


def at(tensor):
    return ctypes.c_void_p(tensor.data_ptr())


def pages_of(x):
    """Return pages by the codec, aligned as on a device, and their addresses."""
    data = bytearray(glyd_codec.pack_kv_pages(bits(x).numpy(), x.shape[2]))
    sizes = [page.nbytes for page in glyd_codec.read_kv_pages(data)]
    room = torch.zeros(len(data) + 64, dtype=torch.uint8)
    skip = -room.data_ptr() % 64
    room[skip : skip + len(data)] = torch.frombuffer(data, dtype=torch.uint8)
    places = torch.tensor([0, *sizes[:-1]]).cumsum(0)
    return room, (room.data_ptr() + skip + places).to(torch.int64)


@pytest.mark.parametrize("kind", ["plain", "special", "one", "noise"])
@pytest.mark.parametrize("channels", CHANNELS)
def test_pack_gives_the_codecs_bytes(emulated, channels, kind):
    x = values(2, channels, kind)
    expected = glyd_codec.pack_kv_pages(bits(x).numpy(), channels)
    found = glyd_codec.read_kv_pages(expected)
    sizes = torch.zeros(2, dtype=torch.int64)
    nbytes = glyd_codec.kv_page_bound(channels)
    largest = torch.full((2 * nbytes + 64,), 0xA5, dtype=torch.uint8)
    skip = -largest.data_ptr() % 64
    room = torch.zeros(x.numel() + 8, dtype=torch.bfloat16)  # a place at a multiple of 16
    first = -room.data_ptr() % 16 // 2
    room[first : first + x.numel()] = x.view(-1)
    source, to = (ctypes.c_void_p(place) for place in (room.data_ptr() + 2 * first, largest.data_ptr() + skip))
    assert emulated.emulated_kv_pack(source, channels, 2, at(sizes), to, 1) == 0
    assert sizes.tolist() == [page.nbytes for page in found]
    assert all(page.is_packed == (kind != "noise") for page in found)
    assert (largest[:skip] == 0xA5).all()
    assert (largest[skip + nbytes + int(sizes[1]) :] == 0xA5).all()
    out = torch.full((len(expected) + 64,), 0xA5, dtype=torch.uint8)
    skip = -out.data_ptr() % 64
    places = torch.tensor([0, found[0].nbytes])
    assert emulated.emulated_kv_place(ctypes.c_void_p(out.data_ptr() + skip), at(places), to, 2, nbytes) == 0
    assert bytes(out[skip : skip + len(expected)].numpy()) == expected
    assert (out[:skip] == 0xA5).all()
    assert (out[skip + len(expected) :] == 0xA5).all()


@pytest.mark.parametrize("kind", ["plain", "special", "noise"])
@pytest.mark.parametrize("channels", CHANNELS)
def test_unpack_gives_every_bit(emulated, channels, kind):
    x = values(3, channels, kind)
    room, addresses = pages_of(x)
    assert room.numel()
    out = torch.zeros_like(x)
    assert emulated.emulated_kv_unpack(at(out), channels, 3, at(addresses), 3) == 0
    assert torch.equal(bits(out), bits(x))


def attend(emulated, q, pages, tails, starts, splits, roomy=False, order=1):
    """Run the kernel: q [sequences, heads, channels], addresses [sequences, key heads, pages] of keys and values."""
    sequences, heads, channels = q.shape
    key_heads, n_pages = pages[0].shape[1:]
    tail = tails[0].shape[2]
    out = torch.full(q.shape, float("nan"), dtype=torch.bfloat16)
    groups = -(-heads // key_heads // 8)
    partial = torch.full((sequences * key_heads * groups * splits * 8 * (channels + 2),), float("nan"))
    numbers = (ctypes.c_int * 7)(sequences, heads, key_heads, n_pages, tail, splits, roomy)
    scale = ctypes.c_float(channels**-0.5 * 1.4426950408889634)
    done = emulated.emulated_kv_attention(
        at(out), at(partial), at(q), at(pages[0]), at(pages[1]), at(tails[0]), at(tails[1]),
        None if starts is None else at(starts), numbers, channels, scale, order,
    )  # fmt: skip
    assert done == 0
    return out


def reference(q, keys, values, starts):
    """Return attention in float64."""
    groups = q.shape[1] // keys.shape[1]
    k, v = (x.double().repeat_interleave(groups, 1) for x in (keys, values))
    scores = (q.double().unsqueeze(2) @ k.transpose(2, 3)).squeeze(2) * q.shape[2] ** -0.5
    if starts is not None:
        hidden = torch.arange(keys.shape[2]) < starts.view(-1, 1, 1)
        scores = scores.masked_fill(hidden, float("-inf"))
    return (scores.softmax(-1).unsqueeze(2) @ v).squeeze(2)


@pytest.mark.parametrize(
    ("channels", "heads", "key_heads", "pages", "tail", "starts", "splits", "roomy"),
    [
        (64, 3, 1, 2, 5, None, 1, False),
        (64, 4, 2, 3, 0, [0, 140], 2, False),
        (64, 4, 1, 11, 1, [0, 700], 1, True),  # a warp with several pages of four strips each
        (96, 16, 1, 1, 100, [17, 0], 1, False),
        (128, 8, 2, 2, 127, [250, 60], 3, False),
        (128, 20, 1, 0, 40, None, 1, False),
        (128, 4, 1, 9, 3, [70, 0], 1, True),
        (128, 2, 1, 4, 1, None, 2, True),
        (256, 4, 1, 2, 1, [0, 200], 2, False),
    ],
)
@pytest.mark.parametrize("kind", ["plain", "wide", "special"])
def test_attention(emulated, kind, channels, heads, key_heads, pages, tail, starts, splits, roomy):
    sequences = 2
    shape = (sequences, key_heads, pages * 128 + tail, channels)
    scale = torch.exp2(torch.randint(-2, 3, (1, 1, 1, channels)).float())
    keys, values_ = ((torch.randn(shape) * scale).to(torch.bfloat16) for _ in range(2))
    values_[:, :, min(3, shape[2] - 1)] *= 2.0**9  # an exception or two
    if kind == "wide":  # more corrections than a slot of the ring has, and plain pages
        keys, values_ = (
            x * torch.exp2(torch.randint(-2, 3, shape).float()).to(torch.bfloat16) for x in (keys, values_)
        )
    elif kind == "special":  # many exceptions, zeros, and every second page of values plain
        for x in (keys, values_):
            places = torch.randint(0, x.numel(), (x.numel() // 100,))
            x.view(-1)[places] *= torch.exp2(torch.randint(-60, -10, places.shape).float()).to(torch.bfloat16)
            x[..., 3], x[..., ::2, 5], x[..., 7] = 0.0, -0.0, 1e-40
        values_[0] *= torch.exp2(torch.randint(-40, 1, shape[1:]).float()).to(torch.bfloat16)
    q = (torch.randn((sequences, heads, channels)) / scale.view(1, 1, channels)).to(torch.bfloat16)
    first = None if starts is None else torch.tensor(starts, dtype=torch.int32)
    rooms, tables, plain_rooms, plain_tables, tails = [], [], [], [], []
    for x in (keys, values_):
        whole = x[:, :, : pages * 128].reshape(-1, 128, channels)
        room, addresses = pages_of(whole) if pages else (None, torch.zeros(0, dtype=torch.int64))
        rooms.append(room)
        tables.append(addresses.view(sequences, key_heads, pages))
        # the same pages in plain form: header and values
        nbytes = glyd_codec.kv_page_bound(channels)
        plain = torch.zeros((whole.shape[0], nbytes + 64), dtype=torch.uint8)
        skip = -plain.data_ptr() % 64
        plain = plain.view(-1)[skip : skip + whole.shape[0] * nbytes].view(whole.shape[0], nbytes)
        plain[:, 4:6] = torch.tensor([channels & 255, channels >> 8], dtype=torch.uint8)
        plain[:, 32 : 32 + 256 * channels] = bits(whole).view(torch.uint8).reshape(whole.shape[0], 256 * channels)
        plain_rooms.append(plain)
        starts_at = plain.data_ptr() + nbytes * torch.arange(whole.shape[0])
        plain_tables.append(starts_at.view(sequences, key_heads, pages))
        tails.append(x[:, :, pages * 128 :].contiguous())
    out = attend(emulated, q, tables, tails, first, splits, roomy)
    expected = reference(q, keys, values_, first)
    error = (out.double() - expected).abs().amax((0, 1)) / expected.abs().amax()
    assert error.max() < 0.02
    # bit for bit what the same kernel gives on plain pages, and whatever the order of threads
    same = attend(emulated, q, plain_tables, tails, first, splits, roomy, order=77)
    assert torch.equal(bits(out), bits(same))


def test_what_is_not_compiled(emulated):
    assert emulated.emulated_kv_unpack(None, 80, 0, None, 1) == -1


@pytest.mark.parametrize("channels", [64, 128])
def test_damaged_pages_stay_inside(emulated, channels):
    """Codes, corrections and exceptions may be anything: values are wrong then, and no place outside is read or written."""
    x = values(1, channels, "special")
    data = torch.frombuffer(bytearray(glyd_codec.pack_kv_pages(bits(x).numpy(), channels)), dtype=torch.uint8)
    generator = torch.Generator().manual_seed(4)
    for _ in range(6):
        broken = data.clone()
        broken[32:] = torch.randint(0, 256, (data.numel() - 32,), generator=generator, dtype=torch.uint8)
        room = torch.zeros(data.numel() + 64, dtype=torch.uint8)
        skip = -room.data_ptr() % 64
        room[skip : skip + data.numel()] = broken
        out = torch.zeros((3, 128, channels), dtype=torch.bfloat16)
        addresses = torch.tensor([room.data_ptr() + skip])
        middle = ctypes.c_void_p(out[1].data_ptr())
        emulated.emulated_damaged(1)
        done = emulated.emulated_kv_unpack(middle, channels, 1, at(addresses), 5)
        emulated.emulated_damaged(0)
        assert done == 0
        assert not out[0].any()
        assert not out[2].any()
