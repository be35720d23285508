import { type ChildProcessWithoutNullStreams, execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { isBuiltin } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { isNewEnough } from '../../src/serve/parts/version.ts'
import { AROUND, BACKEND, PACKAGED, PEOPLE } from '../support/package-modules.ts'
import { postForm } from '../support/oauth.ts'
import { shared } from '../support/shared.ts'
import { sourceFiles } from '../support/source-files.ts'
import { DEMO, ROOT, spawnPostern, type SpawnedPostern } from '../support/spawn-postern.ts'
import { openUpstream } from '../support/start-upstream.ts'
import { issueToken } from '../support/tokens.ts'

const run = promisify(execFile)
const npm = (args: readonly string[], cwd: string) =>
  run('npm', [...args, '--no-audit', '--no-fund'], { cwd })

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

/** Resolves with the URL at which a started `postern serve` says that it serves. */
const untilServing = (child: ChildProcessWithoutNullStreams): Promise<string> =>
  new Promise((resolve, reject) => {
    let output = ''
    child.once('exit', () => reject(new Error(output)))
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString()
        const [, url] = /serving .+ at (http:\/\/\S+)/.exec(output) ?? []
        if (url !== undefined) resolve(url)
      })
  })

/** Types a command into a shell, and ends it and all that it started after `work` with the URL that it serves. */
async function withServed<T>(
  command: string,
  where: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
  work: (url: string) => Promise<T>,
): Promise<T> {
  const child = spawn('bash', ['-c', command], { ...where, detached: true })
  // Not 'exit', which is the shell's: its streams close when the last process that it started has ended.
  const ended = once(child, 'close')
  try {
    return await work(await untilServing(child))
  } finally {
    process.kill(-(child.pid ?? Number.NaN), 'SIGTERM')
    await ended
  }
}

/** What `npm pack --json` tells; sizes in bytes. */
interface Packed {
  readonly filename: string
  readonly unpackedSize: number
}

/** The machine's own Node, if it is older than Postern needs. */
const OLD_NODE = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (node) => existsSync(node) && !isNewEnough(execFileSync(node, ['-p', 'process.versions.node']).toString()),
)

let packages: string
let packed: Packed
const tarball = (): string => join(packages, packed.filename)

beforeAll(async () => {
  packages = await mkdtemp(join(tmpdir(), 'postern-packed-'))
  const { stdout } = await npm(['pack', '--json', '--silent', '--pack-destination', packages], ROOT)
  packed = (JSON.parse(stdout) as [Packed])[0]
}, 240_000)
afterAll(() => rm(packages, { recursive: true, force: true }))

