/**
 * How many calls read bytes that an upstream sent behind the answer to another call, through the `http` backend and,
 * beside it, through undici, with 95 % bounds:
 * `node test/long/prove/late-bytes.ts [--code FOLDER] [--calls 3000] [--connections 8] [--every 2]`
 * `--code` takes the backend from another checkout. One call in `--every` gets a faulty answer; the others are its
 * possible victims.
 */
import { fork } from 'node:child_process'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { parseArgs } from 'node:util'
import { Pool } from 'undici'
import type * as calls from '../../support/calls.ts'
import type * as httpBackend from '../../support/http-backend.ts'

const OWN = fileURLToPath(new URL('../../..', import.meta.url))
const { values: options } = parseArgs({
  options: {
    code: { type: 'string', default: OWN },
    calls: { type: 'string', default: '3000' },
    kinds: {
      type: 'string',
      default: '304,304-length,204,204-length,head,doubled,short,empty,chunked,error,hints,continue',
    },
    connections: { type: 'string', default: '8' },
    every: { type: 'string', default: '2' },
    delays: { type: 'string', default: 'same,turn,1ms,5ms,next' },
  },
})
const CALLS = Number(options.calls)
const SIDE_BY_SIDE = 16
/** By default fewer than calls at once: each is used again at once. */
const CONNECTIONS = Number(options.connections)
/** One call in so many gets a faulty answer. */
const EVERY = Number(options.every)

const from = async (file: string): Promise<unknown> =>
  import(pathToFileURL(resolve(options.code, 'test/support', file)).href)
const { openHttpBackend } = (await from('http-backend.ts')) as typeof httpBackend
const { makeCall } = (await from('calls.ts')) as typeof calls

/** Sends one call. Answers the text that it got, or undefined where it failed. */
interface Client {
  ask(method: string, path: string): Promise<string | undefined>
  close(): Promise<unknown>
}

function ours(url: string): Client {
  const backend = openHttpBackend(url, { maxConnections: CONNECTIONS })
  const upstreams = (path: string) => () => path
  return {
    close: () => backend.close(),
    ask: async (method, path) => {
      // A call's own target has to be one of the API: the backend is asked for this path instead.
      backend.pathOf = upstreams(path)
      const headers = { 'if-none-match': '"a"' }
      const { body } = await backend.answer(makeCall({ method, headers }))
      if (body.kind === 'bytes') return body.bytes.toString()
      return body.kind === 'none' ? '' : body.kind
    },
  }
}

function undicis(url: string): Client {
  const pool = new Pool(url, { connections: CONNECTIONS, pipelining: 1 })
  return {
    close: () => pool.destroy(),
    ask: async (method, path) => {
      const { body } = await pool.request({ method, path })
      return body.text()
    },
  }
}

interface Tally {
  leaked: number
  failed: number
}

async function run(client: Client, kind: string, delay: string): Promise<Tally> {
  const tally: Tally = { leaked: 0, failed: 0 }
  let asked = 0
  const work = async (): Promise<void> => {
    while (asked < CALLS) {
      const number = String((asked += 1))
      const isFaulty = asked % EVERY === 0
      const method = isFaulty && kind === 'head' ? 'HEAD' : 'GET'
      try {
        const text = await client.ask(method, `/late/${isFaulty ? kind : 'good'}/${delay}/${number}`)
        const own = isFaulty ? ['', '{}', `[${number}]`] : [`[${number}]`]
        if (text === undefined || !own.includes(text)) tally.leaked += 1
      } catch {
        tally.failed += 1
      }
    }
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work))
  return tally
}

/** The upper 95 % bound of a share (Wilson), in per cent. */
function upperBound(found: number, of: number): number {
  const z = 1.96
  const share = found / of
  const middle = share + (z * z) / (2 * of)
  const wide = z * Math.sqrt((share * (1 - share)) / of + (z * z) / (4 * of * of))
  return ((middle + wide) / (1 + (z * z) / of)) * 100
}

const told = ({ leaked, failed }: Tally): string =>
  `${String(leaked).padStart(5)} (≤ ${upperBound(leaked, CALLS).toFixed(2).padStart(6)} %) ${String(failed).padStart(6)}`

const upstream = fork(fileURLToPath(new URL('../../support/late-upstream.ts', import.meta.url)))
const { port } = await new Promise<AddressInfo>((done) =>
  upstream.once('message', (at) => done(at as AddressInfo)),
)
const url = `http://127.0.0.1:${port}`

console.log(
  `of ${CALLS} calls, ${SIDE_BY_SIDE} at once over ${CONNECTIONS} connections: leaked (upper 95 % bound), failed`,
)
console.log(`${'kind'.padEnd(12)} ${'delay'.padEnd(6)} ${'Postern'.padEnd(24)} undici`)
for (const kind of options.kinds.split(',')) {
  const sums = [0, 0]
  for (const delay of options.delays.split(',')) {
    const tallies: Tally[] = []
    for (const open of [ours, undicis]) {
      const client = open(url)
      tallies.push(await run(client, kind, delay))
      await client.close()
    }
    const [mine, theirs] = tallies as [Tally, Tally]
    sums[0]! += mine.leaked
    sums[1]! += theirs.leaked
    const worse = upperBound(mine.leaked, CALLS) > upperBound(theirs.leaked, CALLS) ? '  worse' : ''
    console.log(`${kind.padEnd(12)} ${delay.padEnd(6)} ${told(mine)}   ${told(theirs)}${worse}`)
  }
  console.log(`${kind.padEnd(12)} all    ${sums.join('  ')}`)
}
upstream.disconnect()
