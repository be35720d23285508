import { readdirSync, readFileSync, renameSync, rmSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { startWitness } from '../support/killed-service.ts'
import { ROOT, spawnPostern, type SpawnedPostern, WITHOUT_WAITS } from '../support/spawn-postern.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'

// T5.15: somebody takes files of the trail away while a service changes data.

interface Answered {
  readonly id: string
  /** Whether it was sent when the files were gone. */
  readonly sentAfter: boolean
}

async function startService(workers: number) {
  const { url, server } = await startWitness([])
  const folder = mkdtempSync(join(tmpdir(), 'postern-displaced-'))
  const config = join(folder, 'postern.yaml')
  writeFileSync(
    config,
    `extends: ${join(ROOT, 'config/upstream.yaml')}\nworkers: ${workers}\n${WITHOUT_WAITS}\n`,
  )
  const service = await spawnPostern({ config, environment: { UPSTREAM_URL: url } })
  onTestFinished(async () => {
    await service.stop()
    server.closeAllConnections()
    server.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return service
}

/** Changes data until it is told to stop. */
async function load(
  { baseUrl }: SpawnedPostern,
  token: string,
  state: { gone: boolean; stopped: boolean; readonly answered: Answered[] },
): Promise<void> {
  while (!state.stopped) {
    const sentAfter = state.gone
    const response = await fetch(`${baseUrl}/api/1.0/b/ACME/fund-data/fund-create`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` },
      body: '{"Code":"NEW1","Name":"A fund"}',
    })
    await response.arrayBuffer()
    if (response.status === 200)
      state.answered.push({ id: response.headers.get('x-request-id') ?? '', sentAfter })
  }
}

const until = async (fits: () => boolean): Promise<void> => {
  while (!fits()) await new Promise((resolve) => setTimeout(resolve, 2))
}

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

describe('T5.15 files of the trail that are taken away while it is written', () => {
  it.each([
    ...Object.keys(TAKEN).map((name) => ({ name, workers: 1 })),
    { name: 'the folder is removed', workers: 3 },
  ])(
    'C12.4.3 lose no record of what is answered afterwards; readiness and a metric tell: $name ($workers worker(s))',
    { timeout: 120_000 },
    async ({ name, workers }) => {
      const service = await startService(workers)
      const folder = join(service.data, 'audit')
      const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
      const state = { gone: false, stopped: false, answered: [] as Answered[] }
      const callers = Array.from({ length: 8 }, () => load(service, token, state))
      await until(() => state.answered.length > 50)
      for (;;)
        try {
          TAKEN[name]?.(folder)
          break
        } catch {
          // A file was made while the folder was being removed.
        }
      state.gone = true
      const after = (): readonly Answered[] => state.answered.filter(({ sentAfter }) => sentAfter)
      await until(() => after().length > 100)
      const read = async (path: string): Promise<string> => (await fetch(`${service.adminUrl}${path}`)).text()
      await vi.waitFor(
        async () => {
          expect(await read('/health/ready')).toContain('somebody removed, moved or changed a file')
          expect(await read('/metrics')).toMatch(/^postern_audit_files_displaced_total [1-9]/m)
        },
        { timeout: 30_000, interval: 200 },
      )
      state.stopped = true
      await Promise.all(callers)
      for (const event of ['call.intended', 'call.settled']) {
        const ids = idsIn(folder, event)
        expect(after().filter(({ id }) => !ids.has(id))).toEqual([])
      }
      await vi.waitFor(() => expect(service.output()).toContain('audit_file_displaced'), { timeout: 20_000 })
    },
  )
})
