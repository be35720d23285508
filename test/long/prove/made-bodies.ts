/**
 * `node test/long/prove/made-bodies.ts [cases] [seed]`: random values through each writer of bodies (C8.7), read back by JSON.parse,
 * URLSearchParams and expat. Ends with 1 where one is read as something else.
 */
import { differences } from '../../support/random-bodies.ts'

const cases = Number(process.argv[2] ?? 100_000)
const seed = Number(process.argv[3] ?? 20_261_126)
const AT_ONCE = 20_000
const MOST_SHOWN = 10

for (const format of ['json', 'form', 'xml'] as const) {
  let found = 0
  for (let at = 0; at < cases; at += AT_ONCE)
    for (const each of differences(format, Math.min(AT_ONCE, cases - at), seed + at))
      if ((found += 1) <= MOST_SHOWN) console.error(each)
  console.log(`${format}: ${cases.toLocaleString('en')} values, ${found} read as something else`)
  if (found > 0) process.exitCode = 1
}
