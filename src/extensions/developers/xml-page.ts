import { errorsEnvelope, successEnvelope } from '../../base/http/envelope.ts'
import type { JsonObject } from '../../base/http/body/json.ts'
import { XML_LIMITS } from '../../base/http/xml/read.ts'
import { writeXml } from '../../base/http/xml/write.ts'
import { FAULTS } from '../../base/kernel/fault-table.ts'
import { inJson, inXml } from './elements.ts'
import type { DeveloperPage, DeveloperParts } from './frame.ts'
import { guidePage } from './guide.ts'

/** A value of every kind (C7.5). The converter itself makes the XML of it. */
const EVERY_KIND: JsonObject = {
  Code: 'SUPER1',
  Members: 42,
  Open: true,
  Closed: null,
  Notes: '',
  Tags: ['a', 'b'],
  Links: [],
  Address: { Locality: 'Perth' },
  Extra: {},
}

const SENT: JsonObject = { Name: 'Harbour View', Address: { Locality: 'Perth', Region: 'WA' } }

const ERRORS = [{ code: FAULTS.unknown_place.wire, message: FAULTS.unknown_place.text }]

/** How JSON and XML are one another (C7.5). */
export const xmlPage = ({ defaultFormat, vendor }: DeveloperParts): DeveloperPage =>
  guidePage('xml', () => ({
    vendor,
    format: defaultFormat.toUpperCase(),
    envelopeJson: inJson(errorsEnvelope('json', ERRORS)),
    envelopeXml: inXml(errorsEnvelope('xml', ERRORS)),
    kindsJson: inJson(successEnvelope('json', EVERY_KIND)),
    kindsXml: inXml(successEnvelope('xml', EVERY_KIND)),
    sentXml: inXml(writeXml(SENT, 'Fund').toString()),
    sentJson: inJson(JSON.stringify(SENT)),
    depth: String(XML_LIMITS.depth),
    nodes: String(XML_LIMITS.nodes),
  }))
