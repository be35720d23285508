/** Records of commands that cannot be kept, who is named in them, and who may not leave any (C12.1.7). */
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, userInfo } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { tryLock } from '../../../src/operate/trail/lock.ts'
import { OpenTrail } from '../../../src/extensions/audit/write/trail.ts'
import { hashSecret } from '../../../src/identity/directory/hashing/hasher.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { newSecret } from '../../../src/base/kernel/ids.ts'
import { readChains, readTrail } from './support/audit-chain.ts'
import { recordsOf, type WrittenRecord } from '../../support/audit-files.ts'
import { longPauses, runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'
import { dataFolder } from '../../support/data-folder.ts'
import { eventually } from '../../support/eventually.ts'
import { PROGRAM } from '../../support/program.ts'
import { giveKey } from '../../support/ready-key.ts'
import { shared } from '../../support/shared.ts'
import { DEMO, ROOT } from '../../support/spawn-postern.ts'
import { postern } from '../../support/start-postern.ts'

const ADD =
  'client add tally --kind customer --name Tally --agreement 2026-01-15 --business ACME --scope openid'

async function place(changes = '') {
  const data = await dataFolder()
  await giveKey(data)
  const env = {
    POSTERN_DATA: data,
    POSTERN_CONFIG: configFiles({ 'a.yaml': `extends: ${DEMO}\n${changes}\n` })('a.yaml'),
  }
  const run = (line: string, input = '', more: Record<string, string> = {}) =>
    runVerb([...line.split(' ')], { env: { ...env, ...more }, input, alone: true })
  /** Runs a command that waits for what does not come. */
  const inVain = (line: string) =>
    runVerb(line.split(' '), { env, input: '', alone: true, waiting: longPauses() })
  const serve = () => postern({ file: env.POSTERN_CONFIG, data })
  return { data, env, run, inVain, serve, records: (event: string) => recordsOf({ data }, event) }
}

const TOKENS = { operate: newSecret(), administer: newSecret() }

/** A service that two operators have a token of. */
const serving = shared(async () => {
  const entries = Object.entries(TOKENS).map(
    ([role, token]) => `{ name: ${role}er, role: ${role}, hash: '${hashSecret(token)}' }`,
  )
  const here = await place(`admin: { tokens: [${entries.join(', ')}] }`)
  return { ...here, service: await here.serve() }
})

const operatorOf = ({ actor }: WrittenRecord): string => String((actor as { operator?: string }).operator)

describe('C12.1.7 what commands change', () => {
  it('that gives is not changed where the trail cannot be written; that takes away is, and says so', async () => {
    const here = await place()
    expect((await here.run(`${ADD} --scope fund.read`)).code).toBe(0)
    const folder = join(here.data, 'audit')
    // A file in its place: nobody can write the trail, not even root.
    rmSync(folder, { recursive: true })
    writeFileSync(folder, '')
    const refused = await here.run('client rotate-secret tally')
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(/^postern: nothing was changed, because it could not be recorded: /)
    const renamed = await here.run('client edit tally --name Other')
    expect(renamed).toMatchObject({ code: 1, stdout: '' })
    expect(renamed.stderr).toMatch(/nothing was changed, because it could not be recorded/)
    const taken = await here.run('client edit tally --scope openid')
    expect(taken).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /^tally: changed: scope\ntally: ended the access tokens that have .*fund\.read/,
      ),
    })
    expect(taken.stderr).toMatch(/this could not be recorded/)
    expect((await here.run('client list')).stdout).toMatch(/^tally .* Tally$/m)
    const disabled = await here.run('client disable tally')
    expect(disabled).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^tally: disabled\ntally: ended what was issued: /),
    })
    expect(disabled.stderr).toMatch(/this could not be recorded/)
    expect((await here.run('client list')).stdout).toMatch(/tally .* disabled/)
    const keys = readdirSync(join(here.data, 'keys'))
    const rotated = await here.run('keys rotate')
    expect(rotated).toMatchObject({ code: 1, stdout: '' })
    expect(rotated.stderr).toMatch(/^postern: nothing was changed, because it could not be recorded: /)
    expect(readdirSync(join(here.data, 'keys'))).toEqual(keys)
    const replaced = await here.run('keys rotate --compromised --yes')
    expect(replaced).toMatchObject({ code: 0, stderr: expect.stringMatching(/this could not be recorded/) })
    expect(readdirSync(join(here.data, 'keys'))).not.toEqual(keys)
    const copied = await here.run(`backup ${join(here.data, 'copy.sqlite')}`)
    expect(copied).toMatchObject({ code: 0, stderr: expect.stringMatching(/this could not be recorded/) })
  })

  it('C12.1.7 shows no secret before its intent is recorded', async () => {
    const here = await place()
    expect((await here.run(ADD)).code).toBe(0)
    const require = vi.spyOn(OpenTrail.prototype, 'require').mockRejectedValue(new Fault('audit_unavailable'))
    const refused = await Promise.all([
      here.run('client rotate-secret tally'),
      here.run(ADD.replace('tally', 'other')),
    ]).finally(() => require.mockRestore())
    for (const { code, stdout, stderr } of refused) {
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/^postern: nothing was changed, because it could not be recorded: /)
    }
  })

  it('C12.1.7 closes the intent of a secret that nobody could be shown', async () => {
    const here = await place()
    const line = `exec "$0" ${PROGRAM} ${ADD} > /dev/full`
    const { status } = spawnSync('sh', ['-c', line, process.execPath], {
      cwd: ROOT,
      env: { ...process.env, ...here.env },
    })
    expect(status).toBe(2)
    expect(here.records('client.added').map(({ outcome }) => outcome)).toEqual(['pending', 'failed'])
    expect((await here.run('client list')).stdout).not.toContain('tally')
  })

  it('is not changed for a token whose role does not allow it; the record names the owner of one that does', async () => {
    const here = await serving()
    const refused = await here.run(ADD, '', { POSTERN_ADMIN_TOKEN: TOKENS.operate })
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('operateer may not do this')
    expect((await here.run('client list')).stdout).not.toMatch(/^tally /m)
    const file = join(await dataFolder(), 'mine')
    writeFileSync(file, `${TOKENS.administer}\n`, { mode: 0o600 })
    expect((await here.run(`${ADD} --admin-token @${file}`)).code).toBe(0)
    expect(here.records('client.added')[0]).toMatchObject({ actor: { operator: 'administerer', via: 'cli' } })
    expect((await here.run(`${ADD} --admin-token ${TOKENS.administer}`)).stderr).toMatch(/expected @FILE/)
  })

  it('is refused without the service as with it for a token whose role does not allow it, or that has expired: C12.2.4', async () => {
    const tokens = { operate: newSecret(), administer: newSecret() }
    const past = ", expires: '2020-01-01T00:00:00Z'"
    const here = await place(
      `admin: { tokens: [{ name: ops, role: operate, hash: '${hashSecret(tokens.operate)}' }, ` +
        `{ name: past, role: administer, hash: '${hashSecret(tokens.administer)}'${past} }] }`,
    )
    const refused = await here.run(ADD, '', { POSTERN_ADMIN_TOKEN: tokens.operate })
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('ops may not do this')
    const late = await here.run('keys rotate', '', { POSTERN_ADMIN_TOKEN: tokens.administer })
    expect(late).toMatchObject({ code: 1, stdout: '' })
    expect(late.stderr).toContain('the token of past has expired')
    expect((await here.run(ADD, '', { POSTERN_ADMIN_TOKEN: newSecret() })).code).toBe(1)
    const byName = Object.groupBy(here.records('operator.refused'), operatorOf)
    expect([byName['ops'], byName['past']].flat()).toMatchObject([
      {
        actor: { operator: 'ops' },
        on: { id: 'addClient' },
        change: { needs: 'administer', expired: false },
      },
      { actor: { operator: 'past' }, on: { id: 'rotateKeys' }, change: { expired: true } },
    ])
    expect((await here.run('client list')).stdout).not.toContain('tally')
  })

  it('needs a reason that a record has room for', async () => {
    const here = await place()
    const ended = await here.run(`client disable tally --reason ${'x'.repeat(501)}`)
    expect(ended.code).toBe(2)
    expect(ended.stderr).toMatch(/--reason: expected at most 500 bytes, got 501/)
    expect(existsSync(join(here.data, 'audit'))).toBe(false)
  })

  it('is one writer of the trail at a time: two commands at once both succeed', async () => {
    const here = await place()
    const other = ADD.replace('tally', 'other')
    const both = await Promise.all([here.run(ADD), here.run(other)])
    expect(both.map(({ code }) => code)).toEqual([0, 0])
    expect(here.records('client.added')).toHaveLength(4)
  })

  it('loses nothing if another is made at the same time', async () => {
    const here = await place()
    await here.run(ADD)
    const edit = (more: string) => here.run(`client edit tally ${more}`)
    const both = await Promise.all([edit('--name Other'), edit('--scope fund.read')])
    expect(both.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ])
    expect((await edit('--name Other --scope fund.read')).stdout).toBe('tally: as it was\n')
  })
})

