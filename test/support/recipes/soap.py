"""A SOAP 1.1 service with one operation, ListFunds: python3 soap.py PORT"""
import sys
import xml.etree.ElementTree as ET
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
FUNDS = "urn:example:funds"
OF = {"ACME": [("SUPER1", "Harbour View"), ("SUPER2", "Pacific Retirement")], "GLOBEX": [("GROWTH", "Globex Growth")]}


def envelope(content):
    return f'<soap:Envelope xmlns:soap="{SOAP}"><soap:Body>{content}</soap:Body></soap:Envelope>'


def fault(text):
    return 500, envelope(f"<soap:Fault><faultcode>soap:Client</faultcode><faultstring>{text}</faultstring></soap:Fault>")


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status, text = self.perform(body)
        payload = ('<?xml version="1.0" encoding="UTF-8"?>' + text).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def perform(self, body):
        if self.headers.get("SOAPAction") != f'"{FUNDS}#ListFunds"':
            return fault("unknown SOAPAction")
        if not self.headers.get("Content-Type", "").startswith("text/xml"):
            return fault("not text/xml")
        call = ET.fromstring(body).find(f"{{{SOAP}}}Body/{{{FUNDS}}}ListFunds")
        if call is None:
            return fault("no ListFunds")
        business = call.findtext(f"{{{FUNDS}}}Business", "")
        if business not in OF:
            return fault(f"no such business: {business}")
        funds = "".join(f'<Fund code="{code}"><Name>{name}</Name></Fund>' for code, name in OF[business])
        return 200, envelope(f'<ListFundsResponse xmlns="{FUNDS}">{funds}</ListFundsResponse>')

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
