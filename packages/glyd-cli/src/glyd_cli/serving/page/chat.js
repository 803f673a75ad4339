// SPDX-FileCopyrightText: 2026 The glyd authors
// SPDX-License-Identifier: BUSL-1.1
// The chat: conversations in this browser, answers streamed from /v1/chat/completions.
"use strict";

const $ = (id) => document.getElementById(id);
const newId = () => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 10)}`;

// ---- what is kept: one record a conversation, so that a full storage loses nothing else ----
const PREFIX = "glyd.chat.";
const store = {
  broken: false,
  get(key) { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } },
  set(key, value) {
    try { localStorage.setItem(key, JSON.stringify(value)); this.broken = false; return true; }
    catch { if (!this.broken) toast("This browser keeps no more: export or delete conversations"); this.broken = true; return false; }
  },
  drop(key) { try { localStorage.removeItem(key); } catch { /* it was never there */ } },
  chats() {
    const out = [];
    try {
      for (let i = 0; i < localStorage.length; i++) {
        const key = localStorage.key(i);
        if (!key.startsWith(PREFIX)) continue;
        const chat = valid(this.get(key));
        if (chat) out.push(chat);
      }
    } catch { /* storage is blocked: conversations last as long as the page */ }
    return out;
  },
};

// Return a conversation if it is one (storage and imported files may hold anything), else null.
function valid(chat) {
  if (!chat || typeof chat !== "object" || typeof chat.id !== "string" || !/^[\w-]{1,64}$/.test(chat.id) || !Array.isArray(chat.messages)) return null;
  const messages = chat.messages
    .filter((m) => m && ["user", "assistant"].includes(m.role) && typeof m.content === "string")
    .map(({ role, content, thought }) => ({ role, content, ...(typeof thought === "string" && thought ? { thought } : {}) }));
  return { id: chat.id, title: String(chat.title || "").slice(0, 200), time: Number(chat.time) || 0, messages };
}

const state = { chats: new Map(), chat: null, model: null, running: null, settings: {}, stick: true };

// ---- small things ----
let toastTimer = 0;
function toast(text) {
  $("toast").textContent = text;
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, 4000);
}

// Copy text; over plain HTTP from another machine browsers hide navigator.clipboard.
async function copy(text, button) {
  let done = false;
  try { await navigator.clipboard.writeText(text); done = true; } catch { done = copyByHand(text); }
  if (!done) { toast("Select the text and press Ctrl+C"); return; }
  const label = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = label; }, 1500);
}
function copyByHand(text) {
  const area = el("textarea", { value: text, class: "sr", readOnly: true });
  const focus = document.activeElement;
  document.body.append(area);
  area.select();
  let done = false;
  try { done = document.execCommand("copy"); } catch { done = false; }
  area.remove();
  focus?.focus();
  return done;
}

function fitPrompt() {
  const box = $("prompt");
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight, innerHeight * 0.38)}px`;
}

// ---- the list of conversations ----
const titleOf = (chat) => chat.title || (chat.messages[0]?.content ?? "").trim().replace(/\s+/g, " ").slice(0, 60) || "New chat";

function showList() {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const items = [];
  for (const chat of [...state.chats.values()].sort((a, b) => b.time - a.time)) {
    if (!chat.messages.length) continue;
    const hit = words.length ? chat.messages.find((m) => words.every((w) => m.content.toLowerCase().includes(w))) : null;
    if (words.length && !hit && !words.every((w) => titleOf(chat).toLowerCase().includes(w))) continue;
    const name = el("button", { class: "name", type: "button", onclick: () => open(chat.id) }, titleOf(chat));
    if (hit) {
      const at = hit.content.toLowerCase().indexOf(words[0]);
      name.append(el("small", {}, `${at > 20 ? "…" : ""}${hit.content.slice(Math.max(0, at - 20), at + 60).replace(/\s+/g, " ")}`));
    }
    const drop = el("button", { class: "drop", type: "button", "aria-label": `Delete ${titleOf(chat)}`, onclick: () => remove(chat.id) }, "×");
    items.push(el("li", { class: chat === state.chat ? "open" : "" }, name, drop));
  }
  $("chats").replaceChildren(...items);
}

