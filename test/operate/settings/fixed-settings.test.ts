import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { type Configuration, fixedChanges } from '../../../src/operate/settings/configuration.ts'
import { SETTINGS } from '../../../src/serve/start/settings.ts'

const file = fileURLToPath(new URL('../../../config/demo.yaml', import.meta.url))
const demo = SETTINGS.read(file, {}).configuration!

const changed = (change: Partial<Configuration>) => fixedChanges(demo, { ...demo, ...change })

describe('what a reload cannot change', () => {
  it('is named by key path', () => {
    const { server } = demo
    expect(changed({ data: 'elsewhere', workers: 3 })).toEqual(['data', 'workers'])
    expect(
      changed({
        server: {
          ...server,
          listen: '127.0.0.1:1',
          baseUrl: 'https://api.example.com',
          timeouts: { ...server.timeouts, keepAlive: 1 },
        },
      }),
    ).toEqual(['server.listen', 'server.timeouts.keepAlive', 'server.baseUrl'])
    expect(changed({ admin: { ...demo.admin, listen: '127.0.0.1:1' }, store: { kind: 'memory' } })).toEqual([
      'admin.listen',
      'store.kind',
      'store.synchronous',
      'store.deadline',
    ])
  })

  it('is nothing else', () => {
    const { server } = demo
    expect(changed({})).toEqual([])
    expect(
      changed({
        vendor: 'other',
        areas: {},
        actions: [],
        scopes: {},
        log: { ...demo.log, level: 'error' },
        server: { ...server, strictHeaderNames: true, limits: { ...server.limits, body: 1 } },
      }),
    ).toEqual([])
  })
})
