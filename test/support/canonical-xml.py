"""Canonical XML 2.0 of documents by Python's own parser (expat), without comments and processing instructions.

Reads a JSON list of documents in Base64; writes a JSON list of their canonical texts, null for what cannot be parsed.
"""
import base64
import io
import json
import sys
import xml.etree.ElementTree as ElementTree


class WithoutInstructions(ElementTree.C14NWriterTarget):
    def pi(self, target, data):
        pass

    def comment(self, data):
        pass


def canonical(document):
    text = io.StringIO()
    parser = ElementTree.XMLParser(target=WithoutInstructions(text.write))
    try:
        parser.feed(document)
        parser.close()
    except (ElementTree.ParseError, ValueError):
        return None
    return text.getvalue()


json.dump([canonical(base64.b64decode(each)) for each in json.load(sys.stdin)], sys.stdout)
