import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  COLLECTION,
  collectSoon,
  HEAP_SETTINGS,
  MALLOC_SETTINGS,
  startWithAllocator,
} from '../../../src/serve/processes/allocator.ts'
import { configFiles } from '../../support/config-files.ts'
import { PROGRAM, ROOT } from '../../support/program.ts'
import { ENDS_AT_ONCE, spawnPostern, type SpawnOptions } from '../../support/spawn-postern.ts'

/** What the process would be replaced by; undefined if it goes on. */
function started(changes: object, hasGlibc = true): unknown {
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
  startWithAllocator(process as never, () => hasGlibc)
  return again
}

/** Those that the process began with. */
const environmentOf = (pid: number): Readonly<Record<string, string>> =>
  Object.fromEntries(
    readFileSync(`/proc/${pid}/environ`, 'utf8')
      .split('\0')
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  )

async function serving(options: SpawnOptions) {
  const postern = await spawnPostern({ ...options, withoutSettings: true })
  onTestFinished(async () => {
    await postern.stop()
  })
  return postern
}

/** No test here looks at the trail. */
const LIGHT = 'audit: { enabled: false }'

function configuration(yaml = ''): string {
  const text = `extends: ${join(ROOT, 'config/upstream.yaml')}\n${ENDS_AT_ONCE}\n${LIGHT}\n${yaml}`
  return configFiles({ 'config.yaml': text })('config.yaml')
}

const SPACED = 'data:text/javascript,/* an argument with spaces */'

