#!/usr/bin/env python3
# s3_server.py - a small S3 server that can fail in many ways
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Serves each folder of DIR as a bucket, on a port of its own of 127.0.0.1 or A.

    s3_server.py DIR [--page N] [--delay MS] [--region NAME] [--port N]
                 [--address A] [--swift]

DIR/port gets the port, DIR/most the number of objects that were delayed at the
same time, DIR/log a line per request: verdict, method, status, path.  Requests
must be signed (AWS Signature Version 4, computed here from the description in
AWS's manual; with --swift errors are those of OpenStack Swift) except for those to buckets whose names begin with "public", to
the metadata service of instances, which is at /latest/, and to that of
containers, which is at /container/ and expects a token.

DIR/faults has lines "REGEX KIND COUNT": the next COUNT requests whose path and
query match (COUNT 0: all of them) fail: KIND is a status (500), "reset" (the
connection), "cut" (half of the body), "stall" (no more bytes), "short" (fewer
bytes, and a Content-Length that fits), "long" (more), "html" (a page with status
200), "changed" (another ETag), "moved" (301 to a secret address), "redirected"
(301 with another region), "drip" (a byte at a time), "expired" (403), "whole"
(the Range of a request is not heeded), "wrongrange" (another part is sent).  It
is read again whenever it changes.
"""
import argparse
import hashlib
import hmac
import http.server
import json
import os
import re
import socket
import sys
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

KEYS = {  # access key: (secret, session token)
    "AKIDTEST": ("TestSecretKey/wJalrXUtnFEMI+K7MDENG", None),
    "ASIATEST": ("SessionSecret/bPxRfiCYEXAMPLEKEY+x", "SessionToken+/AAAA=="),
    "ASIAROLE": ("RoleSecret/9zQx+mLw", "RoleToken/BBBB+=="),
    "ASIATASK": ("TaskSecret/3kPw+vNe", "TaskToken/CCCC+=="),
}


def encode(text, keep=""):
    return urllib.parse.quote(text, safe="-_.~" + keep)


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Faults:
    def __init__(self, path):
        self.path, self.stamp, self.rows = path, None, []
        self.lock = threading.Lock()

    def next(self, path):
        with self.lock:
            try:
                stamp = os.stat(self.path).st_mtime_ns
            except FileNotFoundError:
                return None
            if stamp != self.stamp:
                self.stamp = stamp
                with open(self.path) as f:
                    rows = [line.split() for line in f if line.strip()]
                self.rows = [[r, k, int(n) or -1] for r, k, n in rows]
            for row in self.rows:
                if row[2] and re.search(row[0], path):
                    row[2] -= row[2] > 0
                    return row[1]
        return None


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    now = most = 0

    def enter(self):
        with self.lock:
            self.now += 1
            if self.now > self.most:
                self.most = self.now
                with open(os.path.join(self.dir, "most"), "w") as f:
                    f.write(str(self.most))

    def leave(self):
        with self.lock:
            self.now -= 1


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    # ---- answers ----

    def note(self, status):
        with self.server.lock:
            self.server.log.write(
                f"{self.verdict} {self.command} {status} {self.path} "
                f"{self.headers.get('Range') or '-'}\n")
            self.server.log.flush()

    def answer(self, status, body=b"", kind="application/xml", head=()):
        self.note(status)
        self.send_response(status)
        for name, value in head:
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status, code, head=(), more=""):
        body = (f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}'
                f"</Code><Message>no</Message>{more}</Error>")
        self.answer(status, body.encode(), head=head)

    # ---- signatures ----

    def check_signature(self):
        """A verdict: "signed", "unsigned", or what is wrong."""
        given = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/s3/"
            r"aws4_request, ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})",
            self.headers.get("Authorization") or "")
        if not given:
            return ("malformed" if self.headers.get("Authorization")
                    else "unsigned")
        key, day, region, names, signature = given.groups()
        if key not in KEYS:
            return "unknown-key"
        secret, token = KEYS[key]
        if self.headers.get("x-amz-security-token") != token:
            return "wrong-token"
        if region != self.server.region:
            return "wrong-region"
        names = names.split(";")
        must = {"host", "x-amz-date", "x-amz-content-sha256"}
        must |= {"x-amz-security-token"} if token else set()
        if names != sorted(names) or not must <= set(names):
            return "header-not-signed"
        content = self.headers["x-amz-content-sha256"]
        if content not in ("UNSIGNED-PAYLOAD", hashlib.sha256().hexdigest()):
            return "wrong-content"
        path, _, query = self.path.partition("?")
        if path != encode(urllib.parse.unquote(path), "/"):
            return "path-not-canonical"
        pairs = [p.partition("=")[::2] for p in query.split("&") if query]
        pairs = sorted((encode(urllib.parse.unquote(a)),
                        encode(urllib.parse.unquote(b))) for a, b in pairs)
        headers = "".join(
            f"{n}:{' '.join(self.headers[n].split())}\n" for n in names)
        request = "\n".join([self.command, path,
                             "&".join(f"{a}={b}" for a, b in pairs),
                             headers, ";".join(names), content])
        date = self.headers["x-amz-date"]
        scope = f"{day}/{region}/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", date, scope,
                          hashlib.sha256(request.encode()).hexdigest()])
        k = ("AWS4" + secret).encode()
        for part in (day, region, "s3", "aws4_request"):
            k = sign(k, part)
        if not date.startswith(day):
            return "wrong-day"
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        if abs(int(date[9:15]) - int(now[9:15])) > 1500 and date[:8] == now[:8]:
            return "skewed"
        if not hmac.compare_digest(sign(k, text).hex(), signature):
            return "wrong-signature"
        return "signed"

    # ---- requests ----

    def do_PUT(self):
        self.verdict = "metadata"
        if self.path == "/latest/api/token" and self.headers.get(
                "X-aws-ec2-metadata-token-ttl-seconds"):
            self.answer(200, b"MetadataToken", "text/plain")
        else:
            self.refuse(405, "MethodNotAllowed")

    def metadata(self):
        self.verdict = "metadata"
        roles = "/latest/meta-data/iam/security-credentials/"
        if self.headers.get("X-aws-ec2-metadata-token") != "MetadataToken":
            self.answer(401)
        elif self.path == roles:
            self.answer(200, b"the-role", "text/plain")
        elif self.path == roles + "the-role":
            self.answer_role("ASIAROLE")
        else:
            self.answer(404)

    def answer_role(self, key):
        secret, token = KEYS[key]
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ",
                            time.gmtime(time.time() + 3600))
        self.answer(200, json.dumps({
            "Code": "Success", "AccessKeyId": key, "Token": token,
            "SecretAccessKey": secret, "Expiration": end}).encode())

    def container(self):
        self.verdict = "container"
        if self.headers.get("Authorization") == "Container-Token":
            self.answer_role("ASIATASK")
        else:
            self.answer(401)

    def do_GET(self):
        if self.path.startswith("/latest/"):
            self.metadata()
            return
        if self.path == "/container/role":
            self.container()
            return
        listing = "list-type=" in self.path
        if not listing:
            self.server.enter()
        time.sleep(self.server.delay)
        if not listing:
            self.server.leave()
        self.get_object()

    def get_object(self):
        path, _, query = self.path.partition("?")
        bucket, _, key = urllib.parse.unquote(path)[1:].partition("/")
        self.verdict = self.check_signature()
        self.fault = self.server.faults.next(urllib.parse.unquote(self.path))
        if self.early_fault():
            return
        if self.verdict != "signed" and not (
                self.verdict == "unsigned" and bucket.startswith("public")):
            code = {"wrong-region": "AuthorizationHeaderMalformed",
                    "unsigned": "AccessDenied",
                    "skewed": "RequestTimeTooSkewed"}
            if self.verdict == "wrong-region" and self.server.swift:
                self.refuse(400, code[self.verdict], more=(
                    f"<Region>{self.server.region}</Region>"))
            elif self.verdict == "wrong-region":
                self.refuse(400, code[self.verdict],
                            [("x-amz-bucket-region", self.server.region)])
            elif self.verdict == "unsigned" and self.server.swift:
                self.answer(412, b"Bad URL", "text/plain")
            else:
                self.refuse(403, code.get(self.verdict,
                                          "SignatureDoesNotMatch"))
            return
        folder = os.path.join(self.server.dir, bucket)
        if not bucket or "/" in bucket or not os.path.isdir(folder):
            self.refuse(404, "NoSuchBucket")
        elif not key:
            self.list(folder, dict(urllib.parse.parse_qsl(
                query, keep_blank_values=True)))
        else:
            self.get(os.path.join(folder, key))

    def early_fault(self):
        fault = self.fault
        if fault == "reset":
            self.note("reset")
            self.connection.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER,
                b"\x01\x00\x00\x00\x00\x00\x00\x00")
            self.connection.close()
            self.close_connection = True
        elif fault == "moved":
            self.answer(301, head=[(
                "Location", "http://elsewhere.example/x?X-Amz-Signature=SECRET")])
        elif fault == "redirected":
            self.refuse(301, "PermanentRedirect",
                        [("x-amz-bucket-region", self.server.region)])
        elif fault == "expired":
            self.refuse(403, "ExpiredToken")
        elif fault == "html":
            self.answer(200, b"<html><body>Please log in</body></html>",
                        "text/html; charset=utf-8")
        elif fault and fault.isdigit():
            self.refuse(int(fault), "SlowDown" if fault == "503"
                        else "InternalError", [("Retry-After", "0")])
        else:
            return False
        return True

    def keys(self, folder):
        for root, _, files in os.walk(folder):
            for name in files:
                path = os.path.join(root, name)
                yield os.path.relpath(path, folder), path

    def list(self, folder, query):
        prefix, after = query.get("prefix", ""), query.get(
            "continuation-token", "")
        delimiter = query.get("delimiter")
        entries = {}
        for key, path in self.keys(folder):
            if not key.startswith(prefix):
                continue
            cut = key.find(delimiter, len(prefix)) if delimiter else -1
            name = key if cut < 0 else key[:cut + 1]
            entries[name.encode()] = path if cut < 0 else None
        names = [n for n in sorted(entries) if n.hex() > after]
        page = names[:self.server.page]
        quote = (urllib.parse.quote_plus
                 if query.get("encoding-type") == "url" else escape)
        out = ['<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult '
               'xmlns="http://s3.amazonaws.com/doc/2006-03-01/">',
               f"<Prefix>{quote(prefix)}</Prefix>"]
        for n in page:
            name = escape(quote(n.decode()))
            if entries[n] is None:
                out.append(f"<CommonPrefixes><Prefix>{name}</Prefix>"
                           "</CommonPrefixes>")
                continue
            size, etag = os.path.getsize(entries[n]), self.etag(entries[n])
            out.append(f"<Contents><Key>{name}</Key><ETag>{escape(etag)}"
                       f"</ETag><Size>{size}</Size>"
                       "<StorageClass>STANDARD</StorageClass></Contents>")
        if len(names) > len(page):
            out.append("<IsTruncated>true</IsTruncated><NextContinuationToken>"
                       f"{page[-1].hex()}</NextContinuationToken>")
        else:
            out.append("<IsTruncated>false</IsTruncated>")
        self.answer(200, "".join(out + ["</ListBucketResult>"]).encode())

    def etag(self, path):
        with open(path, "rb") as f:
            return '"' + hashlib.md5(f.read()).hexdigest() + '"'

    def get(self, path):
        if not os.path.isfile(path):
            self.refuse(404, "NoSuchKey")
            return
        with open(path, "rb") as f:
            body = f.read()
        etag = self.etag(path) if self.fault != "changed" else '"0"'
        wanted = self.headers.get("If-Match")
        if wanted and wanted != etag:
            self.refuse(412, "PreconditionFailed", [("ETag", etag)])
            return
        head, status = [("ETag", etag)], 200
        span = re.fullmatch(r"bytes=(\d+)-(\d+)",
                            self.headers.get("Range") or "")
        if span and self.fault != "whole":
            a, b = int(span[1]), min(int(span[2]), len(body) - 1)
            if self.fault == "wrongrange":
                a += 1
            head.append(("Content-Range", f"bytes {a}-{b}/{len(body)}"))
            status, body = 206, body[a:b + 1]
        if self.fault == "short":
            body = body[:len(body) // 2]
        elif self.fault == "long":
            body += b"x"
        if self.fault in ("cut", "stall", "drip"):
            self.slowly(status, head, body)
        else:
            self.answer(status, body, "image/jpeg", head)

    def slowly(self, status, head, body):
        self.note(self.fault)
        self.send_response(status)
        for name, value in head:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.fault == "drip":
            for i in range(0, len(body), 64):
                self.wfile.write(body[i:i + 64])
                time.sleep(0.001)
            return
        self.wfile.write(body[:len(body) // 2])
        self.wfile.flush()
        if self.fault == "stall":
            time.sleep(60)
        self.close_connection = True


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--page", type=int, default=1000)
    p.add_argument("--delay", type=float, default=0)
    p.add_argument("--region", default="us-east-1")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--address", default="127.0.0.1")
    p.add_argument("--swift", action="store_true")
    a = p.parse_args()
    s = Server((a.address, a.port), Handler)
    s.dir, s.page, s.region = a.dir, a.page, a.region
    s.delay, s.swift = a.delay / 1000, a.swift
    s.lock = threading.Lock()
    s.faults = Faults(os.path.join(a.dir, "faults"))
    s.log = open(os.path.join(a.dir, "log"), "a")
    name = os.path.join(a.dir, "port")
    with open(name + ".new", "w") as f:
        f.write(str(s.server_port))
    os.rename(name + ".new", name)
    try:
        s.serve_forever()
    except KeyboardInterrupt:
        sys.exit(0)


main()
