import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { describe, expect, it, onTestFinished } from 'vitest'
import { Hasher } from '../../src/identity/directory/hashing/hasher.ts'
import { isNewEnough, OLDEST_NODE, tooOld, VERSION } from '../../src/serve/parts/version.ts'
import { type Ended, runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { PROGRAM } from '../support/program.ts'
import { DEMO, ROOT, WITHOUT_WAITS, withSettings } from '../support/spawn-postern.ts'

/** Takes this Node for an older one. */
const OLDER = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "24.8.1" } })'

interface Package {
  readonly scripts: Readonly<Record<string, string>>
}

const postern = runVerb

describe('postern', () => {
  it('lists its commands', async () => {
    const { code, stdout } = await postern(['--help'])
    expect(code).toBe(0)
    for (const command of ['serve', 'check', 'hash-password']) expect(stdout).toContain(command)
    expect(stdout).toMatch(/^ {2}access +Show who may call what/m)
    expect((await postern(['check', '--help'])).stdout).toContain('Usage: postern check [FILE]')
  })

  it('C11.6 has the help on a command by its word too', async () => {
    expect(await postern(['help', 'client', 'add'])).toEqual(await postern(['client', 'add', '--help']))
    expect(await postern(['help', 'clint'])).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining('did you mean "client"?') },
    })
  })

  it('C11.6 says of a service that never started how it is started', async () => {
    const env = { POSTERN_CONFIG: DEMO, POSTERN_DATA: configFiles({})('none') }
    const { code, stderr } = await postern(['status'], { env })
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^postern: no service of this configuration has started yet: .*postern serve/),
    ])
  })

  it('tells its version', async () => {
    expect((await postern(['--version'])).stdout).toMatch(/^postern \d+\.\d+\.\d+\n$/)
  })

  it('needs Node 24.9, as package.json says', () => {
    expect(OLDEST_NODE).toBe('24.9')
    for (const node of ['24.9.0', '24.10.1', '25.0.0', '26.10.0'])
      expect([node, isNewEnough(node)]).toEqual([node, true])
    for (const node of ['24.8.9', '23.11.0', '20.20.2'])
      expect([node, isNewEnough(node)]).toEqual([node, false])
  })

  it('C11.6 tells an older Node which one it needs and how to get it, with exit code 2', async () => {
    const child = spawn(
      process.execPath,
      ['--import', `data:text/javascript,${OLDER}`, PROGRAM, '--version'],
      {
        cwd: ROOT,
      },
    )
    const [told, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
    expect([code, told]).toEqual([2, tooOld('24.8.1')])
    expect(told).toMatch(/^postern: needs Node 24\.9 or newer, and this is Node 24\.8\.1\./)
    expect(told).toContain(`\n  npx -p node@26 -p ./postern-${VERSION}.tgz postern\n`)
  })

  it.each(['postern', 'start'])('C11.6 tells it in one line also from a clone: npm run %s', async (name) => {
    const { scripts } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as Package
    const [, check = ''] = /\bnode -r (\S+) /.exec(scripts[name] ?? '') ?? []
    const older = configFiles({ 'older.cjs': OLDER })('older.cjs')
    const child = spawn(process.execPath, ['-r', older, '-r', check, 'src/main.ts'], { cwd: ROOT })
    const [told, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
    expect([code, told]).toEqual([2, 'postern: needs Node 24.9 or newer, and this is Node 24.8.1\n'])
  })

  it('refuses an unknown command with exit code 2, and suggests the one that was meant', async () => {
    const { code, stderr, stdout } = await postern(['srve'])
    expect(code).toBe(2)
    expect(stdout).toBe('')
    expect(stderr).toContain('there is no command "srve" — did you mean "serve"?')
  })

  it.each([[['check', 'a', 'b']], [['check', '--nonsense']], [['hash-password', 'secret']], [[]]])(
    'refuses %j with exit code 2',
    async (args) => {
      expect((await postern(args)).code).toBe(2)
    },
  )
})

type Output = Pick<Ended, 'code' | 'stderr'>

const FULL = '/dev/full'

/** Runs a command whose standard output is a full disk, and fails at once, as that of a process does which is a file. */
async function ontoFullDisk(args: readonly string[]): Promise<Output> {
  const full = await open(FULL, 'w')
  const write = (chunk: Buffer, _encoding: unknown, done: (error?: Error) => void): void => {
    try {
      writeSync(full.fd, chunk)
      done()
    } catch (error) {
      done(error as Error)
    }
  }
  const ended = await runVerb(args, { onto: new Writable({ write }) })
  await full.close()
  return ended
}

/** The same in a process of its own. */
async function processOntoFullDisk(args: readonly string[]): Promise<Output> {
  const full = await open(FULL, 'w')
  const child = spawn(process.execPath, [PROGRAM, ...args], { cwd: ROOT, stdio: ['ignore', full.fd, 'pipe'] })
  const told = text(child.stderr!)
  const [code] = (await once(child, 'close')) as [number | null]
  await full.close()
  return { code, stderr: await told }
}

describe('standard output that cannot be written', () => {
  it.each([['access', 'GET', 'fund-data/fund-list'], ['access'], ['check']])(
    'is told by %s, with the exit code of no answer',
    async (...args) => {
      const { code, stderr } = await (args[0] === 'check' ? processOntoFullDisk : ontoFullDisk)(args)
      expect(code).toBe(2)
      expect(stderr).toMatch(/^postern: standard output cannot be written \(ENOSPC: the disk is full\)\n$/m)
      expect(stderr).not.toMatch(/^ +at /m)
    },
  )
})

