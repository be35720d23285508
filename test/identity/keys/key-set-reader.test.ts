import { describe, expect, it } from 'vitest'
import { admitKeys, fetchJwks, KeySetReader } from '../../../src/identity/keys/remote/key-set-reader.ts'
import type { Jwk } from '../../../src/base/kernel/jwk.ts'
import { generatePrivateJwk, publicPart } from '../../../src/identity/keys/verify/signatures.ts'
import { startForeignIssuer, type ForeignIssuer } from '../../support/foreign-issuer.ts'
import { movableClock } from '../../support/movable-clock.ts'
import { settled } from '../../support/settled.ts'

describe('C11.2 fetching a key set', () => {
  const answering = async (keys: ForeignIssuer['keys']): Promise<readonly Jwk[]> =>
    fetchJwks((await startForeignIssuer(keys)).url)
  const answeringText = (text: string): Promise<readonly Jwk[]> => answering((response) => response.end(text))

  it('C11.2 asks for a JWK Set, and takes only what can be a key', async () => {
    const accepts: unknown[] = []
    const found = await answering((response) => {
      accepts.push(response.req.headers.accept)
      response.end(JSON.stringify({ keys: [{ kty: 'EC' }, 'EC', null, 7, [], { kty: 'RSA' }] }))
    })
    expect(found).toEqual([{ kty: 'EC' }, { kty: 'RSA' }])
    expect(accepts).toEqual(['application/jwk-set+json, application/json'])
  })

  it('C11.2 reads one with a byte order mark, as some file servers send it', async () => {
    const text = JSON.stringify({ keys: [{ kty: 'EC' }] })
    expect(await answeringText(`\ufeff${text}`)).toEqual([{ kty: 'EC' }])
    await expect(answeringText(`\ufeff\ufeff${text}`)).rejects.toThrow()
    await expect(answeringText('\ufeff')).rejects.toThrow()
  })

  it.each(['', 'no JSON', '{}', '{"keys":{}}', '{"keys":"x"}', '[]'])(
    'T3.5 an answer that is no key set is refused: %j',
    async (text) => {
      await expect(answeringText(text)).rejects.toThrow()
    },
  )

  it.each([201, 204, 404, 500])('T3.5 status %i is refused, whatever the body', async (status) => {
    const answer = answering((response) => response.writeHead(status).end('{"keys":[]}'))
    await expect(answer).rejects.toThrow(String(status))
  })

  it('T3.5 a redirect is not followed', async () => {
    const other = await startForeignIssuer([])
    const answer = answering((response) => response.writeHead(302, { Location: other.url }).end())
    await expect(answer).rejects.toThrow()
    expect(other.asked).toBe(0)
  })

  it('T3.5 an answer of more than 256 KiB is refused, and one that breaks off', async () => {
    const empty = JSON.stringify({ keys: [] })
    const [fits, tooLarge] = [256 * 1024, 256 * 1024 + 1].map((length) => empty.padEnd(length)) as [
      string,
      string,
    ]
    expect(await answeringText(fits)).toEqual([])
    await expect(answeringText(tooLarge)).rejects.toThrow(RangeError)
    const broken = answering((response) => {
      response.writeHead(200, { 'Content-Length': '100' })
      response.write('{"keys":[', () => response.destroy())
    })
    await expect(broken).rejects.toThrow()
  })
})

describe('C11.2 the keys that may verify tokens', () => {
  const KEY: Jwk = { kty: 'EC', crv: 'P-256', x: 'x', y: 'y', kid: 'a' }
  const refusal = (jwk: Jwk): readonly string[] =>
    admitKeys([KEY, jwk]).remarks.map(({ level, event, kid }) => `${level} ${event} ${kid}`)

  it('C11.2 keep only their public members', () => {
    const { keys, remarks } = admitKeys([
      { ...KEY, alg: 'ES256', use: 'sig', key_ops: ['verify'], x5t: 'x', iat: 1 },
    ])
    expect(keys).toStrictEqual([{ ...KEY, alg: 'ES256', use: 'sig', key_ops: ['verify'] }])
    expect(remarks).toEqual([])
  })

  it('T3.1 are those for signatures only', () => {
    expect(refusal({ ...KEY, kid: 'b', use: 'enc' })).toEqual(['info issuer_key_refused b'])
    expect(refusal({ ...KEY, kid: 'b', key_ops: ['sign'] })).toEqual(['warn issuer_key_refused b'])
    expect(refusal({ ...KEY, kid: 'b', key_ops: 'verify' })).toEqual(['warn issuer_key_refused b'])
    expect(refusal({ ...KEY, kid: 'b', use: 'sig', key_ops: ['sign', 'verify'] })).toEqual([])
    expect(admitKeys([{ ...KEY, use: 'enc' }, KEY]).keys).toEqual([KEY])
  })

  it('T3.1 are no weak RSA keys; a key of another type with the same members is none', () => {
    const weak = { kty: 'RSA', n: 'AQAB', e: 'AQAB', kid: 'b' }
    expect(refusal(weak)).toEqual(['warn issuer_key_refused b'])
    expect(refusal({ ...weak, kty: 'EC' })).toEqual([])
  })

  it('T3.10 with private members are used, and the operator is told; the members are dropped', async () => {
    for (const member of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])
      expect(refusal({ ...KEY, kid: 'b', [member]: 'x' })).toEqual(['warn issuer_key_private b'])
    const jwk = await generatePrivateJwk('ES256')
    const { keys, remarks } = admitKeys([jwk])
    expect(keys).toEqual([publicPart(jwk, 'ES256')])
    expect(JSON.stringify(remarks)).not.toContain(jwk['d'])
  })

  it('C11.2 a set without any is told', () => {
    expect(admitKeys([]).remarks).toEqual([
      expect.objectContaining({ level: 'warn', event: 'issuer_keys_empty', kid: undefined }),
    ])
    expect(admitKeys([{ ...KEY, use: 'enc' }]).remarks.map(({ event }) => event)).toEqual([
      'issuer_key_refused',
      'issuer_keys_empty',
    ])
  })

  it('T2.7 a kid goes to the log shortened, and only if it is text', () => {
    const kidTold = (kid: unknown): unknown => admitKeys([{ ...KEY, kid, use: 'enc' }]).remarks[0]?.kid
    expect(kidTold('k'.repeat(101))).toBe('k'.repeat(100))
    expect(kidTold(7)).toBeUndefined()
  })
})

