/** Acts of commands, as the service that writes the trail records them: `POST /audit/commands` (C12.1.7). */
import { describe, expect, it, vi } from 'vitest'
import { hashSecret } from '../../src/identity/directory/hashing/hasher.ts'
import { Fault } from '../../src/base/kernel/faults.ts'
import { newSecret } from '../../src/base/kernel/ids.ts'
import { ROLES } from '../../src/operate/settings/admin.ts'
import { administered, type Answered } from '../support/administered.ts'
import { auditRecords, recordsOf } from '../support/audit-files.ts'
import { shared } from '../support/shared.ts'

const TOKENS = Object.fromEntries(ROLES.map((role) => [role, newSecret()]))

const served = shared(() =>
  administered({
    change: (configuration) => ({
      ...configuration,
      admin: {
        ...configuration.admin,
        tokens: ROLES.map((role) => ({ name: `${role}er`, role, hash: hashSecret(TOKENS[role] ?? '') })),
      },
    }),
  }),
)

type Served = Awaited<ReturnType<typeof served>>

const tell = ({ call }: Served, body: unknown, token?: string): Promise<Answered> =>
  call('POST', '/audit/commands', { body, ...(token !== undefined && { token }) })

const isOperator = (actor: unknown): boolean => (actor as { kind: string }).kind === 'operator'

/** Characters of a path: as many as the system takes. */
const LONGEST = 4096

const BACKUP = { event: 'store.backed_up', outcome: 'success', file: '/copies/one' }

describe('C12.1.7 what a command has done by itself', () => {
  it.each([
    [BACKUP, { on: { kind: 'store' }, change: { file: '/copies/one' } }],
    [
      { ...BACKUP, outcome: 'failed' },
      { on: { kind: 'store' }, change: { file: '/copies/one' } },
    ],
    [
      { event: 'store.migrated', outcome: 'success', finish: true },
      { on: { kind: 'store' }, change: { finish: true } },
    ],
    [
      { event: 'store.copied', outcome: 'refused', from: '/old/postern.sqlite' },
      { on: { kind: 'store' }, change: { from: '/old/postern.sqlite' } },
    ],
    [{ event: 'keys.resealed', outcome: 'success' }, { on: { kind: 'key' } }],
  ])(
    'C12.1.7 is recorded with its facts, its operator by the token, and who is said to have run it: %j',
    async (act, recorded) => {
      const here = await served()
      const answer = await tell(here, { ...act, by: 'ann@ops', reason: 'nightly' })
      expect([answer.status, answer.body]).toEqual([200, { recorded: true }])
      const records = recordsOf(here.service, act.event)
      expect(records).toMatchObject([
        {
          ...recorded,
          outcome: act.outcome,
          actor: { kind: 'operator', operator: 'admin', claimed: 'ann@ops' },
          why: 'nightly',
          values: { 'actor.address': expect.stringContaining('127.0.0.1') },
        },
      ])
      expect(records[0]?.['change']).toEqual('change' in recorded ? recorded.change : undefined)
    },
  )

  it('C12.1.7 is recorded with a path that is as long as the system takes, cut as all texts of records are', async () => {
    const here = await served()
    const file = `/${'x'.repeat(LONGEST - 1)}`
    expect((await tell(here, { ...BACKUP, file })).status).toBe(200)
    expect(recordsOf(here.service, 'store.backed_up')).toMatchObject([
      { outcome: 'success', change: { file: expect.stringMatching(/^\/x{200}/) } },
    ])
  })

  it('C12.1.7 has the operator whose token was shown, whoever is said to have run it', async () => {
    const here = await served()
    expect((await tell(here, { ...BACKUP, by: 'admin' }, TOKENS['administer'])).status).toBe(200)
    expect(recordsOf(here.service, 'store.backed_up')).toMatchObject([
      { actor: { operator: 'administerer', claimed: 'admin' } },
    ])
  })

  it.each(ROLES.filter((role) => role !== 'administer'))(
    'C12.1.7 C12.2.4 is not told by somebody who may not administer (%s), nor by somebody without a token',
    async (role) => {
      const here = await served()
      expect((await tell(here, BACKUP, TOKENS[role])).status).toBe(403)
      expect((await tell(here, BACKUP, newSecret())).status).toBe(401)
      expect(recordsOf(here.service, 'store.backed_up')).toEqual([])
      expect(recordsOf(here.service, 'operator.refused')).toMatchObject([
        { actor: { operator: `${role}er` }, on: { id: 'recordCommand' } },
      ])
    },
  )

  it.each([
    ['no event', { outcome: 'success' }],
    ['no outcome', { event: 'store.backed_up', file: 'x' }],
    ['an event that no command has', { ...BACKUP, event: 'service.started' }],
    ['an event that there is not', { ...BACKUP, event: 'store.sold' }],
    ['an outcome of something that goes on', { ...BACKUP, outcome: 'pending' }],
    ['a member that there is not', { ...BACKUP, writer: 'another' }],
    ['an intent', { ...BACKUP, intent: 1 }],
    ['a time', { ...BACKUP, time: '2020-01-01T00:00:00Z' }],
    ['a fact of a migration for a copy', { ...BACKUP, finish: true }],
    ['a fact of a copy to a shared store for a backup', { ...BACKUP, from: '/a' }],
    ['a fact of a backup for keys', { event: 'keys.resealed', outcome: 'success', file: '/a' }],
    ['no text for a file', { ...BACKUP, file: 7 }],
    ['an empty file', { ...BACKUP, file: '' }],
    ['a file too long', { ...BACKUP, file: 'x'.repeat(LONGEST + 1) }],
    ['text for a flag', { event: 'store.migrated', outcome: 'success', finish: 'yes' }],
    ['a reason too long', { ...BACKUP, reason: 'x'.repeat(501) }],
    ['no object', [BACKUP]],
    ['nothing', null],
  ])('C12.1.7 leaves no record, and is 400, if it has %s', async (_what, body) => {
    const here = await served()
    const answer = await tell(here, body)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ error: expect.any(String) })
    // The service may have records of its own meanwhile.
    expect(auditRecords(here.service).filter(({ actor }) => isOperator(actor))).toEqual([])
  })

  it('C12.1.7 is taken though nothing can be recorded now: it has happened already', async () => {
    const here = await served()
    const { audit } = here.service.world
    const required = vi.spyOn(audit, 'require').mockRejectedValue(new Fault('audit_unavailable'))
    const answer = await tell(here, BACKUP).finally(() => required.mockRestore())
    expect(answer.status).toBe(200)
    expect(required).not.toHaveBeenCalled()
    expect(recordsOf(here.service, 'store.backed_up')).toHaveLength(1)
  })

  it('C12.1.7 is 503 where its record is held, or has no room', async () => {
    const here = await served()
    const kept = vi.spyOn(here.service.world.audit, 'keep').mockResolvedValue(false)
    const answer = await tell(here, BACKUP).finally(() => kept.mockRestore())
    expect([answer.status, answer.body]).toEqual([
      503,
      {
        error: 'the audit trail cannot be written now',
        problems: ['the record is held, and written when that is possible'],
      },
    ])
  })

  it('C12.1.7 is 409 where no trail is kept', async () => {
    const { call } = await administered({ keeps: 'nothing' })
    const answer = await call('POST', '/audit/commands', { body: BACKUP })
    expect([answer.status, answer.body]).toEqual([
      409,
      { error: 'no audit trail is kept', problems: ['see `audit.enabled`'] },
    ])
  })
})
