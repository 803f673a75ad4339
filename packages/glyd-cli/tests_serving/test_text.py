# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Stop strings and characters over the borders of tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glyd_cli.serving.api_chat import Split
from glyd_cli.serving.text import Detokenizer, StopStrings

few = st.text(alphabet="ab<", max_size=12)


def pieces_of(text, cuts):
    places = sorted({c % (len(text) + 1) for c in cuts})
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@given(
    few,
    st.lists(st.text(alphabet="ab<", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(0, 20)),
    st.booleans(),
)
def test_stop_strings_are_found_as_in_the_whole_text(text, strings, cuts, keep):
    finder = StopStrings(strings, keep=keep)
    shown = "".join(finder.push(p) for p in pieces_of(text, cuts))
    # what a client sees must be what the first match leaves, at the first moment it can be known
    if finder.found is None:
        assert shown + finder.end() == text
        assert not any(s in text for s in strings)
        return
    assert finder.found in strings
    kept = shown[: len(shown) - len(finder.found)] if keep else shown
    assert text.startswith(kept + finder.found)
    assert not any(s in kept for s in strings)


def test_a_half_matched_end_is_delivered():
    finder = StopStrings(["stop"])
    assert finder.push("please st") == "please "
    assert finder.push("a") == "sta"
    assert finder.push("sto") == ""
    assert finder.end() == "sto"


def test_nothing_comes_after_a_stop():
    finder = StopStrings(["b"])
    assert finder.push("ab") == "a"
    assert finder.push("more") == ""
    assert finder.end() == ""


@given(st.text(max_size=40))
def test_tokens_give_their_text_in_whole_characters(server, text):
    ids = server.tokenizer.encode(text, add_special_tokens=False)
    stream = Detokenizer(server.engine.tokenizer)
    parts = [stream.push(i) for i in ids]
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(parts) or "\N{REPLACEMENT CHARACTER}" in text
    assert "".join(parts) + stream.end() == server.engine.tokenizer.decode(ids)


def test_a_cut_character_ends_as_a_replacement(server):
    ids = server.tokenizer.encode("😂", add_special_tokens=False)
    assert len(ids) > 1
    stream = Detokenizer(server.engine.tokenizer)
    assert "".join(stream.push(i) for i in ids[:-1]) == ""
    assert stream.end() == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_thoughts_end_at_their_tag(size):
    text = "hm < </thin k</think>\n\nYes </think> no"
    split = Split(thinking=True)
    parts = [split.push(text[i : i + size], end=i + size >= len(text)) for i in range(0, len(text), size)]
    assert "".join(t for t, _ in parts) == "hm < </thin k"
    assert "".join(a for _, a in parts) == "Yes </think> no"


def test_a_thought_without_an_end_is_all_thought():
    split = Split(thinking=True)
    assert split.push("hm </th", end=True) == ("hm </th", "")