describe('C12.1.7 an operator’s own token', () => {
  it.each(['down', 'up'])('that is wrong changes nothing, with the service %s', async (state) => {
    const here = await (state === 'up' ? serving() : place())
    // Makes the other key.
    if (state === 'down') await here.run('keys rotate')
    expect((await here.run(ADD.replace('tally', 'wronged'))).code).toBe(0)
    const keys = readdirSync(join(here.data, 'keys'))
    const wrong = { POSTERN_ADMIN_TOKEN: 'any-text-that-is-no-token' }
    const copy = join(here.data, 'copy.sqlite')
    for (const line of [
      'keys rotate --compromised --yes',
      'keys list',
      'client disable wronged',
      'client list',
      `backup ${copy}`,
    ]) {
      const ended = await here.run(line, '', wrong)
      expect([line, ended.code]).toEqual([line, 1])
      expect(ended.stderr).toContain('this token is not that of the service')
    }
    expect(readdirSync(join(here.data, 'keys'))).toEqual(keys)
    expect(here.records('client.disabled')).toEqual([])
    expect(here.records('keys.compromised')).toEqual([])
    expect(existsSync(copy)).toBe(false)
  })

  it('is not needed here: the record names the user of the system, and the host', async () => {
    const here = await place()
    const actor = { kind: 'operator', operator: `${userInfo().username}@${hostname()}`, via: 'cli' }
    expect((await here.run(ADD)).code).toBe(0)
    for (const [line, event] of [
      ['keys rotate', 'keys.announced'],
      ['keys rotate --compromised --yes', 'keys.compromised'],
      [`backup ${join(here.data, 'copy.sqlite')}`, 'store.backed_up'],
    ] as const) {
      expect((await here.run(line)).code).toBe(0)
      expect(here.records(event)[0]).toMatchObject({ actor })
    }
  })
})