function save(chat) {
  chat.time = Date.now();
  state.chats.set(chat.id, chat);
  store.set(PREFIX + chat.id, chat);
  showList();
}

function remove(id) {
  const chat = state.chats.get(id);
  if (!chat || !confirm(`Delete “${titleOf(chat)}”?`)) return;
  if (state.chat === chat) { stop(); state.chats.delete(id); fresh(); }
  state.chats.delete(id);
  store.drop(PREFIX + id);
  showList();
}

function fresh() {
  stop();
  state.chat = { id: newId(), title: "", time: 0, messages: [] };
  showChat();
  showList();
  closeSide();
  $("prompt").focus();
}

function open(id) {
  if (state.chat?.id !== id) { stop(); state.chat = state.chats.get(id); showChat(); showList(); }
  closeSide();
}

// ---- the conversation ----
function thoughtNode(text, openNow) {
  const inner = el("div", { class: "inner" }, text);
  return el("details", { class: "thought", open: openNow }, el("summary", {}, "Thoughts"), inner);
}

function turnNode(message, index) {
  const body = el("div", { class: "body" });
  if (message.role === "user") body.append(message.content);
  else if (message.content) { const view = new Growing(body, copy); view.push(message.content); view.end(); }
  const turn = el("article", { class: `turn ${message.role}`, "aria-label": message.role === "user" ? "You" : "Answer" });
  if (message.thought) turn.append(thoughtNode(message.thought, false));
  turn.append(body, toolsNode(message, index));
  return turn;
}

function toolsNode(message, index) {
  const copyButton = el("button", { type: "button", onclick: () => copy(message.content, copyButton) }, "Copy");
  const tools = el("div", { class: "tools" }, copyButton);
  if (message.role === "user") tools.append(el("button", { type: "button", onclick: () => edit(index) }, "Edit"));
  else tools.append(el("button", { type: "button", onclick: () => again(index) }, "Again"));
  return tools;
}

function showChat() {
  const { messages } = state.chat;
  $("log").replaceChildren(...messages.map(turnNode));
  $("empty").hidden = messages.length > 0;
  document.title = messages.length ? `${titleOf(state.chat)} · glyd` : "glyd";
  $("tokens").textContent = "";
  $("speed").textContent = "";
  state.stick = true;
  toBottom();
}

function toBottom() {
  if (state.stick) $("scroll").scrollTop = $("scroll").scrollHeight;
  $("down").hidden = state.stick;
}

function edit(index) {
  if (state.running) return;
  const turn = $("log").children[index];
  const message = state.chat.messages[index];
  const box = el("textarea", { value: message.content, "aria-label": "Edit message" });
  const cancel = () => turn.replaceWith(turnNode(message, index));
  const send = () => {
    if (!box.value.trim()) return;
    state.chat.messages.length = index;
    showChat();
    ask(box.value);
  };
  box.addEventListener("keydown", (e) => {
    if (composing(e)) return;
    if (e.key === "Escape") { e.stopPropagation(); cancel(); }
    if (e.key === "Enter" && !e.shiftKey) { e.preventDefault(); send(); }
  });
  turn.replaceChildren(box, el("div", { class: "tools" }, el("button", { type: "button", class: "primary", onclick: send }, "Send"), el("button", { type: "button", onclick: cancel }, "Cancel")));
  box.focus();
}

function again(index) {
  if (state.running) return;
  const question = state.chat.messages[index - 1];
  if (!question) return;
  state.chat.messages.length = index - 1;
  showChat();
  ask(question.content);
}

// ---- asking ----
const composing = (e) => e.isComposing || e.keyCode === 229; // a key of an input method is typing

function stop() { state.running?.abort(); }

