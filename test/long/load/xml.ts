/**
 * `npm run bench:xml`: CPU time of an XML service's answer of 1 KB, spliced into the envelope of an XML client and converted
 * for a JSON client; and of the same data in Postern's own dialect. Rounds are interleaved, medians are told. BENCH_ROUNDS
 * and BENCH_SECONDS bound it.
 */
import { convertAnswer, type AnswerTask } from '../../../src/gateway/conversion/answers.ts'
import type { PlainXmlRules } from '../../../src/base/http/xml/plain-document.ts'
import { median } from './exchanges.ts'
import { machine } from './machine.ts'

const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5)
const SECONDS = Number(process.env['BENCH_SECONDS'] ?? 1)
/** Documents between two looks at the clock. */
const BATCH = 500

const fund = (at: number): string =>
  `<Code>SUPER${at}</Code><Name>Super &amp; Co</Name><Status>active</Status><Members>42</Members>`
const funds = (open: string): string =>
  Array.from({ length: 9 }, (_, at) => `${open.replace('#', String(at))}${fund(at)}</Fund>`).join('')

const PLAIN = `<?xml version="1.0" encoding="UTF-8"?><Funds xmlns="urn:funds">${funds('<Fund id="#">')}</Funds>`
const POSTERN = `<?xml version="1.0" encoding="UTF-8"?><Funds><Fund type="array">${funds('<Fund>')}</Fund></Funds>`

const RULES: PlainXmlRules = {
  root: undefined,
  attributes: {},
  stripNamespaces: false,
  paths: { type: undefined, isArray: false, children: new Map() },
}

const task = (document: string, to: 'json' | 'xml', xml?: PlainXmlRules): AnswerTask => ({
  kind: 'answer',
  bytes: Buffer.from(document),
  contentType: 'application/xml',
  answerFormat: { format: 'xml', payload: 'bare', xml },
  to,
  items: {},
  limit: 1024 ** 2,
})

interface Case {
  readonly name: string
  readonly task: AnswerTask
  /** Microseconds of CPU per document, by round. */
  readonly samples: number[]
}

const CASES: readonly Case[] = [
  { name: 'XML to XML, spliced', task: task(PLAIN, 'xml', RULES), samples: [] },
  { name: 'XML to JSON, by the mapping', task: task(PLAIN, 'json', RULES), samples: [] },
  { name: 'Postern’s dialect to XML', task: task(POSTERN, 'xml'), samples: [] },
  { name: 'Postern’s dialect to JSON', task: task(POSTERN, 'json'), samples: [] },
]

function measure({ task: answer }: Case): number {
  const before = process.cpuUsage()
  const end = performance.now() + SECONDS * 1000
  let count = 0
  while (performance.now() < end) for (let at = 0; at < BATCH; at++, count++) convertAnswer(answer)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / count
}

for (const each of CASES) measure(each) // warms up
for (let round = 0; round < ROUNDS; round++) for (const each of CASES) each.samples.push(measure(each))

const cost = ({ samples }: Case): number => median(samples)
const ratioTo = (other: Case): string => {
  const [spliced = other] = CASES
  return (cost(spliced) / cost(other)).toFixed(2)
}
console.log(machine())
console.log(`${Buffer.byteLength(PLAIN)} bytes, ${ROUNDS} rounds of ${SECONDS} s\n`)
console.log('| case | CPU µs | spliced / it |\n| --- | --- | --- |')
for (const each of CASES) console.log(`| ${each.name} | ${cost(each).toFixed(1)} | ${ratioTo(each)} |`)
