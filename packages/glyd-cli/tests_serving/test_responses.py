# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""``/v1/responses`` as OpenAI's own client sees it."""

import json

import httpx
import openai
import pytest

TOOL = {
    "type": "function",
    "name": "weather",
    "parameters": {
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
}
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "<|im_start|>assistant\n<think>\n"
)


@pytest.fixture
def client(idle_after):
    return openai.OpenAI(base_url=f"{idle_after.url}/v1", api_key="none", max_retries=0)


def ask(client, text="hello there", **kw):
    return client.responses.create(input=text, **{"model": "tiny", "max_output_tokens": 24, "temperature": 0, **kw})


def test_it_is_the_chat_in_another_form(client):
    chat = client.chat.completions.create(
        model="tiny",
        max_tokens=24,
        temperature=0,
        messages=[{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello there"}],
    )
    for text in (
        "hello there",
        [{"role": "user", "content": "hello there"}],
        [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello there"}]}],
    ):
        found = ask(client, text, instructions="be brief")
        assert found.output_text == chat.choices[0].message.content
        assert found.usage.input_tokens == chat.usage.prompt_tokens
        assert found.usage.output_tokens == chat.usage.completion_tokens
        assert found.usage.total_tokens == chat.usage.total_tokens
    reason = chat.choices[0].finish_reason
    assert found.status == ("incomplete" if reason == "length" else "completed")
    assert (found.incomplete_details is None) == (reason == "stop")
    assert found.instructions == "be brief"


def test_stream_says_the_same(client):
    whole = ask(client)
    events = list(ask(client, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    kinds = [e.type for e in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:-1] == ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
    assert kinds[-1] == ("response.incomplete" if whole.status == "incomplete" else "response.completed")
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == whole.output_text
    assert events[-1].response.output_text == events[-4].text == whole.output_text
    assert events[-1].response.usage == whole.usage
    assert len({e.item_id for e in events[3:-2]}) == 1
    with client.responses.stream(model="tiny", input="hello there", max_output_tokens=24, temperature=0) as stream:
        assert "".join(e.delta for e in stream if e.type == "response.output_text.delta") == whole.output_text


def test_events_have_names(server):
    body = {"input": "hello", "max_output_tokens": 2, "stream": True}
    lines = server.post("/v1/responses", body).text.split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    for one in lines[:-2]:
        name, data = one.split("\n")
        assert name == "event: " + json.loads(data.removeprefix("data: "))["type"]


def test_functions(client):
    for stream in (False, True):
        found = ask(
            client, "what is it like", tools=[TOOL], tool_choice="required", max_output_tokens=80, stream=stream
        )
        if stream:
            events = list(found)
            found = events[-1].response
            (done,) = (e for e in events if e.type == "response.function_call_arguments.done")
            assert json.loads(done.arguments)["city"] in {"Oslo", "Rome"}
        (call,) = found.output
        assert (call.type, call.name, found.status) == ("function_call", "weather", "completed")
        assert json.loads(call.arguments)["city"] in {"Oslo", "Rome"}
    again = ask(
        client,
        [
            {"role": "user", "content": "what is it like"},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments},
            {"type": "function_call_output", "call_id": call.call_id, "output": "rain"},
        ],
        tools=[TOOL],
    )
    assert again.output[0].type == "message"
    named = ask(client, tools=[TOOL], tool_choice={"type": "function", "name": "weather"}, max_output_tokens=80)
    assert named.output[0].name == "weather"


def test_schema(client):
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    schema["additionalProperties"] = False
    form = {"format": {"type": "json_schema", "name": "it", "schema": schema, "strict": True}}
    found = client.responses.create(model="tiny", input="is it", max_output_tokens=60, temperature=0, text=form)
    assert isinstance(json.loads(found.output_text)["ok"], bool)
    assert found.text.format.type == "json_schema"


def test_thoughts(new_server, tmp_path, save_model):
    server = new_server(save_model(tmp_path / "thinking", template=THINKING))
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    found = ask(client, max_output_tokens=12)
    assert found.output[0].type == "reasoning"
    assert found.output[0].content[0].text
    events = list(ask(client, max_output_tokens=12, stream=True))
    said = "".join(e.delta for e in events if e.type == "response.reasoning_text.delta")
    assert said == found.output[0].content[0].text
    assert events[-1].response.output[0].content[0].text == said


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"input": "x", "previous_response_id": "resp_1"}, "nothing is stored here"),
        ({"input": "x", "background": True}, "background is not there"),
        ({"input": []}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "found 'item_reference'"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "found 'input_image'"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "role"),
        ({"input": "x", "tools": [{"type": "web_search"}]}, "web_search"),
        ({"input": "x", "tool_choice": "required"}, "tool_choice needs tools"),
        ({"input": "word " * 5000}, "the window of this model"),
        ({"input": "x", "text": {"format": {"type": "json_schema", "name": "it"}}}, "schema"),
    ],
)
def test_refused(server, body, words):
    answer = server.post("/v1/responses", body)
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]["message"]


def test_counted(server):
    server.post("/v1/responses", {"input": "x", "max_output_tokens": 1})
    assert 'glyd_requests_total{endpoint="responses"}' in httpx.get(f"{server.url}/metrics", timeout=60).text