function body() {
  const s = state.settings;
  const messages = state.chat.messages.map(({ role, content }) => ({ role, content }));
  if (s.system) messages.unshift({ role: "system", content: s.system });
  const out = { model: state.model?.id, messages, stream: true };
  for (const key of ["temperature", "top_p", "max_tokens", "seed"]) if (typeof s[key] === "number" && Number.isFinite(s[key])) out[key] = s[key];
  if (s.thinking === "off") out.chat_template_kwargs = { enable_thinking: false };
  return out;
}

const headers = () => ({ "Content-Type": "application/json", ...(state.settings.key ? { Authorization: `Bearer ${state.settings.key}` } : {}) });

async function* events(response) {
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    held += decoder.decode(value ?? new Uint8Array(), { stream: !done });
    const parts = held.split("\n");
    held = parts.pop();
    for (const line of parts) if (line.startsWith("data:")) yield line.slice(5).trim();
    if (done) return;
  }
}

async function ask(text) {
  const chat = state.chat;
  chat.messages.push({ role: "user", content: text });
  save(chat);
  $("log").append(turnNode(chat.messages.at(-1), chat.messages.length - 1));
  $("empty").hidden = true;
  document.title = `${titleOf(chat)} · glyd`;
  const message = { role: "assistant", content: "" };
  const turn = el("article", { class: "turn assistant", "aria-label": "Answer" });
  const target = el("div", { class: "body cursor" });
  turn.append(target);
  $("log").append(turn);
  state.stick = true;
  toBottom();
  const abort = new AbortController();
  state.running = abort;
  busy(true);
  const view = new Growing(target, copy);
  let thought = null;
  let waiting = "";
  let frame = 0;
  let n = 0;
  let usage = null;
  let error = "";
  const start = performance.now();
  let first = 0;
  const flush = () => {
    frame = 0;
    if (waiting) { view.push(waiting); waiting = ""; }
    if (thought && message.thought) { thought.lastChild.append(message.thought.slice(thought.lastChild.dataset.n | 0)); thought.lastChild.dataset.n = message.thought.length; }
    if (first && n > 1) $("speed").textContent = `${(n / ((performance.now() - first) / 1000)).toFixed(1)} tokens/s`;
    toBottom();
  };
  try {
    const response = await fetch("/v1/chat/completions", { method: "POST", headers: headers(), body: JSON.stringify(body()), signal: abort.signal });
    if (!response.ok) throw new Error((await response.json().catch(() => null))?.error?.message ?? `the server said ${response.status}`);
    for await (const data of events(response)) {
      if (data === "[DONE]") break;
      const chunk = JSON.parse(data);
      if (chunk.error) throw new Error(chunk.error.message);
      usage = chunk.usage ?? usage;
      const delta = chunk.choices?.[0]?.delta;
      if (!delta) continue;
      if (delta.reasoning_content) {
        message.thought = (message.thought ?? "") + delta.reasoning_content;
        if (!thought) { thought = thoughtNode("", true); turn.prepend(thought); }
      }
      if (delta.content) {
        if (thought && !message.content) { thought.open = false; }
        message.content += delta.content;
        waiting += delta.content;
      }
      if (delta.content || delta.reasoning_content) { n++; first ||= performance.now(); }
      frame ||= requestAnimationFrame(flush);
    }
  } catch (problem) {
    if (!abort.signal.aborted) error = problem instanceof TypeError ? "The server cannot be reached." : problem.message;
  }
  cancelAnimationFrame(frame);
  flush();
  if (state.running === abort) { state.running = null; busy(false); }
  if (message.content || message.thought) { chat.messages.push(message); save(chat); }
  if (state.chat !== chat) return;
  if (message.content || message.thought) { // what is shown stays: making a long answer anew takes a while
    view.end();
    target.classList.remove("cursor");
    if (thought) thought.open = false;
    turn.append(toolsNode(message, chat.messages.length - 1));
  } else turn.remove();
  if (error) {
    const retry = el("button", { type: "button", onclick: () => { box.remove(); const last = chat.messages.at(-1); if (last?.role === "user") { chat.messages.pop(); showChat(); ask(last.content); } } }, "Try again");
    const box = el("div", { class: "turn" }, el("div", { class: "error", role: "alert" }, error, " ", retry));
    $("log").append(box);
  }
  if (!error && state.model && !state.model.loaded) await loadModel(); // its window is known now
  if (usage && state.model) $("tokens").textContent = `${usage.total_tokens.toLocaleString()} of ${state.model.max_model_len.toLocaleString()} tokens`;
  if (usage && first) $("speed").textContent = `${(usage.completion_tokens / ((performance.now() - first) / 1000)).toFixed(1)} tokens/s · first after ${((first - start) / 1000).toFixed(2)} s`;
  $("live").textContent = error || (abort.signal.aborted ? "Stopped" : "Answer complete");
  toBottom();
}

