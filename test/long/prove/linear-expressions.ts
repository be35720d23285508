/**
 * `node test/long/prove/linear-expressions.ts`: how much longer four times the text takes every regular expression of the
 * source, and the functions that read what clients send (T2.9): 4 if linear, 16 if quadratic. Ends with exit code 1 if
 * one of them grows faster than the text.
 */
import { apply, collect, HOSTILE, READERS, repeated, shapesOf } from '../../support/hostile-text.ts'

const SMALL = 16 * 1024
/** Milliseconds. A linear one takes less than one; a quadratic one makes a hundred million steps. */
const SUSPICIOUS = 8
const MOST_GROWTH = 9

function msOf(work: () => unknown): number {
  const start = performance.now()
  try {
    work()
  } catch {
    // refused: what counts is how long that took
  }
  return performance.now() - start
}

const fastest = (work: () => unknown): number => Math.min(...[1, 2, 3].map(() => msOf(work)))

/** How much longer four times the text takes; undefined where it is too quick to tell, which is as good. */
function growthOf(work: (text: string) => unknown, shape: (length: number) => string): number | undefined {
  const short = shape(SMALL)
  if (msOf(() => work(short)) < SUSPICIOUS) return undefined
  const before = fastest(() => work(short))
  if (before < SUSPICIOUS) return undefined
  const long = shape(4 * SMALL)
  return fastest(() => work(long)) / before
}

type Found = readonly [name: string, text: string, growth: number]

const worst = (
  name: string,
  work: (text: string) => unknown,
  shapes: readonly ((length: number) => string)[],
): readonly Found[] =>
  shapes.flatMap((shape) => {
    const growth = growthOf(work, shape)
    return growth === undefined ? [] : [[name, shape(40), growth] as const]
  })

const expressions = collect()
const found = [
  ...expressions.flatMap(({ where, regex }) => worst(where, apply(regex), shapesOf(regex, true))),
  ...Object.entries(READERS).flatMap(([name, read]) =>
    worst(
      name,
      read,
      HOSTILE.map((pump) => (length: number) => repeated(pump, length)),
    ),
  ),
]
const known = growthOf(apply(/eyJ[\w-]+\.[\w-]+/g), (length) => repeated('eyJ', length))
console.log(`${expressions.length} expressions and ${Object.keys(READERS).length} readers`)
console.log(`one that is known to be quadratic grows by ${known?.toFixed(1) ?? 'nothing'}`)
console.log(`slow enough to be measured: ${found.length}; the fastest growing of them:`)
for (const [name, text, growth] of found.toSorted((a, b) => b[2] - a[2]).slice(0, 5))
  console.log(`  ${growth.toFixed(1)}  ${name}  ${JSON.stringify(text)}`)
process.exitCode = found.some(([, , growth]) => growth >= MOST_GROWTH) || (known ?? 0) < MOST_GROWTH ? 1 : 0
