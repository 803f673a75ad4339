# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``python -m glyd_gpu.e2e``: plain and packed side by side."""

import json
import math

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

import glyd_gpu
from glyd_gpu import e2e
from glyd_gpu._decoding import ATTENTION, Decoder, use_grouped_attention
from glyd_gpu._merge_plain import merge_plain, split_plain
from glyd_gpu._pack_live import pack_modules
from glyd_gpu._random_weights import random_model
from glyd_gpu.modules import PackedModule

QUICK = ["--batch", "1,3", "--prompt", "7", "--new", "5", "--ttft", "9", "--device", "cpu"]


def run(capsys, *arguments):
    code = e2e.main([str(a) for a in arguments])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_both_forms_of_a_checkpoint(checkpoint, capsys):
    made = checkpoint("qwen3-untied-1003")
    code, out, _ = run(
        capsys, made.plain, "--layout", "mma12,tiered", "--merge", "--fused", "--profile", "2", "--json", *QUICK
    )
    assert code == 0
    found = json.loads(out)
    plain, *packed = found["results"]
    assert [r["name"] for r in found["results"]] == ["bf16", "mma12", "tiered"]
    assert plain["weights_nbytes"] == 2 * found["n_weights"]
    for result in packed:
        assert result["weights_nbytes"] < 0.9 * plain["weights_nbytes"]
        assert result["quality"]["logits_bit_identical"]  # on the CPU layers are decoded and multiplied as torch does
        assert result["quality"]["next_token_as_bf16"] == 1
        assert {n: b["identical"] for n, b in result["batches"].items()} == {"1": "5 of 5", "3": "15 of 15"}
        assert all(b["tokens_s"] > 0 and b["step_ms"] > 0 and b["prompt_ms"] > 0 for b in result["batches"].values())
        assert result["busy"]["step_kernels"]
        assert result["first_token_ms"] > 0
    code, out, _ = run(capsys, made.plain, "--exact", *QUICK)
    assert code == 0
    assert "tiered exact: weights" in out
    assert "tokens identical 15 of 15" in out
    code, out, _ = run(capsys, made.plain, "--baseline", *QUICK)
    assert code == 0
    assert "packed weight" not in out


def test_tokens_are_those_of_generate(checkpoint):
    made = checkpoint("qwen3-tied")
    model = AutoModelForCausalLM.from_pretrained(made.plain)
    wanted = model.generate(made.ids, max_new_tokens=6, do_sample=False)
    use_grouped_attention(model)
    assert model.config._attn_implementation == ATTENTION
    decoder = Decoder(model, 2, 15)
    for _ in range(2):  # a second prompt starts anew
        decoder.prefill(made.ids)
        decoder.run(5)
        assert torch.equal(decoder.tokens, wanted)
    decoder.rewind(9)
    decoder.ids.copy_(wanted[:, 9:10])
    decoder.run(5)
    assert torch.equal(decoder.tokens, wanted)


def test_random_weights_need_a_configuration_only(checkpoint, tmp_path, capsys):
    made = checkpoint("qwen3-moe")
    config = transformers.AutoConfig.from_pretrained(made.plain)
    config.save_pretrained(tmp_path)
    a, b = (random_model(config, torch.device("cpu"), seed) for seed in (1, 1))
    names = dict(a.named_parameters())
    assert all(torch.equal(p, names[n]) for n, p in b.named_parameters())
    loaded = AutoModelForCausalLM.from_pretrained(made.plain)
    loaded.load_state_dict(a.state_dict())
    ids = made.ids
    with torch.no_grad():
        assert torch.equal(a(ids).logits, loaded(ids).logits)
    code, out, _ = run(capsys, tmp_path, "--layout", "tiered", *QUICK)
    assert code == 0
    assert "tokens identical 15 of 15" in out
    code, _, err = run(capsys, tmp_path, "--ppl", __file__, *QUICK)
    assert code == 1
    assert "has no weights" in err


def test_tied_models_are_packed_where_they_are(checkpoint):
    made = checkpoint("qwen3-tied-1000")
    model = AutoModelForCausalLM.from_pretrained(made.plain)
    report = pack_modules(model, "tiered")
    assert not report.wrong
    assert model.lm_head.weight_packed is model.model.embed_tokens.weight_packed
    assert sum(isinstance(m, PackedModule) for m in model.modules()) == report.n_matrices + 1
    assert torch.equal(made.compute(model), made.logits)
    glyd_gpu.dequantize(model)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert torch.equal(made.compute(model), made.logits)


