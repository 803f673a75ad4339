# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Pages of a packed cache whose sizes the host learns late, as on a GPU."""

import copy

import torch

from glyd_gpu import GlydKVCache, _kv_store


def test_pages_that_are_late(monkeypatch):
    """As on a GPU: pages are counted at once, and put in their places when the next layer comes or somebody asks."""
    waited = []

    def late(whole):
        made = torch.ops.glyd.kv_pack(whole)

        def finish():
            waited.append(whole.shape[0])
            return made

        return finish

    monkeypatch.setattr(_kv_store, "_begin", late)
    cache = GlydKVCache()
    x = torch.randn((1, 2, 300, 64), generator=torch.Generator().manual_seed(3)).bfloat16()
    cache.update(x, x, 0)
    assert waited == []
    assert cache.get_seq_length() == 300
    cache.update(x, x, 1)
    assert waited == [4, 4]
    first, second = cache.layers
    assert first.stores[0].is_settled
    assert not second.stores[0].is_settled
    again = copy.deepcopy(cache)
    assert waited == [4, 4, 4, 4]
    assert again.layers[1].stores[0].is_settled
    y = torch.randn((1, 2, 200, 64), generator=torch.Generator().manual_seed(4)).bfloat16()
    both = torch.cat([x, y], 2)
    for layer in range(2):
        keys, values = cache.update(y, y, layer)
        assert torch.equal(keys, both)
        assert torch.equal(values, both)
    second.reorder_cache(torch.tensor([0, 0]))  # pages that are not in their places, of fewer sequences than then
    assert torch.equal(second.keys, both.expand(2, -1, -1, -1))
    assert cache.report().n_tokens == 500
    assert torch.equal(again.layers[1].values, x)
