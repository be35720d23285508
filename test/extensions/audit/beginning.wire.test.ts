/** What the store remembers of the beginning of a trail (T5.17 C12.4.5), and what a start finds (C12.4.4). */
import {
  appendFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { BEGINNING_KIND, beginningKey, placeOfTrail } from '../../../src/extensions/audit/format/beginning.ts'
import { escapedKey } from '../../../src/base/kernel/key-order.ts'
import { chainHash, lineOf, readChains, segmentsOf } from './support/audit-chain.ts'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { giveKey } from '../../support/ready-key.ts'
import { shared } from '../../support/shared.ts'
import { DEMO, WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { postern, startPostern, type StartedPostern } from '../../support/start-postern.ts'
import { withAudit } from '../../support/with-audit.ts'

const ON_DISK = `extends: ${DEMO}\n${WITHOUT_WAITS}\n`

/** A data folder, the services on it one after another, and the command line beside them. */
async function place(yaml = ON_DISK) {
  const data = await dataFolder()
  await giveKey(data)
  const file = configFiles({ 'a.yaml': yaml })('a.yaml')
  const environment = { POSTERN_DATA: data, POSTERN_PORT: '0', POSTERN_ADMIN_PORT: '0' }
  const folder = join(data, 'audit')
  return {
    ...{ data, folder },
    write: (changed: string) => writeFileSync(file, changed),
    serve: async <T>(use: (service: StartedPostern) => T | Promise<T>): Promise<T> => {
      const service = await startPostern({ file, data, environment })
      try {
        return await use(service)
      } finally {
        await service.close()
      }
    },
    verify: (...args: string[]) =>
      runVerb(['audit', 'verify', ...args], { env: { ...environment, POSTERN_CONFIG: file } }),
  }
}

/** A place on which a service has run once, and what its readiness said. */
const opened = shared(async () => {
  const first = await place()
  const ready = await first.serve(readiness)
  const kept = await dataFolder()
  cpSync(first.data, kept, { recursive: true })
  return { ...first, ready, kept }
})

/** The same for each test, as that service left it. */
async function begun() {
  const { kept, ...first } = await opened()
  rmSync(first.data, { recursive: true })
  cpSync(kept, first.data, { recursive: true })
  first.write(ON_DISK)
  return first
}

const ON_SQLITE = { store: { kind: 'sqlite' }, server: { listen: '127.0.0.1:0' } }

const readiness = async ({ adminUrl }: StartedPostern): Promise<string> =>
  (await fetch(`${adminUrl}/health/ready`)).text()

const eventsOf = (service: StartedPostern): readonly unknown[] => service.log().map(({ event }) => event)

describe('T5.17 C12.4.5 the beginning of a trail', () => {
  it('C12.4.5 is remembered by the store: where all is removed, the next start and verification tell', async () => {
    const { folder, ready, serve, verify } = await begun()
    expect(ready).toContain('"degraded":[]')
    expect(await verify()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('it begins as the store remembers') as string,
    })
    expect((await verify(folder)).stdout).toContain('its beginning is not anchored: folders were named')
    rmSync(folder, { recursive: true })
    expect((await verify()).code).toBe(2)
    await serve(async (service) => {
      expect(eventsOf(service)).toContain('audit_trail_replaced')
      expect(await readiness(service)).toContain('the store remembers another trail')
      const token = readFileSync(join(service.data, 'admin-token'), 'utf8').trim()
      const answer = await fetch(`${service.adminUrl}/audit/verify`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}` },
      })
      expect(await answer.json()).toMatchObject({ whole: false, beginningAnchored: false, found: 1 })
    })
    expect(await verify()).toMatchObject({
      code: 1,
      stdout: expect.stringContaining(
        'the store remembers a trail here that began with a line signed at',
      ) as string,
    })
  })

  it('C12.4.6 data that was copied elsewhere without its trail is not whole; with it, it is', async () => {
    const { data, folder } = await begun()
    const [bare, whole] = [await place(), await place()]
    for (const other of [bare, whole]) {
      cpSync(data, other.data, {
        recursive: true,
        filter: (path) => other === whole || !path.startsWith(folder),
      })
      await other.serve(async (service) => {
        const token = readFileSync(join(service.data, 'admin-token'), 'utf8').trim()
        const headers = { Authorization: `Bearer ${token}` }
        const answer = await fetch(`${service.adminUrl}/audit/verify`, { method: 'POST', headers })
        const found = other === whole ? { whole: true, found: 0 } : { whole: false, found: 1 }
        expect(await answer.json()).toMatchObject(found)
      })
    }
    expect(await whole.verify()).toMatchObject({ code: 0 })
    const missing = `the trail of the former place, ${folder}, is missing`
    expect(await bare.verify()).toMatchObject({ code: 1, stdout: expect.stringContaining(missing) as string })
  })

  it('C12.4.6 a trail that was given another folder is whole as long as the former one is where it was', async () => {
    const own = await dataFolder()
    const { folder, serve, verify, write } = await begun()
    write(ON_DISK.replace('audit: {', `audit: { folder: ${own}/other,`))
    await serve(() => undefined)
    expect(await verify()).toMatchObject({ code: 0 })
    renameSync(folder, `${folder}-gone`)
    expect(await verify()).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('the trail of the former place') as string,
    })
  })

  it('C12.4.5 is no finding where the store is older than the trail: it remembers it from the next start on', async () => {
    const { data, folder, serve, verify } = await begun()
    const store = new DatabaseSync(join(data, 'postern.sqlite'))
    const key = beginningKey(placeOfTrail(ON_SQLITE, folder))
    const removed = store
      .prepare('DELETE FROM record WHERE kind = ? AND key = ?')
      .run(BEGINNING_KIND, escapedKey(key))
    store.close()
    expect(removed.changes).toBe(1)
    expect(await verify()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(
        'its beginning is not anchored: the store remembers no trail',
      ) as string,
    })
    await serve(async (service) => expect(await readiness(service)).toContain('"degraded":[]'))
    expect((await verify()).stdout).toContain('it begins as the store remembers')
    // Of another moment: what came later changes nothing.
    mkdirSync(join(data, 'kept'))
    for (const name of readdirSync(data).filter((each) => each.startsWith('postern.sqlite')))
      cpSync(join(data, name), join(data, 'kept', name))
    await serve(() => undefined)
    cpSync(join(data, 'kept'), data, { recursive: true })
    expect(await verify()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('it begins as the store remembers') as string,
    })
  })

  it('C12.4.5 is not anchored with a store in memory', async () => {
    const { serve, verify } = await place(
      `extends: ${DEMO}\nstore: { kind: memory }\nserver: { timeouts: { lameDuck: 0s, silence: 0s } }\n`,
    )
    await serve(async (service) => expect(await readiness(service)).toContain('"degraded":[]'))
    expect(await verify()).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('its beginning is not anchored: the store is in memory') as string,
    })
  })
})

it('C12.4.5 C11.2 the beginning is not anchored in a sidecar, whose store is in memory', async () => {
  const issuer = await postern({ keeps: 'nothing' })
  const token = 'a-token-of-this-test-0123456789'
  const folder = await dataFolder()
  const sidecar = await postern({
    config: 'sidecar.yaml',
    environment: {
      UPSTREAM_URL: 'http://127.0.0.1:1',
      ISSUER: issuer.authUrl,
      ISSUER_JWKS: `${issuer.authUrl}/.well-known/jwks.json`,
      AUDIENCE: issuer.baseUrl,
    },
    change: (configuration) =>
      withAudit({ ...configuration, admin: { ...configuration.admin, token } }, { folder }),
  })
  const headers = { Authorization: `Bearer ${token}` }
  const answer = await fetch(`${sidecar.adminUrl}/audit/verify`, { method: 'POST', headers })
  expect(await answer.json()).toMatchObject({ whole: true, beginningAnchored: false })
})

describe('C12.4.4 a start without the manifest', () => {
  it('C12.4.4 begins another, and the trail is not whole', async () => {
    const { folder, serve, verify } = await begun()
    renameSync(join(folder, 'manifest.jsonl'), join(folder, 'moved'))
    await serve((service) => expect(eventsOf(service)).toContain('audit_trail_replaced'))
    for (const args of [[], [folder]])
      expect(await verify(...args)).toMatchObject({
        code: 1,
        stdout: expect.stringContaining('the manifest does not have the trail of this name') as string,
      })
  })
})

describe('T5.17 C12.4.4 records that somebody adds', () => {
  /** A record that follows the last one of the trail, hash by hash: that takes no key. */
  function addRecord(folder: string): number {
    const [segments = []] = segmentsOf(folder).values()
    const { name = '', records = [] } = segments.at(-1) ?? {}
    const last = records.at(-1)
    const line = readFileSync(join(folder, name), 'utf8').trimEnd().split('\n').at(-1) ?? ''
    const text = line
      .replace(/,"hash":"[^"]*"}$/, '}')
      .replace(`"seq":${last?.seq}`, `"seq":${(last?.seq ?? 0) + 1}`)
      .replace('"writer.closed"', '"store.backed_up"')
    appendFileSync(join(folder, name), lineOf(text, chainHash(last?.hash ?? '', text)))
    return last?.seq ?? 0
  }

  it('C12.4.4 behind the end that a service has signed are signed by no start, and named', async () => {
    const { folder, serve, verify } = await begun()
    const end = addRecord(folder)
    expect(readChains(folder).size).toBe(1)
    const found = {
      code: 1,
      stdout: expect.stringContaining(`records were added behind record ${end}`) as string,
    }
    expect(await verify()).toMatchObject(found)
    await serve(async ({ data, adminUrl }) => {
      const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
      const headers = { Authorization: `Bearer ${token}` }
      const answer = await fetch(`${adminUrl}/audit/verify`, { method: 'POST', headers })
      expect(await answer.json()).toMatchObject({ whole: false, foundLate: 0 })
    })
    expect(await verify()).toMatchObject(found)
  })

  it('C12.4.4 in a file of another name are signed by no start, and named', async () => {
    const { folder, serve, verify } = await begun()
    const [segments = []] = segmentsOf(folder).values()
    const name = segments[0]?.name ?? ''
    const another = name.replace(/[^/]+(?=\.\d+\.jsonl$)/, '20200101T000000Z-AAAAAAAA')
    for (const kind of ['.jsonl', '.personal.jsonl'])
      cpSync(join(folder, name.replace('.jsonl', kind)), join(folder, another.replace('.jsonl', kind)))
    await serve(() => undefined)
    expect(await verify()).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('the manifest does not have the trail of this name') as string,
    })
    expect(readFileSync(join(folder, 'manifest.jsonl'), 'utf8')).not.toContain('20200101T000000Z')
  })
})
