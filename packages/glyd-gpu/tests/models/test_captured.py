# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``generate`` with captured steps; on the CPU a capture is played by running the work again."""

import copy
import gc
import pickle

import pytest
import torch
from transformers import AutoModelForCausalLM

import glyd_gpu
from glyd_gpu import _captured


def test_generate_is_that_of_plain_steps(checkpoint, monkeypatch):
    made = checkpoint("qwen3-tied")
    plain = AutoModelForCausalLM.from_pretrained(made.plain)
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)
    captures = []

    def captured(work):
        """Play a capture: note what it would record, and run it at every replay."""
        box = {}
        captures.append(work)

        def replay():
            fresh = work()
            for name, value in fresh.items():
                if isinstance(value, torch.Tensor):
                    box[name].copy_(value)

        with torch.no_grad():
            shape = plain(input_ids=torch.zeros(2, 1, dtype=torch.int64))  # its output, for the shapes
        box.update({name: value for name, value in shape.items() if isinstance(value, torch.Tensor)})
        for value in box.values():
            value.fill_(float("nan"))
        return replay, type(shape)(logits=box["logits"])

    monkeypatch.setattr(_captured, "captured", captured)
    _captured.install(model)
    options = {"max_new_tokens": 9, "do_sample": False}
    wanted = plain.generate(made.ids, **options)
    for n in (1, 2):
        assert torch.equal(model.generate(made.ids, **options), wanted)
        assert len(captures) == n  # a cache of its own for each call
        assert model.forward.n_replayed == 7 * n  # the prompt and the first step are run
    assert len(model.forward._steps) <= 2
    beams = options | {"num_beams": 2}
    assert torch.equal(model.generate(made.ids, **beams), plain.generate(made.ids, **beams))
    assert model.forward._steps
    glyd_gpu.set_exact(model, True)
    assert not model.forward._steps
    again = copy.deepcopy(model)
    assert again.forward.model is again
    assert again.forward._steps == {}
    assert pickle.loads(pickle.dumps(model)).forward.n_replayed == 0
    gc.collect()
    with torch.no_grad():
        assert torch.equal(model(made.ids).logits, made.logits)  # no cache: as it is
    assert len(captures) == 2


def test_what_cannot_be_captured_runs(checkpoint, monkeypatch):
    made = checkpoint("qwen3-tied")
    model = glyd_gpu.from_pretrained(made.packed, device="cpu", exact=True)

    def captured(work):
        del work
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(_captured, "captured", captured)
    options = {"max_new_tokens": 6, "do_sample": False}
    wanted = model.generate(made.ids, **options)
    _captured.install(model)
    with pytest.warns(RuntimeWarning, match="not captured in a CUDA graph: operation not permitted"):
        assert torch.equal(model.generate(made.ids, **options), wanted)
    assert model.forward.n_replayed == 0
    hooked = glyd_gpu.from_pretrained(made.packed, device="cpu")
    hooked.forward = hooked.forward
    _captured.install(hooked)
    assert not isinstance(hooked.forward, _captured.CapturedForward)
    sliding = glyd_gpu.from_pretrained(checkpoint("mistral").packed, device="cpu", exact=True)
    wanted = sliding.generate(made.ids, **options)
    _captured.install(sliding)
    assert torch.equal(sliding.generate(made.ids, **options), wanted)  # never tried: counts on the host
