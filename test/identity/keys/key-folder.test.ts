import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { calculateJwkThumbprint, compactVerify, importJWK } from 'jose'
import { describe, expect, it, onTestFinished } from 'vitest'
import { FolderKeys } from '../../../src/identity/keys/signing/folder-keys.ts'
import { KeyError } from '../../../src/base/kernel/key-error.ts'
import { openKeys } from '../../../src/identity/keys/signing/service-keys.ts'
import { CLAIMS, clockAt, NOW, ROTATION } from '../../support/keys-for-tests.ts'

async function newFolder(): Promise<string> {
  const data = await mkdtemp(join(tmpdir(), 'postern-keys-'))
  onTestFinished(() => rm(data, { recursive: true }))
  return join(data, 'keys')
}

const open = (folder: string): ReturnType<typeof openKeys> =>
  openKeys(
    { place: new FolderKeys(folder), algorithms: ['ES256', 'RS256'], rotation: ROTATION },
    clockAt(NOW),
  )
const ids = async (folder: string): Promise<unknown[]> =>
  (await open(folder)).jwks().keys.map((key) => key['kid'])
const keyFiles = async (folder: string): Promise<string[]> =>
  (await readdir(folder)).filter((name) => name.endsWith('.jwk')).sort()
const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777

const refusal = async (folder: string): Promise<string> => {
  const thrown: unknown = await open(folder).catch((error: unknown) => error)
  expect(thrown).toBeInstanceOf(KeyError)
  return (thrown as KeyError).message
}

describe('the key folder', () => {
  it('C6.3.4 gets a key per algorithm on first start, for its owner only', async () => {
    const folder = await newFolder()
    await open(folder)
    expect(await keyFiles(folder)).toEqual(['ES256-1.jwk', 'RS256-1.jwk'])
    expect(await modeOf(folder)).toBe(0o700)
    expect(await modeOf(join(folder, 'ES256-1.jwk'))).toBe(0o600)
    expect(await modeOf(join(folder, 'RS256-1.jwk'))).toBe(0o600)
  })

  it('C6.3.4 is used again after', async () => {
    const folder = await newFolder()
    expect(await ids(folder)).toEqual(await ids(folder))
  })

  it('gives one key per algorithm to processes that start at once', async () => {
    const folder = await newFolder()
    const seen = await Promise.all(Array.from({ length: 4 }, () => ids(folder)))
    for (const each of seen) expect(each.sort()).toEqual([...(seen[0] ?? [])].sort())
    expect(await keyFiles(folder)).toHaveLength(2)
  })

  it.each([0o640, 0o604, 0o644, 0o660, 0o610])('T7 refuses a key file of mode %o', async (mode) => {
    const folder = await newFolder()
    await open(folder)
    await chmod(join(folder, 'RS256-1.jwk'), mode)
    expect(await refusal(folder)).toMatch(/signing key file .*RS256-1\.jwk is open to other users/)
  })

  it('T7 refuses a folder that others may write to', async () => {
    const folder = await newFolder()
    await open(folder)
    await chmod(folder, 0o777)
    expect(await refusal(folder)).toMatch(/folder of the signing keys/)
  })

  it('T7 refuses a path that is no folder', async () => {
    const folder = await newFolder()
    await writeFile(folder, '')
    expect(await refusal(folder)).toMatch(/folder of the signing keys/)
  })

  it.each([
    ['empty', () => ''],
    ['half', (text: string) => text.slice(0, text.length / 2)],
    ['no object', () => 'null'],
    ['without its private half', (text: string) => JSON.stringify({ ...JSON.parse(text), d: undefined })],
    ['made for another algorithm', (text: string) => text.replace('"alg": "ES256"', '"alg": "ES384"')],
    ['of another type', (text: string) => text.replace('"kty": "EC"', '"kty": "oct"')],
  ])('T7 refuses a key file that is %s', async (_, damage) => {
    const folder = await newFolder()
    await open(folder)
    const path = join(folder, 'ES256-1.jwk')
    const text = await readFile(path, 'utf8')
    await writeFile(path, damage(text))
    const message = await refusal(folder)
    expect(message).toMatch(/signing key file .*ES256-1\.jwk is damaged or no ES256 key/)
    expect(message).not.toContain((JSON.parse(text) as { d: string }).d.slice(0, 6))
  })

  it('T7 refuses halves that do not belong together', async () => {
    const folders = [await newFolder(), await newFolder()] as const
    await Promise.all(folders.map(open))
    const [one, other] = folders.map((folder) => join(folder, 'ES256-1.jwk')) as [string, string]
    const strange = {
      ...JSON.parse(await readFile(one, 'utf8')),
      d: JSON.parse(await readFile(other, 'utf8')).d,
    }
    await writeFile(one, JSON.stringify(strange))
    expect(await refusal(folders[0])).toMatch(/damaged/)
  })

  it('leaves other files alone', async () => {
    const folder = await newFolder()
    await open(folder)
    await writeFile(join(folder, '.ES256-1.jwk.left-over'), 'x')
    await writeFile(join(folder, 'README'), 'x')
    expect(await ids(folder)).toHaveLength(2)
  })
})

describe('the published keys', () => {
  it('C6.3.2 hold public members, kid by RFC 7638, use and alg, and no private member', async () => {
    const { keys } = (await open(await newFolder())).jwks()
    expect(keys.map((key) => Object.keys(key).sort())).toEqual([
      ['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y'],
      ['alg', 'e', 'kid', 'kty', 'n', 'use'],
    ])
    for (const key of keys) expect(key['kid']).toBe(await calculateJwkThumbprint({ ...key }))
  })

  it('C6.1.8 verify what was signed, with the typ and kid that the header says', async () => {
    const ring = await open(await newFolder())
    for (const algorithm of ['ES256', 'RS256'] as const) {
      const { token } = await ring.sign(CLAIMS, { typ: 'at+jwt', algorithm })
      const published = ring.jwks().keys.find((key) => key['alg'] === algorithm)
      const { payload, protectedHeader } = await compactVerify(token, await importJWK({ ...published }))
      expect(JSON.parse(Buffer.from(payload).toString())).toEqual(CLAIMS)
      expect(protectedHeader).toEqual({ alg: algorithm, typ: 'at+jwt', kid: published?.['kid'] })
    }
  })
})
