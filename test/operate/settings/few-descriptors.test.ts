import { describe, expect, it } from 'vitest'
import { Problems } from '../../../src/base/config/problems.ts'
import { descriptorsOf } from '../../../src/base/files/descriptors.ts'
import { warnOfFewDescriptors } from '../../../src/operate/settings/warnings.ts'
import { configFiles } from '../../support/config-files.ts'
import { SETTINGS } from '../../support/settings.ts'

const fileWith = (backends: string): string =>
  configFiles({ 'postern.yaml': `extends: ${process.cwd()}/config/upstream.yaml\n${backends}` })(
    'postern.yaml',
  )

/** What is warned of where a process may open so many files and connections. */
function warned(backends: string, limit: number): readonly string[] {
  const { configuration } = SETTINGS.read(fileWith(backends), {})
  const problems = new Problems()
  if (configuration)
    warnOfFewDescriptors(configuration, problems, SETTINGS.added.stores, descriptorsOf(limit))
  return problems.list.map(({ message }) => message)
}

describe('C11.6.1 few descriptors', () => {
  it('C11.6.1 are warned of where all connections that the backends allow, and those of clients, do not fit', () => {
    const one = 'backends: { funds: { kind: http, target: "http://127.0.0.1:1", maxConnections: 80 } }'
    // Twice 80 and 10, 64 of its own, and a quarter that is kept.
    expect(warned(one, 500)).toEqual([])
    expect(warned(one, 320)).toEqual([
      'allow 90 connections to services in each process, so with those of clients and the store it may need 324 files and connections, and it may open 320 here',
    ])
  })

  it('C11.6.1 count the connections of every target and of Postgres', () => {
    const two =
      'backends: { funds: { kind: http, targets: ["http://127.0.0.1:1", "http://127.0.0.1:2"], maxConnections: 8 } }'
    expect(warned(`${two}\nstore: { kind: postgres, url: "postgres://h/d", connections: 20 }`, 128)).toEqual([
      'allow 18 connections to services in each process, so with those of clients and the store it may need 153 files and connections, and it may open 128 here',
    ])
  })

  it('C11.6.1 are no matter where the system tells no limit, or no backend has connections', () => {
    const one = 'backends: { funds: { kind: http, target: "http://127.0.0.1:1", maxConnections: 100000 } }'
    expect(warned(one, Number.POSITIVE_INFINITY)).toEqual([])
  })

  it('C11.6.1 are told by `check` with what to do', async () => {
    const many = 'backends: { funds: { kind: http, target: "http://127.0.0.1:1", maxConnections: 10000000 } }'
    const { list } = await SETTINGS.check(fileWith(many), {})
    expect(list).toContainEqual(
      expect.objectContaining({ path: ['backends'], hint: expect.stringContaining('LimitNOFILE') as string }),
    )
  })
})