function busy(on) {
  $("send").hidden = on;
  $("stop").hidden = !on;
  $("log").setAttribute("aria-busy", String(on));
  if (on) $("live").textContent = "Answering";
}

// ---- files ----
function exportAll() {
  const chats = [...state.chats.values()].filter((c) => c.messages.length);
  const blob = new Blob([JSON.stringify({ format: "glyd chats", version: 1, chats }, null, 1)], { type: "application/json" });
  const link = el("a", { href: URL.createObjectURL(blob), download: `glyd-chats-${new Date().toISOString().slice(0, 10)}.json` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

async function importFile(file) {
  try {
    const found = JSON.parse(await file.text());
    const chats = (Array.isArray(found) ? found : found?.chats ?? []).map(valid).filter(Boolean);
    if (!chats.length) throw new Error("no conversations in it");
    for (const chat of chats) {
      const old = state.chats.get(chat.id);
      if (old && JSON.stringify(old.messages) !== JSON.stringify(chat.messages)) chat.id = newId(); // both are kept
      state.chats.set(chat.id, chat);
      store.set(PREFIX + chat.id, chat);
    }
    showList();
    toast(`${chats.length} conversation${chats.length > 1 ? "s" : ""} read`);
  } catch (problem) { toast(`${file.name} cannot be read: ${problem.message}`); }
}

// ---- settings ----
function loadSettings() {
  state.settings = { ...(store.get("glyd.settings") ?? {}) };
  try { state.settings.key = sessionStorage.getItem("glyd.key") ?? ""; } catch { state.settings.key = ""; }
}
function showSettings() {
  const form = $("settings-dialog").querySelector("form");
  for (const field of form.elements) if (field.name) field.value = state.settings[field.name] ?? "";
  $("settings-dialog").showModal();
}
function takeSettings() {
  if ($("settings-dialog").returnValue !== "save") return;
  const form = $("settings-dialog").querySelector("form");
  const s = {};
  for (const field of form.elements) {
    if (!field.name || field.value === "") continue;
    s[field.name] = field.type === "number" ? Number(field.value) : field.value;
  }
  state.settings = s;
  const { key, ...kept } = s; // the key stays in this tab
  try { sessionStorage.setItem("glyd.key", key ?? ""); } catch { /* it lasts as long as the page */ }
  store.set("glyd.settings", kept);
  loadModel();
}

function setTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;
}

function describe(model) {
  if (!model.loaded) return "loads with the next message";
  const bytes = model.weight_bytes;
  return `${model.layout}, ${bytes < 1e9 ? `${(bytes / 1e6).toPrecision(3)} MB` : `${(bytes / 1e9).toPrecision(3)} GB`}`;
}

function modelChoice(models) {
  const choice = el("select", { "aria-label": "Model" }, ...models.map((m) => el("option", { value: m.id }, m.id)));
  choice.value = state.model.id;
  choice.addEventListener("change", () => {
    state.model = models.find((m) => m.id === choice.value);
    store.set("glyd.model", choice.value);
    loadModel();
  });
  return choice;
}

async function loadModel() {
  try {
    const response = await fetch("/v1/models", { headers: headers() });
    if (response.status === 401) { $("model").textContent = "API key needed"; showSettings(); return; }
    const models = (await response.json()).data.filter((m) => m.task !== "embed");
    const wanted = state.model?.id ?? store.get("glyd.model");
    state.model = models.find((m) => m.id === wanted) ?? models[0];
    if (!state.model) { $("model").textContent = "no model here writes text"; return; }
    const small = el("small", {}, describe(state.model));
    $("model").replaceChildren(models.length > 1 ? modelChoice(models) : state.model.id, small);
  } catch { $("model").textContent = "not connected"; }
}

function closeSide() { document.body.classList.remove("side"); $("open-side").setAttribute("aria-expanded", "false"); }

// ---- wiring ----
function submit() {
  const text = $("prompt").value;
  if (!text.trim() || state.running) return;
  $("prompt").value = "";
  fitPrompt();
  ask(text);
}
$("ask").addEventListener("submit", (e) => { e.preventDefault(); submit(); });
$("prompt").addEventListener("input", fitPrompt);
$("prompt").addEventListener("keydown", (e) => {
  if (composing(e)) return;
  if (e.key === "Enter" && !e.shiftKey) { e.preventDefault(); submit(); }
  if (e.key === "ArrowUp" && !$("prompt").value && !state.running) {
    const index = state.chat.messages.findLastIndex((m) => m.role === "user");
    if (index >= 0) { e.preventDefault(); edit(index); }
  }
});
document.addEventListener("keydown", (e) => {
  if (composing(e)) return;
  if (e.key === "Escape" && state.running && !document.querySelector("dialog[open]")) stop();
  if ((e.ctrlKey || e.metaKey) && e.shiftKey && e.key.toLowerCase() === "o") { e.preventDefault(); fresh(); }
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === "k") { e.preventDefault(); document.body.classList.add("side"); $("search").focus(); }
});
$("stop").addEventListener("click", stop);
$("new").addEventListener("click", fresh);
$("search").addEventListener("input", showList);
$("export").addEventListener("click", exportAll);
$("import").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => { for (const file of $("file").files) importFile(file); $("file").value = ""; });
$("settings").addEventListener("click", showSettings);
$("settings-dialog").addEventListener("close", takeSettings);
$("help").addEventListener("click", () => $("help-dialog").showModal());
$("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(dark ? "light" : "dark");
  store.set("glyd.theme", document.documentElement.dataset.theme);
});
$("open-side").addEventListener("click", (e) => { e.stopPropagation(); document.body.classList.add("side"); $("open-side").setAttribute("aria-expanded", "true"); });
$("main").addEventListener("click", closeSide);
let lastTop = 0;
$("scroll").addEventListener("scroll", () => {
  const box = $("scroll");
  // only a reader goes up: sizes that change below must not look like it
  if (box.scrollTop < lastTop - 1) state.stick = false;
  if (box.scrollHeight - box.scrollTop - box.clientHeight < 40) state.stick = true;
  lastTop = box.scrollTop;
  $("down").hidden = state.stick;
});
new ResizeObserver(toBottom).observe($("log"));
$("down").addEventListener("click", () => { state.stick = true; toBottom(); });
addEventListener("storage", (e) => { // another tab wrote
  if (!e.key?.startsWith(PREFIX)) return;
  const chat = e.newValue && valid(store.get(e.key));
  if (chat && chat.id !== state.chat?.id) state.chats.set(chat.id, chat);
  else if (!e.newValue) state.chats.delete(e.key.slice(PREFIX.length));
  showList();
});

loadSettings();
setTheme(["light", "dark"].includes(store.get("glyd.theme")) ? store.get("glyd.theme") : "");
for (const chat of store.chats()) state.chats.set(chat.id, chat);
loadModel();
fresh();
