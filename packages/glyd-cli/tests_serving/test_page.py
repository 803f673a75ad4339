# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""The chat page in a real browser. Skipped, with the reason, where no Chromium is installed."""

import json

import pytest


def script_answers(page, *answers):
    """Let the page get scripted answers; return the bodies that it sent."""
    sent = []
    left = list(answers)

    def answer(route):
        sent.append(route.request.post_data_json)
        pieces = left.pop(0) if len(left) > 1 else left[0]
        pieces = [pieces] if isinstance(pieces, str) else pieces
        deltas = [p if isinstance(p, dict) else {"content": p} for p in pieces]
        chunks = [{"choices": [{"index": 0, "delta": d}]} for d in deltas]
        chunks.append({"choices": [], "usage": {"total_tokens": 12, "completion_tokens": 7, "prompt_tokens": 5}})
        body = "".join(f"data: {json.dumps(c)}\n\n" for c in chunks) + "data: [DONE]\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    page.route("**/v1/chat/completions", answer)
    return sent


def ask(page, text):
    page.fill("#prompt", text)
    page.press("#prompt", "Enter")
    page.wait_for_selector("#send:not([hidden])")


def answers(page):
    return page.locator(".turn.assistant .body").all_text_contents()


def test_a_real_answer_streams_and_stops(until, new_page, server, wait_for):
    page = new_page()
    page.fill("#prompt", "hello there")
    page.press("#prompt", "Enter")
    until(page, "document.querySelector('.turn.assistant .body')?.textContent.length > 3")
    page.keyboard.press("Escape")
    page.wait_for_selector("#send:not([hidden])")
    wait_for(server.idle)
    assert page.locator(".turn").count() == 2
    ask(page, "again")
    assert page.locator(".turn").count() == 4


def serve_models(page, models):
    page.route("**/v1/models", lambda route: route.fulfill(json={"object": "list", "data": models}))


def test_one_of_several_models_is_chosen(until, new_page):
    page = new_page()
    loaded = {"loaded": True, "task": "generate", "max_model_len": 256, "layout": "tiered", "weight_bytes": 2.5e9}
    models = [
        {"id": "one", **loaded},
        {"id": "two/<b>", "loaded": False},
        {"id": "vectors", **loaded, "task": "embed"},
    ]
    serve_models(page, models)
    page.reload()
    choice = page.get_by_label("Model", exact=True)
    until(page, "document.querySelector('#model select') !== null")
    assert choice.locator("option").all_text_contents() == ["one", "two/<b>"]
    assert page.locator("#model small").text_content() == "tiered, 2.50 GB"
    sent = script_answers(page, "yes")
    choice.select_option("two/<b>")
    until(page, "document.querySelector('#model small').textContent === 'loads with the next message'")
    models[1].update(loaded)  # as the server says after it answered
    ask(page, "hello")
    assert sent[0]["model"] == "two/<b>"
    until(page, "document.querySelector('#model small').textContent === 'tiered, 2.50 GB'")
    assert page.locator("#tokens").text_content() == "12 of 256 tokens"
    page.reload()
    until(page, "document.querySelector('#model select')?.value === 'two/<b>'")
    serve_models(page, models[2:])
    page.reload()
    until(page, "document.getElementById('model').textContent === 'no model here writes text'")


TRICKY = [
    "a <channel> b",
    '<div class="x">t</div>',
    "</think>",
    "<exact line",
    "x < y > z",
    "&lt;b&gt; &amp;",
    "List<String>",
    "<!-- c -->",
    "$a<b$",
    "<img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "[click](javascript:alert(1))",
    '"><svg onload=alert(1)>',
]


@pytest.mark.parametrize("text", TRICKY)
def test_what_looks_like_markup_stays_text(new_page, text):
    page = new_page()
    script_answers(page, f"I say {text} too")
    ask(page, text)
    assert page.locator(".turn.user .body").text_content() == text
    assert answers(page) == [f"I say {text} too"]
    assert text in page.locator("#chats .name").text_content()
    page.fill("#search", text.split()[0])
    assert page.locator("#chats li").count() == 1
    assert page.locator("#chats script, #chats img, #log img, #log script, #log svg").count() == 0
    assert page.locator("#log a[href^=javascript]").count() == 0
    page.reload()
    page.locator("#chats .name").click()
    assert page.locator(".turn.user .body").text_content() == text