describe('T5.18 memory that is kept after a load', () => {
  it('is given back by a service that starts itself once more, as it was started', () => {
    const settings = { GLIBC_TUNABLES: MALLOC_SETTINGS, POSTERN_STARTED_AGAIN: '1' }
    const args = [
      '/bin/node',
      '--disable-sigusr1',
      ...COLLECTION,
      '--import',
      'x',
      '/src/main.ts',
      'serve',
      'a.yaml',
    ]
    expect(started({})).toEqual(['/bin/node', args, { HOME: '/', ...settings, NODE_OPTIONS: HEAP_SETTINGS }])
    const own = { NODE_OPTIONS: '--max-semi-space-size=4' }
    expect(started({ env: own })).toEqual([
      '/bin/node',
      args,
      { ...settings, NODE_OPTIONS: `${HEAP_SETTINGS} --max-semi-space-size=4` },
    ])
  })

  it.each([
    ['settings of the operator', { env: { MALLOC_ARENA_MAX: '1' } }],
    ['settings of the operator, with an underscore', { env: { MALLOC_TRIM_THRESHOLD_: '1' } }],
    ['all settings', { env: { GLIBC_TUNABLES: MALLOC_SETTINGS }, execArgv: COLLECTION }],
    ['settings that the system has taken away', { env: { POSTERN_STARTED_AGAIN: '1' } }],
    ['another command', { argv: ['/bin/node', '/src/main.ts', 'check'] }],
    ['another system', { platform: 'darwin' }],
    ['Node 24', { versions: { v8: '13.6.233.17-node.36' } }],
    ['a channel to the process that started it', { send: () => true }],
    ['a Node that cannot', { execve: undefined }],
  ])('is left as it is with %s', (_, changes) => {
    expect(started(changes)).toBeUndefined()
  })

  it('is left as it is with another C library, which does not know the variable', () => {
    expect(started({}, false)).toBeUndefined()
  })

  it('is left as it is where the system refuses the second start, and nothing is said of it', () => {
    const program = `import('${join(ROOT, 'src/serve/processes/allocator.ts')}').then(({ startWithAllocator }) => {
      startWithAllocator(process, () => true)
      process.on('exit', () => console.log('went on'))
    })`
    const args = ['--permission', '--allow-fs-read=*', '--eval', program, 'main.ts', 'serve']
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect([status, stdout]).toEqual([0, 'went on\n'])
    expect(stderr).not.toContain('ExperimentalWarning')
  })

  it('is given back by the service and its workers, which begin with the settings, the same process', async () => {
    const config = configuration('workers: 2')
    const own = '--stack-trace-limit=20'
    const postern = await serving({ config, environment: { NODE_OPTIONS: own }, node: ['--import', SPACED] })
    const children = readdirSync(`/proc/${postern.pid}/task`).flatMap((task) =>
      (readFileSync(`/proc/${postern.pid}/task/${task}/children`, 'utf8').match(/\d+/g) ?? []).map(Number),
    )
    expect(children).toHaveLength(2)
    for (const pid of [postern.pid, ...children]) {
      expect(environmentOf(pid)).toMatchObject({ NODE_OPTIONS: `${HEAP_SETTINGS} ${own}` })
      // Where glibc reads it, it ends each setting with a zero byte.
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8').replaceAll('\0', ':')
      expect(environment).toContain(`GLIBC_TUNABLES=${MALLOC_SETTINGS}`)
    }
    const line = readFileSync(`/proc/${postern.pid}/cmdline`, 'utf8').split('\0')
    expect(line.slice(1, -1)).toEqual([
      '--disable-sigusr1',
      ...COLLECTION,
      '--import',
      SPACED,
      join(ROOT, PROGRAM),
      'serve',
      config,
    ])
    expect(postern.output()).not.toContain('Warning')
  })

  it('is given back as the operator says, who has set something', () => {
    const tell = `process.on('exit', () => console.log(require('node:fs').readFileSync('/proc/self/environ', 'utf8')))`
    const { status, stdout } = spawnSync(
      process.execPath,
      ['-r', configFiles({ 'tell.cjs': tell })('tell.cjs'), PROGRAM, 'serve', '/nowhere.yaml'],
      { cwd: ROOT, encoding: 'utf8', env: { PATH: process.env['PATH'], MALLOC_ARENA_MAX: '1' } },
    )
    expect([status, stdout.split('\0')]).toEqual([2, expect.arrayContaining(['MALLOC_ARENA_MAX=1'])])
    expect(stdout).not.toContain('GLIBC_TUNABLES')
  })

  it('does not keep a service from serving where its settings are taken away at each start', async () => {
    const node = ['--import', 'data:text/javascript,delete process.env.GLIBC_TUNABLES']
    const postern = await serving({ config: configuration(), node })
    expect(environmentOf(postern.pid)).toMatchObject({ POSTERN_STARTED_AGAIN: '1' })
  })

  it.each(['deploy/Dockerfile', 'deploy/postern.service', 'package.json'])(
    'is given back by what %s starts',
    (file) => {
      const text = readFileSync(join(ROOT, file), 'utf8')
      expect(text).toContain(`GLIBC_TUNABLES=${MALLOC_SETTINGS}`)
      expect(text).toMatch(new RegExp(`NODE_OPTIONS=[\\\\"]*${HEAP_SETTINGS}`))
    },
  )
})

describe('the collector of V8', () => {
  it.each(['13.6.233.10-node.27', '14.5.1', '15.0.1', '114.6.1'])(
    'is told nothing that it may not know where it is %s: it would complain',
    (v8) => {
      const told: string[] = []
      collectSoon({ v8 }, (option) => told.push(option))
      expect(told).toEqual(['--max-semi-space-size=0'])
    },
  )

  it('knows what it is told in this very Node, and leaves a thread the limit of its own', () => {
    const program = `import('${join(ROOT, 'src/serve/processes/allocator.ts')}').then(({ collectSoon }) => {
      collectSoon(process.versions)
      const thread = "let kept = [], most = 0; for (let i = 0; i < 2e6; i++) { kept.push({ i }); if (kept.length > 2e4) kept = [] } require('node:worker_threads').parentPort.postMessage(require('node:v8').getHeapSpaceStatistics().find((space) => space.space_name === 'new_space').space_size)"
      new (require('node:worker_threads').Worker)(thread, { eval: true, resourceLimits: { maxYoungGenerationSizeMb: 2 } }).on('message', console.log)
    })`
    const args = [HEAP_SETTINGS, '--eval', program]
    const told = execFileSync('sh', ['-c', '"$0" "$@" 2>&1', process.execPath, ...args], { encoding: 'utf8' })
    expect(Number(told)).toBeLessThan(3 * 1024 ** 2)
  })
})
