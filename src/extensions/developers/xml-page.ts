import { errorsEnvelope, successEnvelope } from '../../base/http/envelope.ts'
import type { JsonObject } from '../../base/http/body/json.ts'
import { XML_LIMITS } from '../../base/http/xml/read.ts'
import { writeXml } from '../../base/http/xml/write.ts'
import { FAULTS } from '../../base/kernel/fault-table.ts'
import { html, type Html } from '../../identity/pages/layout.ts'
import {
  bullets,
  codeBlock,
  paragraph,
  paragraphs,
  part,
  prettyJson,
  prettyXml,
  prose,
  proseTable,
} from './elements.ts'
import type { DeveloperPage, DeveloperParts } from './frame.ts'
import { XML_TEXTS as T } from './texts.ts'

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

const bothFormats = (label: string, json: string, xml: string): Html =>
  html`${codeBlock('JSON', `${label}: JSON`, json)} ${codeBlock('XML', `${label}: XML`, xml)}`

function envelopes(): Html {
  const { text, wire } = FAULTS.unknown_place
  const errors = [{ code: wire, message: text }]
  return part(
    'envelope',
    T.envelope,
    paragraph(T.envelopeText),
    bothFormats(
      T.envelope,
      prettyJson(errorsEnvelope('json', errors)),
      prettyXml(errorsEnvelope('xml', errors)),
    ),
  )
}

const answers = (): Html =>
  part(
    'answers',
    T.answers,
    paragraph(T.answersText),
    proseTable(T.answers, T.answersHeads, T.answersRows),
    html`<h3>${T.everyKind}</h3>`,
    bothFormats(
      T.everyKind,
      prettyJson(successEnvelope('json', EVERY_KIND)),
      prettyXml(successEnvelope('xml', EVERY_KIND)),
    ),
    paragraph(T.items),
  )

const sending = (): Html =>
  part(
    'sending',
    T.sending,
    paragraphs(T.sendingText),
    codeBlock('XML', T.sentExample, prettyXml(writeXml(SENT, 'Fund'))),
    codeBlock('JSON', T.sentAsJson, JSON.stringify(SENT, null, 2)),
  )

/** How JSON and XML are one another (C7.5). */
export function xmlPage({ api }: DeveloperParts): DeveloperPage {
  const { depth, nodes } = XML_LIMITS
  return {
    path: '/xml',
    title: T.title,
    lead: T.lead,
    body: () =>
      html`${part(
        'ask',
        T.ask,
        paragraph(T.askText(api.defaultFormat === 'json' ? 'JSON' : 'XML')),
        proseTable(T.ask, T.askHeads, T.askRows(api.vendor)),
      )}
      ${envelopes()} ${answers()} ${sending()}
      ${part('refused', T.refused, paragraph(T.refusedText), bullets(T.refusedRules(depth, nodes).map(prose)))}`,
  }
}
