import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PassThrough, Writable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { answersOf } from '../../src/cli/init/answers.ts'
import { runCommandLine } from '../../src/cli/command-line.ts'
import { serveCommandText } from '../../src/cli/init/init.ts'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { postForm } from '../support/oauth.ts'
import { postern } from '../support/start-postern.ts'
import { typing } from '../support/typed-terminal.ts'

const field = (text: string, name: string): string =>
  new RegExp(`^${name} +(\\S+)$`, 'm').exec(text)?.[1] ?? ''

const emptyFolder = (): string => dirname(configFiles({})('any'))

describe('postern init', () => {
  it('C10 takes what options tell: the service, businesses with their names, the client, the user', async () => {
    const folder = emptyFolder()
    const options = [
      ...['--upstream', 'https://funds.internal:8443/v2', '--business', 'ACME=Acme: "Advisory" & Co'],
      ...['--business', 'GLOBEX', '--client', 'books', '--user', 'alice', '--json'],
    ]
    const { code, stdout, stderr } = await runVerb(['init', folder, ...options])
    expect([code, stderr]).toEqual([0, ''])
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ client_id: 'books', username: 'alice' },
      try: expect.stringMatching(/ --user alice GET \/api\/1\.0\/b\/ACME\/example\/hello$/),
    })
    const file = join(folder, 'postern.yaml')
    const text = readFileSync(file, 'utf8')
    expect(text).toContain('default: "https://funds.internal:8443/v2"')
    expect(text).toContain('name: "Acme: \\"Advisory\\" & Co"')
    expect(text).toContain('defaultScope: "hello.read target:b/ACME"')
    expect(await runVerb(['check', file])).toMatchObject({ code: 0, stderr: '' })
    const access = await runVerb(['access', '--config', file, '--business', 'GLOBEX'])
    expect(access.stdout).toContain('alice')
  })

  it.each([
    [['--upstream', 'funds'], '--upstream: expected a URL'],
    [['--upstream', 'http://me:secret@funds'], '--upstream: expected a URL'],
    [['--business', 'A/B'], '--business: expected a code that can stand in a path'],
    [['--business', 'ACME', '--business', 'acme'], '--business: acme stands twice'],
    [['--client', 'two words'], '--client: expected at most 128 characters of ASCII'],
    [['--user', ' '], '--user: expected a user name of at most 128 characters'],
    [['--bussiness', 'ACME'], 'did you mean "--business"?'],
  ])('C10 refuses %j, says why, and writes nothing', async (options, why) => {
    const folder = emptyFolder()
    const { code, stdout, stderr } = await runVerb(['init', folder, ...options])
    expect(stderr).toContain(why)
    expect([code, stdout]).toEqual([2, ''])
    expect(() => readFileSync(join(folder, 'postern.yaml'))).toThrow('ENOENT')
  })

  it('C10 writes one operation and no funds where no description is given', async () => {
    const folder = emptyFolder()
    expect((await runVerb(['init', folder])).code).toBe(0)
    const written = parse(readFileSync(join(folder, 'postern.yaml'), 'utf8')) as object
    expect(written).toMatchObject({
      directory: { businesses: { EXAMPLE: { funds: [] } } },
      actions: [{ level: 'business', area: 'example', action: 'hello', methods: { GET: {} } }],
    })
  })

  it('C10 leaves no file whose secrets could not be shown', async () => {
    const folder = emptyFolder()
    const gone = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    const stdout = new Writable({ write: (_chunk, _encoding, done) => done(gone) })
    const stderr = new PassThrough().resume()
    const terminal = { env: {}, stdin: new PassThrough() as unknown as NodeJS.ReadStream, stdout, stderr }
    expect(await runCommandLine(['init', folder], terminal)).toBe(1)
    expect(() => readFileSync(join(folder, 'postern.yaml'))).toThrow('ENOENT')
  })

  it('C10 writes nothing where somebody ends the questions by Ctrl+C', async () => {
    const folder = emptyFolder()
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    const stderr = Object.assign(new PassThrough(), { isTTY: true, columns: 200 })
    let shown = ''
    stderr.on('data', (chunk: Buffer) => {
      shown += chunk.toString()
      if (/\]: (?:\u001b\[\d+G)?$/.test(shown)) stdin.write('\u0003')
    })
    const terminal = { env: {}, stdin: stdin as unknown as NodeJS.ReadStream, stderr, stdout: stderr }
    expect(await runCommandLine(['init', folder], terminal)).toBe(1)
    await expect.poll(() => shown).toMatch(/\npostern: stopped\. Nothing was written\.\n$/)
    expect(() => readFileSync(join(folder, 'postern.yaml'))).toThrow('ENOENT')
  })

  it('C10 asks on a terminal for what no option tells, again after a wrong answer; an empty one is the default', async () => {
    const { terminal, shown } = typing(['not a url', 'http://127.0.0.1:9001', 'ACME GLOBEX', ''])
    const asked = { upstream: 'http://127.0.0.1:9000', yes: false }
    expect(await answersOf({ user: 'alice' }, asked, terminal)).toEqual({
      upstream: 'http://127.0.0.1:9001',
      businesses: [
        { code: 'ACME', name: 'ACME' },
        { code: 'GLOBEX', name: 'GLOBEX' },
      ],
      client: 'first-client',
      user: 'alice',
    })
    expect(shown().match(/\]: /g)).toHaveLength(4)
    expect(shown()).toContain('expected a URL such as http://127.0.0.1:9000')
  })

  it('C10 takes the defaults where the input ends, or --yes says so', async () => {
    const usual = { upstream: 'http://127.0.0.1:9000', client: 'first-client', user: 'first-user' }
    const asked = { upstream: usual.upstream, yes: false }
    expect(await answersOf({}, asked, typing([]).terminal)).toMatchObject(usual)
    const silent = typing([])
    expect(await answersOf({}, { ...asked, yes: true }, silent.terminal)).toMatchObject(usual)
    expect(silent.shown()).toBe('')
  })
})

