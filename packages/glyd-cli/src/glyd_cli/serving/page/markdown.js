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
const MAX_LINES = 100; // of a paragraph
const MAX_INLINE = 20000; // longer paragraphs are shown as they are: patterns must not cost more than linear time

// Text that grows by the megabyte is kept in parts, each laid out by itself and only near the window: a part ends
// where `isFull` says so of its text. The same text makes the same parts, however it came.
class Parts {
  constructor(parent, isFull) {
    this.parent = parent;
    this.isFull = isFull;
    this.text = ""; // of the last part
    this.last = null; // the element of the last part, null while there is one text alone
  }

  append(text) {
    let at = 0;
    while (at < text.length) {
      const end = this.isFull(this.text, text, at);
      const more = text.slice(at, end < 0 ? text.length : end);
      (this.last ?? this.parent).append(more);
      this.text += more;
      if (end < 0) return;
      at = end;
      this.last ??= this.wrapped();
      this.last = el("span", { class: "part" });
      this.text = "";
      this.parent.append(this.last);
    }
  }

  wrapped() {
    const first = el("span", { class: "part" }, ...this.parent.childNodes);
    this.parent.append(first);
    return first;
  }
}
const PART_LINES = 64;
// code: a part ends after 64 lines
const codeParts = (code) => {
  let n = 0;
  return new Parts(code, (held, text, at) => {
    if (!held) n = 0;
    for (let end = text.indexOf("\n", at); end >= 0; end = text.indexOf("\n", end + 1)) if (++n === PART_LINES) return end + 1;
    return -1;
  });
};
// a very long line: a part ends behind the first space after 4,000 characters
const lineParts = (line) => new Parts(line, (held, text, at) => {
  const space = text.indexOf(" ", Math.max(at, at + 4000 - held.length));
  return space < 0 ? -1 : space + 1;
});

