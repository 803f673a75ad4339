// SPDX-FileCopyrightText: 2026 The glyd authors
// SPDX-License-Identifier: BUSL-1.1
// Markdown as DOM nodes. Text only ever becomes text nodes: nothing a model writes is parsed as HTML.
"use strict";

const el = (tag, props = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};

const SAFE_LINK = /^(https?:\/\/|mailto:)/i;
const INLINE = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]*?\S)\*\*|(?<![\w*])\*(?=[^\s*])([^*\n]*[^\s*])\*(?![\w*])|(?<!\w)_(?=\S)([^_\n]*\S)_(?!\w)|\[([^\]\n]*)\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)|(https?:\/\/[^\s<>()]*[^\s<>().,;:!?'"])|\\([\\`*_{}[\]()#+\-.!<>|~])/g;
const MAX_INLINE = 20000; // longer paragraphs are shown as they are: patterns must not cost more than linear time

function inline(parent, text, depth = 0) {
  if (text.length > MAX_INLINE || depth > 4) { parent.append(text); return; }
  let at = 0;
  for (const m of text.matchAll(INLINE)) {
    if (m.index > at) parent.append(text.slice(at, m.index));
    at = m.index + m[0].length;
    if (m[2] !== undefined) parent.append(el("code", {}, m[2].replace(/^ (.*) $/, "$1")));
    else if (m[3] !== undefined) { const b = el("strong"); inline(b, m[3], depth + 1); parent.append(b); }
    else if (m[4] !== undefined || m[5] !== undefined) { const i = el("em"); inline(i, m[4] ?? m[5], depth + 1); parent.append(i); }
    else if (m[7] !== undefined) {
      if (SAFE_LINK.test(m[7])) parent.append(el("a", { href: m[7], rel: "noopener noreferrer", target: "_blank" }, m[6] || m[7]));
      else parent.append(m[0]);
    }
    else if (m[8] !== undefined) parent.append(el("a", { href: m[8], rel: "noopener noreferrer", target: "_blank" }, m[8]));
    else parent.append(m[9]);
  }
  if (at < text.length) parent.append(text.slice(at));
}

function lines(parent, text) {
  text.split("\n").forEach((line, i) => { if (i) parent.append(el("br")); inline(parent, line); });
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEAD = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_LINE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));
const opens = (line) => FENCE.test(line) || HEAD.test(line) || RULE.test(line) || ITEM.test(line) || QUOTE.test(line);

// Split text into blocks: {kind, text, ...}. Only the last block can change when text is appended.
function blocks(text) {
  const rows = text.split("\n");
  const out = [];
  let i = 0;
  while (i < rows.length) {
    const row = rows[i];
    const start = i;
    let m;
    if (!row.trim()) { i++; continue; }
    if ((m = FENCE.exec(row))) {
      const fence = m[1];
      const close = new RegExp(`^ {0,3}\\${fence[0]}{${fence.length},}\\s*$`);
      i++;
      while (i < rows.length && !close.test(rows[i])) i++;
      out.push({ kind: "code", language: m[2].trim().split(/\s/)[0], text: rows.slice(start + 1, i).join("\n") });
      i++;
    } else if ((m = HEAD.exec(row))) { out.push({ kind: "head", level: m[1].length, text: m[2] }); i++; }
    else if (RULE.test(row)) { out.push({ kind: "rule", text: "" }); i++; }
    else if (QUOTE.test(row)) {
      const inner = [];
      while (i < rows.length && (m = QUOTE.exec(rows[i]))) { inner.push(m[1]); i++; }
      out.push({ kind: "quote", text: inner.join("\n") });
    } else if (ITEM.test(row)) {
      const indent = ITEM.exec(row)[1].length;
      // long lists become several, so that the open one stays short
      const ordered = /\d/.test(ITEM.exec(row)[2]);
      const ends = () => {
        const m = ITEM.exec(rows[i]);
        return m && m[1].length <= indent && (i - start > 40 || /\d/.test(m[2]) !== ordered);
      };
      while (i < rows.length && !ends() && (ITEM.test(rows[i]) || /^\s{2,}\S/.test(rows[i]) || (!rows[i].trim() && i + 1 < rows.length && (ITEM.test(rows[i + 1]) || /^\s{2,}\S/.test(rows[i + 1]))))) i++;
      out.push({ kind: "list", text: rows.slice(start, i).join("\n") });
    } else if (row.includes("|") && i + 1 < rows.length && TABLE_LINE.test(rows[i + 1]) && rows[i + 1].includes("-") && cells(row).length === cells(rows[i + 1]).length) {
      i += 2;
      while (i < rows.length && rows[i].includes("|") && rows[i].trim()) i++;
      out.push({ kind: "table", text: rows.slice(start, i).join("\n") });
    } else {
      i++;
      while (i < rows.length && rows[i].trim() && !opens(rows[i])) i++;
      out.push({ kind: "text", text: rows.slice(start, i).join("\n") });
    }
    out[out.length - 1].start = start;
  }
  return out;
}

function list(text, depth = 0) {
  const rows = text.split("\n");
  const first = ITEM.exec(rows[0]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const node = el(ordered ? "ol" : "ul");
  if (ordered && parseInt(first[2], 10) !== 1) node.start = parseInt(first[2], 10);
  let i = 0;
  while (i < rows.length) {
    const m = ITEM.exec(rows[i]);
    if (!m) { i++; continue; }
    const item = el("li");
    const inner = [m[3]];
    i++;
    let j = i;
    while (j < rows.length) {
      const next = ITEM.exec(rows[j]);
      if (next && next[1].length <= indent) break;
      if (next) break;
      inner.push(rows[j].trim());
      j++;
    }
    lines(item, inner.join("\n").trim());
    let k = j;
    while (k < rows.length) {
      const next = ITEM.exec(rows[k]);
      if (next && next[1].length <= indent) break;
      k++;
    }
    if (k > j && depth < 8) item.append(list(rows.slice(j, k).join("\n"), depth + 1));
    node.append(item);
    i = Math.max(k, j);
  }
  return node;
}

function blockNode(block, copy, depth = 0) {
  switch (block.kind) {
    case "code": {
      const code = el("code", {}, block.text);
      const button = el("button", { type: "button", onclick: () => copy(block.text, button) }, "Copy");
      return el("div", { class: "code" }, el("div", { class: "bar" }, el("span", {}, block.language), button), el("pre", { tabIndex: 0 }, code));
    }
    case "head": { const h = el(`h${Math.min(block.level, 4)}`); inline(h, block.text); return h; }
    case "rule": return el("hr");
    case "quote": {
      const q = el("blockquote");
      if (depth > 4) q.append(block.text);
      else q.append(...blocks(block.text).map((b) => blockNode(b, copy, depth + 1)));
      return q;
    }
    case "list": return list(block.text);
    case "table": {
      const [head, , ...rest] = block.text.split("\n");
      const row = (line, tag) => { const tr = el("tr"); for (const c of cells(line)) { const cell = el(tag); inline(cell, c); tr.append(cell); } return tr; };
      return el("div", { class: "table", tabIndex: 0 }, el("table", {}, el("thead", {}, row(head, "th")), el("tbody", {}, ...rest.map((r) => row(r, "td")))));
    }
    default: { const p = el("p"); lines(p, block.text); return p; }
  }
}

// Shows a growing text. Finished blocks are made once, only the last one anew; inside an open fence or a very long
// line, text is appended to the node that is there. So the cost of a piece does not grow with the answer.
class Growing {
  constructor(parent, copy) {
    this.parent = parent;
    this.copy = copy;
    this.text = "";
    this.done = 0; // characters before the open block
    this.nodes = []; // of the open blocks
    this.fence = null; // open fence: {close, block, code, line}
    this.plain = null; // text node of a line too long for markup
  }

  push(piece) {
    this.text += piece;
    while (piece && this.fence) piece = this.pushCode(piece);
    if (!piece) return;
    if (this.plain && !piece.includes("\n")) { this.plain.appendData(piece); return; }
    this.plain = null;
    this.render();
  }

  // Append to the open fence; return what comes after its end.
  pushCode(piece) {
    const { close, block, code } = this.fence;
    let at = 0;
    let shown = "";
    while (at < piece.length) {
      const end = piece.indexOf("\n", at);
      const part = end < 0 ? piece.slice(at) : piece.slice(at, end);
      this.fence.line += part;
      const line = this.fence.line;
      if (end < 0) {
        // a line that may become the closing fence is held back
        if (!/^ {0,3}[`~]*\s*$/.test(line)) { shown += line.slice(this.fence.shown); this.fence.shown = line.length; }
        at = piece.length;
        break;
      }
      at = end + 1;
      if (close.test(line)) {
        block.text = block.text + shown;
        code.append(shown);
        block.text = block.text.replace(/\n$/, "");
        code.textContent = block.text;
        this.fence = null;
        this.nodes = [];
        this.done = this.text.length - (piece.length - at);
        return piece.slice(at);
      }
      shown += `${line.slice(this.fence.shown)}\n`;
      this.fence.line = "";
      this.fence.shown = 0;
    }
    block.text += shown;
    code.append(shown);
    return "";
  }

  render() {
    const open = this.text.slice(this.done);
    const found = blocks(open);
    if (!found.length) return;
    for (const node of this.nodes) node.remove();
    const rows = open.split("\n");
    const last = found[found.length - 1];
    // an unfinished row looks like a block of its own, and may yet belong to the block before
    const sure = Math.max(found.length - 2, 0);
    const made = found.map((block) => blockNode(block, this.copy));
    this.parent.append(...made);
    this.nodes = made.slice(sure);
    this.done += rows.slice(0, found[sure].start).reduce((n, r) => n + r.length + 1, 0);
    if (last.kind === "text" && last.text.length > MAX_INLINE) this.plain = made[made.length - 1].lastChild;
    const opening = FENCE.exec(rows[last.start]);
    if (last.kind === "code" && opening && rows.length > last.start + 1) {
      const close = new RegExp(`^ {0,3}\\${opening[1][0]}{${opening[1].length},}\\s*$`);
      const inner = rows.slice(last.start + 1);
      if (!inner.slice(0, -1).some((r) => close.test(r))) {
        const code = made[made.length - 1].querySelector("code");
        code.textContent = last.text = "";
        this.fence = { close, block: last, code, line: "", shown: 0 };
        this.pushCode(inner.join("\n"));
      }
    }
  }

  // The text is complete: a fence that never closed is shown as it is.
  end() {
    if (!this.fence) return;
    const { close, block, code, line, shown } = this.fence;
    if (close.test(line)) block.text = block.text.replace(/\n$/, "");
    else block.text += line.slice(shown);
    code.textContent = block.text;
    this.fence = null;
  }
}
