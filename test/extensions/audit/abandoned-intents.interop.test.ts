/** What the metrics tell of changes that were under way when a process was killed: nobody writes their outcomes. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { spawnVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { becomes } from '../../support/metrics.ts'
import { spawnPostern, type SpawnedPostern, WITHOUT_WAITS } from '../../support/spawn-postern.ts'
import { startUpstream } from '../../support/start-upstream.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import { childrenOf, poolConfig } from '../../support/worker-pool.ts'

const LONG = 180_000
const ABANDONED = 'audit_abandoned_intents'

/** Begins a change that its upstream never answers. */
async function beginChange(service: SpawnedPostern): Promise<void> {
  const { access_token: token } = await issueToken(service, { scope: ALL_AT_ACME })
  const cut = fetch(`${service.baseUrl}/api/1.0/b/ACME/fund-data/fund-create`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: '{"Code":"NEW1","Name":"A fund"}',
  })
  cut.catch(() => undefined)
  await becomes(service, 'audit_open_intents', 1)
}

/** A service of two workers before a silent upstream. Each start has the same data folder. */
async function killable() {
  const upstream = await startUpstream(() => undefined)
  const at = configFiles({ 'postern.yaml': poolConfig(upstream.url, WITHOUT_WAITS) })
  const data = await dataFolder()
  const start = async (): Promise<SpawnedPostern> => {
    const environment = { POSTERN_DATA: data }
    const service = await spawnPostern({ config: at('postern.yaml'), environment, detached: true })
    onTestFinished(async () => {
      await service.stop()
    })
    return service
  }
  const ask = async ({ adminUrl }: SpawnedPostern, query: string): Promise<string> => {
    const token = readFileSync(join(data, 'admin-token'), 'utf8').trim()
    const response = await fetch(`${adminUrl}${query}`, { headers: { Authorization: `Bearer ${token}` } })
    expect(response.status).toBe(200)
    return response.text()
  }
  /** What `postern audit open` shows by itself: no service may run. */
  const showOpen = async (...more: string[]) => {
    const args = ['audit', 'open', '--jsonl', ...more, '--config', at('postern.yaml')]
    const { code, stdout } = await spawnVerb(args, { env: { POSTERN_DATA: data } })
    return { code, lines: stdout.split('\n').filter(Boolean) }
  }
  return { start, ask, showOpen, upstream }
}

/** One after the other, so that one of them always listens. */
async function killWorkers(service: SpawnedPostern): Promise<void> {
  for (const [index, worker] of childrenOf(service.pid).entries()) {
    process.kill(worker, 'SIGKILL')
    await becomes(service, 'worker_deaths_total', index + 1)
    await becomes(service, 'workers{state="serving"}', 2)
  }
}

const killAll = ({ pid }: SpawnedPostern): void => void process.kill(-pid, 'SIGKILL')

describe('C11.1 C12.1.3 changes that were under way when their process was killed', { timeout: LONG }, () => {
  it('are counted for workers and for a whole service, over restarts, until somebody has asked', async () => {
    const { start, ask, upstream } = await killable()
    const first = await start()
    await becomes(first, ABANDONED, 0)
    await becomes(first, 'workers{state="serving"}', 2)
    await beginChange(first)
    await upstream.received(1)
    await killWorkers(first)
    await becomes(first, ABANDONED, 1)
    await becomes(first, 'audit_open_intents', 0)
    expect((JSON.parse(await ask(first, '/audit/open')) as { rows: unknown[] }).rows).toHaveLength(1)
    await becomes(first, ABANDONED, 0)
    await beginChange(first)
    await upstream.received(2)
    killAll(first)
    const second = await start()
    await becomes(second, ABANDONED, 1)
    killAll(second)
    const third = await start()
    await becomes(third, ABANDONED, 1)
    await ask(third, '/audit?outcome=open&business=ACME')
    await becomes(third, ABANDONED, 1)
    // As `postern audit open` asks. The first one is still open, though somebody has asked for it.
    const shown = await ask(third, '/audit/stream?outcome=open&purpose=find&singly=false')
    expect(shown.split('\n').filter((line) => line.startsWith('{"row"'))).toHaveLength(2)
    await becomes(third, ABANDONED, 0)
    expect(upstream.requests).toHaveLength(2)
    await third.stop()
    // Those that were asked for are not counted again with the next one.
    const fourth = await start()
    await beginChange(fourth)
    await upstream.received(3)
    killAll(fourth)
    await becomes(await start(), ABANDONED, 1)
  })

  it('C12.1.3 are not counted after the next start, if a command has shown all of them in between', async () => {
    const { start, showOpen, upstream } = await killable()
    const first = await start()
    await beginChange(first)
    await upstream.received(1)
    killAll(first)
    // The trail has nothing of that time.
    expect(await showOpen('--month', '2020-01')).toEqual({ code: 1, lines: [] })
    const second = await start()
    await becomes(second, ABANDONED, 1)
    await beginChange(second)
    await upstream.received(2)
    killAll(second)
    const { code, lines } = await showOpen()
    expect([code, lines.length]).toEqual([0, 2])
    const third = await start()
    await beginChange(third)
    await upstream.received(3)
    killAll(third)
    await becomes(await start(), ABANDONED, 1)
  })
})
