"""A stand-in for tritonserver that does as files in a folder tell it: `fake_server.py PORT FOLDER`.

One port for everything. FOLDER/health: HTTP status of a health check (200); FOLDER/silent: no
answer to it; FOLDER/running: value of the gauge (0); FOLDER/code: end at once with this exit code,
once it was asked; FOLDER/speech/1/model.py: what a child process runs, whose model it calls ready.
It appends its process id to FOLDER/starts when it listens, and ends with 0 on SIGTERM.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

FOLDER = Path(sys.argv[2])


def told(name: str, default: str = "") -> str:
    try:
        return (FOLDER / name).read_text()
    except FileNotFoundError:
        return default


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(200, f'chattts_running_requests{{version="1"}} {told("running", "0")}\n')

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if (FOLDER / "silent").exists():
            time.sleep(60)
        self._answer(int(told("health", "200")), "{}")
        if code := told("code"):
            threading.Timer(0.1, lambda: os._exit(int(code))).start()

    def _answer(self, status: int, body: str) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body.encode())


class Server(HTTPServer):
    allow_reuse_address = True


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
if told("speech/1/model.py"):
    subprocess.Popen([sys.executable, str(FOLDER / "speech" / "1" / "model.py")])
server = Server(("127.0.0.1", int(sys.argv[1])), Handler)
with (FOLDER / "starts").open("a") as starts:
    starts.write(f"{os.getpid()}\n")
server.serve_forever()
