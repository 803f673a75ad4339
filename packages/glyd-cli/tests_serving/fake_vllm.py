# SPDX-FileCopyrightText: 2026 The glyd authors
# SPDX-License-Identifier: BUSL-1.1
"""Stands where vLLM would: takes its command line, answers /health and /v1/completions, fails as it is told to.

``FAKE_VLLM_FAILS`` is JSON: a list of ``{"unless": flag, "log": text}``. The first
whose flag (or flag and largest value, ``--max-model-len<=96``) is not on the
command line writes its text and ends with 1, as vLLM does.
"""

import http.server
import json
import os
import sys
import time

METRICS = b"""# HELP python_info Python platform information
# TYPE python_info gauge
python_info{version="3.12"} 1.0
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 2.0
"""


def met(condition, words):
    name, _, most = condition.partition("<=")
    if name not in words:
        return False
    return not most or float(words[words.index(name) + 1]) <= float(most)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path == "/metrics":
            self.answer(200, METRICS)
            return
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with open(os.environ["FAKE_VLLM_SEEN"], "a") as seen:
            seen.write(json.dumps({"body": body, "key": self.headers["Authorization"]}) + "\n")
        if body["prompt"][:1] == [400]:
            self.answer(400, json.dumps({"error": {"message": "this prompt is not taken"}}).encode())
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for i in range(body["max_tokens"]):
            token = 40 + (sum(body["prompt"]) + i) % 50
            choice = {"index": 0, "text": "", "token_ids": [token], "finish_reason": None}
            if body.get("logprobs") is not None:
                top = {f"token_id:{token + k}": -0.5 - k for k in range(body["logprobs"])}
                choice["logprobs"] = {"token_logprobs": [-0.5], "top_logprobs": [top], "tokens": [f"token_id:{token}"]}
            if not self.event(json.dumps({"choices": [choice]})):
                return
            if body["prompt"][:1] == [401]:
                os._exit(3)
            time.sleep(0.005)
        self.event("[DONE]")
        self.wfile.write(b"0\r\n\r\n")

    def event(self, text):
        data = f"data: {text}\n\n".encode()
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
        except OSError:
            with open(os.environ["FAKE_VLLM_SEEN"], "a") as seen:
                seen.write('{"gone": true}\n')
            return False
        return True

    def answer(self, code, data):
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main():
    words = sys.argv[1:]
    with open(os.environ["FAKE_VLLM_SEEN"], "a") as seen:
        seen.write(json.dumps({"words": words}) + "\n")
    for failure in json.loads(os.environ.get("FAKE_VLLM_FAILS", "[]")):
        if not met(failure["unless"], words):
            print(failure["log"], flush=True)
            sys.exit(1)
    port = int(words[words.index("--port") + 1])
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
