# oracle_wandb_sync.py FOLDER - have "wandb sync" upload an offline run to a server
# of ours on this machine, which prints what has arrived: "run NAME",
# "row STEP NAME VALUE", "set NAME VALUE", "summary NAME VALUE", "file NAME KEYS",
# "exit CODE"
# SPDX-License-Identifier: LGPL-2.1-or-later
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def show_texts(kind, text):
    for name, value in json.loads(text).items():
        print(kind, name, value)


def show_config(text):
    for name, v in json.loads(text).items():
        print("set", name, v.get("value") if isinstance(v, dict) else v)


def show_stream(chunk):
    for name, part in chunk.get("files", {}).items():
        for line in part["content"]:
            if name == "wandb-history.jsonl":
                step = json.loads(line)["_step"]
                show_texts("row %d" % step, line)
            elif name == "wandb-summary.json":
                show_texts("summary", line)
    if chunk.get("complete"):
        print("exit", chunk["exitcode"])


class Server(BaseHTTPRequestHandler):
    def query(self, query, v):
        if "upsertBucket" in query:
            print("run", v["name"], v["project"], v.get("displayName"))
            show_config(v.get("config") or "{}")
            project = {"name": v["project"], "entity": {"name": "me"}}
            run = {"id": "1", "name": v["name"], "project": project,
                   "displayName": v.get("displayName"), "historyLineCount": 0}
            return {"upsertBucket": {"bucket": run, "inserted": True}}
        if "createRunFiles" in query:
            host = "http://%s:%d/upload/" % self.server.server_address
            files = [{"name": name, "uploadUrl": host + name}
                     for name in v["files"]]
            return {"createRunFiles": {"runID": "1", "uploadHeaders": [],
                                       "files": files}}
        return {}

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        reply = {}
        if self.path == "/graphql":
            request = json.loads(body)
            reply = {"data": self.query(request["query"],
                                        request.get("variables") or {})}
        elif self.path.endswith("/file_stream"):
            show_stream(json.loads(body))
        elif self.path == "/upload/wandb-metadata.json":
            print("file wandb-metadata.json", *sorted(json.loads(body)))
        sys.stdout.flush()
        text = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
with tempfile.TemporaryDirectory() as home:
    env = dict(os.environ, HOME=home, TMPDIR=home, WANDB_API_KEY="0" * 40,
               WANDB_BASE_URL="http://127.0.0.1:%d" % server.server_port,
               WANDB_ERROR_REPORTING="false", no_proxy="127.0.0.1")
    done = subprocess.run(
        [sys.executable, "-m", "wandb", "sync", "-p", "project", sys.argv[1]],
        env=env, cwd=home, timeout=120, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True)
for line in done.stdout.splitlines():
    print("said", line)
sys.exit(done.returncode)
