import { execFileSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { startWithAllocator } from '../../../src/start/allocator.ts'

/** What the process would be replaced by; undefined if it goes on. */
function started(changes: object): unknown {
  let again: unknown
  const process = {
    ...{
      argv: ['/bin/node', '/src/main.ts', 'serve', 'a.yaml'],
      execArgv: ['--import', 'x'],
      execPath: '/bin/node',
    },
    ...{ env: { HOME: '/' }, platform: 'linux', versions: { v8: '14.6.202.34-node.34' } },
    execve: (...given: unknown[]) => (again = given),
    ...changes,
  }
  startWithAllocator(process as never)
  return again
}

describe('T5.18 memory that is kept after a load', () => {
  it('is given back by a service that starts itself once more, as it was started', () => {
    const GLIBC_TUNABLES = 'glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=2097152'
    expect(started({})).toEqual([
      '/bin/node',
      [
        ...['/bin/node', '--memory-reducer-delay-ms=1000', '--memory-pool-timeout=1'],
        ...['--no-memory-pool-share-memory-on-teardown', '--import', 'x', '/src/main.ts', 'serve', 'a.yaml'],
      ],
      { HOME: '/', GLIBC_TUNABLES },
    ])
    expect(started({ env: { GLIBC_TUNABLES } })).toBeUndefined()
  })

  it.each(['13.6.233.10-node.27', '14.5.1', '15.0.1', '114.6.1'])(
    'has no option of V8 where it is %s, which may lack them: Node would not start',
    (v8) => {
      expect(started({ versions: { v8 } })).toMatchObject([
        '/bin/node',
        ['/bin/node', '--import', 'x', '/src/main.ts', 'serve', 'a.yaml'],
        {},
      ])
    },
  )

  it('is given no option that this very Node does not start with', () => {
    const { execPath, versions } = process
    const [file, args] = started({ execPath, versions, argv: ['', '-p', 'serve'], execArgv: [] }) as [
      string,
      string[],
    ]
    const said = execFileSync(file, [...args.slice(1, -2), '-p', '"started"'], { encoding: 'utf8' })
    expect(said).toBe('started\n')
  })

  it.each([
    ['settings of the operator', { env: { MALLOC_ARENA_MAX: '1' } }],
    ['settings of the operator, with an underscore', { env: { MALLOC_TRIM_THRESHOLD_: '1' } }],
    ['another command', { argv: ['/bin/node', '/src/main.ts', 'check'] }],
    ['another system', { platform: 'darwin' }],
    ['a channel to the process that started it', { send: () => true }],
    ['a Node that cannot', { execve: undefined }],
  ])('is left as it is with %s', (_, changes) => {
    expect(started(changes)).toBeUndefined()
  })

  it('is left as it is where the system refuses the second start, and the service starts all the same', () => {
    const execve = (): never => {
      throw new Error('Access to this API has been restricted')
    }
    expect(() => started({ execve })).not.toThrow()
  })
})
