/**
 * `node test/long/prove/xml-fuzz.ts ROOT [cases] [seed]`: what the conversions between JSON and XML make of 100,000 generated and damaged
 * documents each way (C7.5, C8.6), beside those of another checkout: ROOT. Ends with 1 where bytes or faults differ.
 */
import { isDeepStrictEqual } from 'node:util'
import type { perform, Task } from '../../../src/gateway/conversion/tasks.ts'
import type { readXml } from '../../../src/base/http/xml/read.ts'
import type { PathRule, PlainXmlRules } from '../../../src/base/http/xml/plain-document.ts'
import { moduleOf } from '../../support/other-checkout.ts'
import { jsonCases, type JsonCase, xmlCases, type XmlCase } from '../../support/xml-fuzz.ts'

const OWN = new URL('../../..', import.meta.url).pathname
const [root, casesText = '100000', seedText = '20261130'] = process.argv.slice(2)
const [cases, seed] = [Number(casesText), Number(seedText)]
const MOST_SHOWN = 10

if (root === undefined) {
  console.log('Nothing is compared without another checkout: npm run prove xml-fuzz -- ROOT [cases] [seed]')
  process.exit(0)
}

interface Converter {
  readonly perform: typeof perform
  readonly readXml: typeof readXml
}

async function converterOf(checkout: string): Promise<Converter> {
  const tasks = (await moduleOf(checkout, 'gateway/conversion/tasks.ts')) as Pick<Converter, 'perform'>
  const read = (await moduleOf(checkout, 'base/http/xml/read.ts')) as Pick<Converter, 'readXml'>
  return { perform: tasks.perform, readXml: read.readXml }
}

type Step = (converter: Converter) => Uint8Array

/** Bytes, or the fault. */
interface Outcome {
  readonly bytes?: Buffer
  readonly fault?: string
}

/** Another checkout has another class of faults. */
function faultText(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const { code, facts } = thrown as { code?: string; facts?: { say?: string; detail?: string } }
  if (facts === undefined) return `${thrown.name}: ${thrown.message}`
  return JSON.stringify([code, facts.say, facts.detail])
}

function outcomeOf(step: Step, converter: Converter): Outcome {
  try {
    return { bytes: Buffer.from(step(converter)) }
  } catch (thrown) {
    return { fault: faultText(thrown) }
  }
}

const LIMITS = { bytes: Infinity, depth: Infinity, nodes: Infinity, references: Infinity }
const INDEX = /^(?:0|[1-9]\d*)$/

type Members = readonly (readonly [string, unknown])[]

/** The members of an object; undefined for all else. */
const membersOf = (value: unknown): Members | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value)
    ? Object.entries(value)
    : undefined

/** A value with its members in one order. It is not parsed from JSON: some versions of V8 take one escaped key for another. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical)
  const members = membersOf(value)
  if (members === undefined) return JSON.stringify(value)
  return {
    members: members
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, each]) => [key, canonical(each)]),
  }
}

function hasIndex(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasIndex)
  return (membersOf(value) ?? []).some(([key, each]) => INDEX.test(key) || hasIndex(each))
}

/** Whether two documents of XML differ but in the order of members, and one of these looks like an index. */
function isOtherOrder(ours: Buffer, theirs: Buffer, { readXml: read }: Converter): boolean {
  if (ours.length !== theirs.length) return false
  const one = read(ours, undefined, LIMITS)
  return hasIndex(one) && isDeepStrictEqual(canonical(one), canonical(read(theirs, undefined, LIMITS)))
}

const KINDS = [
  'equal',
  'equal but for the order',
  'both refuse alike',
  'they differ',
  'only the new accepts',
] as const
type Kind = (typeof KINDS)[number]

function kindOf(ours: Outcome, theirs: Outcome, old: Converter): Kind {
  if (ours.bytes === undefined) return ours.fault === theirs.fault ? 'both refuse alike' : 'they differ'
  if (theirs.bytes === undefined) return 'only the new accepts'
  if (ours.bytes.equals(theirs.bytes)) return 'equal'
  return isOtherOrder(ours.bytes, theirs.bytes, old) ? 'equal but for the order' : 'they differ'
}

const NEW = await converterOf(OWN)
const OLD = await converterOf(root)
const counts = new Map<string, Map<Kind, number>>()
let defects = 0

