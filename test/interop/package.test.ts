import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { issueToken } from '../support/tokens.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
const npm = (args: readonly string[], cwd: string) =>
  run('npm', [...args, '--no-audit', '--no-fund'], { cwd })

const BACKEND = `import type { ModuleAnswer, ModuleCall, ModuleFactory } from 'postern/backend'

interface Options { readonly greeting: string }

const createBackend: ModuleFactory<Options> = ({ greeting }, { name }) => ({
  answer: (call: ModuleCall): ModuleAnswer => ({
    body: { kind: 'value', value: { Greeting: greeting, Business: call.business, Backend: name } },
  }),
})

export default createBackend
`
const PEOPLE = `import type { PeopleFactory, PeopleUser } from 'postern/people'

const DORA: PeopleUser = { subject: 'subject-of-dora', username: 'dora', access: { ACME: 'Administrator' } }

const createPeople: PeopleFactory<{ password: string }> = (options) => ({
  findUserByName: (username) => (username === 'dora' ? DORA : undefined),
  findUserBySubject: async (subject, { signal }) => (signal.aborted ? null : DORA),
  verifyPassword: (user, password) => user !== undefined && password === options.password,
})

export default createPeople
`
const AROUND = `import type { ForwardedAnswer, ForwardingModuleFactory, UpstreamAnswer } from 'postern/backend'

const createModule: ForwardingModuleFactory<{ tenant: string }> = ({ tenant }) => ({
  request: ({ upstream, business }) => ({ query: { tenant, business }, headers: { 'X-Target': upstream.target } }),
  response: async (_call, answer: UpstreamAnswer): Promise<ForwardedAnswer> =>
    answer.status === 404 ? { ...answer, status: 410 } : { body: { kind: 'value', value: await answer.json() } },
})

export default createModule
`
const PACKAGED = `export default ({ greeting }) => ({
  answer: ({ business }) => ({ body: { kind: 'value', value: { Greeting: greeting, Business: business } } }) })`

const yaml = (where: string): string => `extends: node_modules/postern/config/demo.yaml
backends:
  sample:
  mine: { kind: module, ${where}, options: { greeting: hello } }
areas:
  fund-data: { backend: mine }
  member-data: { backend: mine }
`
const STRICT = [
  '--noEmit',
  '--strict',
  '--exactOptionalPropertyTypes',
  '--module',
  'nodenext',
  '--types',
  'node',
]

