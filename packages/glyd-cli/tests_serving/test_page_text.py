# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""How the page shows text that grows: always the same, at a cost that does not grow with it."""

import pytest


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
    differing = page.evaluate(
        """(texts) => texts.filter((text) => {
            const make = (pieces) => {
                const node = document.createElement("div");
                const view = new Growing(node, () => {});
                pieces.forEach((p) => view.push(p));
                view.end();
                return node.innerHTML;
            };
            const whole = make([text]);
            return [1, 2, 3, 7, 50].some((n) => make(text.match(new RegExp(`[^]{1,${n}}`, "g"))) !== whole);
        })""",
        [t[:9000] for t in texts],
    )
    assert differing == []


@pytest.mark.parametrize("kind", ["lines", "fence", "long line", "list"])
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
