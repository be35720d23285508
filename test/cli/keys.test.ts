import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { FolderKeys } from '../../src/identity/keys/signing/folder-keys.ts'
import { planKeys } from '../../src/identity/keys/signing/schema.ts'
import { openKeys } from '../../src/identity/keys/signing/service-keys.ts'
import { compareWithHistory } from '../../src/identity/keys/signing/watch-keys.ts'
import { openStore } from '../../src/state/stores/open-store.ts'
import { runVerb } from '../support/command-line.ts'
import { PATIENT_STORE } from '../support/patient-store.ts'

const ROTATION = { automatic: true, every: 30 * 86_400_000, announce: 86_400_000 }

async function newData(): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'postern-keys-'))
  onTestFinished(() => rm(data, { recursive: true }))
  return data
}

const openIn = (data: string) =>
  openKeys(planKeys(new FolderKeys(join(data, 'keys')), { rotation: ROTATION }), systemClock)

const run = (data: string, ...args: readonly string[]) =>
  runVerb(['keys', ...args], { env: { POSTERN_DATA: data } })

/** With somebody at the terminal who types a line. */
const runTyping = (data: string, line: string, ...args: readonly string[]) => {
  const stdin = Object.assign(new PassThrough(), { isTTY: true })
  stdin.end(`${line}\n`)
  return runVerb(['keys', ...args], { env: { POSTERN_DATA: data }, stdin })
}

const keyFiles = async (data: string): Promise<readonly string[]> =>
  (await readdir(join(data, 'keys'))).filter((name) => name.endsWith('.jwk')).sort()