describe('postern check', () => {
  it('says that the demo world is can be served', async () => {
    expect(await postern(['check'])).toEqual({
      code: 0,
      stdout: 'config/demo.yaml: can be served\n',
      stderr: '',
    })
  })

  it('C10 takes the file from the command line, else from POSTERN_CONFIG', async () => {
    expect((await postern(['check'], { env: { POSTERN_CONFIG: 'config/upstream.yaml' } })).stdout).toContain(
      'upstream.yaml',
    )
    const both = await postern(['check', 'config/demo.yaml'], { env: { POSTERN_CONFIG: '/nowhere.yaml' } })
    expect(both.stdout).toContain('demo.yaml')
  })

  it('tells every problem of a bad file, with exit code 2; serve tells the same', async () => {
    const file = configFiles({
      'bad.yaml': `extends: ${DEMO}\nserver: { lisen: x }\nareas: { fund-data: { backend: nobody } }\nlog: { level: 7 }\n`,
    })('bad.yaml')
    const check = await postern(['check', file])
    expect(check.code).toBe(2)
    expect(check.stderr).toContain(
      `${file}:2  server.lisen  is not a known key here — did you mean "listen"?`,
    )
    expect(check.stderr).toContain(`${file}:3  areas.fund-data.backend`)
    expect(check.stderr).toContain(`${file}:4  log.level  expected one of`)
    expect(check.stderr).toContain('3 problems')
    expect(await postern(['serve', file])).toEqual(check)
  })

  it('serve refuses also what only opening the parts would find', async () => {
    const file = configFiles({ 'bad.yaml': `extends: ${DEMO}\nareas: { fund-data: { backend: nobody } }\n` })(
      'bad.yaml',
    )
    const { code, stderr } = await postern(['serve', file])
    expect(code).toBe(2)
    expect(stderr).toContain(`${file}:2  areas.fund-data.backend`)
  })

  it('says that a file is not there', async () => {
    const { code, stderr } = await postern(['serve', '/nowhere.yaml'])
    expect(code).toBe(2)
    expect(stderr).toContain(
      '/nowhere.yaml:1  this file  cannot be read (ENOENT: there is no such file or folder)',
    )
  })
})

describe('postern serve', () => {
  const onFreePorts = () => ({
    POSTERN_PORT: '0',
    POSTERN_ADMIN_PORT: '0',
    POSTERN_DATA: configFiles({ keep: '' })('data'),
  })
  const serve = (env: Record<string, string>, file: string) => {
    const given = { PATH: process.env['PATH'], ...onFreePorts(), ...env }
    const [args, settled] = withSettings([[PROGRAM, 'serve', file], given])
    const child = spawn(process.execPath, args, {
      ...{ cwd: ROOT, env: settled },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    return child
  }

  const runHere = (env: Record<string, string>, file: string): Promise<Output> =>
    runVerb(['serve', file], { env: { ...onFreePorts(), ...env } })
  const runProcess = async (env: Record<string, string>, file: string): Promise<Output> => {
    const child = serve(env, file)
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close')])
    return { code, stderr }
  }

  it('says where it serves, and ends with exit code 0 on SIGTERM', async () => {
    const child = serve(
      {},
      configFiles({ 'a.yaml': `extends: ${DEMO}\nstore: { kind: memory }\n` })('a.yaml'),
    )
    const [line] = (await once(child.stderr, 'data')) as [Buffer]
    const url = /at (http:\/\/127\.0\.0\.1:\d+) /.exec(line.toString())?.[1]
    expect((await fetch(`${url}/.well-known/openid-configuration`)).status).toBe(200)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  it.each([
    ['one worker', 1, 'POSTERN_PORT'],
    ['several workers', 2, 'POSTERN_PORT'],
    ['several workers, the admin listener’s', 2, 'POSTERN_ADMIN_PORT'],
  ])('T7 tells a port that is taken in one line, with exit code 1 (%s)', async (_, workers, variable) => {
    const holder = createServer().listen(0, '127.0.0.1')
    onTestFinished(() => void holder.close())
    await once(holder, 'listening')
    const { port } = holder.address() as AddressInfo
    const config = `extends: ${ROOT}config/upstream.yaml\nworkers: ${workers}\n${WITHOUT_WAITS}\n`
    const file = configFiles({ 'some.yaml': config })('some.yaml')
    const taken = { [variable]: String(port) }
    const ended = workers === 1 ? runHere(taken, file) : runProcess(taken, file)
    const { code, stderr } = await ended
    expect(code).toBe(1)
    expect(stderr).toMatch(/^postern: .*EADDRINUSE.*another process uses this port.*\n$/)
  })
})

describe('postern hash-password', () => {
  it.each(['alice-password', 'alice-password\n'])(
    'hashes what stands on standard input: %j',
    async (input) => {
      const { code, stdout, stderr } = await postern(['hash-password'], { input })
      expect([code, stderr]).toEqual([0, ''])
      expect(stdout).toMatch(/^\$argon2id\$v=19\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]+\$[A-Za-z0-9+/]+\n$/)
      expect(await new Hasher().verify('alice-password', stdout.trim())).toBe(true)
    },
  )

  it('refuses an empty password', async () => {
    expect((await postern(['hash-password'], { input: '\n' })).code).toBe(2)
  })
})