def test_markdown(new_page):
    text = "# Head\n\n**bold** and `a < b`\n\n1. one\n2. two\n   - inner\n\n```python\nif a < b:\n\tpass\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n\nhttps://example.org/x."
    page = new_page()
    script_answers(page, list(text))
    ask(page, "x")
    for selector, inner in {
        "h1": "Head", "strong": "bold", "p code": "a < b", "ol > li ul > li": "inner", "pre code": "if a < b:\n\tpass",
        "td >> nth=1": "2", "blockquote": "quote", "a": "https://example.org/x",
    }.items():  # fmt: skip
        assert page.locator(f".turn.assistant .body {selector}").first.text_content() == inner


def test_edit_and_again(until, new_page):
    page = new_page()
    sent = script_answers(page, "one", "two", "three")
    ask(page, "first")
    page.locator(".turn.assistant").hover()
    page.get_by_role("button", name="Again").click()
    until(page, "document.querySelector('.turn.assistant .body')?.textContent === 'two'")
    page.press("#prompt", "ArrowUp")
    page.get_by_label("Edit message").fill("second")
    page.get_by_role("button", name="Send").first.click()
    until(page, "document.querySelector('.turn.assistant .body')?.textContent === 'three'")
    assert [s["messages"] for s in sent] == [[{"role": "user", "content": c}] for c in ("first", "first", "second")]


def test_settings_are_sent_and_kept(new_page):
    page = new_page()
    sent = script_answers(page, "ok")
    page.click("#settings")
    page.fill("[name=system]", "Be brief.")
    page.fill("[name=temperature]", "0.4")
    page.fill("[name=seed]", "7")
    page.get_by_role("button", name="Save").click()
    page.reload()
    ask(page, "hi")
    assert sent[-1]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert (sent[-1]["temperature"], sent[-1]["seed"]) == (0.4, 7)
    assert "max_tokens" not in sent[-1]


def test_thoughts_fold(new_page):
    page = new_page()
    script_answers(page, [{"reasoning_content": "hm "}, {"reasoning_content": "<b>"}, "Yes"])
    ask(page, "x")
    assert page.locator("details.thought").get_attribute("open") is None
    page.locator("details.thought summary").click()
    assert page.locator("details.thought .inner").text_content() == "hm <b>"
    assert answers(page) == ["Yes"]


def test_history_export_import_delete(until, new_page, tmp_path):
    page = new_page()
    script_answers(page, "first answer", "second answer")
    ask(page, "apples and pears")
    page.click("#new")
    ask(page, "bananas")
    page.fill("#search", "PEARS apples")
    assert page.locator("#chats li").count() == 1
    page.fill("#search", "")
    with page.expect_download() as download:
        page.click("#export")
    path = tmp_path / "chats.json"
    download.value.save_as(path)
    assert len(json.loads(path.read_text())["chats"]) == 2
    for _ in range(2):
        page.locator("#chats li").first.hover()
        page.locator("#chats .drop").first.click()
    assert page.locator("#chats li").count() == 0
    page.set_input_files("#file", path)
    until(page, "document.querySelectorAll('#chats li').length === 2")
    page.reload()
    assert page.locator("#chats li").count() == 2


def test_broken_imports_and_records(new_page, tmp_path):
    before = "try { localStorage.setItem('glyd.chat.x', '{'); localStorage.setItem('glyd.chat.y', '{\"id\": \"../y\", \"messages\": 5}'); localStorage.setItem('glyd.settings', 'no'); } catch {}"
    page = new_page(before)
    assert page.locator("#chats li").count() == 0
    bad = tmp_path / "bad.json"
    bad.write_text('{"chats": [{"id": "<img>", "messages": [{"role": "user", "content": 5}]}]}')
    page.set_input_files("#file", bad)
    page.wait_for_selector("#toast:not([hidden])")
    assert "no conversations" in page.locator("#toast").text_content()


def test_full_and_blocked_storage(new_page):
    for how in (
        "throw new DOMException('full', 'QuotaExceededError')",
        "throw new DOMException('no', 'SecurityError')",
    ):
        page = new_page(
            f"Storage.prototype.setItem = () => {{ {how}; }}; Storage.prototype.getItem = () => {{ {how}; }};"
        )
        script_answers(page, "still here")
        ask(page, "hi")
        assert answers(page) == ["still here"]


PLAIN_HTTP = "delete Navigator.prototype.clipboard; Object.defineProperty(crypto, 'randomUUID', {value: undefined}); Object.defineProperty(window, 'isSecureContext', {value: false});"
REFUSED = "navigator.clipboard.writeText = () => Promise.reject(new Error('no'));"


