# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""How the page shows text that grows: always the same, at a cost that does not grow with it."""

import pytest

# of [texts, sizes of pieces], the texts that look different when they come in pieces
DIFFERING = """([texts, sizes]) => texts.filter((text) => {
    const make = (pieces) => {
        const node = document.createElement("div");
        const view = new Growing(node, () => {});
        pieces.forEach((p) => view.push(p));
        view.end();
        return node.innerHTML;
    };
    const whole = make([text]);
    return sizes.some((n) => make(text.match(new RegExp(`[^]{1,${n}}`, "g"))) !== whole);
}).map((text) => text.slice(0, 60))"""


def test_growing_text_is_that_of_the_whole(new_page):
    """However a text comes in pieces, the same document comes out."""
    page = new_page()
    code = "`" * 3
    texts = [
        f"a\n\n{code}py\nx\n{code}\nb\n\n{code}\nnever closed\n  {code[:2]}",
        f"~~~\n{code}\n~~~\nafter\n- one\n- two\n\n1. x\n\n{code}\n\n\n{code}",
        "# h\ntext\n> q\n> r\n\n| a |\n|---|\n| b |\n\n***\n\n" + "- item\n" * 250 + "end",
        "word " * 6000 + "\n\n**b**",
        f"{code}{code}\n{code}\n{code}{code}\nx",
    ]
    assert page.evaluate(DIFFERING, [[t[:9000] for t in texts], [1, 2, 3, 7, 50]]) == []


def test_long_text_is_that_of_the_whole(new_page):
    """The same for what is shown in parts: long code, long tables, paragraphs of many lines, lines without end."""
    page = new_page()
    code = "`" * 3
    rows = "".join(f"| {i} | **{i}** |\n" for i in range(150))
    texts = [
        f"{code}\n" + "".join(f"line {i}\n" for i in range(200)) + f"{code}\nafter",
        f"{code}\n" + "x\n" * 128,
        f"{code}\n" + "x\n" * 64 + code,
        f"a\n\n| a | b |\n|---|---|\n{rows}\nafter\n\n| c | d |\n|---|---|\n{rows}",
        "a line with **bold** in it\n" * 250 + "and **more",
        "short\n" * 5000 + "**b** x",
        "word " * 9000,
        "word\n" + "word " * 9000 + "\nend\n\n" + "x" * 30000,
    ]
    assert page.evaluate(DIFFERING, [texts, [61, 997]]) == []
    shown = page.evaluate(
        """(texts) => texts.map((text) => {
            const node = document.createElement("div");
            const view = new Growing(node, () => {});
            view.push(text);
            view.end();
            return [node.textContent.replace(/\\s/g, "").length, node.querySelectorAll(".part").length];
        })""",
        texts,
    )
    assert shown[1][0] == 128 + len("Copy")
    assert shown[6][0] == 9000 * len("word")
    assert [n for _, n in shown] == [4, 3, 0, 0, 0, 0, 12, 12]


@pytest.mark.parametrize("kind", ["lines", "fence", "long line", "list", "paragraph"])
def test_long_answers_stay_cheap(new_page, kind):
    """The last pieces of 20,000 make about as many nodes as the first: counted, since times vary."""
    page = new_page()
    first, last = page.evaluate(
        """(kind) => {
            const node = document.createElement("div");
            const view = new Growing(node, () => {});
            let made = 0;
            const make = document.createElement;
            document.createElement = function (...args) { made++; return make.apply(this, args); };
            if (kind === "fence") view.push("```\\n");
            const words = {
                "long line": () => "some words ",
                paragraph: (i) => (i % 2 ? "some" : " words\\n"),
                list: (i) => (i % 2 ? "- some" : " words\\n"),
                fence: (i) => (i % 2 ? "code" : "line\\n"),
                lines: (i) => (i % 4 ? "words " : "end\\n\\n"),
            }[kind];
            const counts = [];
            for (let i = 0; i < 20000; i++) {
                const before = made;
                view.push(words(i));
                counts.push(made - before);
            }
            document.createElement = make;
            const sum = (a) => a.reduce((x, y) => x + y, 0);
            return [sum(counts.slice(1000, 4000)), sum(counts.slice(-3000))];
        }""",
        kind,
    )
    assert last <= 1.1 * first + 10, (first, last)
