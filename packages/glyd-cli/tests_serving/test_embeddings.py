# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Models that make vectors: the endpoint, and the vectors against transformers' own."""

import base64
import json
import shutil

import numpy as np
import openai
import pytest
import torch
import transformers

import glyd_gpu
from glyd_cli.errors import UsageError
from glyd_cli.serve import ServeOptions
from glyd_cli.serving.embedding import Pooling, pooled, read_pooling
from glyd_cli.serving.loading import make_engine

TEXTS = ["the quick brown fox", "a", "grüße an alle 😀 " * 9, "jumps over the lazy dog"]
WIDTH = 128


def write_steps(folder, *, mode="mean_tokens", normalize=True, **files):
    """Write the files of sentence-transformers."""
    steps = ["Transformer", "Pooling", *(["Normalize"] if normalize else [])]
    modules = [
        {"idx": n, "name": str(n), "path": "" if n == 0 else f"{n}_{s}", "type": f"sentence_transformers.models.{s}"}
        for n, s in enumerate(steps)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"word_embedding_dimension": WIDTH, f"pooling_mode_{mode}": True})
    )
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="session")
def encoder_path(tmp_path_factory, model_path):
    """Directory of a random encoder with the tokenizer of the chat model."""
    folder = tmp_path_factory.mktemp("models") / "encoder"
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=512,
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=256,
    )
    model = transformers.BertModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.2)
    model.to(torch.bfloat16).save_pretrained(folder)
    for file in model_path.glob("tok*"):
        shutil.copy(file, folder)
    return write_steps(folder, sentence_bert_config={"max_seq_length": 100})


@pytest.fixture(scope="session")
def vectors(encoder_path, start_models):
    """A server of the encoder."""
    one = start_models(encoder_path)
    yield one
    one.stop()


def expected(path, text, n_values=None):
    """Return a vector by transformers alone."""
    model = transformers.AutoModel.from_pretrained(path, dtype=torch.bfloat16)
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    with torch.inference_mode():
        hidden = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].float()
    one = hidden.mean(0)[:n_values]
    return (one / one.norm()).numpy()


def test_vectors_are_those_of_the_model(vectors, encoder_path):
    body = vectors.post("/v1/embeddings", {"input": TEXTS}).json()
    assert [d["index"] for d in body["data"]] == [0, 1, 2, 3]
    assert body["model"] == "encoder"
    assert body["usage"]["prompt_tokens"] == body["usage"]["total_tokens"] > 20
    for text, found in zip(TEXTS, body["data"], strict=True):
        one = np.array(found["embedding"])
        assert abs(np.linalg.norm(one) - 1) < 1e-5
        # bf16 products of other batch sizes may round differently
        assert one @ expected(encoder_path, text) > 0.999


def test_openai_client(vectors):
    client = openai.OpenAI(base_url=vectors.url + "/v1", api_key="none")  # asks for base64 by itself
    found = client.embeddings.create(model="encoder", input=TEXTS[0])
    plain = vectors.post("/v1/embeddings", {"input": TEXTS[0]}).json()["data"][0]["embedding"]
    assert np.allclose(found.data[0].embedding, plain, atol=1e-6)
    assert client.models.list().data[0].task == "embed"


def test_forms_of_answers_and_questions(vectors):
    def ask(given, **more):
        answer = vectors.post("/v1/embeddings", {"input": given, **more})
        assert answer.status_code == 200, answer.text
        return [d["embedding"] for d in answer.json()["data"]]

    [plain] = ask("the lazy dog")
    [packed] = ask("the lazy dog", encoding_format="base64")
    assert np.frombuffer(base64.b64decode(packed), "<f4").tolist() == pytest.approx(plain, abs=1e-7)
    ids = vectors.post("/tokenize", {"prompt": "the lazy dog"}).json()["tokens"]
    assert ask(ids) == [plain]
    assert ask([ids]) == [plain]
    [short] = ask("the lazy dog", dimensions=16)
    start = np.array(plain[:16])
    assert short == pytest.approx((start / np.linalg.norm(start)).tolist(), abs=1e-6)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"input": ""}, "empty"),
        ({"input": []}, "1 to 2048 inputs, found 0"),
        ({"input": ["a", ""]}, "empty"),
        ({"input": ["a"] * 2049}, "found 2049"),
        ({"input": [512]}, "from 0 to 511, found 512"),
        ({"input": [-1]}, "found -1"),
        ({"input": "a", "dimensions": 129}, "at most 128, found 129"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format"),
        ({"input": "a", "truncate_prompt_tokens": 1}, "-1 (the model's window) or 2 and more"),
        ({"input": "word " * 400}, "the window of this model holds 100"),
        ({}, "input"),
    ],
)
def test_bad_questions(vectors, body, words):
    answer = vectors.post("/v1/embeddings", body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]
    assert vectors.post("/v1/embeddings", {"input": "a"}).status_code == 200