const shown = (bytes: Buffer): string => JSON.stringify(bytes.subarray(-2000).toString('latin1'))
const textOf = ({ bytes, fault }: Outcome): string => (bytes === undefined ? `${fault}` : shown(bytes))

function compare(name: string, step: Step, document: Buffer, more: unknown): void {
  const [ours, theirs] = [outcomeOf(step, NEW), outcomeOf(step, OLD)]
  const kind = kindOf(ours, theirs, OLD)
  const row = counts.get(name) ?? new Map<Kind, number>()
  counts.set(name, row.set(kind, (row.get(kind) ?? 0) + 1))
  if (kind !== 'they differ' && kind !== 'only the new accepts') return
  if ((defects += 1) > MOST_SHOWN) return
  console.error(`${name}, ${kind}: ${shown(document)} ${JSON.stringify(more)}`)
  console.error(`  new: ${textOf(ours)}\n  old: ${textOf(theirs)}`)
}

/** Bytes that a conversion gets must be as they were when the other one gets them. */
const run =
  (task: Task): Step =>
  ({ perform: convert }) =>
    convert({ ...task, bytes: Buffer.from(task.bytes) }).bytes

/** Of an upstream that takes and sends XML of its own (C7.7). */
const NO_PATH: PathRule = { type: undefined, isArray: false, children: new Map() }
const ROOT_PATH: PathRule = {
  ...NO_PATH,
  children: new Map([
    ['Tags', { ...NO_PATH, isArray: true }],
    ['Members', { ...NO_PATH, type: 'number' }],
    ['Open', { ...NO_PATH, type: 'boolean' }],
  ]),
}
const OWN_XML: PlainXmlRules = {
  root: 'R',
  attributes: { version: '1' },
  stripNamespaces: true,
  paths: { ...NO_PATH, children: new Map(['R', 'Fund', 'a'].map((name) => [name, ROOT_PATH])) },
}

function compareJson({ bytes, items, limit, schema }: JsonCase): void {
  const more = { items, limit }
  for (const payload of ['bare', 'envelope'] as const) {
    const answerFormat = { format: 'json', payload } as const
    const task: Task = { kind: 'answer', bytes, answerFormat, to: 'xml', items, limit }
    compare(`JSON to XML, ${payload}`, run(task), bytes, more)
  }
  const body = { kind: 'request', bytes, as: 'json', to: 'xml', items } as const
  compare('JSON to XML, body', run({ ...body, schema: undefined }), bytes, more)
  compare('JSON to XML, body with schema', run({ ...body, schema }), bytes, { ...more, schema })
  compare('JSON to own XML, body', run({ ...body, schema: undefined, xml: OWN_XML }), bytes, more)
}

function compareXml({ bytes, schema, limits, inOnePiece, limit }: XmlCase): void {
  for (const each of schema === undefined ? [undefined] : [undefined, schema])
    compare(
      `XML read, ${each === undefined ? 'without schema' : 'with schema'}`,
      ({ readXml: read }) => Buffer.from(JSON.stringify(read(bytes, each, limits, inOnePiece))),
      bytes,
      { schema: each, limits, inOnePiece },
    )
  for (const payload of ['bare', 'envelope'] as const) {
    const answerFormat = { format: 'xml', payload } as const
    const task: Task = { kind: 'answer', bytes, answerFormat, to: 'json', items: {}, limit }
    compare(`XML to JSON, ${payload}`, run(task), bytes, { limit })
  }
  for (const to of ['json', 'xml'] as const) {
    const answerFormat = { format: 'xml', payload: 'bare', xml: { ...OWN_XML, root: undefined } } as const
    const task: Task = { kind: 'answer', bytes, answerFormat, to, items: {}, limit }
    compare(`own XML to ${to === 'json' ? 'JSON' : 'XML'}`, run(task), bytes, { limit })
  }
}

for (const each of jsonCases(cases, seed)) compareJson(each)
for (const each of xmlCases(cases, seed)) compareXml(each)

console.log(`| of ${cases.toLocaleString('en')} documents (seed ${seed}) | ${KINDS.join(' | ')} |`)
console.log(`|---|${KINDS.map(() => '---').join('|')}|`)
for (const [name, row] of counts)
  console.log(`| ${name} | ${KINDS.map((kind) => (row.get(kind) ?? 0).toLocaleString('en')).join(' | ')} |`)
process.exitCode = defects === 0 ? 0 : 1
