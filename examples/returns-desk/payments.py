"""Stands for the payment system: sends no money back and gives a receipt. Run it with `python3 payments.py`."""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

ADDRESS = ("127.0.0.1", 8099)


class Payments(BaseHTTPRequestHandler):
    def body(self):
        if self.headers.get("transfer-encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def do_POST(self):
        asked = json.loads(self.body() or "{}")
        answer = json.dumps({"receipt": f"R-{asked.get('order', 'unknown')}"}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


if __name__ == "__main__":
    print(f"the payment system listens at http://{ADDRESS[0]}:{ADDRESS[1]}")
    HTTPServer(ADDRESS, Payments).serve_forever()