describe('postern keys', () => {
  it('C6.3.4 rewrap is for keys that are sealed: those of a folder are not', async () => {
    const data = await newData()
    const { code, stderr } = await run(data, 'rewrap')
    expect(code).toBe(2)
    expect(stderr).toBe(`postern: the keys are in the folder ${join(data, 'keys')}, and not sealed\n`)
  })

  it('C6.3.4 lists every key, where it stands and from when it signs; nothing secret', async () => {
    const data = await newData()
    const [kid] = (await openIn(data)).kids
    const { code, stdout } = await run(data, 'list')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^ES256-1\.jwk +signing +[\w-]{43} {2}signs from \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}until \d{4}-\S+Z$/m,
    )
    expect(stdout).toContain(kid)
    expect(stdout).not.toMatch(/"d"|private/)
  })

  it('C6.3.4 rotate makes the next keys, which are announced before they sign', async () => {
    const data = await newData()
    const keys = await openIn(data)
    const before = keys.kids
    expect((await run(data, 'rotate')).code).toBe(0)
    expect(await keyFiles(data)).toEqual(['ES256-1.jwk', 'ES256-2.jwk', 'RS256-1.jwk', 'RS256-2.jwk'])
    await keys.refresh()
    expect(keys.kids).toHaveLength(4)
    const signing = keys.schedule().filter(({ state }) => state === 'signing')
    expect(signing.map(({ key }) => key.kid).sort()).toEqual([...before].sort())
    const { stdout } = await run(data, 'list')
    expect(stdout).toMatch(/ES256-1\.jwk +signing .* published until/)
    expect(stdout).toMatch(/ES256-2\.jwk +announced/)
  })

  it('C6.3.4 doctor finds nothing wrong with keys in use, and exits 0', async () => {
    const data = await newData()
    const keys = await openIn(data)
    const store = await openStore(PATIENT_STORE, data, systemClock)
    await compareWithHistory(keys, store)
    await store.close()
    const { code, stdout } = await run(data, 'doctor')
    expect([code, stdout]).toEqual([
      0,
      '  ok ES256-1.jwk signs ES256.\n  ok RS256-1.jwk signs RS256.\n  ok The store knows these keys.\n',
    ])
  })

  it('C6.3.4 doctor tells of another installation’s keys, of damage and of left-overs', async () => {
    const [data, other] = [await newData(), await newData()]
    const store = await openStore(PATIENT_STORE, data, systemClock)
    await compareWithHistory(await openIn(other), store)
    await store.close()
    await openIn(data)
    await writeFile(join(data, 'keys', '.ES256-2.jwk.AAAAAAAAAAAA'), '')
    const foreign = await run(data, 'doctor')
    expect(foreign.code).toBe(1)
    expect(foreign.stdout).toMatch(/FAIL The store remembers other keys/)
    expect(foreign.stdout).toMatch(/WARN \.ES256-2\.jwk\.A+ was left/)
    await writeFile(join(data, 'keys', 'ES256-1.jwk'), '{}')
    const damaged = await run(data, 'doctor')
    expect([damaged.code, damaged.stdout]).toEqual([1, expect.stringMatching(/^FAIL .*damaged/)])
  })

  it('C6.3.4 doctor makes nothing where there is nothing', async () => {
    const data = await newData()
    const { code, stdout } = await run(data, 'doctor')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^WARN .*first start creates it/)])
    expect(await readdir(data)).toEqual([])
  })

  const families = async (data: string, count: number): Promise<void> => {
    const store = await openStore(PATIENT_STORE, data, systemClock)
    for (let at = 0; at < count; at++)
      await store.create('refresh_family', `family-${at}`, {
        value: { client: 'acme-books' },
        expiresAt: Date.now() + 60_000,
        indexes: { family: `family-${at}` },
      })
    await store.close()
  }
  const secretOf = (data: string): Promise<string> =>
    readFile(join(data, 'keys', 'successors.secret'), 'utf8')

  it('T3.10 rotate --compromised replaces keys and secret, and ends all families; it says how many', async () => {
    const data = await newData()
    const kids = (await openIn(data)).kids
    const secret = await secretOf(data)
    await families(data, 3)
    const { code, stdout } = await run(data, 'rotate', '--compromised', '--yes')
    expect(code).toBe(0)
    expect(stdout).toContain('3 families of refresh tokens will end')
    expect(stdout).toContain('3 families of refresh tokens ended\n')
    expect(stdout).toMatch(/^ES256-1\.jwk: removed/m)
    expect(await keyFiles(data)).toEqual(['ES256-2.jwk', 'RS256-2.jwk'])
    expect(await secretOf(data)).not.toBe(secret)
    const keys = await openIn(data)
    expect(keys.kids.some((kid) => kids.includes(kid))).toBe(false)
    // At once: there is nothing to announce them beside.
    expect(keys.schedule().map(({ state }) => state)).toEqual(['signing', 'signing'])
    expect((await run(data, 'rotate', '--compromised', '--yes')).stdout).toContain('0 families')
    // The store takes them for its own: no start will warn of a foreign folder.
    expect(await run(data, 'doctor')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('ok The store'),
    })
  })

  it('T3.10 rotate --compromised asks first, and changes nothing unless the answer is yes', async () => {
    const data = await newData()
    await openIn(data)
    const secret = await secretOf(data)
    await families(data, 2)
    const refused = await runTyping(data, 'no', 'rotate', '--compromised')
    expect([refused.code, refused.stdout]).toEqual([
      2,
      expect.stringMatching(/2 families .*nothing was changed/s),
    ])
    expect(await run(data, 'rotate', '--compromised')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('add --yes'),
    })
    expect(await keyFiles(data)).toEqual(['ES256-1.jwk', 'RS256-1.jwk'])
    expect(await secretOf(data)).toBe(secret)
    const done = await runTyping(data, 'yes', 'rotate', '--compromised')
    expect([done.code, done.stdout]).toEqual([
      0,
      expect.stringContaining('2 families of refresh tokens ended'),
    ])
    expect(await keyFiles(data)).toEqual(['ES256-2.jwk', 'RS256-2.jwk'])
  })

  it('T3.10 rotate --compromised replaces the keys though the store is damaged, or a key is; and says so', async () => {
    const data = await newData()
    await openIn(data)
    await writeFile(join(data, 'postern.sqlite'), 'no database at all')
    await writeFile(join(data, 'keys', 'RS256-1.jwk'), '{}')
    const { code, stdout, stderr } = await run(data, 'rotate', '--compromised', '--yes')
    expect(code).toBe(1)
    expect(stdout).toContain('could not be counted')
    expect(stderr).toContain('could not be ended')
    expect(await keyFiles(data)).toEqual(['ES256-2.jwk', 'RS256-2.jwk'])
  })

  it('refuses another word', async () => {
    expect(await run(await newData(), 'drop')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('expected one of list, rotate, doctor'),
    })
  })
})