describe('C8.1: the published package, in a project of its own', () => {
  let project: string

  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), 'postern-project-'))
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
    await npm(['install', '--prefer-offline', '--ignore-scripts', tarball()], project)
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
  /** What the compiler says of each file, all compiled at once. */
  const compiled = shared(async () => {
    const files = ['backend.ts', 'wrong.ts', 'people.ts', 'wrong-people.ts', 'around.ts', 'around-wrong.ts']
    const [compiler, types] = ['typescript/bin/tsc', '@types'].map((name) => join(ROOT, 'node_modules', name))
    const args = [compiler ?? '', ...STRICT, '--pretty', 'false', '--typeRoots', types ?? '', ...files]
    const told = await run(process.execPath, args, { cwd: project }).catch((error: unknown) => error)
    const { stdout } = told as { readonly stdout: string }
    return Object.groupBy(stdout.split(/^(?=\S+\.ts\()/m), (text) => text.split('(', 1)[0] ?? '')
  })
  const problemsOf = async (file: string): Promise<string> => (await compiled())[file]?.join('') ?? ''

  it('is JavaScript and declarations, without sources or tests', async () => {
    const all = await readdir(join(project, 'node_modules/postern'), { recursive: true })
    expect(all).toContain('dist/main.js')
    expect(all).toContain('dist/base/contracts/calls/module.d.ts')
    expect(all).toContain('dist/base/contracts/people/people-module.d.ts')
    expect(all).toContain('dist/identity/pages/postern.css')
    expect(all.filter((name) => name.startsWith('test'))).toEqual([])
    expect(all.filter((name) => /^(dist|src)\/.*(?<!\.d)\.ts$/.test(name))).toEqual([])
  })

  it('is public, and small: 15 MB unpacked at most, 35 MB with all that it brings along', async () => {
    const sizes = await readdir(join(project, 'node_modules'), { recursive: true, withFileTypes: true }).then(
      (entries) =>
        Promise.all(
          entries
            .filter((entry) => entry.isFile())
            .map(({ parentPath, name }) => stat(join(parentPath, name)).then(({ size }) => size)),
        ),
    )
    const MB = 1_000_000
    expect(packed.unpackedSize).toBeLessThan(15 * MB)
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(35 * MB)
    const own = JSON.parse(await readFile(join(project, 'node_modules/postern/package.json'), 'utf8'))
    expect(own).not.toHaveProperty('private')
  })

  it('brings every page along that its pages link to, but for those about its source and tests', async () => {
    const folder = join(project, 'node_modules/postern')
    const pages = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.md'))
    expect(pages).toEqual(
      expect.arrayContaining(['README.md', 'src/protocol/README.md', 'deploy/CHANGELOG.md']),
    )
    const missing = pages.flatMap((page) =>
      [...readFileSync(join(folder, page), 'utf8').matchAll(/\]\((?!https?:)([^)#\s]+)/g)]
        .map(([, link = '']) => join(dirname(page), link))
        .filter((link) => !existsSync(join(folder, link)))
        .filter((link) => !/^test\/|^src\/.*\.ts$/.test(link))
        .map((link) => `${page}: ${link}`),
    )
    expect(missing).toEqual([])
  })

  it('types a backend: what fits compiles, what JSON cannot say does not', async () => {
    expect(await problemsOf('backend.ts')).toBe('')
    expect(await problemsOf('wrong.ts')).toContain('bigint')
  })

  it('types code that finds people: a password is right or wrong, and nothing else', async () => {
    expect(await problemsOf('people.ts')).toBe('')
    expect(await problemsOf('wrong-people.ts')).toContain('boolean')
  })

  it('C8.9 types a module over a forwarder', async () => {
    expect(await problemsOf('around.ts')).toBe('')
    expect(await problemsOf('around-wrong.ts')).toContain('Uint8Array')
  })

  it('C10 serves its own first configuration by the command that init prints', async () => {
    const { stdout } = await run('npx', ['postern', 'init', 'my own', '--business', 'ACME', '--json'], {
      ...{ cwd: project, env: environment() },
    })
    const made = JSON.parse(stdout) as Record<
      'serve' | 'client_id' | 'client_secret' | 'username' | 'password',
      string
    >
    expect(made.serve).toBe("npx postern serve 'my own/postern.yaml'")
    await withServed(made.serve, { cwd: project, env: environment() }, async (url) => {
      const { client_id: client, client_secret: secret, username, password } = made
      const params = { grant_type: 'password', username, password }
      const { status, json } = await postForm({ authUrl: url }, '/connect/token', {
        client,
        secret,
        params,
      })
      expect([status, json.scope]).toEqual([200, expect.stringContaining('target:b/ACME')])
    })
  })

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
    const ended = once(child, 'close')
    const authUrl = await untilServing(child)
    const { access_token } = await issueToken({ authUrl }, { scope: 'fund.read target:b/ACME' })
    const headers = { Authorization: `Bearer ${access_token}` }
    const answer = await fetch(`${authUrl}/api/1.0/b/ACME/fund-data/fund-list`, { headers })
    expect(await answer.json()).toEqual({ Errors: [], Data: expected })
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  })
})

