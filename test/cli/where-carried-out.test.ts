/** Which process carries out a command that a service can do, and when neither does (operate/README.md). */
import { chmodSync, chownSync, existsSync, readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { tryLock } from '../../src/operate/trail/lock.ts'
import { findService, pointToTrail } from '../../src/operate/trail/announcement.ts'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import { auditRecords, recordsOf } from '../support/audit-files.ts'
import type { WaitClock } from '../../src/operate/operation/terminal.ts'
import { longPauses, openVerbs, runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { dataFolder } from '../support/data-folder.ts'
import { eventually } from '../support/eventually.ts'
import { giveKey } from '../support/ready-key.ts'
import { atEnd, shared } from '../support/shared.ts'
import { shellWords } from '../support/shell-words.ts'
import { DEMO } from '../support/spawn-postern.ts'
import { postern } from '../support/start-postern.ts'

const ADD =
  'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME --scope openid --json'
const PASSWORD = 'doras-long-password\n'
const NO_TRAIL = 'audit: { enabled: false }'

async function place(changes = '') {
  const data = await dataFolder()
  await giveKey(data)
  const file = configFiles({ 'a.yaml': `extends: ${DEMO}\n${changes}\n` })('a.yaml')
  const env = { POSTERN_DATA: data, POSTERN_CONFIG: file }
  const run = (line: string, more: Readonly<Record<string, string>> = {}, waiting?: WaitClock) =>
    runVerb(line.split(' '), {
      env: { ...env, ...more },
      input: PASSWORD,
      alone: true,
      ...(waiting && { waiting }),
    })
  /** Runs a command that waits for what does not come. */
  const inVain = (line: string) => run(line, {}, longPauses())
  const serve = () => postern({ file, data })
  const ownToken = (): string => readFileSync(join(data, 'admin-token'), 'utf8').trim()
  return { data, env, run, inVain, serve, ownToken }
}

/** The lock of a folder, as another process would have it, until the test ends. */
function hold(folder: string): NonNullable<ReturnType<typeof tryLock>> {
  const lock = tryLock(folder)
  if (lock === undefined) throw new Error(`${folder} is in use`)
  onTestFinished(() => lock.release())
  return lock
}

const NOWHERE = 'http://127.0.0.1:9'

describe(
  'C12.1.7 a configuration file that cannot be read, while a service runs',
  { timeout: 120_000 },
  () => {
    const served = shared(async () => {
      const here = await place()
      return { here, service: await here.serve() }
    })

    it.each([
      ['--admin-url and a token', 'admin-url', 'dora'],
      ['the folder of --data', 'data', 'dina'],
      ['what the file says of `data`', 'file', 'dana'],
    ])(
      'does not stop user disable, audit find and audit redact, which find the service by %s',
      async (_way, way, user) => {
        const { here, service } = await served()
        const begun = new Date().toISOString()
        expect((await here.run(`user add ${user} --access ACME=Read-only`)).code).toBe(0)
        const text = `${way === 'file' ? `data: ${here.data}\n` : ''}backends: [oops\n`
        const env = { POSTERN_DATA: '', POSTERN_CONFIG: configFiles({ 'b.yaml': text })('b.yaml') }
        const [more, token] =
          way === 'admin-url'
            ? [` --admin-url ${service.adminUrl}`, here.ownToken()]
            : [way === 'data' ? ` --data ${here.data}` : '', '']
        const run = (line: string) =>
          here.run(`${line}${more} --reason stolen`, {
            ...env,
            ...(token !== '' && { POSTERN_ADMIN_TOKEN: token }),
          })
        const ended = await run(`user disable ${user}`)
        expect(ended).toMatchObject({
          code: 0,
          stderr: '',
          stdout: expect.stringMatching(new RegExp(`^${user}: disabled\n`)),
        })
        const found = await run(`audit find --event user.disabled --from ${begun}`)
        expect(found).toMatchObject({
          code: 0,
          stdout: expect.stringContaining(`user.disabled user ${user}`),
        })
        // Where its folder is not known, up to when the trail is signed is not either.
        expect(found.stderr).toMatch(way === 'admin-url' ? /^1 row\. Whether/ : /^1 row\. Signed up to /)
        expect(await run(`audit redact --subject S-${user}`)).toMatchObject({ code: 0, stderr: '' })
        for (const event of ['user.disabled', 'audit.queried', 'audit.redacted'])
          expect(recordsOf(service, event).at(-1)).toMatchObject({
            outcome: 'success',
            why: 'stolen',
            actor: { operator: 'admin', via: 'cli' },
          })
      },
    )

    it('is shown, and stops the command, where no service runs', async () => {
      const here = await place()
      const broken = configFiles({ 'b.yaml': `data: ${here.data}\nbackends: [oops\n` })('b.yaml')
      const ended = await here.run('user disable alice', { POSTERN_DATA: '', POSTERN_CONFIG: broken })
      expect(ended).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('b.yaml') })
    })
  },
)

