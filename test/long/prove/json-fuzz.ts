/**
 * `node test/long/prove/json-fuzz.ts [cases] [seed]`: what our check of JSON and the engine's parser say of a million generated and
 * damaged documents, whole and cut (C8.4). Ends with 1 where they differ.
 */
import { fuzzJson } from '../../support/json-fuzz.ts'

const cases = Number(process.argv[2] ?? 1_000_000)
const seed = Number(process.argv[3] ?? 20_261_126)
const MOST_SHOWN = 10

const counts = new Map<string, number>()
let defects = 0
for (const { kind, why } of fuzzJson(cases, seed)) {
  if (!kind.startsWith('both') && (defects += 1) <= MOST_SHOWN) console.error(`${kind}: ${why}`)
  counts.set(kind, (counts.get(kind) ?? 0) + 1)
}
console.log(`| of ${cases.toLocaleString('en')} documents (seed ${seed}) | |\n|---|---|`)
for (const kind of ['both accept', 'both refuse', 'only we accept', 'only we refuse', 'pieces differ'])
  console.log(`| ${kind} | ${(counts.get(kind) ?? 0).toLocaleString('en')} |`)
process.exitCode = defects === 0 ? 0 : 1
