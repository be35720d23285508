import { argon2Sync, createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  Hasher,
  hashesAtOnce,
  hashSecret,
  parseArgon2,
  verifySecret,
} from '../../../src/identity/directory/hashing/hasher.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'

const salted = '$argon2id$v=19$m=19456,t=2,p=1$'

describe('passwords', () => {
  it('C6.3.5 are kept as argon2id with a salt of their own', async () => {
    const hasher = new Hasher()
    const [one, two] = await Promise.all([hasher.hash('alice-password'), hasher.hash('alice-password')])
    expect(one.startsWith(salted)).toBe(true)
    expect(one).not.toBe(two)
    expect(await hasher.verify('alice-password', one)).toBe(true)
    expect(await hasher.verify('alice-Password', one)).toBe(false)
    expect(await hasher.verify('', one)).toBe(false)
  })

  it('verify against hashes of other cost, as other tools write them', async () => {
    // RFC 9106's function through the reference implementation: password "password", salt "somesalt".
    const reference = '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
    expect(await new Hasher().verify('password', reference)).toBe(true)
    expect(await new Hasher().verify('passwore', reference)).toBe(false)
  })

  /** A hasher that counts what it hashes, and derives tags of the text alone, in no time. */
  function counting(options: ConstructorParameters<typeof Hasher>[0] = {}) {
    const hashed: string[] = []
    const derive = (secret: string): Promise<Buffer> => {
      hashed.push(secret)
      return Promise.resolve(createHash('sha256').update(secret).digest())
    }
    return { hasher: new Hasher({ ...options, derive }), hashed }
  }
  const COMPOSED = 'caf\u00e9-caf\u00e9-caf\u00e9'
  const DECOMPOSED = COMPOSED.normalize('NFD')

  it.each([
    [COMPOSED, COMPOSED],
    [COMPOSED, DECOMPOSED],
    [DECOMPOSED, COMPOSED],
    [DECOMPOSED, DECOMPOSED],
  ])('C6.1.5 a password that was set as %j is right as %j, and no other one is', async (set, typed) => {
    const { hasher } = counting()
    const encoded = await hasher.hash(set)
    expect(await hasher.verify(typed, encoded)).toBe(true)
    expect(await hasher.verify(typed.replaceAll('\u0301', '').replaceAll('é', 'e'), encoded)).toBe(false)
  })

  it('C6.1.5 a hash that was made of the decomposed text goes on to work, as it is typed', async () => {
    const salt = Buffer.alloc(16, 7)
    const how = { message: DECOMPOSED, nonce: salt, parallelism: 1, tagLength: 32, memory: 64, passes: 1 }
    const bare = (bytes: Buffer): string => bytes.toString('base64').replace(/=+$/, '')
    const encoded = `$argon2id$v=19$m=64,t=1,p=1$${bare(salt)}$${bare(argon2Sync('argon2id', how))}`
    expect(await new Hasher().verify(DECOMPOSED, encoded)).toBe(true)
    expect(await new Hasher().verify(COMPOSED, encoded)).toBe(false)
  })

  it('T3.9 how many hashes an attempt takes depends on the typed text alone', async () => {
    const { hasher, hashed } = counting()
    const encoded = await hasher.hash(COMPOSED)
    for (const [typed, texts] of [
      [COMPOSED, [COMPOSED]],
      [DECOMPOSED, [COMPOSED, DECOMPOSED]],
      ['plain', ['plain']],
      [`x${DECOMPOSED}`, [`x${COMPOSED}`, `x${DECOMPOSED}`]],
    ] as const)
      for (const known of [encoded, undefined, 'no hash']) {
        hashed.length = 0
        expect(await hasher.verify(typed, known)).toBe(known === encoded && texts[0] === COMPOSED)
        expect(hashed).toEqual(texts)
      }
  })

  it('T3.9 an unknown one that is not hashed waits for as many hashes', async () => {
    const waits: number[] = []
    const timer = (ms: number) => Promise.resolve(void waits.push(ms))
    const hasher = new Hasher({ atOnce: 1, timer })
    const encoded = await hasher.hash('right')
    const running = hasher.verify('right', encoded)
    await hasher.verify('x', undefined)
    await hasher.verify(DECOMPOSED, undefined)
    await running
    // What is left of the one that runs, then one or two of its own.
    expect(waits).toHaveLength(2)
    expect(waits[1]).toBeGreaterThan(waits[0]!)
  })

  it('C6.1.5 a text that would take long to be composed is compared as it was typed', async () => {
    const { hasher, hashed } = counting()
    for (const length of [1000, 1025]) {
      hashed.length = 0
      await hasher.verify('e\u0301'.repeat(length), undefined)
      expect(hashed).toHaveLength(length === 1000 ? 2 : 1)
    }
  })

  it.each([undefined, '', 'plain', '$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA'])(
    'C6.1.5 nothing fits where the hash is %j',
    async (encoded) => {
      const { hasher } = counting()
      expect(await hasher.verify('', encoded)).toBe(false)
      expect(await hasher.verify('plain', encoded)).toBe(false)
    },
  )

  it('T3.9 an unknown user costs a hash too', async () => {
    const hasher = new Hasher({ timer: () => Promise.reject(new Error('not hashed')) })
    expect(await hasher.verify('x', undefined)).toBe(false)
  })

  it('C6.3.5 T3.9 a crowd of unknown ones keeps nobody else waiting, and is answered in the time of a hash', async () => {
    const waits: number[] = []
    const timer = (ms: number) => Promise.resolve(void waits.push(ms))
    const hasher = new Hasher({ atOnce: 2, waiting: 8, timer })
    const encoded = await hasher.hash('right')
    const unknown = Array.from({ length: 200 }, () => hasher.verify('x', undefined))
    const known = Array.from({ length: 8 }, () => hasher.verify('right', encoded))
    expect(new Set(await Promise.all(known))).toEqual(new Set([true]))
    expect(new Set(await Promise.all(unknown))).toEqual(new Set([false]))
    // One of them was hashed; the others wait as long as a hash takes here.
    expect(waits).toHaveLength(199)
    expect(Math.min(...waits)).toBeGreaterThan(1)
    expect(Math.max(...waits)).toBeLessThanOrEqual(2 * Math.max(50, ...waits))
  })

  it('T3.9 where a known one is refused for the crowd, an unknown one is too', async () => {
    const hasher = new Hasher({ atOnce: 1, waiting: 1 })
    const encoded = await hasher.hash('right')
    const served = [hasher.verify('right', encoded), hasher.verify('right', encoded)]
    for (const hash of [encoded, undefined])
      await expect(hasher.verify('right', hash)).rejects.toMatchObject({ code: 'identity_unavailable' })
    await Promise.all(served)
  })

  it('C6.3.5 one name has half of the seats, so that it keeps no other out', async () => {
    const { hasher } = counting({ atOnce: 1, waiting: 4 })
    const encoded = await hasher.hash('right')
    const as = (name: string) => hasher.verify('right', encoded, { name, doubted: false })
    const served = [as('one'), as('one'), as('one')]
    await expect(as('one')).rejects.toMatchObject({ code: 'identity_unavailable' })
    served.push(as('two'), as('two'))
    expect(await Promise.all(served)).not.toContain(false)
  })

  it('C6.3.5 those that are doubted wait in a queue of their own, behind everybody else', async () => {
    const hasher = new Hasher({ atOnce: 1, waiting: 8, doubtfulWaiting: 2 })
    const encoded = await hasher.hash('right')
    const ended: string[] = []
    const as = (name: string, doubted: boolean, hash: string | undefined = encoded) =>
      hasher.verify('right', hash, { name, doubted }).then(() => void ended.push(name))
    const served = [as('first', true), as('second', true), as('third', true)]
    for (const hash of [encoded, undefined])
      await expect(as('fourth', true, hash)).rejects.toMatchObject({ code: 'identity_unavailable' })
    served.push(as('well', false), as('well too', false))
    await Promise.all(served)
    expect(ended).toEqual(['first', 'well', 'well too', 'second', 'third'])
  })

  it('C6.3.5 a full queue is refused with Retry-After, and works again after', async () => {
    const { hasher } = counting({ atOnce: 1, waiting: 2 })
    const settled = await Promise.allSettled(Array.from({ length: 5 }, () => hasher.hash('x')))
    expect(settled.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'fulfilled',
      'rejected',
      'rejected',
    ])
    const refused = settled[4] as PromiseRejectedResult
    expect(refused.reason).toBeInstanceOf(Fault)
    expect((refused.reason as Fault).facts.retryAfter).toBeGreaterThanOrEqual(1)
    await expect(hasher.hash('x')).resolves.toContain(salted)
  })

  it.each([
    [2, 4, 2],
    [1, 4, 1],
    [16, 4, 2],
    [16, 16, 14],
    [8, 1, 1],
    [8, Number.NaN, 2],
  ])('C6.3.5 leave two threads of the pool: %i cores, pool of %i → %i at once', (cores, pool, expected) => {
    expect(hashesAtOnce(cores, pool)).toBe(expected)
  })
})

describe('encodings', () => {
  it.each([
    '$argon2id$v=16$m=19456,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA',
    '$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA',
    '$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA',
    '$argon2id$v=19$m=8,t=1,p=2$c29tZXNhbHQ$AAAAAAAAAAAAAAAAAAAAAA',
    '$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ=$AAAAAAAAAAAAAAAAAAAAAA',
    '$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$',
    '$argon2id$...',
  ])('refuse %s', (encoded) => {
    expect(parseArgon2(encoded)).toBeUndefined()
  })
})

describe('generated secrets', () => {
  it('are kept as SHA-256 and compared whole', async () => {
    const encoded = hashSecret('acme-books-secret')
    expect(encoded).toMatch(/^sha256:[\w-]{43}$/)
    expect(verifySecret('acme-books-secret', encoded)).toBe(true)
    expect(verifySecret('acme-books-secre', encoded)).toBe(false)
    expect(verifySecret('acme-books-secret', encoded.slice(0, -1))).toBe(false)
    expect(await new Hasher().verify('acme-books-secret', encoded)).toBe(true)
    expect(await new Hasher().verify('other', encoded)).toBe(false)
  })
})
