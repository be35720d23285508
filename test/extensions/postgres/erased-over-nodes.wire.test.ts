/** The erasure of a person at one of two nodes that share a Postgres, each with a trail of its own (C11.5.8, C12.2.3). */
import { hash } from 'node:crypto'
import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import { auditRecords, recordsOf } from '../../support/audit-files.ts'
import { eventually } from '../../support/eventually.ts'
import { freePort } from '../../support/free-port.ts'
import { needing } from '../../support/machine.ts'
import { JSON_BODY } from '../../support/audited-calls.ts'
import { bearer } from '../../support/requests.ts'
import { startUpstream } from '../../support/start-upstream.ts'
import { type PlaceOptions, placeOnPostgres } from './support/place-on-postgres.ts'

const ORDERS = 'audit_erasure'
const SUBJECT = 'sub-of-dora-4711'
const REASON = { reason: 'request 4711' }

type Place = Awaited<ReturnType<typeof placeOnPostgres>>

/** A node at its place, and what an operator orders there. */
async function serving(place: Place) {
  const service = await place.serve()
  const order = async (method: string, path: string, body: object = {}): Promise<unknown> => {
    const headers = { ...bearer('a-token-of-this-test-0123456789'), ...JSON_BODY }
    const answer = await fetch(`${service.adminUrl}${path}`, { method, headers, body: JSON.stringify(body) })
    const told: unknown = await answer.json()
    expect([method, path, answer.status, told]).toEqual([method, path, answer.ok ? answer.status : 200, told])
    return told
  }
  return { ...place, service, order }
}

async function twoNodes() {
  const upstream = await startUpstream()
  // Of one host, and at an address of its own each, by which the store tells their trails apart.
  const place = async (options: PlaceOptions) => {
    const environment = { UPSTREAM_URL: upstream.url, POSTERN_PORT: String(await freePort()) }
    return placeOnPostgres({ ...options, environment })
  }
  const one = await place({})
  expect((await one.run('migrate')).code).toBe(0)
  const other = await place({ schema: one.schema })
  return [await serving(one), await serving(other)] as const
}

/** The names that the trail of a node has for the person. */
const namesAt = ({
  data,
  service,
}: {
  data: string
  service: { world: { audit: unknown } }
}): readonly string[] =>
  auditRecords({ data, world: service.world as never })
    .filter(({ on }) => (on as { subject?: string } | undefined)?.subject === SUBJECT)
    .flatMap(({ values }) => values['on.id'] ?? [])

describe('C11.5.8 C12.2.3 a person whose data is erased at one node', needing('postgresql'), () => {
  it('C11.5.8 C12.2.3 is erased in the trail of one that is down when it starts again; until then it is named', async () => {
    const [one, other] = await twoNodes()
    const dora = { username: 'dora', subject: SUBJECT, password: 'a-long-enough-password' }
    const erin = { ...dora, username: 'erin', subject: 'sub-of-erin' }
    for (const body of [dora, erin]) await one.order('POST', '/users', body)
    for (const { username } of [dora, erin]) await other.order('POST', `/users/${username}/disable`)
    expect([namesAt(one), namesAt(other)]).toEqual([['dora', 'dora'], ['dora']])
    await other.service.close()

    const erased = await one.order('POST', `/subjects/${SUBJECT}/erase`, REASON)
    const waits = expect.stringMatching(`^${hostname()} `) as string
    expect(erased).toMatchObject({ subject: SUBJECT, removed: { user: 1 }, pending: [waits] })
    expect(namesAt(one)).toEqual([])
    const store = await one.store()
    const orders = await store.list(ORDERS)
    expect(orders.map(({ key }) => key)).toEqual([hash('sha256', SUBJECT, 'base64url')])
    expect(orders.map(({ value }) => value['by'])).toMatchObject([{ operator: 'admin', ...REASON }])
    expect(JSON.stringify(orders)).not.toMatch(/dora/)
    // No row of the store has the name, and none but the announcements the subject.
    expect(one.sql(`SELECT count(*) FROM SCHEMA.record WHERE record::text LIKE '%${SUBJECT}%'`)).toContain(
      '0',
    )
    expect(one.sql(`SELECT count(*) FROM SCHEMA.record WHERE record::text LIKE '%dora%'`)).toContain('0')

    const again = await serving(other)
    await eventually(async () => expect(await store.list(ORDERS)).toEqual([]))
    expect(namesAt(again)).toEqual([])
    const redacted = recordsOf({ data: again.data, world: again.service.world }, 'audit.redacted')
    expect(redacted).toMatchObject([
      {
        outcome: 'pending',
        actor: { kind: 'operator', operator: 'admin' },
        on: { subject: SUBJECT },
        why: REASON.reason,
      },
      { outcome: 'success' },
    ])
    expect(again.service.log()).toContainEqual(expect.objectContaining({ event: 'audit_redacted' }))
    for (const node of [one, again]) {
      const verified = await node.run('audit verify')
      expect(verified, verified.stdout).toMatchObject({ code: 0, stderr: '' })
      const { service } = node
      const others = auditRecords({ data: node.data, world: service.world }).filter(
        ({ values }) => values['on.id'] === 'erin',
      )
      expect(others).not.toEqual([])
    }
    // Asked again, it is an order again: the other node looks at its next turn.
    expect(await one.order('POST', `/subjects/${SUBJECT}/erase`, REASON)).toMatchObject({
      removed: { user: 0 },
      pending: [waits],
    })
  })
})
