# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Routes: what is chosen, without a device."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch

from glyd_codec import ParameterError
from glyd_gpu import LAYOUTS, _products, _routes
from glyd_gpu._routes import Route
from glyd_gpu._routes_table import ROUTES

MMA12, TIERED = LAYOUTS["mma12"], LAYOUTS["tiered"]
H200 = 132


def meta(layout, rows, cols, exceptions=0, block_max=0):
    return [layout, rows, cols, 0 if layout == MMA12 else 1000, exceptions, 0 if layout == MMA12 else 1024, block_max]


@pytest.fixture
def room(monkeypatch):
    """Stand in for the library, which says how many exceptions a ring has room for."""
    asked = []

    class Library:
        limit = 40

        def glyd_gpu_product_ring_exceptions(self, known, config):
            asked.append((list(known), list(config)))
            return self.limit

    library = Library()
    library.asked = asked
    monkeypatch.setattr(_routes, "load", lambda: library)
    return library


def test_a_measured_shape_gets_what_was_measured():
    for (layout, tokens), entries in ROUTES.items():
        for rows, cols, kernel, config in entries:
            chosen = _routes.on_hopper(meta(layout, rows, cols), tokens, H200)
            assert chosen == Route(kernel, config), (layout, tokens, rows, cols)


@pytest.mark.parametrize("layout", [MMA12, TIERED])
def test_any_shape_and_token_count_gets_a_kernel_that_takes_it(layout):
    for rows, cols in ((1, 8), (64, 64), (1000, 1000), (4096, 4097), (8192, 28672), (1 << 20, 128), (128256, 8192)):
        for tokens in (1, 2, 8, 9, 16, 17, 64, 100, 128, 129, 256, 257, 8192):
            for processors in (114, H200):
                route = _routes.on_hopper(meta(layout, rows, cols), tokens, processors)
                assert len(route.config) == _routes.LENGTHS[route.kernel]
                if tokens > _routes.token_classes(layout)[-1]:
                    assert route == Route("decode")
                if route.kernel == "ring":
                    tile, row_blocks, warpgroups, _, cluster, workers, _ = route.config
                    assert cols % 8 == 0
                    assert tokens <= tile or cluster or (layout == MMA12 and (tile, row_blocks) in _routes.MANY)
                    assert workers <= processors
                    if tokens <= tile:  # one wave; several tiles of tokens may take more
                        assert (rows + 64 * row_blocks - 1) // (64 * row_blocks) * cluster <= processors
                    assert bool(cluster) != bool(workers)
                    assert cluster or warpgroups == 1
                elif route.kernel == "pair":
                    tile, workers, parts, group, _ = route.config
                    assert layout == MMA12
                    assert tile in _routes.PAIR_TILES
                    assert cols % 8 == 0
                    assert workers % 2 == 0
                    assert 2 <= workers <= processors
                    assert 1 <= parts <= 16
                    assert group >= 1
                elif route.kernel == "split":
                    tile, row_blocks, decoders, cluster, workers, _ = route.config
                    assert layout == TIERED
                    assert cols % 8 == 0
                    assert bool(cluster) != bool(workers)
                    assert workers <= processors
                    assert (row_blocks, decoders) in ((2, 3), (2, 4))
                    tiles = -(-rows // (64 * row_blocks)) * -(-tokens // tile)
                    assert tiles * cluster <= processors
                elif route.kernel == "stream":
                    assert layout == MMA12
                    assert tokens <= 16
                    assert cols % 2 == 0
                else:
                    assert (route.kernel == "generic") == (tokens <= _routes.GENERIC_TOKENS)
    assert _routes.on_hopper(meta(layout, 4096, 4096), 8192, H200) == Route("decode")


def test_many_exceptions_are_for_kernels_that_have_room(room):
    blocks = 4096 // 64
    few = _routes.on_hopper(meta(MMA12, 4096, 4096, 20 * blocks, 38), 32, H200)
    assert few.kernel == "ring"
    assert room.asked[-1][1] == list(few.config)
    many = meta(MMA12, 4096, 4096, 13000 * blocks, 13300)
    assert _routes.on_hopper(many, 8, H200).kernel == "stream"
    assert _routes.on_hopper(many, 32, H200) == Route("generic")
    assert _routes.on_hopper(many, 128, H200) == Route("decode")
    assert _routes.on_hopper(meta(TIERED, 4096, 4096, 13000 * blocks, 13300), 8, H200) == Route("generic")
    some = 1000  # in 262,144 weights: more than a buffer holds
    assert _routes.on_hopper(meta(MMA12, 24576, 4096, some * 384, some + 90), 32, H200) == Route("generic")
    for tokens in (64, 128, 256):
        route = _routes.on_hopper(meta(MMA12, 24576, 4096, some * 384, some + 90), tokens, H200)
        assert route.kernel == "ring", tokens
        assert (route.config[0], route.config[1] * route.config[2]) in _routes.MANY
    room.limit = 50  # at 64 tokens of tiered several rounds of exceptions take less than anything else
    large = 24576 // 64
    assert _routes.on_hopper(meta(TIERED, 24576, 4096, 80 * large, 110), 16, H200) == Route("generic")
    assert _routes.on_hopper(meta(TIERED, 24576, 4096, 80 * large, 110), 32, H200).kernel == "split"
    assert _routes.on_hopper(meta(TIERED, 24576, 4096, 80 * large, 110), 64, H200).kernel == "ring"
    for tokens in (64, 128):  # split roles take any number
        route = _routes.on_hopper(meta(TIERED, 24576, 4096, 400 * large, 450), tokens, H200)
        assert route.kernel == "split", tokens
        assert route.config[:5] == (tokens, 2, 4 if tokens == 64 else 3, 0, H200), tokens
    room.limit = -40  # a configuration that does not fit
    assert _routes.on_hopper(meta(MMA12, 4096, 4096, blocks, 1), 32, H200) == Route("generic")


def test_more_tokens_than_a_tile_are_several_tiles_or_decoded():
    known = meta(MMA12, 24576, 4096)
    several = _routes.on_hopper(known, 500, H200)
    assert several == Route("pair", (256, H200, 1, 8, 1))
    assert _routes.on_hopper(known, 300, H200).config[0] == 192  # tiles of the tokens that there are
    ring = _routes.on_hopper(meta(MMA12, 6144, 4096), 500, H200)
    assert ring.kernel == "ring"
    assert ring.config[0] < 500
    assert ring.config[4] > 0 or ring.config[:2] in _routes.MANY  # whose stream-K takes several tiles
    assert _routes.on_hopper(meta(MMA12, 5120, 25600), 1024, H200).config == (256, H200, 4, 8, 0)
    assert _routes.on_hopper(meta(MMA12, 51200, 5120), 2048, H200).config[4:6] == (0, H200)
    assert _routes.on_hopper(meta(MMA12, 5120, 25600), 2048, H200).config == (256, H200, 2, 8, 0)
    assert _routes.on_hopper(meta(MMA12, 5120, 8192), 2048, H200) == Route("decode")
    assert _routes.on_hopper(known, 2049, H200) == Route("decode")
    assert _routes.on_hopper(meta(MMA12, 256, 4096), 600, H200) == Route("decode")
    assert _routes.on_hopper(meta(MMA12, 512, 4096), 200, H200).kernel == "ring"
    assert _routes.on_hopper(meta(MMA12, 24576, 4096, 10**6, 3000), 500, H200) == Route("decode")  # exceptions
    assert _routes.on_hopper(meta(TIERED, 24576, 4096), 500, H200) == Route("decode")


def test_tiles_of_pairs_fill_the_device():
    assert _routes.pair_plan(66 * 256, 4096, 256, H200) == (256, 1)  # a full round
    assert _routes.pair_plan(66 * 256, 4096, 1024, H200) == (256, 1)
    assert _routes.pair_plan(24576, 4096, 300, H200)[0] == 192  # two tiles of tokens, 384 instead of 512
    assert _routes.pair_plan(5120, 25600, 512, H200) == (256, 3)  # 40 tiles, 120 parts of 66 pairs
    assert _routes.pair_plan(10240, 5120, 512, H200) == (192, 1)  # 120 tiles of 132
    for rows, cols, tokens, workers in ((64, 64, 1, 2), (1 << 20, 8, 8192, H200), (5120, 25600, 512, 114)):
        tile, parts = _routes.pair_plan(rows, cols, tokens, workers)
        assert tile in _routes.PAIR_TILES
        assert 1 <= parts <= 16


def test_only_packs_that_were_read_before_are_read_early():
    pack = torch.zeros(256, dtype=torch.uint8)
    assert not _products._is_settled(pack)
    assert _products._is_settled(pack)
    pack[3] = 1
    assert not _products._is_settled(pack)
    assert _products._is_settled(pack)
    pack.data = torch.ones(256, dtype=torch.uint8)  # other memory
    assert not _products._is_settled(pack)
    with torch.inference_mode():
        unseen = torch.zeros(256, dtype=torch.uint8)
    for _ in range(3):
        assert not _products._is_settled(unseen)


def test_the_form_of_a_launch(monkeypatch):
    launched = []
    monkeypatch.setattr(_products, "call", lambda name, *arguments: launched.append((name, list(arguments[-2]))))
    x, pack = torch.zeros(2, 64, dtype=torch.bfloat16), torch.zeros(128, dtype=torch.uint8)
    out = torch.empty(2, 64, dtype=torch.bfloat16)
    for form, forms in ((2, [1, 2, 0]), (1, [1, 1, 0]), (0, [0, 0, 0])):
        pack = pack.clone()  # one that no kernel has read
        del launched[:]
        for early in (True, True, False):
            route = Route("stream", (2, 16, 1, form))
            found = _products.product(route, x, pack, 64, None, meta(MMA12, 64, 64), 0, out, early=early)
            assert found is out
        assert launched == [("glyd_gpu_product_stream", [2, 16, 1, n]) for n in forms]


def test_the_variable(monkeypatch):
    for text, route in (
        ("generic", Route("generic")),
        ("decode", Route("decode")),
        ("stream:2,16,1,0", Route("stream", (2, 16, 1, 0))),
        ("ring:8,3,1,2,0,132,1", Route("ring", (8, 3, 1, 2, 0, 132, 1))),
    ):
        monkeypatch.setenv(_routes.VARIABLE, text)
        assert _routes.choose(meta(MMA12, 64, 64), 4, torch.device("cuda", 0)) == route
    for text in ("fast", "ring", "ring:1,2", "stream:a,b,c,d", "generic:1", "stream:2,16,1,-1"):
        with pytest.raises(ParameterError, match=r"GLYD_GPU_ROUTE is .*ring with 7 integers"):
            _routes.parse(text)


def test_the_table_is_written_from_times(tmp_path):
    path = Path(__file__).resolve().parents[1] / "bench" / "bench_products.py"
    if not path.is_file():
        pytest.skip("no bench here")
    spec = importlib.util.spec_from_file_location("bench_products_under_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    times = [
        [layout, tokens, rows, cols, us, kernel, list(config)]
        for (layout, tokens), entries in ROUTES.items()
        for rows, cols, kernel, config in entries
        for us in (1.0,)
    ]
    slower = [[*entry[:4], 2.0, "ring", [8, 1, 1, 1, 1, 0, 0]] for entry in times]
    (tmp_path / "times.json").write_text(json.dumps(slower + times), encoding="utf-8")
    module.write_table(tmp_path / "times.json", tmp_path / "table.py")
    names = {}
    exec((tmp_path / "table.py").read_text(encoding="utf-8"), names)
    assert names["ROUTES"] == ROUTES
