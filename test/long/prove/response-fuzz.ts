/**
 * `node test/long/prove/response-fuzz.ts [cases] [seed]`: what our parser and llhttp read in a million generated and damaged
 * responses that are cut at random places (T2.3). Ends with 1 where we accept what llhttp refuses, or read it otherwise.
 */
import { fuzzResponses } from '../../support/response-fuzz.ts'

const cases = Number(process.argv[2] ?? 1_000_000)
const seed = Number(process.argv[3] ?? 20_261_122)
const MOST_SHOWN = 10

const counts = new Map<string, number>()
let defects = 0
for (const verdict of fuzzResponses(cases, seed)) {
  const isDefect = verdict.kind === 'only we accept' || verdict.kind === 'read differently'
  if (isDefect && (defects += 1) <= MOST_SHOWN) console.error(`${verdict.kind}: ${verdict.why}`)
  const name = verdict.kind === 'only llhttp accepts' ? `${verdict.kind}: ${verdict.why}` : verdict.kind
  counts.set(name, (counts.get(name) ?? 0) + 1)
}
console.log(`| of ${cases.toLocaleString('en')} responses (seed ${seed}) | |\n|---|---|`)
for (const [name, count] of Array.from(counts).toSorted((a, b) => b[1] - a[1]))
  console.log(`| ${name} | ${count.toLocaleString('en')} |`)
console.log(`| only we accept, or read differently | ${defects} |`)
process.exitCode = defects === 0 ? 0 : 1
