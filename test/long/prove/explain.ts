/**
 * `node test/long/prove/explain.ts [calls] [seed]`: whether 10,000 generated calls over every clause are explained as they are
 * decided, and how often each reason came (C14.1). Ends with 1 where one is not.
 */
import { type Compared, compareCalls } from '../../support/generated-calls.ts'

const calls = Number(process.argv[2] ?? 10_000)
const seed = Number(process.argv[3] ?? 20_261_122)
const MOST_SHOWN = 10

const counts = new Map<string, number>()
const differing: Compared[] = []
for await (const compared of compareCalls(calls, seed)) {
  if (compared.explained !== compared.wire) differing.push(compared)
  counts.set(compared.wire, (counts.get(compared.wire) ?? 0) + 1)
}
for (const { sent, explained, wire } of differing.slice(0, MOST_SHOWN))
  console.error(`${wire} was explained as ${explained}: ${JSON.stringify(sent).slice(0, 300)}`)
console.log(`| of ${calls.toLocaleString('en')} calls (seed ${seed}) | |\n|---|---|`)
for (const [outcome, count] of Array.from(counts).toSorted((a, b) => b[1] - a[1]))
  console.log(`| ${outcome} | ${count.toLocaleString('en')} |`)
console.log(`| explained as something else | ${differing.length} |`)
process.exitCode = differing.length === 0 ? 0 : 1