def test_long_texts_are_cut_only_when_asked(vectors):
    answer = vectors.post("/v1/embeddings", {"input": "word " * 400, "truncate_prompt_tokens": -1})
    assert answer.json()["usage"]["prompt_tokens"] == 100
    assert vectors.post("/v1/embeddings", {"input": "word " * 400, "truncate_prompt_tokens": 7}).json()["usage"] == {
        "prompt_tokens": 7,
        "total_tokens": 7,
    }


def test_each_kind_of_model_says_what_it_does(vectors, server):
    answer = vectors.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}]})
    assert answer.status_code == 400
    assert "is served to make embeddings and writes no text" in answer.json()["error"]["message"]
    assert vectors.post("/v1/completions", {"prompt": "hello"}).status_code == 400
    answer = server.post("/v1/embeddings", {"input": "hello"})
    assert answer.status_code == 400
    assert "is served to write text and makes no embeddings" in answer.json()["error"]["message"]


def test_packed_encoders_give_the_same_vectors(glyd, encoder_path, vectors, start_models, tmp_path):
    glyd("pack", encoder_path, "packed")
    packed = start_models(tmp_path / "packed")
    try:
        body = {"input": TEXTS}
        found, plain = (one.post("/v1/embeddings", body).json()["data"] for one in (packed, vectors))
        assert found == plain
    finally:
        packed.stop()


def test_run_says_that_an_encoder_writes_no_text(glyd, encoder_path):
    _, err = glyd("run", encoder_path, "-p", "hello", code=1)
    assert "makes embeddings and writes no text: serve it" in err


def test_decoders_pool_their_last_token(model_path, tmp_path):
    folder = tmp_path / "decoder"
    shutil.copytree(model_path, folder)
    prompts = {"prompts": {"query": "ask: "}, "default_prompt_name": "query"}
    write_steps(folder, mode="lasttoken", config_sentence_transformers=prompts)
    pooling = read_pooling(folder)
    assert pooling == Pooling(mode="lasttoken", prefix="ask: ")
    model = glyd_gpu.from_pretrained(folder, device="cpu")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    engine = make_engine(ServeOptions(verb="serve", model=str(folder)), model, tokenizer, pooling)
    ids = tokenizer.encode("ask: hello")
    found = engine._run([ids, ids + ids], None)[0]
    with torch.inference_mode():
        hidden = model.base_model(torch.tensor([ids])).last_hidden_state[0, -1].float()
    assert torch.nn.functional.cosine_similarity(found, hidden, dim=0) > 0.999


def test_pooling():
    hidden = torch.tensor([[[1.0, 5.0], [3.0, 1.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    results = {"cls": [1, 5], "mean": [2, 3], "max": [3, 5], "lasttoken": [3, 1]}
    for mode, values in results.items():
        assert pooled(hidden, mask, mode).tolist() == [values]


def test_steps_not_known_are_refused(encoder_path, tmp_path):
    folder = tmp_path / "odd"
    shutil.copytree(encoder_path, folder)
    write_steps(folder, mode="weightedmean_tokens")
    with pytest.raises(UsageError, match="pooling_mode_weightedmean_tokens"):
        read_pooling(folder)
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps([*modules, {"type": "sentence_transformers.models.Dense"}]))
    with pytest.raises(UsageError, match="a step that glyd does not know \\(Dense\\)"):
        read_pooling(folder)
    shutil.rmtree(folder / "1_Pooling")
    (folder / "modules.json").unlink()
    assert read_pooling(folder) is None
