import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { keysVerb } from '../../../src/cli/keys.ts'
import type { Terminal } from '../../../src/cli/verb.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { recallKeys } from '../../../src/keys/key-history.ts'
import { openKeys } from '../../../src/keys/open-keys.ts'
import { planKeys } from '../../../src/keys/config.ts'
import { openStore } from '../../../src/stores/open-store.ts'

const ROTATION = { automatic: true, every: 30 * 86_400_000, announce: 86_400_000 }

async function newData(): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'postern-keys-'))
  onTestFinished(() => rm(data, { recursive: true }))
  return data
}

const openIn = (data: string) => openKeys(planKeys(data, { rotation: ROTATION }), systemClock)

async function run(data: string, ...args: readonly string[]) {
  const told = { stdout: '', stderr: '' }
  const write = (name: 'stdout' | 'stderr') => ({ write: (text: string) => (told[name] += text) !== '' })
  const terminal = {
    env: { POSTERN_DATA: data },
    stdout: write('stdout'),
    stderr: write('stderr'),
  } as unknown as Terminal
  return { code: await keysVerb.run(args, terminal), ...told }
}

const keyFiles = async (data: string): Promise<readonly string[]> =>
  (await readdir(join(data, 'keys'))).filter((name) => name.endsWith('.jwk')).sort()

describe('postern keys', () => {
  it('C6.3.4 lists every key, where it stands and from when it signs; nothing secret', async () => {
    const data = await newData()
    const [kid] = (await openIn(data)).kids
    const { code, stdout } = await run(data, 'list')
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^ES256-1\.jwk +signing +[\w-]{43} {2}signs from \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/m,
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
    await keys.look()
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
    const store = await openStore({ kind: 'sqlite', synchronous: 'normal' }, data, systemClock)
    await recallKeys(keys, store)
    await store.close()
    const { code, stdout } = await run(data, 'doctor')
    expect([code, stdout]).toEqual([
      0,
      '  ok ES256-1.jwk signs ES256.\n  ok RS256-1.jwk signs RS256.\n  ok The store knows these keys.\n',
    ])
  })

  it('C6.3.4 doctor tells of another installation’s keys, of damage and of left-overs', async () => {
    const [data, other] = [await newData(), await newData()]
    const store = await openStore({ kind: 'sqlite', synchronous: 'normal' }, data, systemClock)
    await recallKeys(await openIn(other), store)
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
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^WARN .*first start makes it/)])
    expect(await readdir(data)).toEqual([])
  })

  it('refuses another word', async () => {
    await expect(run(await newData(), 'drop')).rejects.toThrow('expected one of list, rotate, doctor')
  })
})