@pytest.mark.parametrize("before", [PLAIN_HTTP, REFUSED])
def test_copy_without_the_clipboard_api(until, new_page, before):
    """Over plain HTTP, or when the browser refuses, the old way copies the exact text."""
    code = "\tif a < b:\n😀\n" * 50
    page = new_page(
        before + "document.addEventListener('copy', () => { window.copied = document.activeElement.value; });"
    )
    script_answers(page, f"```\n{code}```")
    ask(page, "x")
    page.locator(".code button").click()
    until(page, "window.copied !== undefined")
    assert page.evaluate("window.copied") == code.removesuffix("\n")
    until(page, "document.querySelector('.code button').textContent === 'Copied'")


def test_errors_are_said_and_can_be_tried_again(until, new_page):
    page = new_page(expected=("400",))
    page.route("**/v1/chat/completions", lambda r: r.fulfill(status=400, json={"error": {"message": "too <long>"}}))
    ask(page, "hi")
    assert "too <long>" in page.locator(".error").text_content()
    page.unroute("**/v1/chat/completions")
    script_answers(page, "fine")
    page.get_by_role("button", name="Try again").click()
    until(page, "document.querySelector('.turn.assistant .body')?.textContent === 'fine'")
    assert page.locator(".turn.user").count() == 1


def test_input_methods_type(new_page):
    """Enter that ends a composition sends nothing."""
    page = new_page()
    page.fill("#prompt", "にほん")
    page.evaluate(
        "document.getElementById('prompt').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', keyCode: 229, bubbles: true, cancelable: true}))"
    )
    page.evaluate(
        "document.getElementById('prompt').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true, cancelable: true}))"
    )
    assert page.locator(".turn").count() == 0
    assert page.input_value("#prompt") == "にほん"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_have_contrast(new_page, scheme):
    """Text on its background: 4.5 to 1 at least (WCAG AA)."""
    page = new_page(color_scheme=scheme)
    page.emulate_media(color_scheme=scheme)
    ratios = page.evaluate(
        """() => {
            const style = getComputedStyle(document.documentElement);
            const light = (name) => {
                const probe = document.createElement("i");
                probe.style.color = style.getPropertyValue(name);
                document.body.append(probe);
                const rgb = getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number);
                probe.remove();
                const [r, g, b] = rgb.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const ratio = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
            return [["--text", "--back"], ["--text", "--panel"], ["--soft", "--back"], ["--soft", "--panel"], ["--text", "--mine"],
                    ["--text", "--code"], ["--soft", "--code"], ["--on-accent", "--accent"], ["--accent", "--back"], ["--warn", "--back"]]
                .map(([a, b]) => [a, b, ratio(a, b)]);
        }"""
    )
    assert [r for r in ratios if r[2] < 4.5] == []


def test_phone_and_keyboard(new_page):
    page = new_page(viewport={"width": 360, "height": 640})
    script_answers(page, "a long answer " * 200)
    ask(page, "x")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.evaluate("(s => s.scrollHeight - s.scrollTop - s.clientHeight)(document.getElementById('scroll'))") < 60
    page.click("#open-side")
    page.wait_for_selector("#search:visible")
    page.keyboard.press("Control+Shift+KeyO")
    assert page.locator(".turn").count() == 0
    unnamed = page.evaluate(
        "[...document.querySelectorAll('button, input, textarea, select')].filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || e.labels?.length || e.type === 'file')).map(e => e.outerHTML)"
    )
    assert unnamed == []


def test_the_reader_is_left_where_it_is(new_page):
    page = new_page(viewport={"width": 800, "height": 500})
    script_answers(page, "line\n\n" * 200)
    ask(page, "x")
    page.locator("#scroll").hover()
    page.mouse.wheel(0, -1500)
    page.wait_for_selector("#down:not([hidden])")
    top = page.evaluate("document.getElementById('scroll').scrollTop")
    page.evaluate("document.getElementById('log').append('more')")
    page.wait_for_timeout(200)
    assert page.evaluate("document.getElementById('scroll').scrollTop") == top
    page.click("#down")
    assert page.locator("#down").is_hidden()


def test_nothing_from_elsewhere(until, new_page, server):
    page = new_page()
    hosts = []
    page.on("request", lambda r: hosts.append(r.url))
    page.reload()
    until(page, "document.getElementById('model').textContent.includes('tiny')")
    assert all(u.startswith((server.url, "data:")) for u in hosts)
    policy = page.request.get(server.url).headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