describe('C12.1.7 a mistake in the configuration file', () => {
  it('stops no command that a running service can do', async () => {
    const here = await serving.own()
    const { service } = here
    expect((await here.run(ADD)).code).toBe(0)
    const broken = configFiles({ 'b.yaml': `data: ${here.data}\nbackends: [oops\n` })('b.yaml')
    const token = readFileSync(join(here.data, 'admin-token'), 'utf8').trim()
    const ways: readonly (readonly [more: string, env: Record<string, string>])[] = [
      [` --admin-url ${service.adminUrl}`, { POSTERN_ADMIN_TOKEN: token, POSTERN_DATA: '' }],
      [` --data ${here.data}`, { POSTERN_DATA: '' }],
      ['', { POSTERN_DATA: '' }],
    ]
    for (const [more, env] of ways)
      for (const line of [
        'client disable tally',
        'client enable tally',
        'maintenance on',
        'maintenance off',
        'revoke --client tally',
        'keys list',
        'keys rotate',
        'keys rotate --compromised --yes',
      ])
        expect([
          line,
          more,
          await here.run(`${line}${more}`, '', { ...env, POSTERN_CONFIG: broken }),
        ]).toEqual([line, more, expect.objectContaining({ code: 0, stderr: '' })])
  })
})

describe('C12.1.7 what a command does by itself beside a running service', { timeout: 60_000 }, () => {
  it('C12.1.7 is recorded by the service, in its chain: with who ran it, and whose token it was', async () => {
    const here = await serving.own()
    const { service } = here
    const copy = (name: string) => `backup ${join(here.data, name)} --reason nightly`
    expect(await here.run(copy('one'))).toMatchObject({ code: 0, stderr: '' })
    expect(await here.run(copy('two'), '', { POSTERN_ADMIN_TOKEN: TOKENS.administer })).toMatchObject({
      code: 0,
      stderr: '',
    })
    // A copy that fails is recorded too.
    expect((await here.run(copy('one'))).code).not.toBe(0)
    const claimed = userInfo().username
    const file = (name: string) => ({ file: join(here.data, name) })
    const by = { kind: 'operator', via: 'cli', claimed }
    expect(here.records('store.backed_up')).toMatchObject([
      { outcome: 'success', actor: { ...by, operator: 'admin' }, why: 'nightly', change: file('one') },
      { outcome: 'success', actor: { ...by, operator: 'administerer' }, change: file('two') },
      { outcome: expect.stringMatching(/^(failed|refused)$/), change: file('one') },
    ])
    const trail = join(here.data, 'audit')
    const verified = async () => {
      const { code, stdout } = await here.run(`audit verify ${trail} --json`)
      const [verification] = JSON.parse(stdout) as readonly { found: number; unsigned: number }[]
      return { code, ...verification }
    }
    await eventually(async () => expect(await verified()).toMatchObject({ code: 0, found: 0, unsigned: 0 }))
    await service.close()
    expect(await verified()).toMatchObject({ code: 0, found: 0, unsigned: 0 })
    expect([...readChains(trail).keys()]).toHaveLength(1)
  })

  it('C12.1.7 goes on with the chain of the service when that has ended, and the service with that of the command', async () => {
    const here = await place()
    const trail = join(here.data, 'audit')
    const copy = (name: string) => here.run(`backup ${join(here.data, name)}`)
    await (await here.serve()).close()
    expect(await copy('one')).toMatchObject({ code: 0, stderr: '' })
    await (await here.serve()).close()
    expect(await copy('two')).toMatchObject({ code: 0, stderr: '' })
    expect([...readChains(trail).keys()]).toHaveLength(1)
    const events = readTrail(trail).map(({ event }) => event)
    expect(events.filter((event) => ['service.started', 'store.backed_up'].includes(event))).toEqual([
      'service.started',
      'store.backed_up',
      'service.started',
      'store.backed_up',
    ])
    const { code, stdout } = await here.run(`audit verify ${trail} --json`)
    expect([code, JSON.parse(stdout)]).toMatchObject([0, [{ found: 0, unsigned: 0, foundLate: 0 }]])
  })

  it.each([
    ['does not answer', hostname()],
    ['is on another host', 'another-container'],
  ])(
    'C12.1.7 is done where that service %s: stderr says that it is not recorded, and the exit code is that of the work',
    async (_which, host) => {
      const here = await place()
      expect((await here.run(ADD)).code).toBe(0)
      const trail = join(here.data, 'audit')
      const held = tryLock(trail)
      onTestFinished(() => held?.release())
      held?.announce({ adminUrl: 'http://127.0.0.1:9', data: here.data })
      const announced = JSON.parse(readFileSync(join(trail, 'service.json'), 'utf8')) as object
      writeFileSync(join(trail, 'service.json'), JSON.stringify({ ...announced, host }))
      const copy = join(here.data, 'copy.sqlite')
      const done = await here.inVain(`backup ${copy}`)
      expect(done).toMatchObject({ code: 0, stdout: expect.stringContaining('a copy of the store') })
      expect(done.stderr).toMatch(/^postern: this could not be recorded: .*give --admin-url\n$/)
      expect(existsSync(copy)).toBe(true)
      // The copy is there already.
      const failed = await here.inVain(`backup ${copy}`)
      expect(failed.code).not.toBe(0)
      expect(failed.stderr).toMatch(/this could not be recorded/)
      expect(here.records('store.backed_up')).toEqual([])
    },
  )

  it('C12.1.7 is not done for an operator who may not, and leaves no record of having been done', async () => {
    const here = await serving()
    const copy = join(here.data, 'not-made.sqlite')
    const refused = await here.run(`backup ${copy}`, '', { POSTERN_ADMIN_TOKEN: TOKENS.operate })
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toContain('operateer may not do this')
    expect(existsSync(copy)).toBe(false)
    expect(here.records('store.backed_up')).toEqual([])
  })
})