describe('T3.5 when a key set is read', () => {
  /** A reader whose readings the test ends, one after another. */
  function reader() {
    const clock = movableClock()
    const readings: PromiseWithResolvers<undefined>[] = []
    const changes: unknown[] = []
    const pauses: number[] = []
    const made = new KeySetReader({
      read: () => {
        const reading = Promise.withResolvers<undefined>()
        readings.push(reading)
        return reading.promise.then(() => undefined)
      },
      clock,
      changed: (failure) => changes.push(failure),
      pause: (ms) => {
        pauses.push(ms)
        clock.advance(ms)
        return Promise.resolve()
      },
    })
    /** Begins a reading, and ends it after so many milliseconds. */
    const read = async (ends: 'well' | 'badly', after = 0): Promise<void> => {
      const done = made.refresh()
      while (readings.length === 0) await settled()
      clock.advance(after)
      const reading = readings.shift()
      if (ends === 'well') reading?.resolve(undefined)
      else reading?.reject(new Error(ends))
      await done
    }
    return { reader: made, clock, readings, changes, pauses, read }
  }

  it('T3.5 it is stale after a minute; after five seconds where it was never read, or could not be', async () => {
    const { reader: made, clock, read } = reader()
    const staleAfter = (ms: number): readonly boolean[] => {
      clock.advance(ms - 1)
      const before = made.isStale()
      clock.advance(1)
      return [before, made.isStale()]
    }
    expect(made.isStale()).toBe(true)
    await read('badly')
    expect(staleAfter(5_000)).toEqual([false, true])
    await read('well')
    expect(staleAfter(60_000)).toEqual([false, true])
    await read('badly')
    expect([made.had, made.failing]).toEqual([true, true])
    expect(staleAfter(5_000)).toEqual([false, true])
  })

  it('T3.5 it is not stale while it is read', async () => {
    const { reader: made, clock, readings } = reader()
    const done = made.refresh()
    await settled()
    clock.advance(120_000)
    expect(made.isStale()).toBe(false)
    readings[0]?.resolve(undefined)
    await done
    expect(made.isStale()).toBe(true)
  })

  it('T3.5 two readings begin a second apart', async () => {
    const { clock, pauses, read } = reader()
    await read('well', 300)
    await read('well')
    expect(pauses).toEqual([700])
    clock.advance(1_000)
    await read('well')
    expect(pauses).toEqual([700])
  })

  it('C11.2 a failure is told once, and its end once', async () => {
    const { changes, read } = reader()
    await read('well')
    expect(changes).toEqual([])
    await read('badly')
    await read('badly')
    expect(changes).toEqual([{ cause: new Error('badly') }])
    await read('well')
    await read('well')
    expect(changes).toEqual([{ cause: new Error('badly') }, undefined])
  })

  it('T3.5 a call goes on with the reading under way if that brings what it needs', async () => {
    const { reader: made, readings } = reader()
    let found = false
    const [one, other] = [made.need(() => found), made.need(() => found)]
    await settled()
    const late = made.need(() => found)
    found = true
    readings[0]?.resolve(undefined)
    await Promise.all([one, other, late])
    expect(readings).toHaveLength(1)
  })

  it('T3.5 a call that the reading under way does not help waits for the next one', async () => {
    const { reader: made, readings } = reader()
    const first = made.need(() => true)
    await settled()
    const second = made.need(() => false)
    readings[0]?.resolve(undefined)
    await first
    await settled()
    expect(readings).toHaveLength(2)
    readings[1]?.resolve(undefined)
    await second
  })

  it('T3.5 after a quick failure calls wait; after a slow one, all but the first fail at once', async () => {
    for (const [after, hopeless] of [
      [999, false],
      [1_000, true],
    ] as const) {
      const { reader: made, readings, read } = reader()
      await read('badly', after)
      const first = made.need(() => true)
      const second = made.need(() => true).catch((thrown: unknown) => thrown)
      await settled()
      readings[0]?.resolve(undefined)
      await first
      expect((await second) instanceof Error).toBe(hopeless)
    }
  })

  it('T3.5 after two quick failures no call begins a reading before it is due', async () => {
    const { reader: made, clock, readings, read } = reader()
    await read('badly')
    await read('badly')
    clock.advance(999)
    await expect(made.need(() => true)).rejects.toThrow()
    clock.advance(1)
    const due = made.need(() => true)
    await settled()
    expect(readings).toHaveLength(1)
    readings[0]?.resolve(undefined)
    await due
    // One that succeeded ends the series.
    const next = made.need(() => true)
    await settled()
    readings[1]?.resolve(undefined)
    await next
  })
})
