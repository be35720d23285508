"""A service that tells changes of a business's funds as server-sent events: python3 event-source.py PORT"""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

EVENTS = ['{"Fund":"SUPER1","Status":"Open"}', '{"Fund":"SUPER2","Status":"Open"}', '{"Fund":"SUPER1","Status":"Closed"}']


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        seen = int(self.headers.get("Last-Event-ID", 0))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for number, event in enumerate(EVENTS, 1):
            if number > seen:
                self.wfile.write(f"id: {number}\nevent: fund-changed\ndata: {event}\n\n".encode())
                self.wfile.flush()
        self.close_connection = True

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