describe.skipIf(process.geteuid?.() !== 0)(
  'C12.1.7 a data folder of another user',
  { timeout: 60_000 },
  () => {
    /** All its commands are refused, so tests can share it. */
    const foreign = shared(async () => {
      const here = await place()
      expect(await here.run(ADD.replace('tally', 'first'))).toMatchObject({ code: 0, stderr: '' })
      const other = 65_534
      for (const name of ['', 'postern.sqlite', 'keys', 'audit'])
        chownSync(join(here.data, name), other, other)
      return here
    })

    it.each([
      'client list',
      ADD,
      'client disable tally',
      'keys list',
      'keys rotate',
      'keys rotate --compromised --yes',
      'backup copy-of-another-user.sqlite',
      'audit find',
      'audit redact --subject S --reason r',
    ])('refuses, with nothing made in it, and names the user to run it as: %s', async (line) => {
      const here = await foreign()
      const records = auditRecords(here).length
      const inside = readdirSync(here.data, { recursive: true })
      const ended = await here.run(line)
      expect(ended).toMatchObject({
        code: 1,
        stdout: line.includes('--json') ? expect.stringContaining('"error"') : '',
        stderr: expect.stringMatching(/sudo -u (nobody|#65534) postern/),
      })
      expect(auditRecords(here)).toHaveLength(records)
      expect(readdirSync(here.data, { recursive: true })).toEqual(inside)
      expect(existsSync('copy-of-another-user.sqlite')).toBe(false)
    })

    it('refuses before anything is made in it, the lock neither', async () => {
      const here = await place(NO_TRAIL)
      chownSync(here.data, 65_534, 65_534)
      chownSync(join(here.data, 'keys'), 65_534, 65_534)
      expect((await here.run(ADD)).stderr).toMatch(/sudo -u/)
      expect(['writer.lock', 'postern.sqlite'].filter((name) => existsSync(join(here.data, name)))).toEqual(
        [],
      )
    })
  },
)

describe('C12.1.7 the lock', () => {
  it('is that of the data folder where no trail is kept: the service is found by it', async () => {
    const here = await place(NO_TRAIL)
    const service = await here.serve()
    expect(tryLock(here.data)).toBeUndefined()
    expect(await here.run(ADD)).toMatchObject({ code: 0, stderr: '' })
    // Only the service knows this token: so it was asked.
    const wrong = await here.run('client disable tally', { POSTERN_ADMIN_TOKEN: 'wrong' })
    expect(wrong).toMatchObject({ code: 1, stdout: '' })
    const shown = await fetch(`${service.adminUrl}/clients/tally`, {
      headers: { authorization: `Bearer ${here.ownToken()}` },
    })
    expect(shown.status).toBe(200)
    expect(existsSync(join(here.data, 'audit'))).toBe(false)
  })

  it('of the data folder lets one command after another change something where no trail is kept', async () => {
    const here = await place(NO_TRAIL)
    const lock = hold(here.data)
    const pauses: (() => void)[] = []
    const pause = () => new Promise<void>((resolve) => pauses.push(resolve))
    const running = here.run(ADD, {}, { monotonic: () => 0, pause })
    for (let looks = 1; looks <= 3; looks += 1) {
      await eventually(() => expect(pauses).toHaveLength(looks))
      if (looks === 3) lock.release()
      pauses.at(-1)?.()
    }
    expect((await running).code).toBe(0)
  })

  it.each([
    ['of this host that does not answer', hostname()],
    ['of another host', 'another-container'],
  ])('held by a service %s: what gives is not done, exit 1, and --admin-url is named', async (_who, host) => {
    const here = await place()
    expect(await here.run(ADD)).toMatchObject({ code: 0, stderr: '' })
    const folder = join(here.data, 'audit')
    hold(folder).announce({ adminUrl: NOWHERE, data: here.data })
    const announced = JSON.parse(readFileSync(join(folder, 'service.json'), 'utf8')) as object
    writeFileSync(join(folder, 'service.json'), JSON.stringify({ ...announced, host }))
    const [given, asked, erased, taken] = await Promise.all([
      here.inVain('client rotate-secret tally'),
      here.inVain('audit find'),
      here.inVain('audit redact --subject S --reason asked'),
      here.inVain('client disable tally'),
    ])
    for (const ended of [asked, erased])
      expect(ended).toMatchObject({
        ...{ code: 1, stdout: '' },
        stderr: expect.stringContaining('give --admin-url') as string,
      })
    expect(given).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('give --admin-url') })
    expect(taken).toMatchObject({ code: 0, stdout: expect.stringMatching(/^tally: disabled\n/) })
    expect(taken.stderr).toMatch(/could not be recorded: .*give --admin-url/)
  })

  it('held by a service of another host: nobody here gets its token, nor what is ordered', async () => {
    const here = await place()
    expect(await here.run(ADD)).toMatchObject({ code: 0 })
    writeFileSync(join(here.data, 'admin-token'), 'a-token-of-the-service\n', { mode: 0o600 })
    const got: string[] = []
    const other = createServer((request, response) => {
      got.push(`${request.method} ${request.url} ${request.headers.authorization}`)
      response.end('{}')
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const folder = join(here.data, 'audit')
    hold(folder).announce({ adminUrl: `http://127.0.0.1:${port}`, data: here.data })
    const announced = JSON.parse(readFileSync(join(folder, 'service.json'), 'utf8')) as object
    writeFileSync(join(folder, 'service.json'), JSON.stringify({ ...announced, host: 'another-container' }))
    const ended = await Promise.all(
      ['reload', `client disable tally --data ${here.data}`].map((line) => here.inVain(line)),
    )
    for (const each of ended)
      expect(each).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('give --admin-url') })
    expect(got).toEqual([])
  })

  it('is found where the running service left it, though the file names another folder of the trail', async () => {
    const here = await place()
    const elsewhere = await dataFolder()
    pointToTrail(here.data, elsewhere)
    hold(elsewhere).announce({ adminUrl: NOWHERE, data: here.data })
    const trail = join(here.data, 'another')
    expect(findService({ data: here.data, trail })).toMatchObject({ adminUrl: NOWHERE })
  })

  it.each([
    ['that sends on to another', 'there is no answer from', { status: 307, location: 'http://127.0.0.1:9/' }],
    ['that is none of Postern', 'is no admin listener of Postern', { status: 200, location: undefined }],
  ])('--admin-url of a listener %s: exit 1, in one line', async (_which, told, { status, location }) => {
    const here = await place()
    const other = createServer((_request, response) => {
      response.writeHead(status, location === undefined ? {} : { location }).end('<html>')
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const line = `user set-password dora --admin-url http://127.0.0.1:${port}`
    const ended = await here.run(line, { POSTERN_ADMIN_TOKEN: 'mine' })
    expect(ended).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(new RegExp(`^postern: .*${told}.*\n$`)),
    })
  })

  it('is not taken by what reads: keys list waits for nobody', async () => {
    const here = await place()
    hold(join(here.data, 'audit'))
    expect(await here.run('keys list')).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^RS256-1/),
    })
  })

  it('held where no trail is kept by a service that does not answer: what gives is not done', async () => {
    const here = await place(NO_TRAIL)
    hold(here.data).announce({ adminUrl: NOWHERE, data: here.data })
    const given = await here.inVain(ADD)
    expect(given).toMatchObject({ code: 1, stderr: expect.stringContaining('--admin-url') })
    expect(JSON.parse(given.stdout)).toEqual({ error: expect.stringContaining('--admin-url') })
  })
})

