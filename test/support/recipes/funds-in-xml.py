"""A service of older days: XML with attributes and a namespace, in ISO-8859-1. python3 funds-in-xml.py PORT"""
import sys
import xml.etree.ElementTree as ET
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from xml.sax.saxutils import escape

NAMESPACE = "urn:example:funds"
FUNDS = """<?xml version="1.0" encoding="ISO-8859-1"?>
<!-- made by the nightly job -->
<Funds xmlns="urn:example:funds" asOf="2026-06-30">
  <Fund code="SUPER1" open="true"><Name>Caf\u00e9 Super &amp; Co</Name><Members>12</Members></Fund>
</Funds>
"""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer(200, FUNDS if self.path == "/funds/ACME.xml" else "<Funds xmlns='urn:example:funds'/>")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            fund = ET.fromstring(body)
        except ET.ParseError as error:
            return self.answer(400, f"<Error><Code>NOT_XML</Code><Text>{escape(str(error))}</Text></Error>")
        if fund.tag != f"{{{NAMESPACE}}}Fund" or not fund.get("code"):
            return self.answer(422, "<Error><Code>NO_FUND</Code><Text>A Fund with a code is expected</Text></Error>")
        name = fund.findtext(f"{{{NAMESPACE}}}Name")
        self.answer(201, f'<Fund xmlns="{NAMESPACE}" code="{fund.get("code")}"><Name>{escape(name)}</Name></Fund>')

    def answer(self, status, text):
        body = text.encode("iso-8859-1")
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