describe('C8.1: the published package, in a project of its own', () => {
  let project: string

  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), 'postern-project-'))
    await npm(['pack', '--silent', '--pack-destination', project], ROOT)
    const [tarball = ''] = (await readdir(project)).filter((name) => name.endsWith('.tgz'))
    const files = {
      'package.json': JSON.stringify({ name: 'project', private: true, type: 'module' }),
      'backend.ts': BACKEND,
      'wrong.ts': BACKEND.replace('Business: call.business', 'Business: 1n'),
      'people.ts': PEOPLE,
      'wrong-people.ts': PEOPLE.replace('=== options.password', ''),
      'people.yaml': `${yaml('file: backend.ts')}directory:\n  people: { kind: module, file: people.ts, options: { password: x } }\n`,
      'around.ts': AROUND,
      'around-wrong.ts': AROUND.replace('upstream.target', 'upstream.body'),
      'file.yaml': yaml('file: backend.ts'),
      'package.yaml': yaml('package: packaged-backend'),
      'typescript.yaml': yaml('file: node_modules/packaged-backend/backend.ts'),
      'broken.yaml': yaml('package: not-installed'),
    }
    for (const [name, text] of Object.entries(files)) await writeFile(join(project, name), text)
    await npm(['install', '--prefer-offline', '--ignore-scripts', `./${tarball}`], project)
    const packaged = join(project, 'node_modules/packaged-backend')
    await mkdir(packaged)
    await writeFile(
      join(packaged, 'package.json'),
      JSON.stringify({ name: 'packaged-backend', type: 'module', exports: { import: './backend.js' } }),
    )
    await writeFile(join(packaged, 'backend.js'), PACKAGED)
    await writeFile(join(packaged, 'backend.ts'), BACKEND)
  }, 240_000)
  afterAll(() => rm(project, { recursive: true, force: true }))

  const environment = () => ({
    ...process.env,
    POSTERN_PORT: '0',
    POSTERN_ADMIN_PORT: '0',
    POSTERN_DATA: join(project, 'data'),
  })
  const postern = (...args: readonly string[]) =>
    run(join(project, 'node_modules/.bin/postern'), args, { cwd: project, env: environment() })
  const compile = (file: string) =>
    run(
      process.execPath,
      [
        join(ROOT, 'node_modules/typescript/bin/tsc'),
        ...STRICT,
        '--typeRoots',
        join(ROOT, 'node_modules/@types'),
        file,
      ],
      { cwd: project },
    )

  it('is JavaScript and declarations, without sources or tests', async () => {
    const all = await readdir(join(project, 'node_modules/postern'), { recursive: true })
    expect(all).toContain('dist/main.js')
    expect(all).toContain('dist/contracts/module.d.ts')
    expect(all).toContain('dist/contracts/people-module.d.ts')
    expect(all).toContain('dist/identity/pages/postern.css')
    expect(all.filter((name) => /^(src|test|deploy)\b/.test(name))).toEqual([])
    expect(all.filter((name) => /^dist\/.*(?<!\.d)\.ts$/.test(name))).toEqual([])
  })

  it('types a backend: what fits compiles, what JSON cannot say does not', async () => {
    await compile('backend.ts')
    const refused: unknown = await compile('wrong.ts').catch((error: unknown) => error)
    expect((refused as { stdout: string }).stdout).toContain('bigint')
  }, 60_000)

  it('C5.7 types code that finds people: a password is right or wrong, and nothing else', async () => {
    await compile('people.ts')
    const refused: unknown = await compile('wrong-people.ts').catch((error: unknown) => error)
    expect((refused as { stdout: string }).stdout).toContain('boolean')
  }, 60_000)

  it('C8.9 types a module over a forwarder', async () => {
    await compile('around.ts')
    const refused: unknown = await compile('around-wrong.ts').catch((error: unknown) => error)
    expect((refused as { stdout: string }).stdout).toContain('Uint8Array')
  }, 60_000)

  it.each(['file.yaml', 'package.yaml', 'people.yaml'])('finds %s can be served', async (file) => {
    expect((await postern('check', file)).stdout).toBe(`${file}: can be served\n`)
  })

  it('tells a module that is not installed, or that is TypeScript in a package, by name and reason', async () => {
    const told = (file: string) =>
      postern('check', file).then(
        () => '',
        (error: unknown) => (error as { stderr: string }).stderr,
      )
    expect(await told('broken.yaml')).toMatch(/backends\.mine\.package .*not-installed/)
    expect(await told('typescript.yaml')).toMatch(/backends\.mine\.file .*node_modules/)
  })

  it.each([
    ['file.yaml', { Greeting: 'hello', Business: 'ACME', Backend: 'mine' }, '1'],
    ['package.yaml', { Greeting: 'hello', Business: 'ACME' }, '2'],
  ])('serves %s', async (file, expected, workers) => {
    await writeFile(join(project, `${workers}-${file}`), `extends: ${file}\nworkers: ${workers}\n`)
    const program = join(project, 'node_modules/.bin/postern')
    const child = spawn(program, ['serve', `${workers}-${file}`], { cwd: project, env: environment() })
    const exited = once(child, 'exit')
    let output = ''
    const authUrl = await new Promise<string>((resolve, reject) => {
      child.once('exit', () => reject(new Error(output)))
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk.toString()
          const [, url] = /serving \S+ at (http:\/\/\S+)/.exec(output) ?? []
          if (url !== undefined) resolve(url)
        })
    })
    const { access_token } = await issueToken({ authUrl }, { scope: 'fund.read target:b/ACME' })
    const headers = { Authorization: `Bearer ${access_token}` }
    const answer = await fetch(`${authUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers })
    expect(await answer.json()).toEqual({ Errors: [], Data: expected })
    child.kill('SIGTERM')
    expect(await exited).toEqual([0, null])
  })
})