describe('the packed file unpacked, with no other package', { timeout: 300_000 }, () => {
  let folder: string
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'postern-unpacked-'))
    await run('tar', ['-xzf', tarball(), '-C', folder, '--strip-components', '1'])
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const sources = sourceFiles(join(ROOT, 'src')).map((file) => [file, readFileSync(file, 'utf8')] as const)
  const placeOf = (file: string): string => join('dist', relative(join(ROOT, 'src'), file))

  it('has every program and every file that a source finds beside itself', () => {
    const named = sources.flatMap(([file, text]) => [
      ...[...text.matchAll(/programBeside\(import\.meta\.url, '([^']+)'/g)].map(([, name]) => [
        file,
        `${name}.js`,
      ]),
      ...[...text.matchAll(/new URL\('([^']+)', import\.meta\.url/g)].map(([, name]) => [file, name]),
    ])
    const places = named.map(([file = '', name = '']) => join(dirname(placeOf(file)), name))
    expect(places).toEqual(
      expect.arrayContaining([
        'dist/serve/start/worker-main.js',
        'dist/state/stores/sqlite/sqlite-thread.js',
        'dist/identity/pages/show-password.js',
        'dist/extensions/developers/copy-code.js',
        'dist/extensions/developers/developers.css',
        'package.json',
      ]),
    )
    expect(places.filter((place) => !existsSync(join(folder, place)))).toEqual([])
  })

  it('tells the licence of every package that is in it, and names all of them to scanners', () => {
    const maps = globSync('dist/**/*.map', { cwd: folder })
    const modules = maps.flatMap(
      (map) => (JSON.parse(readFileSync(join(folder, map), 'utf8')) as { sources: string[] }).sources,
    )
    const inside = new Set(
      modules.flatMap((module) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(module)?.[1] ?? []),
    )
    const text = readFileSync(join(folder, 'dist/LICENSES.txt'), 'utf8')
    const told = [...text.matchAll(/^-{80}\n\n(\S+) \d\S+ \(\S.*\)\n\n(?=.*\S)/gm)].map(([, name]) => name)
    const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>
    }
    const { components } = JSON.parse(readFileSync(join(folder, 'dist/sbom.cdx.json'), 'utf8')) as {
      components: { name: string; version: string }[]
    }
    const scanned = components.map(({ name }) => name)
    expect([...inside].filter((name) => !told.includes(name) || !scanned.includes(name))).toEqual([])
    expect(Object.keys(dependencies).filter((name) => !inside.has(name))).toEqual([])
  })

  it('tells stacks by the lines of the sources, also those of packages in it', async () => {
    const parts = join(folder, 'dist/parts')
    const holding = (text: string): string =>
      globSync('*.js', { cwd: parts }).find((name) =>
        readFileSync(join(parts, name), 'utf8').includes(text),
      ) ?? ''
    const fastify = holding('require_fastify as ')
    const [, exported = ''] =
      /require_fastify as (\w+)/.exec(readFileSync(join(parts, fastify), 'utf8')) ?? []
    const program = `
      await import('./${holding('Error.prepareStackTrace = (error, sites)')}')
      const { ${exported}: open } = await import('./${fastify}')
      try { open()({ bodyLimit: 'x' }) } catch (error) { console.log(error.stack) }`
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], { cwd: parts })
    expect(stdout).toContain("'bodyLimit' option must be an integer")
    expect(stdout).toMatch(/ at processOptions \(node_modules\/fastify\/fastify\.js:\d+:\d+\)/)
    expect(stdout).not.toContain(fastify)
  })

  it('loads no package that is not in it', () => {
    const programs = globSync('dist/**/*.js', { cwd: folder }).map((file) =>
      readFileSync(join(folder, file), 'utf8'),
    )
    const names = programs.flatMap((text) =>
      [...text.matchAll(/^(?:import|export)[^;]*?["']([^"'.][^"']*)["'];$|__require\("([^"]+)"\)/gm)].map(
        ([, imported, required]) => imported ?? required ?? '',
      ),
    )
    expect(names).toContain('node:fs')
    // pg asks for it where the environment says so, and is told that it is not there.
    expect([...new Set(names)].filter((name) => !isBuiltin(name))).toEqual(['pg-native'])
  })

  const served = async (
    environment: Record<string, string>,
    yaml: string,
    work: (service: SpawnedPostern) => Promise<void>,
  ): Promise<SpawnedPostern> => {
    const config = join(folder, 'own.yaml')
    await writeFile(config, `extends: ${DEMO}\n${yaml}`)
    const service = await spawnPostern({ root: folder, program: 'dist/main.js', config, environment })
    try {
      await work(service)
    } finally {
      expect(await service.stop()).toBe(0)
    }
    return service
  }
  const verb = (env: Record<string, string>, ...args: readonly string[]) =>
    run(process.execPath, [join(folder, 'dist/main.js'), ...args], {
      cwd: folder,
      env: { PATH: process.env['PATH'], POSTERN_CONFIG: join(folder, 'own.yaml'), ...env },
    })

  it('shows the pages with their styles and scripts, the metadata and the description of the API', async () => {
    await served({}, '', async ({ authUrl }) => {
      const page = async (path: string) => {
        const answer = await fetch(new URL(path, authUrl))
        expect([path, answer.status]).toEqual([path, 200])
        return answer.text()
      }
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: 'ledgerline',
        redirect_uri: 'http://127.0.0.1:8090/callback',
        scope: 'openid fund.read target:b/ACME',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      })
      const login = await page(`/connect/authorize?${String(query)}`)
      expect(login).toContain(readFileSync(join(ROOT, 'src/identity/pages/show-password.js'), 'utf8'))
      const developers = await page('/developers')
      const styles = [...developers.matchAll(/<link[^>]* href="([^"]+\.css[^"]*)"/g)].map(
        ([, href = '']) => href,
      )
      expect(styles).toHaveLength(2)
      for (const style of styles) expect(await page(style)).toMatch(/\{[^}]+\}/)
      const { jwks_uri } = JSON.parse(await page('/.well-known/openid-configuration')) as { jwks_uri: string }
      expect(jwks_uri).toMatch(/^http/)
      const described = [...developers.matchAll(/href="([^"]*openapi[^"]*\.json)"/g)].map(
        ([, href = '']) => href,
      )
      expect(described.length).toBeGreaterThan(0)
      for (const href of described) expect(JSON.parse(await page(href))).toHaveProperty('openapi')
    })
  })

  it.each(['1', '2'])(
    'serves with workers: %s what its threads convert, modules find and the store keeps',
    async (workers) => {
      const upstream = await openUpstream()
      onTestFinished(() => upstream.close())
      const entries = Array.from({ length: 20_000 }, (_, at) => `<Fund>fund ${at}</Fund>`)
      upstream.behave((connection) => {
        const headers = { 'Content-Type': 'application/xml' }
        connection.respond({ headers, body: `<r><Funds type="array">${entries.join('')}</Funds></r>` })
      })
      const data = await mkdtemp(join(tmpdir(), 'postern-unpacked-data-'))
      onTestFinished(() => rm(data, { recursive: true, force: true }))
      await writeFile(join(folder, 'backend.ts'), BACKEND)
      await writeFile(
        join(folder, 'broken.ts'),
        BACKEND.replace('answer: (', 'answer: (call) => call.nothing.there, other: ('),
      )
      await writeFile(
        join(folder, 'people.ts'),
        PEOPLE.replace("username: 'dora',", "username: 'dora', customers: ['acme-books'],"),
      )
      const yaml = `workers: ${workers}
directory:
  people: { kind: module, file: people.ts, options: { password: x } }
backends:
  sample:
  mine: { kind: module, file: backend.ts, options: { greeting: hello } }
  broken: { kind: module, file: broken.ts, options: { greeting: hello } }
  funds: { kind: http, target: '${upstream.url}', format: xml }
areas:
  fund-data: { backend: funds }
  member-data: { backend: mine }
  mine: { backend: mine }
  broken: { backend: broken }
actions:
  - { level: business, area: fund-data, action: fund-list, methods: { GET: { scopes: { any: [fund.read] }, items: { Funds: Fund } } } }
  - { level: business, area: mine, action: greet, methods: { GET: { scopes: { any: [fund.read] } } } }
  - { level: business, area: broken, action: greet, methods: { GET: { scopes: { any: [fund.read] } } } }
`
      const environment = { POSTERN_DATA: data }
      let refresh = ''
      const first = await served(environment, yaml, async (service) => {
        const asked = { username: 'dora', password: 'x', scope: 'offline_access fund.read target:b/ACME' }
        const { access_token, refresh_token } = await issueToken(service, asked)
        const headers = { Authorization: `Bearer ${access_token}` }
        refresh = refresh_token ?? ''
        const call = (area: string) => fetch(`${service.baseUrl}/api/1.0/b/ACME/${area}`, { headers })
        expect(await (await call('mine/greet')).json()).toMatchObject({
          Data: { Greeting: 'hello', Business: 'ACME', Backend: 'mine' },
        })
        const large = (await (await call('fund-data/fund-list')).json()) as { Data: { Funds: string[] } }
        expect(large.Data.Funds).toHaveLength(entries.length)
        expect((await call('broken/greet')).status).toBe(500)
        const env = { POSTERN_DATA: data, POSTERN_ADMIN_PORT: new URL(service.adminUrl).port }
        expect((await verb(env, 'status')).stdout).toContain('serving')
        expect((await verb(env, 'audit', 'verify')).stdout).toContain('whole')
      })
      // What an operator reads at night are places in the sources.
      expect(first.output()).toMatch(/ at [^\\]*\(src\/extensions\/modules\/[a-z/-]+\.ts:\d+:\d+\)/)
      // The store is examined, in a process of its own, and has kept the login.
      await served(environment, yaml, async (service) => {
        const params = { grant_type: 'refresh_token', refresh_token: refresh }
        expect((await postForm(service, '/connect/token', { params })).status).toBe(200)
      })
    },
  )

  it('has every command', async () => {
    const own = await mkdtemp(join(tmpdir(), 'postern-unpacked-init-'))
    onTestFinished(() => rm(own, { recursive: true, force: true }))
    await served({}, '', async ({ data }) => {
      const env = { POSTERN_DATA: data }
      const { stdout: help } = await verb(env, '--help')
      const names = [...help.matchAll(/^ {2}([a-z]\S*) /gm)].map(([, name = '']) => name)
      expect(names.length).toBeGreaterThan(20)
      const told = await Promise.all(names.map((name) => verb(env, name, '--help')))
      for (const [at, name] of names.entries()) expect(told[at]?.stdout).toContain(`postern ${name}`)
    })
    await verb({}, 'check')
    expect((await verb({}, 'completion', 'bash')).stdout).toContain('complete')
    if (!existsSync(join(ROOT, 'src/extensions/from-openapi'))) return
    const openapi = join(own, 'openapi.json')
    const paths = { '/funds': { get: { responses: { 200: { description: 'funds' } } } } }
    await writeFile(
      openapi,
      JSON.stringify({ openapi: '3.1.0', info: { title: 'Funds', version: '1' }, paths }),
    )
    await verb({}, 'init', join(own, 'made'), '--from', openapi, '--shared', 'GET /funds')
    expect(readFileSync(join(own, 'made/postern.yaml'), 'utf8')).toContain('funds')
  })

  it('explains calls with the classes that its other parts have', async () => {
    await writeFile(
      join(folder, 'explain.mjs'),
      `import { ExplainerError, openExplainer } from 'postern/explain'
       const path = '/api/1.0/b/ACME/fund-data/fund-list'
       const explainer = await openExplainer(${JSON.stringify(DEMO)}, { store: false })
       const { outcome } = await explainer.explain({ path, client: 'acme-books', user: 'alice', target: 'b/ACME' })
       await explainer.close()
       const refused = await openExplainer('missing.yaml').catch((error) => error instanceof ExplainerError)
       console.log(JSON.stringify({ outcome, refused }))`,
    )
    const { stdout } = await run(process.execPath, ['explain.mjs'], { cwd: folder })
    expect(JSON.parse(stdout)).toEqual({ outcome: 'let in', refused: true })
  })
})