describe('what postern init has written', () => {
  it('C10 writes a configuration of one’s own that passes the check, serves, and lets its client and user in', async () => {
    const folder = join(emptyFolder(), 'own')
    const made = await runVerb(['init', folder])
    expect(made.code).toBe(0)
    const file = join(folder, 'postern.yaml')
    const checked = await runVerb(['check'], { env: { POSTERN_CONFIG: file } })
    expect(checked).toEqual({ code: 0, stdout: `${file}: can be served\n`, stderr: '' })

    const service = await postern({ file })
    const { status, json } = await postForm(service, '/connect/token', {
      client: field(made.stdout, 'client_id'),
      secret: field(made.stdout, 'client_secret'),
      params: {
        grant_type: 'password',
        username: field(made.stdout, 'username'),
        password: field(made.stdout, 'password'),
        scope: 'openid hello.read target:b/EXAMPLE',
      },
    })
    expect([status, json.scope]).toEqual([200, 'openid hello.read target:b/EXAMPLE'])
    const call = await fetch(`${service.baseUrl}/api/1.0/b/EXAMPLE/example/hello`, {
      headers: { Authorization: `Bearer ${json.access_token}` },
    })
    // Nothing is behind it yet.
    expect([502, 503]).toContain(call.status)
  })

  it('draws other secrets each time, and keeps none of them; the file is its owner’s alone', async () => {
    const folders = [emptyFolder(), emptyFolder()]
    const made = await Promise.all(folders.map((folder) => runVerb(['init', `${folder}/own`])))
    const texts = folders.map((folder) => readFileSync(`${folder}/own/postern.yaml`, 'utf8'))
    for (const name of ['client_secret', 'password']) {
      const [one = '', two = ''] = made.map(({ stdout }) => field(stdout, name))
      expect(one.length).toBeGreaterThanOrEqual(20)
      expect(one).not.toBe(two)
      expect(texts.join('')).not.toContain(one)
    }
    expect(statSync(`${folders[0]}/own/postern.yaml`).mode & 0o777).toBe(0o600)
  })

  it('overwrites nothing', async () => {
    const folder = join(emptyFolder(), 'own')
    const run = () => runVerb(['init', folder])
    await run()
    const before = readFileSync(join(folder, 'postern.yaml'), 'utf8')
    const again = await run()
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('exists already') })
    expect(readFileSync(join(folder, 'postern.yaml'), 'utf8')).toBe(before)
  })
})

describe('the command that postern init prints', () => {
  const entryOf = (path: string) => {
    const files = configFiles({ 'src/main.ts': '', 'node_modules/postern/dist/main.js': '' })
    const cwd = dirname(files('any'))
    mkdirSync(join(cwd, 'node_modules/.bin'))
    symlinkSync('../postern/dist/main.js', join(cwd, 'node_modules/.bin/postern'))
    writeFileSync(join(cwd, 'postern'), '')
    return { node: '/opt/node', cwd, entry: join(cwd, path) }
  }

  it.each([
    ['src/main.ts', { npm_lifecycle_event: 'postern' }, 'npm run -s postern -- serve'],
    ['node_modules/.bin/postern', { npm_command: 'exec' }, 'npx postern serve'],
    ['node_modules/postern/dist/main.js', {}, 'npx postern serve'],
  ])('C10 names the program as it was started: %s %j', (path, environment, expected) => {
    expect(serveCommandText('my/postern.yaml', { ...entryOf(path), environment })).toBe(
      `${expected} my/postern.yaml`,
    )
  })

  it('C10 is postern itself where the shell finds it, else a path; words are quoted for the shell', () => {
    const started = entryOf('postern')
    const inPath = { ...started, environment: { PATH: `/bin:${started.cwd}` } }
    expect(serveCommandText("it's/postern.yaml", inPath)).toBe("postern serve 'it'\\''s/postern.yaml'")
    const once = { ...inPath, environment: { ...inPath.environment, npm_command: 'exec' } }
    expect(serveCommandText('postern.yaml', once)).toBe(`/opt/node ${started.cwd}/postern serve postern.yaml`)
  })
})
