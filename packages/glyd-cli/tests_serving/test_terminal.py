# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""What is typed in the chat of the terminal, without a model."""

import json

import pytest

from glyd_cli.serve import ServeOptions
from glyd_cli.serving import terminal


@pytest.fixture
def conversation():
    one = terminal.Conversation(None, None, ServeOptions(system="be brief"))
    one.messages += [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
        {"role": "assistant", "content": "d"},
    ]
    return one


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["  hello "], "hello"),
        ([""], ""),
        (['"""one', "two", 'three"""'], "one\ntwo\nthree"),
        (['"""', "  indented", "", "/bye", '"""  '], "indented\n\n/bye"),
        (['"""all in one"""'], "all in one"),
        (['""""""'], ""),
    ],
)
def test_messages_of_several_lines(monkeypatch, typed, message):
    asked = []
    monkeypatch.setattr("builtins.input", lambda prompt: asked.append(prompt) or typed[len(asked) - 1])
    assert terminal._read_message() == message
    assert asked == [">>> ", *["... "] * (len(typed) - 1)]


def test_take_back(conversation):
    assert conversation.take_back() == "c"
    assert [m["content"] for m in conversation.messages] == ["be brief", "a", "b"]
    assert conversation.take_back() == "a"
    assert conversation.take_back() is None
    assert [m["role"] for m in conversation.messages] == ["system"]


def test_system(conversation, capsys):
    assert terminal._command("/system answer in rhymes", conversation)
    assert [m["content"] for m in conversation.messages] == ["answer in rhymes", "a", "b", "c", "d"]
    terminal._command("/system", conversation)
    terminal._command("/clear", conversation)
    assert [m["content"] for m in conversation.messages] == ["answer in rhymes"]
    assert capsys.readouterr().out.count("(system prompt: answer in rhymes)") == 2


def test_save_and_load(conversation, capsys, tmp_path):
    path = tmp_path / "a talk.json"
    before = list(conversation.messages)
    terminal._command(f"/save {path}", conversation)
    terminal._command(f"/save {path}", conversation)  # what is there stays
    other = terminal.Conversation(None, None, ServeOptions())
    terminal._command(f"/load {path}", other)
    assert other.messages == before
    assert other.system == "be brief"
    for content, why in [("{}", "not a list"), ('[{"role": "x"}]', "item 0"), ("[", "Expecting"), ("[" * 10**5, "")]:
        path.write_text(content, encoding="utf-8")
        terminal._command(f"/load {path}", other)
        assert other.messages == before
        assert f"not read: {why}" in capsys.readouterr().out
    terminal._command(f"/load {tmp_path / 'nowhere'}", other)
    assert "not read: No such file" in capsys.readouterr().out
    path.write_text(json.dumps([{"role": "user", "content": 5}]), encoding="utf-8")
    terminal._command(f"/load {path}", other)
    assert "item 0 is no message" in capsys.readouterr().out