describe('C10 the packed file in an empty folder', () => {
  let folder: string
  /** npx keeps what it unpacks in this folder, and takes what was downloaded before from npm's own. */
  let cache: string

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'postern-empty-'))
    cache = await mkdtemp(join(tmpdir(), 'postern-npx-'))
    const { stdout } = await run('npm', ['config', 'get', 'cache'])
    await symlink(join(stdout.trim(), '_cacache'), join(cache, '_cacache'))
  })
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true })
    await rm(cache, { recursive: true, force: true })
  })

  const npx = (...args: readonly string[]) => {
    const program = ['--yes', '--prefer-offline', '--ignore-scripts', `--package=${tarball()}`, 'postern']
    return [...program, ...args]
  }
  const environment = () => ({
    ...process.env,
    npm_config_cache: cache,
    POSTERN_PORT: '0',
    POSTERN_ADMIN_PORT: '0',
  })

  /** Serves until it has said where; answers what a call without a token gets. */
  const callServed = (command: string): Promise<Response> =>
    withServed(command, { cwd: folder, env: environment() }, (url) =>
      fetch(`${url}/api/1.0/b/ACME/fund-data/fund-list`),
    )

  it.skipIf(OLD_NODE === undefined)('tells an older Node the command that runs it, which does', async () => {
    await copyFile(tarball(), join(folder, packed.filename))
    await run('tar', ['-xzf', packed.filename], { cwd: folder })
    const env = { ...environment(), PATH: `${dirname(OLD_NODE ?? '')}:/usr/bin:/bin` }
    const old = run(OLD_NODE ?? '', ['package/dist/main.js', '--version'], { cwd: folder, env })
    const { code, stderr } = (await old.catch((thrown: unknown) => thrown)) as {
      code: number
      stderr: string
    }
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^postern: needs Node 24\.9 or newer/)])
    const [printed = ''] = /(?<=\n {2})npx .+/.exec(stderr) ?? []
    const command = `${printed.replace('npx', 'npx --yes --prefer-offline')} --version`
    expect((await run('bash', ['-c', command], { cwd: folder, env })).stdout).toMatch(/^postern \d/)
  })

  it('says what to do, and each of its two ways serves', { timeout: 180_000 }, async () => {
    const refused = run('npx', npx('serve'), { cwd: folder, env: environment() })
    const error = (await refused.catch((thrown: unknown) => thrown)) as { code: number; stderr: string }
    expect(error.code).toBe(2)
    const [, demo = ''] = /postern serve (\S+demo\.yaml)\n/.exec(error.stderr) ?? []
    expect(error.stderr).toMatch(/^ {2}postern init /m)
    expect((await callServed(['npx', ...npx('serve', demo)].join(' '))).status).toBe(401)

    const { stderr } = await run('npx', npx('init'), { cwd: folder, env: environment() })
    expect(await readdir(folder)).toContain('postern.yaml')
    const [printed = ''] = /(?<=^Serve it:\n {2}).+/m.exec(stderr) ?? []
    expect((await callServed(printed)).status).toBe(401)
  })
})
