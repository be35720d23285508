import { fileURLToPath } from 'node:url'
import { Problems } from '../../src/base/config/problems.ts'
import { systemClock } from '../../src/base/kernel/clock.ts'
import { compileBackends } from '../../src/gateway/backends/open.ts'
import type { BackendsConfig } from '../../src/gateway/backends/schema.ts'
import { SETTINGS } from '../../src/serve/start/settings.ts'

/** A section of kind `http`, as it is read. */
export const HTTP = {
  kind: 'http',
  target: 'http://127.0.0.1:9000',
  format: 'json',
  payload: 'bare',
  timeouts: { connect: 2000, firstByte: 10_000, idle: 15_000 },
  identity: 'headers',
  strictQuery: false,
  forwardAuthorization: false,
  responseHeaders: [],
  maxConnections: 256,
  connectionAge: 60_000,
  closeDelimited: 'cut',
  retries: 1,
  ejection: { failures: 5, for: 10_000 },
  tls: { verify: 'always' },
} as const

/** A file of the repository. */
export const data = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))

/** @param slice may have kinds of extensions, which its type does not tell */
export async function compile(slice: Readonly<Record<string, object>>) {
  const report = new Problems()
  const backends = await compileBackends(slice as BackendsConfig, report, {
    vendor: 'postern',
    clock: systemClock,
    funds: undefined,
    signer: undefined,
    targetChanged: () => undefined,
    retried: () => undefined,
    tokenChanged: () => undefined,
    moduleFailed: () => undefined,
    answerLimit: 1024,
    addedBackends: SETTINGS.added.backends,
  })
  for (const backend of backends.values()) await backend.close()
  return { backends, problems: report.list.map(({ path, message }) => `${path.join('.')} ${message}`) }
}
