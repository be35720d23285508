import { eventually } from '../../support/eventually.ts'
import { readdirSync, readFileSync, renameSync, rmSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { startWitness } from './support/killed-service.ts'
import { sized } from '../../support/long.ts'
import { ROOT, spawnPostern, type SpawnedPostern, WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'

// T5.15: somebody takes files of the trail away while a service changes data.

/** How many change data at once, and the answers before files are taken away and of what is sent behind that. */
const CALLERS = sized(4, 8)
const BEFORE = sized(10, 50)
const AFTER = sized(20, 100)

interface Answered {
  readonly id: string
  /** Whether it was sent when the files were gone. */
  readonly sentAfter: boolean
}

/** A service that changes data at an upstream, for all tests of a group: each takes away files that are new then. */
function shareService(workers: number): () => { readonly service: SpawnedPostern; readonly token: string } {
  let shared: { readonly service: SpawnedPostern; readonly token: string }
  const folder = mkdtempSync(join(tmpdir(), 'postern-displaced-'))
  const config = join(folder, 'postern.yaml')
  beforeAll(async () => {
    const { url, server } = await startWitness([])
    closing.push(() => {
      server.closeAllConnections()
      server.close()
    })
    writeFileSync(
      config,
      `extends: ${join(ROOT, 'config/upstream.yaml')}\nworkers: ${workers}\n${WITHOUT_WAITS}\n`,
    )
    const service = await spawnPostern({ config, environment: { UPSTREAM_URL: url } })
    closing.unshift(() => service.stop())
    const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
    shared = { service, token }
  })
  const closing: (() => unknown)[] = []
  afterAll(async () => {
    for (const close of closing) await close()
    rmSync(folder, { recursive: true, force: true })
  })
  return () => shared
}

/** Changes data until it is told to stop. */
async function load(
  { baseUrl }: SpawnedPostern,
  token: string,
  state: { gone: boolean; stopped: boolean; readonly answered: Answered[]; after: number },
): Promise<void> {
  while (!state.stopped) {
    const sentAfter = state.gone
    const response = await fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-create`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: '{"Code":"NEW1","Name":"A fund"}',
    })
    await response.arrayBuffer()
    if (response.status !== 200) continue
    state.answered.push({ id: response.headers.get('x-request-id') ?? '', sentAfter })
    if (sentAfter) state.after += 1
  }
}

const until = (fits: () => boolean): Promise<void> =>
  eventually(() => {
    if (!fits()) throw new Error('not yet')
  })

/** The ids of the records of an event, by what stands in the folder. */
function idsIn(folder: string, event: string): ReadonlySet<string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const lines = names
    .filter((name) => /\.\d+\.jsonl$/.test(name))
    .flatMap((name) => readFileSync(join(folder, name), 'utf8').split('\n'))
    .filter((line) => line.includes(`"event":"${event}"`))
  return new Set(lines.map((line) => /"requestId":"([^"]+)"/.exec(line)?.[1] ?? ''))
}

const eachSegment = (folder: string, work: (path: string) => void): void => {
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
    if (/\.jsonl$/.test(name) && !name.startsWith('manifest')) work(join(folder, name))
}

const TAKEN: Readonly<Record<string, (folder: string) => void>> = {
  'the folder is removed': (folder) => rmSync(folder, { recursive: true }),
  'the folder is moved': (folder) => renameSync(folder, `${folder}-moved`),
  'all segments are removed': (folder) => eachSegment(folder, (path) => rmSync(path)),
  'all personal files are moved': (folder) =>
    eachSegment(folder, (path) => path.includes('.personal.') && renameSync(path, `${path}.old`)),
  'the manifest is removed': (folder) => rmSync(join(folder, 'manifest.jsonl')),
}

/** How often a file was missed so far, as the log and the metric tell. */
async function missed(service: SpawnedPostern): Promise<{ logged: number; counted: number }> {
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text()
  return {
    logged: service.output().split('audit_file_displaced').length - 1,
    counted: Number(/^postern_audit_files_displaced_total (\d+)/m.exec(metrics)?.[1] ?? 0),
  }
}

describe.each([
  { workers: 1, cases: Object.keys(TAKEN) },
  { workers: sized(2, 3), cases: ['the folder is removed'] },
])(
  'T5.15 files of the trail that are taken away while it is written by $workers worker(s)',
  ({ workers, cases }) => {
    const shared = shareService(workers)
    it.each(cases)(
      'C12.4.3 lose no record of what is answered afterwards; readiness and a metric tell: %s',
      async (name) => {
        const { service, token } = shared()
        const folder = join(service.data, 'audit')
        const before = await missed(service)
        const state = { gone: false, stopped: false, answered: [] as Answered[], after: 0 }
        onTestFinished(() => void (state.stopped = true))
        const callers = Array.from({ length: CALLERS }, () => load(service, token, state))
        await until(() => state.answered.length > BEFORE)
        for (;;)
          try {
            TAKEN[name]?.(folder)
            break
          } catch {
            // A file was made while the folder was being removed.
          }
        state.gone = true
        await until(() => state.after > AFTER)
        state.stopped = true
        await Promise.all(callers)
        await eventually(async () => {
          const { counted, logged } = await missed(service)
          expect(counted).toBeGreaterThan(before.counted)
          expect(logged).toBeGreaterThan(before.logged)
          const ready = await (await fetch(`${service.adminUrl}/health/ready`)).text()
          expect(ready).toContain('somebody removed, moved or changed a file')
        })
        const after = state.answered.filter(({ sentAfter }) => sentAfter)
        for (const event of ['call.intended', 'call.settled']) {
          const ids = idsIn(folder, event)
          expect(after.filter(({ id }) => !ids.has(id))).toEqual([])
        }
        rmSync(`${folder}-moved`, { recursive: true, force: true })
      },
    )
  },
)
