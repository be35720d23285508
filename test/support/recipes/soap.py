"""A SOAP 1.1 service with the operations ListFunds and GetFund: python3 soap.py PORT"""
import sys
import xml.etree.ElementTree as ET
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
FUNDS = "urn:example:funds"
OF = {"ACME": [("SUPER1", "Harbour View")], "GLOBEX": [("GROWTH", "Globex Growth")]}


def envelope(content):
    return f'<soap:Envelope xmlns:soap="{SOAP}"><soap:Body>{content}</soap:Body></soap:Envelope>'


def fault(code, text):
    return 500, envelope(f"<soap:Fault><faultcode>{code}</faultcode><faultstring>{text}</faultstring></soap:Fault>")


def element_of(fund):
    return f"<Fund><Code>{fund[0]}</Code><Name>{fund[1]}</Name></Fund>"


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
        operation = ET.fromstring(body).find(f"{{{SOAP}}}Body/*")
        name = operation.tag.removeprefix(f"{{{FUNDS}}}")
        if self.headers.get("SOAPAction") != f'"{FUNDS}#{name}"':
            return fault("soap:Client", "the SOAPAction is another one")
        funds = OF.get(operation.findtext(f"{{{FUNDS}}}Business"), [])
        if name == "GetFund":
            code = operation.findtext(f"{{{FUNDS}}}Code")
            funds = [fund for fund in funds if fund[0] == code]
            if not funds:
                return fault("soap:Client.NotFound", "There is no such fund")
        content = "".join(element_of(fund) for fund in funds)
        return 200, envelope(f'<{name}Response xmlns="{FUNDS}">{content}</{name}Response>')

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