function inline(parent, text, depth = 0) {
  if (text.length > MAX_INLINE && depth === 0) { lineParts(parent).append(text); return; }
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
  text.split("\n").forEach((line, i) => {
    if (i) parent.append(el("br"));
    if (line.length > MAX_INLINE) { const long = el("span"); parent.append(long); inline(long, line); }
    else inline(parent, line);
  });
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`]*)$/;
const HEAD = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_LINE = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));
const opens = (line) => FENCE.test(line) || HEAD.test(line) || RULE.test(line) || ITEM.test(line) || QUOTE.test(line);

// Split text into blocks: {kind, text, ...}. Only the last block can change when text is appended. Long paragraphs
// become several, so that the open one stays short; more: a paragraph goes on.
function blocks(text, more = false) {
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
      while (i < rows.length && rows[i].trim() && !opens(rows[i]) && i - start < MAX_LINES) i++;
      out.push({ kind: "text", text: rows.slice(start, i).join("\n"), more });
      more = i - start === MAX_LINES && i < rows.length && rows[i].trim() !== "" && !opens(rows[i]);
      out[out.length - 1].start = start;
      continue;
    }
    out[out.length - 1].start = start;
    more = false;
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

function tableRow(line, tag) {
  const row = el("tr");
  for (const text of cells(line)) { const cell = el(tag); inline(cell, text); row.append(cell); }
  return row;
}

function blockNode(block, copy, depth = 0) {
  switch (block.kind) {
    case "code": {
      const code = el("code");
      codeParts(code).append(block.text);
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
      return el("div", { class: "table", tabIndex: 0 }, el("table", {}, el("thead", {}, tableRow(head, "th")), el("tbody", {}, ...rest.map((r) => tableRow(r, "td")))));
    }
    default: { const p = el("p", block.more ? { class: "more" } : {}); lines(p, block.text); return p; }
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
    this.plain = null; // parts of a line too long for markup
    this.table = null; // open table: {text, node}
    this.more = false; // whether the first open block goes on with a paragraph
  }

  push(piece) {
    this.text += piece;
    while (piece && this.fence) piece = this.pushCode(piece);
    if (!piece) return;
    if (this.plain && !piece.includes("\n")) { this.plain.append(piece); return; }
    this.plain = null;
    this.render();
  }

  // Return the node of a block; a table that has grown keeps its node, and all rows but the last.
  node(block) {
    if (block.kind !== "table") return blockNode(block, this.copy);
    const old = this.table;
    const kept = old ? old.text.lastIndexOf("\n") + 1 : 0;
    const grown = kept && block.text.startsWith(old.text.slice(0, kept)) && old.text.split("\n", 3).length > 2;
    const node = grown ? old.node : blockNode(block, this.copy);
    if (grown) {
      const body = node.querySelector("tbody");
      body.lastChild?.remove();
      body.append(...block.text.slice(kept).split("\n").map((line) => tableRow(line, "td")));
    }
    this.table = { text: block.text, node };
    return node;
  }

  // Append to the open fence; return what comes after its end.
  pushCode(piece) {
    const { close, block, code, parts } = this.fence;
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
        parts.append(shown);
        this.closeFence();
        this.more = false;
        this.nodes = [];
        this.done = this.text.length - (piece.length - at);
        return piece.slice(at);
      }
      shown += `${line.slice(this.fence.shown)}\n`;
      this.fence.line = "";
      this.fence.shown = 0;
    }
    block.text += shown;
    parts.append(shown);
    return "";
  }

  // What is shown is complete but for the last line's end, which is not part of the code.
  closeFence() {
    const { block, code } = this.fence;
    block.text = block.text.replace(/\n$/, "");
    code.replaceChildren();
    codeParts(code).append(block.text);
    this.fence = null;
  }

  render() {
    const open = this.text.slice(this.done);
    const found = blocks(open, this.more);
    if (!found.length) return;
    const rows = open.split("\n");
    const last = found[found.length - 1];
    // an unfinished row looks like a block of its own, and may yet belong to the block before
    const sure = Math.max(found.length - 2, 0);
    const made = found.map((block) => this.node(block));
    for (const node of this.nodes) if (!made.includes(node)) node.remove();
    let after = null; // from the last to the first: what stays where it is, is laid out no more
    for (const node of [...made].reverse()) {
      if (node.parentNode !== this.parent || node.nextSibling !== after) this.parent.insertBefore(node, after);
      after = node;
    }
    if (last.kind !== "table" && found[found.length - 2]?.kind !== "table") this.table = null;
    this.nodes = made.slice(sure);
    this.more = found[sure].more ?? false;
    this.done += rows.slice(0, found[sure].start).reduce((n, r) => n + r.length + 1, 0);
    const line = last.text.slice(last.text.lastIndexOf("\n") + 1);
    if (last.kind === "text" && line.length > MAX_INLINE) {
      const long = made[made.length - 1].lastChild;
      long.replaceChildren();
      this.plain = lineParts(long);
      this.plain.append(line);
    }
    const opening = FENCE.exec(rows[last.start]);
    if (last.kind === "code" && opening && rows.length > last.start + 1) {
      const close = new RegExp(`^ {0,3}\\${opening[1][0]}{${opening[1].length},}\\s*$`);
      const inner = rows.slice(last.start + 1);
      if (!inner.slice(0, -1).some((r) => close.test(r))) {
        const code = made[made.length - 1].querySelector("code");
        code.textContent = last.text = "";
        this.fence = { close, block: last, code, parts: codeParts(code), line: "", shown: 0 };
        this.pushCode(inner.join("\n"));
      }
    }
  }

  // The text is complete: a fence that never closed is shown as it is.
  end() {
    if (!this.fence) return;
    const { close, block, parts, line, shown } = this.fence;
    if (close.test(line)) { this.closeFence(); return; }
    block.text += line.slice(shown);
    parts.append(line.slice(shown));
    this.fence = null;
  }
}