def test_plain_layers_are_joined_and_split_again(checkpoint):
    made = checkpoint("qwen2")  # with biases of q, k and v
    model = AutoModelForCausalLM.from_pretrained(made.plain)
    before = model.state_dict()
    assert merge_plain(model) == 4
    got = made.compute(model)
    assert torch.allclose(got.float(), made.logits.float(), atol=0.05)
    split_plain(model)
    after = model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert torch.equal(made.compute(model), made.logits)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "cuda"], "no CUDA device"),
        (["--kv", "packed", "--device", "cuda"], "no CUDA device"),
        (["--kv", "packed", "--device", "meta"], "packed caches run on the CPU"),
        (["--new", "1"], "at least"),
        (["--prompt", "0"], "at least"),
    ],
)
def test_what_is_not_there_says_so(checkpoint, capsys, monkeypatch, arguments, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, _, err = run(capsys, checkpoint("qwen3-untied").plain, *QUICK, *arguments)
    assert code == 1
    assert words in err


def test_packed_caches_that_are_turned_off(checkpoint, capsys, monkeypatch):
    monkeypatch.setenv("GLYD_KV_CUDA", "0")
    code, _, err = run(capsys, checkpoint("qwen3-untied").plain, *QUICK, "--kv", "packed", "--device", "cuda")
    assert code == 1
    assert "turned off" in err


def test_packed_caches(checkpoint, capsys):
    made = checkpoint("qwen3-untied")
    arguments = ["--batch", "1,2", "--prompt", "300", "--new", "4", "--ttft", "0", "--device", "cpu", "--kv", "packed"]
    code, out, _ = run(capsys, made.plain, "--layout", "tiered", *arguments)
    assert code == 0
    lines = [line for line in out.splitlines() if line.startswith("cache, batch")]
    assert len(lines) == 2
    assert "tokens identical 8 of 8" in lines[1]
    code, out, _ = run(capsys, made.plain, "--layout", "tiered", "--json", *arguments)
    caches = json.loads(out)["caches"]
    assert caches["2"]["identical"] == "8 of 8"
    assert caches["2"]["packed"]["nbytes"] < 0.8 * caches["2"]["plain"]["nbytes"]


def test_packed_checkpoints_and_sliding_windows_are_refused(checkpoint, capsys):
    code, _, err = run(capsys, checkpoint("qwen3-untied").packed, *QUICK)
    assert code == 1
    assert "packed or quantized" in err
    code, _, err = run(capsys, checkpoint("mistral").plain, *QUICK)
    assert code == 1
    assert "StaticSlidingWindowLayer" in err
    with pytest.raises(SystemExit):
        e2e.parser().parse_args(["x", "--layout", "mma13"])


def test_quality(checkpoint, tmp_path, capsys):
    made = checkpoint("qwen3-untied")
    folder = tmp_path / "model"
    AutoModelForCausalLM.from_pretrained(made.plain).save_pretrained(folder)
    words = {f"w{i}": i for i in range(490)} | {"A": 490, "B": 491, "C": 492, "D": 493, "[UNK]": 494}
    rules = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"},
    }  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(rules))
    PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"), unk_token="[UNK]").save_pretrained(folder)
    text, asked = tmp_path / "text", tmp_path / "asked"
    text.write_text(" ".join(f"w{i * i % 490}" for i in range(1300)))
    asked.write_text(
        "".join(
            json.dumps({"question": f"w{i} ?", "choices": ["w1", "w2", "w3", "w4"], "answer": i}) + "\n"
            for i in range(4)
        )
    )
    code, out, _ = run(capsys, folder, "--ppl", text, "--mmlu", asked, "--json", *QUICK)
    assert code == 0
    plain, packed = (r["quality"] for r in json.loads(out)["results"])
    assert 900 < plain["perplexity"] < 1200  # of 1,000 words, by random weights
    assert math.isclose(plain["perplexity"], packed["perplexity"], rel_tol=1e-9)
    assert plain["mmlu_answers"] == packed["mmlu_answers"]
    assert plain["mmlu_percent"] in {0, 25, 50, 75, 100}
    asked.write_text('{"question": "?", "choices": ["a"], "answer": 0}\n')
    code, _, err = run(capsys, folder, "--mmlu", asked, *QUICK)
    assert code == 1
    assert "line 1 is no question" in err
