import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { NO_TRAIL } from '../../../src/contracts/audit.ts'
import { loadConfiguration } from '../../../src/settings/check-configuration.ts'
import { Report } from '../../../src/config/report.ts'
import type { Configuration } from '../../../src/settings/configuration.ts'
import { compileDirectory } from '../../../src/directory/compile.ts'
import { holdingsOf } from '../../../src/directory/holdings.ts'
import { digestOfHoldings } from '../../../src/start/compared-holdings.ts'
import { Reloader } from '../../../src/start/reload.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { compileScopes } from '../../../src/scopes/config.ts'
import { MemoryStore } from '../../../src/stores/memory.ts'
import { configFiles } from '../../support/config-files.ts'
import { keepNotes } from '../../support/notes.ts'
import { ROOT } from '../../support/spawn-postern.ts'

const BUSINESSES = '{"code":"ONE","name":"One","funds":[]}\n{"code":"TWO","name":"Two","funds":[]}\n'

/** What a worker opens: it reads the directory itself. */
async function openedNow({ scopes, directory }: Configuration): Promise<string> {
  const told = new Report()
  const catalogue = compileScopes(scopes, told)
  return digestOfHoldings(holdingsOf(await compileDirectory(directory, catalogue, told, {}), catalogue))
}

/** A reloader beside a service that acts out `meanwhile` within each `prepare`. */
async function startReloader(meanwhile: (file: string, attempt: number) => void) {
  const at = configFiles({
    'a.yaml': `extends: ${join(ROOT, 'config/demo.yaml')}\ndirectory: { files: { businesses: list.jsonl } }\n`,
    'list.jsonl': BUSINESSES,
  })
  const { configuration, report } = loadConfiguration(at('a.yaml'), {})
  if (configuration === undefined) throw new Error(JSON.stringify(report.problems))
  const done: string[] = []
  let attempts = 0
  const reloader = await Reloader.open(configuration, {
    file: at('a.yaml'),
    files: [],
    audit: NO_TRAIL,
    environment: {},
    pool: {
      holdingsDigest: await openedNow(configuration),
      prepare: async (next) => {
        attempts += 1
        meanwhile(at('list.jsonl'), attempts)
        return openedNow(next)
      },
      commit: () => Promise.resolve(void done.push('commit')),
      abort: () => Promise.resolve(void done.push('abort')),
    },
    revoker: { revoke: (tokens) => Promise.resolve(void done.push(`revoke ${JSON.stringify(tokens)}`)) },
    tokenRevoker: { end: () => Promise.resolve({} as never) },
    store: new MemoryStore(systemClock),
    adopting: () => Promise.resolve(),
    recorder: keepNotes(),
    changed: () => undefined,
    read: () => undefined,
  })
  return { reload: () => reloader.reload({ via: 'test' }), done }
}

describe('a reload whose files change while it reads them', () => {
  it('T3.4 takes rights away by what is served: it reads once more', async () => {
    const { reload, done } = await startReloader((file, attempt) => {
      if (attempt === 1) writeFileSync(file, '{"code":"ONE","name":"One","funds":[]}\n')
    })
    expect(await reload()).toMatchObject({ outcome: 'reloaded', revoked: 1 })
    expect(done[0]).toBe('abort')
    expect(done.filter((each) => each.startsWith('revoke'))[0]).toBe('revoke {"business":"TWO"}')
  })

  it('T3.4 revokes nothing where a file is half written for a moment', async () => {
    const { reload, done } = await startReloader((file, attempt) => {
      writeFileSync(file, attempt === 1 ? BUSINESSES.slice(0, 30) : BUSINESSES)
    })
    expect(await reload()).toMatchObject({ outcome: expect.any(String) as string })
    expect(done.filter((each) => each.startsWith('revoke'))).toEqual([])
  })

  it('is refused where they never settle, and changes nothing', async () => {
    const { reload, done } = await startReloader((file, attempt) => {
      writeFileSync(file, `${BUSINESSES}{"code":"MORE${attempt}","name":"More","funds":[]}\n`)
    })
    expect(await reload()).toEqual({
      outcome: 'refused',
      problems: ['its files change while they are read — try again when they have settled'],
    })
    expect(done).toEqual(['abort', 'abort', 'abort'])
  })
})
