"""Reads XML documents (a JSON list of base64) by expat, and writes each as [name, attributes, text, children]."""

import base64
import json
import sys
import xml.etree.ElementTree as tree


def plain(element):
    return [element.tag, element.attrib, element.text or "", [plain(child) for child in element]]


json.dump([plain(tree.fromstring(base64.b64decode(each))) for each in json.load(sys.stdin)], sys.stdout)