describe('C11.5.1 a secret that the caller brings', () => {
  it('is 400 if it is short, or no base64url, and nothing is changed; else it is in force', async () => {
    const here = await place()
    const service = await here.serve()
    const post = async (path: string, body: object) => {
      const headers = { authorization: `Bearer ${here.ownToken()}`, 'content-type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(body) }
      const response = await fetch(`${service.adminUrl}${path}`, init)
      return [response.status, (await response.json()) as { secret?: string; problems?: string[] }] as const
    }
    const client = {
      kind: 'customer',
      name: 'C',
      agreement: '2026-01-15',
      businesses: ['ACME'],
      scopes: ['openid'],
    }
    const bad = ['', 'a'.repeat(42), `${'a'.repeat(42)}+`, 'a'.repeat(1001), 7, null, { a: 1 }]
    for (const secret of bad) {
      const [added, { problems }] = await post('/clients', { id: 'bad', ...client, secret })
      expect([secret, added, problems?.join()]).toEqual([secret, 400, expect.stringContaining('secret')])
    }
    expect((await here.run('client list')).stdout).not.toMatch(/^bad /m)
    const secret = 'a'.repeat(43)
    expect(await post('/clients', { id: 'tally', ...client, secret })).toMatchObject([201, { secret }])
    for (const again of bad)
      expect([again, (await post('/clients/tally/secrets', { secret: again }))[0]]).toEqual([again, 400])
    expect(recordsOf(service, 'client.secret_rotated')).toEqual([])
    const drawn = await post('/clients/tally/secrets', {})
    expect(drawn).toMatchObject([200, { secret: expect.stringMatching(/^[\w-]{43}$/) }])
  })
})

describe('C12.1.7 a data folder that cannot be written', { timeout: 120_000 }, () => {
  /** Root may write everywhere: then the commands run as a user who may not. */
  const unwritable = shared(async () => {
    const here = await place()
    expect(await here.run(ADD)).toMatchObject({ code: 0, stderr: '' })
    const user = process.geteuid?.() === 0 ? 65_534 : undefined
    // The folder of all tests is its owner's alone; `/tmp` is not.
    const { mode, uid } = statSync(tmpdir())
    if (user !== undefined && uid === 0) chmodSync(tmpdir(), mode | 0o011)
    chmodSync(dirname(here.env.POSTERN_CONFIG), 0o755)
    const inside = readdirSync(here.data, { recursive: true, encoding: 'utf8' })
    const paths = [here.data, ...inside.map((name) => join(here.data, name))]
    for (const path of paths) {
      if (user !== undefined) chownSync(path, user, user)
      chmodSync(path, statSync(path).isDirectory() ? 0o500 : 0o400)
    }
    atEnd(() => chmodSync(here.data, 0o700))
    const verb = openVerbs({ user })
    const run = async (line: string) => {
      const ended = await verb(shellWords(line), here.env)
      expect([line, readdirSync(here.data, { recursive: true, encoding: 'utf8' })]).toEqual([line, inside])
      return ended
    }
    return { ...here, run }
  })

  it('is read, with nothing made in it', async () => {
    const { run } = await unwritable()
    for (const [line, shown] of [
      ['client list', /^tally +.*Tally/m],
      ['client show tally --json', /"name": "Tally"/],
      ['user list', /^alice /m],
      ['keys list', /^RS256-1/m],
      ['keys doctor', /RS256/],
    ] as const)
      expect([line, await run(line)]).toEqual([
        line,
        { code: 0, stdout: expect.stringMatching(shown) as string, stderr: '' },
      ])
    const asked = await run('audit find --event client.added')
    expect(asked).toMatchObject({ code: 0, stdout: expect.stringMatching(/client.added client tally/) })
    expect(asked.stderr).toMatch(/^postern: no record was left of this question: .*\n1 row\. Signed up to /)
  })

  it('is changed by no command, which says so', async () => {
    const { run, data } = await unwritable()
    const why = `postern: nothing was changed: the data folder ${data} cannot be written (EACCES: `
    for (const line of [
      'client rotate-secret tally',
      'client disable tally',
      'role add Clerk --scope openid',
    ])
      expect([line, await run(line)]).toEqual([
        line,
        { code: 1, stdout: '', stderr: expect.stringContaining(why) as string },
      ])
    for (const line of ['keys rotate', 'audit redact --subject S --reason asked'])
      expect(await run(line)).toMatchObject({ code: 1, stdout: '' })
  })
})

describe('C12.2.4 a named token', () => {
  it('may do no more where no service runs than where one does', async () => {
    const [token, other] = ['o'.repeat(43), 'a'.repeat(43)]
    const named = [
      `{ name: olga, role: operate, hash: '${hashSecret(token)}' }`,
      `{ name: ada, role: audit, hash: '${hashSecret(other)}' }`,
    ]
    const here = await place(`admin: { tokens: [${named.join(', ')}] }`)
    const lines = ['audit find', 'audit open', 'audit redact --subject S --reason asked']
    const run = (line: string, own: string) => here.run(line, { POSTERN_ADMIN_TOKEN: own })
    const ends = async (own: string) => Promise.all(lines.map(async (line) => (await run(line, own)).code))
    const down = [await ends(token), await ends(other)]
    const refused = await run('audit find', token)
    expect(refused).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('olga may not do') })
    await here.serve()
    expect([await ends(token), await ends(other)]).toEqual(down)
    expect(down).toEqual([
      [1, 1, 1],
      [0, 0, 1],
    ])
    expect(await run('audit find', token)).toEqual(refused)
  })
})
