import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openIntents, readTrail, segmentsOf } from './support/audit-chain.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { needing } from '../../support/machine.ts'
import { bearer, expectFault, send } from '../../support/requests.ts'
import { atEnd, shared } from '../../support/shared.ts'
import { smallDisk } from '../../support/small-disk.ts'
import { DEMO, ROOT, spawnPostern } from '../../support/spawn-postern.ts'
import { postern } from '../../support/start-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import type { DiskTrouble } from './support/troubled-audit.ts'
import { withAudit } from '../../support/with-audit.ts'

const CREATE = '/api/1.0/b/ACME/fund-data/fund-create'
const LIST = '/api/1.0/b/ACME/fund-data/fund-list'

/** Calls a service as alice: which funds there are, and one more. */
async function caller(service: { readonly port: number; readonly authUrl: string }) {
  const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
  const headers = { ...bearer(token), 'Content-Type': 'application/json' }
  return {
    create: (code: string) =>
      send(service, {
        method: 'POST',
        target: CREATE,
        headers,
        body: JSON.stringify({ Code: code, Name: 'A fund' }),
      }),
    list: async (): Promise<string> => {
      const response = await send(service, { target: LIST, headers: bearer(token) })
      expect(response.status).toBe(200)
      return response.body
    },
  }
}

/** A service whose trail has a disk that can be given trouble; `alice` calls it. `timeout`: of its records. */
const troubled = shared(async (timeout: string) => {
  const node = ['--require', join(ROOT, 'test/extensions/audit/support/troubled-audit.ts')]
  const config = configFiles({
    'a.yaml': `extends: ${DEMO}\nstore: { kind: memory }\naudit: { timeout: ${timeout} }\n`,
  })('a.yaml')
  const service = await spawnPostern({ node, config })
  atEnd(async () => {
    await service.stop()
  })
  const file = join(service.data, 'audit.trouble')
  return {
    service,
    alice: await caller(service),
    folder: join(service.data, 'audit'),
    begin: (trouble: DiskTrouble) => writeFileSync(file, trouble),
    end: () => rmSync(file, { force: true }),
  }
})

const untilCreated = (alice: Awaited<ReturnType<typeof caller>>, code: string) =>
  eventually(async () => expect((await alice.create(code)).status).toBe(200))

describe('C12.1.2 a change whose record cannot be kept', () => {
  it.each([
    ['frozen', 'records are late', '2s'],
    ['read-only', 'records cannot be written', '20s'],
  ] as const)(
    'is refused while the disk is %s, and readiness says that %s; reads go on, and changes do when it is well again',
    async (trouble, told, timeout) => {
      const { service, alice, folder, begin, end } = await troubled(timeout)
      expect((await alice.create('BEFORE')).status).toBe(200)
      begin(trouble)
      expectFault(await alice.create('DURING'), 'audit_unavailable')
      expect(await alice.list()).not.toContain('DURING')
      // C12.4.3: the service is ready, and says what works badly.
      const readiness = async () => {
        const response = await fetch(`${service.adminUrl}/health/ready`)
        return { status: response.status, text: await response.text() }
      }
      expect(await readiness()).toMatchObject({
        status: 200,
        text: expect.stringContaining(told) as string,
      })
      end()
      await untilCreated(alice, 'AFTER')
      await eventually(async () => expect((await readiness()).text).toContain('"degraded":[]'))
      const funds = await alice.list()
      expect(funds).toContain('AFTER')
      expect(funds).not.toContain('DURING')
      // The refused intent may have been written late: it is not left open.
      await eventually(() => expect(openIntents(folder)).toEqual([]))
    },
  )

  it(
    'is refused while the disk is full; reads go on, and changes do when it has room again',
    needing('a small disk'),
    async () => {
      const disk = await smallDisk()
      const folder = join(disk.folder, 'audit')
      const service = await postern({
        keeps: 'trail',
        change: (all) => withAudit(all, { folder }),
      })
      const alice = await caller(service)
      expect((await alice.create('BEFORE')).status).toBe(200)
      disk.fill()
      const refused = await eventually(async () => {
        const response = await alice.create(`DURING${Math.random()}`.replace('.', ''))
        expect(response.status).toBe(503)
        return response
      })
      expectFault(refused, 'audit_unavailable')
      const before = await alice.list()
      expectFault(await alice.create('NEVER'), 'audit_unavailable')
      expect(await alice.list()).toBe(before)
      disk.empty()
      await untilCreated(alice, 'AFTER')
      const records = readTrail(folder)
      expect(records.filter(({ event }) => event === 'writer.opened').length).toBeGreaterThan(1)
      expect(service.log().map(({ event }) => event)).toEqual(
        expect.arrayContaining(['audit_unwritable', 'audit_writable']),
      )
    },
  )
})

describe('C12.4.3 a segment', () => {
  it.each(['failing sync', 'short write'] as const)(
    'is left after a %s, and nobody notices: what was not durable is written to the next',
    async (trouble) => {
      const { service, alice, folder, begin } = await troubled('20s')
      const found = () => ({
        intents: readTrail(folder).filter(({ event }) => event === 'call.intended').length,
        segments: [...segmentsOf(folder).values()].flat().length,
      })
      const [before, told] = [found(), service.output().length]
      const createAll = async (...codes: readonly string[]) => {
        for (const code of codes)
          expect((await alice.create(code + trouble.slice(0, 5).toUpperCase())).status).toBe(200)
      }
      await createAll('ONE', 'TWO')
      begin(trouble)
      await createAll('THREE', 'FOUR')
      await eventually(() => expect(service.output().slice(told)).toContain('audit_segment_abandoned'))
      expect(found()).toEqual({ intents: before.intents + 4, segments: before.segments + 1 })
      expect(openIntents(folder)).toEqual([])
    },
  )

  it('that may not grow any more is left at its last whole record (ulimit -f)', async () => {
    const folder = await dataFolder()
    const program = `ulimit -f 8; exec "$0" "$1" "$2"`
    const args = [
      '-c',
      program,
      process.execPath,
      join(ROOT, 'test/extensions/audit/support/audit-writer.ts'),
      folder,
    ]
    const child = spawn('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] })
    let told = ''
    child.stdout.on('data', (chunk: Buffer) => (told += chunk.toString()))
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(told).toBe('200 recorded\n')
    expect(readTrail(folder).filter(({ event }) => event === 'call.intended')).toHaveLength(200)
    const [segments = []] = segmentsOf(folder).values()
    expect(segments.length).toBeGreaterThan(5)
  })
})
