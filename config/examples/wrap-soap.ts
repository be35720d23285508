/**
 * A worked example of a module over a forwarder: JSON and XML clients in front of a SOAP 1.1 service. Each action
 * becomes one operation of the service; a fault that is the client's becomes a 4xx with its text. wrap-soap.yaml serves it.
 * Where envelopes and faults are all that has to change, no code is needed: config/recipes/soap.md.
 */
import { XMLParser } from 'fast-xml-parser'
import type { ForwardedCall, Json, ModuleAnswer, ModuleFactory, UpstreamAnswer } from 'postern/backend'

interface Options {
  /** The namespace of the service's operations. */
  readonly namespace: string
}

type Members = { readonly [name: string]: Json | undefined }
interface Operation {
  readonly name: string
  readonly parameters: (call: ForwardedCall) => Members
  /** The `Data` of the answer, made of what the service's response element holds. */
  readonly data: (response: Members) => Json
}

/** By method and action. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  'GET fund-data/fund-list': {
    name: 'ListFunds',
    parameters: ({ business }) => ({ Business: business }),
    data: ({ Fund }) => ({ FundSummaries: listOf(Fund), TotalCount: listOf(Fund).length }),
  },
  'GET fund-data/fund-detail': {
    name: 'GetFund',
    parameters: ({ business, fund }) => ({ Business: business, Code: fund }),
    data: ({ Fund }) => Fund ?? null,
  },
  'POST fund-data/fund-detail': {
    name: 'UpdateFund',
    parameters: ({ business, fund, body }) => ({
      Business: business,
      Code: fund,
      Changes: body.kind === 'value' ? body.value : {},
    }),
    data: () => ({}),
  },
}

/** The service's fault codes, and what they are to a client. Any other fault is the service's own: 500. */
const FAULTS: Readonly<Record<string, number>> = { NotFound: 404, Invalid: 400, Conflict: 409 }

const SOAP = 'http://schemas.xmlsoap.org/soap/envelope/'
const TYPE = 'text/xml; charset=utf-8'

/** All text: numbers would lose leading zeros. */
const parser = new XMLParser({ removeNSPrefix: true, parseTagValue: false, ignoreDeclaration: true })

const createModule: ModuleFactory<Options> = ({ namespace }) => ({
  answer: async (call: ForwardedCall) => {
    const operation = OPERATIONS[`${call.method} ${call.action}`]
    if (operation === undefined) return { status: 404 }
    const { name, parameters, data } = operation
    const answer = await call.forward({
      method: 'POST',
      path: '/soap',
      query: '',
      headers: { SOAPAction: `"${namespace}#${name}"`, Accept: 'text/xml' },
      body: { kind: 'text', text: envelopeOf(name, namespace, parameters(call)), contentType: TYPE },
    })
    const body = await soapBodyOf(answer)
    if (isMembers(body['Fault'])) return refusalOf(body['Fault'])
    const response = body[`${name}Response`]
    return { body: { kind: 'value', value: data(isMembers(response) ? response : {}) } }
  },
})

function envelopeOf(name: string, namespace: string, parameters: Members): string {
  const operation = `<f:${name} xmlns:f="${escaped(namespace)}">${elementsOf(parameters)}</f:${name}>`
  return `<?xml version="1.0" encoding="UTF-8"?><s:Envelope xmlns:s="${SOAP}"><s:Body>${operation}</s:Body></s:Envelope>`
}

/** Every element in the namespace of the operations. The schemas of the configuration let no other names pass. */
const elementsOf = (members: Members): string =>
  Object.entries(members)
    .flatMap(([name, value]) => listOf(value).map((item) => `<f:${name}>${contentOf(item)}</f:${name}>`))
    .join('')

const contentOf = (value: Json): string => (isMembers(value) ? elementsOf(value) : escaped(textOf(value)))

const ESCAPES: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }

/** Without the characters that XML cannot hold: a client may send them in JSON. */
const escaped = (text: string): string =>
  text
    .toWellFormed()
    .replace(/[^\t\n\r\x20-\uFFFD\u{10000}-\u{10FFFF}]/gu, '\uFFFD')
    .replace(/[&<>"]/g, (character) => ESCAPES[character] ?? character)

const textOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : value === null || value === undefined ? '' : JSON.stringify(value)

/** What the Body holds. It throws for what is no SOAP, which is the service's fault: 500. */
async function soapBodyOf(answer: UpstreamAnswer): Promise<Members> {
  const text = await answer.text()
  // SOAP 1.1 §3: a message must not contain a DTD.
  if (text.includes('<!DOCTYPE')) throw new Error('the service answered with a document type')
  const envelope = memberOf(parser.parse(text) as Json, 'Envelope')
  const body = memberOf(envelope, 'Body')
  if (isMembers(body)) return body
  throw new Error(`the service answered ${answer.status} without a SOAP body`)
}

/** SOAP 1.1 §4.4: the code may be qualified, by a prefix or with dots: `f:Client.NotFound`. */
function refusalOf(fault: Members): ModuleAnswer {
  const code = textOf(fault['faultcode']).replace(/^.*[:.]/, '')
  const status = FAULTS[code]
  const message = textOf(fault['faultstring'])
  if (status === undefined) throw new Error(`the service answered a fault: ${code} ${message}`)
  return { status, body: { kind: 'errors', errors: [{ code, message }] } }
}

const isMembers = (value: Json | undefined): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const memberOf = (value: Json | undefined, name: string): Json | undefined =>
  isMembers(value) ? value[name] : undefined
/** One element, several, or none: XML does not tell a list of one from a single element. */
const listOf = (value: Json | undefined): readonly Json[] =>
  Array.isArray(value) ? (value as readonly Json[]) : value === undefined || value === '' ? [] : [value]

export default createModule
