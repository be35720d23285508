/** What goes wrong in a running service raises its alert, and the first command of the runbook shows the cause. */
import { execFileSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { runbooks } from '../support/alert-rules.ts'
import { needing } from '../support/machine.ts'
import {
  makeCalls,
  makeLogins,
  startWatchedService,
  type WatchedService,
} from '../support/watched-service.ts'

/** Milliseconds. */
const PATIENCE = 120_000

/** Nobody waits a quarter of an hour, or ninety days, for a test. */
const hasty = (rules: string): string =>
  rules
    .replaceAll(/ for: \w+/g, ' for: 2s')
    .replace(/(?<=postern:setting:feed_age_seconds\n\s+expr: )vector\(10\)/, 'vector(3)')
    .replace(/(?<=postern:setting:key_age_seconds\n\s+expr: )vector\(90 \* 86400\)/, 'vector(5)')

interface Trouble {
  readonly alert: string
  /** Labels of the alert beside its name. */
  readonly labels?: Readonly<Record<string, string>>
  /** Makes it happen; called again and again until the alert fires. */
  readonly cause?: (watched: WatchedService) => unknown
  /** What the first command of the runbook says. */
  readonly shows: RegExp
}

const breakStore = once(({ service }) => {
  const file = join(service.data, 'postern.sqlite')
  renameSync(file, `${file}-away`)
})

/** In this order: where the store is gone, nobody logs in. */
const TROUBLES: readonly Trouble[] = [
  { alert: 'KeyRotationOverdue', shows: /^ES256-1\S* +signing .*signs from 20/m },
  {
    alert: 'RefreshTokenReplayed',
    cause: once(({ service }) => makeLogins(service)),
    shows: /token\.replayed/,
  },
  {
    alert: 'NoTargets',
    labels: { backend: 'registry' },
    cause: async ({ service, upstream }) => {
      await upstream.close()
      await makeCalls(service)
    },
    shows: /^postern_upstream_targets\{backend="registry",state="healthy"\} 0$/m,
  },
  { alert: 'StoreUnreachable', cause: breakStore, shows: /^store +.*OUT OF REACH/m },
  { alert: 'FeedOld', shows: /^postern_store_up 0$/m },
]

/** What happens at the first call only. */
function once(work: (watched: WatchedService) => unknown): (watched: WatchedService) => unknown {
  let isDone = false
  return (watched) => {
    if (isDone) return undefined
    isDone = true
    return work(watched)
  }
}

async function stateOf({ prometheus }: WatchedService, { alert, labels = {} }: Trouble): Promise<string> {
  const wanted = Object.entries({ alertname: alert, ...labels })
  const own = (await prometheus.alerts()).filter((each) =>
    wanted.every(([name, value]) => each.labels[name] === value),
  )
  return own.some(({ state }) => state === 'firing') ? 'firing' : (own[0]?.state ?? 'inactive')
}

/** Runs the first command of the runbook as it stands there, but for the address. */
async function firstCommand(watched: WatchedService, alert: string): Promise<string> {
  const [command = ''] = runbooks().find(({ title }) => title === alert)?.commands ?? []
  const [program, ...words] = command.split(' ')
  if (program === 'postern') return (await watched.postern(...words)).stdout
  const here = command.replace('127.0.0.1:9090', new URL(watched.service.adminUrl).host)
  return execFileSync('sh', ['-c', here], { encoding: 'utf8' })
}

it(
  'C11.1 what goes wrong raises its alert, and the first command of the runbook shows the cause',
  { ...needing('prometheus', 'openssl', 'curl'), timeout: 4 * PATIENCE },
  async ({ annotate }) => {
    const watched = await startWatchedService({
      changeRules: hasty,
      more: 'keys: { rotation: { automatic: false } }',
    })
    onTestFinished(() => watched.close())
    await makeCalls(watched.service)
    for (const trouble of TROUBLES) {
      const begun = performance.now()
      const state = async (): Promise<string> => {
        await trouble.cause?.(watched)
        return stateOf(watched, trouble)
      }
      await expect.poll(state, { timeout: PATIENCE, interval: 250, message: trouble.alert }).toBe('firing')
      const seconds = ((performance.now() - begun) / 1000).toFixed(1)
      const told = await firstCommand(watched, trouble.alert)
      expect(told, trouble.alert).toMatch(trouble.shows)
      await annotate(`${trouble.alert} fired after ${seconds} s: ${trouble.shows.exec(told)?.[0] ?? ''}`)
    }
  },
)
