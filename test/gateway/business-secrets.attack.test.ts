/** T2.13: secret values of businesses reach the service that they are for, and nobody else. */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { auditRecords } from '../support/audit-files.ts'
import { runVerb } from '../support/command-line.ts'
import { configFiles } from '../support/config-files.ts'
import { directoryEditors } from '../support/directory-editors.ts'
import { eventually } from '../support/eventually.ts'
import { bearer, send } from '../support/requests.ts'
import { secretValues, UPSTREAM_BASE } from '../support/secret-values.ts'
import { shared } from '../support/shared.ts'
import { WITHOUT_WAITS } from '../support/spawn-postern.ts'
import { postern } from '../support/start-postern.ts'
import { startUpstream } from '../support/start-upstream.ts'
import { fillStore, STORED_PASSWORD } from '../support/stored-records.ts'
import { issueToken } from '../support/tokens.ts'

const OF_ENVIRONMENT = 'from-the-environment-8361'
const OF_STORE = 'sealed-in-the-store-5527'
const OTHER = 'the-one-after-it-9914'

const opened = shared(async () => {
  const upstream = await startUpstream()
  const files = configFiles({
    'a.yaml': secretValues(UPSTREAM_BASE, WITHOUT_WAITS),
    'key.txt': `${OF_STORE}\n`,
    'other.txt': OTHER,
  })
  const environment = { UPSTREAM_URL: upstream.url, KEY: OF_ENVIRONMENT }
  const service = await postern({ file: files('a.yaml'), environment })
  const told: string[] = []
  const env = { ...environment, POSTERN_CONFIG: files('a.yaml'), POSTERN_DATA: service.data }
  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await runVerb(args, { env })
    told.push(stdout, stderr)
    return { code, stdout, stderr }
  }
  const adminToken = readFileSync(join(service.data, 'admin-token'), 'utf8').trim()
  const admin = async (method: string, path: string, body?: unknown) => {
    const headers = {
      ...bearer(adminToken),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const response = await fetch(`${service.adminUrl}${path}`, {
      ...{ method, headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    told.push(text)
    return { status: response.status, body: JSON.parse(text) }
  }
  const editors = await directoryEditors(service.configuration, service.world, () => Promise.resolve())
  const secret = await fillStore(editors)
  const scope = 'fund.read target:b/STORED'
  const ann = { client: 'tally', secret, username: 'ann', password: STORED_PASSWORD, scope }
  const { access_token } = await issueToken(service, ann)
  const call = async () => {
    upstream.requests.splice(0)
    const target = '/api/1.0/b/STORED/fund-data/fund-list'
    const { status, body } = await send(service, { target, headers: bearer(access_token) })
    told.push(body)
    const [sent] = upstream.requests
    return [status, sent?.target, ...(sent?.headers['x-key'] ?? [])]
  }
  return { service, files, command, admin, call, told, env }
})

/** All bytes of a folder, folders within it too. */
const bytesIn = (folder: string): string =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, 'latin1'))
    .join('\n')

describe('T2.13 a secret value of a business of the store', () => {
  it('C11.5.1 is given by a file or the API, in force when that is answered, and stands nowhere but in the request', async () => {
    const { service, files, command, admin, call, told } = await opened.own()
    expect(await call()).toEqual([500, undefined])
    const edited = await command(
      ...[
        'business',
        'edit',
        'STORED',
        '--value',
        'db=stored_prod',
        '--value-file',
        `key=${files('key.txt')}`,
      ],
    )
    expect(edited).toMatchObject({ code: 0, stdout: 'STORED: changed: value\n' })
    expect(await call()).toEqual([200, '/stored_prod', OF_STORE])
    expect((await command('business', 'show', 'STORED')).stdout).toContain(
      'values       db=stored_prod key=***\n',
    )
    expect((await command('business', 'show', 'STORED', '--json')).stdout).toContain('"key": {')

    // Another change leaves it as it is; so does what was shown, sent back.
    expect((await command('business', 'edit', 'STORED', '--name', 'Stored')).code).toBe(0)
    const { body: shown } = await admin('GET', '/businesses/STORED')
    expect(shown.values).toEqual({ db: 'stored_prod', key: { secret: true } })
    expect(await admin('PATCH', '/businesses/STORED', { values: shown.values })).toMatchObject({
      body: { changed: [] },
    })
    expect(await call()).toEqual([200, '/stored_prod', OF_STORE])
    expect((await admin('POST', '/businesses/STORED/disable')).status).toBe(200)
    expect((await admin('POST', '/businesses/STORED/enable')).status).toBe(200)

    const patched = await admin('PATCH', '/businesses/STORED', { values: { key: { secret: OTHER } } })
    expect(patched).toMatchObject({ status: 200, body: { changed: ['values'] } })

    const added = { code: 'HOOLI', name: 'Hooli', values: { db: 'hooli', key: { secret: OF_STORE } } }
    expect((await admin('POST', '/businesses', added)).status).toBe(201)
    await admin('GET', '/businesses')
    await admin('GET', '/configuration')
    await command('configuration', 'show')
    await command('business', 'list')
    await admin('POST', '/explain', { method: 'GET', path: '/api/1.0/b/ACME/fund-data/fund-list' })
    await command('audit', 'find', '--json')

    const everywhere = [told.join('\n'), service.logLines().join(''), bytesIn(service.data)]
    for (const text of everywhere)
      for (const secret of [OF_STORE, OTHER, OF_ENVIRONMENT]) expect(text).not.toContain(secret)
    expect(bytesIn(service.data)).toContain('stored_prod')
    const changes = auditRecords(service).filter(({ event }) => event === 'business.changed')
    expect(JSON.stringify(changes)).toContain('["db","key.secret"]')
  })

  it('C11.5.1 an operation needs is not left out: neither of a new business nor by an edit', async () => {
    const { command, admin, call, files } = await opened()
    const refused = await command('business', 'add', 'HOOLI', '--name', 'Hooli', '--value', 'db=hooli')
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain(
      '--value key  is missing: GET fund-data/fund-list names it as {business.key}',
    )
    expect((await admin('POST', '/businesses', { code: 'HOOLI', name: 'Hooli' })).body.problems).toHaveLength(
      2,
    )
    const key = ['--value-file', `key=${files('key.txt')}`]
    const good = await command(
      'business',
      'add',
      'HOOLI',
      '--name',
      'H',
      '--value',
      'db=x',
      '--value',
      'a=b',
      ...key,
    )
    expect(good).toMatchObject({ code: 0, stdout: 'HOOLI: added\n' })
    const taken = await command('business', 'edit', 'HOOLI', '--value', 'key=')
    expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining('--value key  is missing')])
    expect((await admin('PATCH', '/businesses/HOOLI', { values: null })).status).toBe(400)
    expect((await command('business', 'edit', 'HOOLI', '--value', 'a=')).code).toBe(0)
    expect((await admin('GET', '/businesses/HOOLI')).body.values).toEqual({ db: 'x', key: { secret: true } })
    // STORED is from before the operation named any: it may be changed, and its calls are 500.
    expect((await command('business', 'edit', 'STORED', '--name', 'Old')).code).toBe(0)
    expect(await call()).toEqual([500, undefined])
  })

  it.each([
    ['keeps none', { key: { secret: true } }, 'keeps a secret, and there is none yet'],
    ['is empty', { key: { secret: '' } }, 'expected a text, or a secret as'],
    ['is a number', { key: { secret: 12 } }, 'expected a text, or a secret as'],
    ['has another member', { key: { secret: OF_STORE, more: 1 } }, 'expected a text, or a secret as'],
    ['refers to a file', { key: { file: '/etc/passwd' } }, 'expected a text, or a secret as'],
    ['refers to the environment', { key: { env: 'KEY' } }, 'expected a text, or a secret as'],
    ['is too long', { key: { secret: `${OF_STORE}${'x'.repeat(1024)}` } }, 'is longer than 1024 bytes'],
    ['has an odd name', { __proto__x: 'x', key: 'k' }, 'is not a possible key here'],
  ])('C11.5.1 that %s is refused, and the answer shows nothing of it', async (_what, values, problem) => {
    const { admin, told } = await opened()
    const answer = await admin('PATCH', '/businesses/STORED', { values: { db: 'x', ...values } })
    expect(answer.status).toBe(400)
    expect(answer.body.problems.join()).toContain(problem)
    expect(told.join()).not.toContain(OF_STORE)
  })

  it('C11.5.1 from a file that cannot be read is a mistake of the command line', async () => {
    const { command, files } = await opened()
    const { code, stderr } = await command(
      'business',
      'edit',
      'STORED',
      '--value-file',
      `key=${files('no.txt')}`,
    )
    expect([code, stderr]).toEqual([2, expect.stringContaining('--value-file: ')])
  })

  it('C6.3.4 cannot be opened without the folder of the keys: calls are 500, and `keys doctor` tells', async () => {
    const { service, files, command, call } = await opened.own()
    const key = ['--value-file', `key=${files('key.txt')}`]
    await command('business', 'edit', 'STORED', '--value', 'db=x', ...key)
    const seal = join(service.data, 'keys/values.seal')
    expect(statSync(seal).mode & 0o777).toBe(0o600)
    const text = readFileSync(seal, 'utf8')
    expect((await command('keys', 'doctor')).code).toBe(0)
    rmSync(seal)
    await command('business', 'edit', 'STORED', '--name', 'Other')
    expect(await call()).toEqual([500, undefined])
    expect(service.log().findLast(({ event }) => event === 'call')).toMatchObject({
      reason: 'business_value_missing',
      detail: '{business.key} is sealed, and cannot be opened here',
    })
    const doctor = await command('keys', 'doctor')
    expect([doctor.code, doctor.stdout]).toEqual([1, expect.stringContaining('STORED.key: this value')])
    writeFileSync(seal, text, { mode: 0o600 })
    // A call waits 300 ms for what the process does not know. A busy machine may need longer: 503, then a client asks again.
    const answer = await eventually(async () => {
      const told = await call()
      expect(told[0]).not.toBe(503)
      return told
    })
    expect(answer).toEqual([200, '/x', OF_STORE])
  })
})
