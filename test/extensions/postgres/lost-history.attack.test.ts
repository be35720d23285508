import { describe, expect, it, onTestFinished } from 'vitest'
import type { Principal } from '../../../src/base/contracts/people/principal.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { Fault } from '../../../src/base/kernel/faults.ts'
import { ChangeFeed } from '../../../src/state/stores/feed/change-feed.ts'
import { planPostgres } from '../../../src/extensions/postgres/schema.ts'
import { PostgresLink } from '../../../src/extensions/postgres/link.ts'
import { PostgresStore } from '../../../src/extensions/postgres/store.ts'
import { RevocationRules } from '../../../src/state/stores/feed/revocations.ts'
import { allChanges } from '../../support/all-changes.ts'
import { needing } from '../../support/machine.ts'
import { manualAfter } from '../../support/manual-after.ts'
import { keepNotes } from '../../support/notes.ts'
import { makeTables, query, sharedPostgres } from '../../support/postgres.ts'
import { scopeOf } from '../../support/scope.ts'

const HOUR = 3_600_000

/** Nodes on one store, whose last changes a failover can take away. */
async function opened() {
  const cluster = await sharedPostgres()
  const schema = makeTables(cluster)
  const node = async () => {
    const link = await PostgresLink.open(
      planPostgres({
        ...{ url: cluster.url(), schema, connections: 2, deadline: 10_000, maxAge: HOUR },
        migrate: 'auto',
        preparedStatements: true,
      }),
    )
    const store = await PostgresStore.open(link, systemClock)
    const timers = manualAfter()
    const recorder = keepNotes()
    const feed = await ChangeFeed.open({ store, clock: systemClock, recorder, after: timers.after })
    onTestFinished(async () => {
      await feed.stop()
      await store.close()
    })
    const longestLife = { tokens: HOUR, all: HOUR }
    const rules = new RevocationRules({ feed, clock: systemClock, recorder, longestLife })
    return { store, feed, rules, recorder }
  }
  /** The store as it was before its last changes: what a standby is that had not got them. */
  const loseBehind = (last: number): void => {
    const mark = `coalesce((SELECT mark FROM ${schema}.change WHERE sequence = ${last}), '')`
    query(cluster, `UPDATE ${schema}.feed SET last = ${last}, mark = ${mark}`)
    query(cluster, `DELETE FROM ${schema}.change WHERE sequence > ${last}`)
  }
  return { node, loseBehind }
}

/** Its feed cannot be read, though changes can be appended, until the returned function is called. */
function breakReading(store: PostgresStore): () => void {
  const changes = store.changes.bind(store)
  store.changes = () => Promise.reject(new Fault('identity_unavailable', { detail: 'frozen' }))
  return () => {
    store.changes = changes
  }
}

const principal = (subject: string, asOf: number): Principal => ({
  ...{
    subject,
    client: 'acme-books',
    clientKey: 'acme-books',
    issuer: 'https://id.example.com',
    role: undefined,
  },
  ...scopeOf('openid fund.read'),
  ...{ target: undefined, tokenId: `jti-${subject}`, family: undefined, asOf },
  ...{ issuedAt: Date.now() / 1000, expiresAt: Date.now() / 1000 + 900, key: { isTrusted: () => true } },
})

describe('T3.13 C11.7.3 a store that has lost changes', needing('postgresql'), () => {
  it('a revocation that one node knows stays in force, and comes back to the others', async () => {
    const { node, loseBehind } = await opened()
    const [one, other] = [await node(), await node()]
    const { sequence } = await one.store.append('topic', {})
    const token = principal('alice', one.rules.asOf)
    await one.rules.revoke({ subject: 'alice' })
    loseBehind(sequence)
    await other.feed.refresh()
    expect(other.rules.isRevoked(token)).toBe(false)
    await one.feed.refresh()
    expect(one.rules.isRevoked(token)).toBe(true)
    await other.feed.refresh()
    expect(other.rules.isRevoked(token)).toBe(true)
    expect((await node()).rules.isRevoked(token)).toBe(true)
    expect(one.recorder.events).toContain('change_feed.restarted')
  })

  it('a revocation that comes back ends nothing that was begun after it', async () => {
    const { node, loseBehind } = await opened()
    const [one, other] = [await node(), await node()]
    const { sequence } = await one.store.append('topic', {})
    await one.rules.revoke({ subject: 'alice' })
    const later = principal('alice', one.rules.asOf)
    loseBehind(sequence)
    for (const { feed } of [one, other, one, other]) await feed.refresh()
    for (const { rules } of [one, other, await node()]) {
      expect(rules.isRevoked(later)).toBe(false)
      expect(rules.isRevoked(principal('alice', later.asOf! - 1))).toBe(true)
    }
  })

  it('a later revocation ends all tokens in use, though the store’s numbers went back', async () => {
    const { node, loseBehind } = await opened()
    const [one, other] = [await node(), await node()]
    const { sequence } = await one.store.append('topic', {})
    // As after a clock that was ahead: the numbers are far above the time.
    await one.store.append('topic', {}, { above: sequence + HOUR })
    await one.rules.revoke({ client: 'other' })
    const token = principal('alice', one.rules.asOf)
    expect(token.asOf).toBeGreaterThan(sequence + HOUR)
    loseBehind(sequence)
    await one.feed.refresh()
    await other.rules.revoke({ subject: 'alice' })
    await one.feed.refresh()
    expect(one.rules.isRevoked(token)).toBe(true)
    expect(other.rules.isRevoked(token)).toBe(true)
  })

  it('what else was changed is what the store has then', async () => {
    const { node, loseBehind } = await opened()
    const one = await node()
    const applied: unknown[] = []
    one.feed.subscribe('switches', {
      apply: ({ value }) => void applied.push(value['n']),
      reset: () => void applied.splice(0),
    })
    await one.feed.append('switches', { n: 1 })
    const { sequence } = (await allChanges(one.store)).at(-1)!
    await one.feed.append('switches', { n: 2 })
    expect(applied).toEqual([1, 2])
    loseBehind(sequence)
    await one.feed.refresh()
    expect(applied).toEqual([1])
    await one.feed.append('switches', { n: 3 })
    expect(applied).toEqual([1, 3])
  })

  it('of 50 lost revocations none is missed by a node that reads on', async () => {
    const { node, loseBehind } = await opened()
    const [one, other] = [await node(), await node()]
    const { sequence } = await one.store.append('topic', {})
    const tokens = Array.from({ length: 50 }, (_, n) => principal(`user-${n}`, 0))
    for (const { subject } of tokens) await one.rules.revoke({ subject })
    await other.feed.refresh()
    loseBehind(sequence)
    // The numbers go on where they were lost, so some are given again: a number alone would not tell.
    await Promise.all(tokens.map(({ subject }) => other.rules.revoke({ subject: `new-${subject}` })))
    await one.feed.refresh()
    await other.feed.refresh()
    await one.feed.refresh()
    for (const each of [one, other]) {
      expect(tokens.filter((token) => !each.rules.isRevoked(token))).toEqual([])
      expect(tokens.filter(({ subject }) => !each.rules.isRevoked(principal(`new-${subject}`, 0)))).toEqual(
        [],
      )
    }
  })

  it('a revocation that was lost before it could be read back is stored again', async () => {
    const { node, loseBehind } = await opened()
    const [one, other] = [await node(), await node()]
    const { sequence } = await one.store.append('topic', {})
    for (const { feed } of [one, other]) await feed.refresh()
    const token = principal('alice', one.rules.asOf)
    const mend = breakReading(one.store)
    await one.rules.revoke({ subject: 'alice' })
    loseBehind(sequence)
    mend()
    await one.feed.refresh()
    await other.feed.refresh()
    expect(one.rules.isRevoked(token)).toBe(true)
    expect(other.rules.isRevoked(token)).toBe(true)
    expect((await node()).rules.isRevoked(token)).toBe(true)
  })

  it('a revocation that was lost is in force, though others have appended before it could be read back', async () => {
    const { node, loseBehind } = await opened()
    const [one, other] = [await node(), await node()]
    const { sequence } = await one.store.append('topic', {})
    for (const { feed } of [one, other]) await feed.refresh()
    const token = principal('alice', one.rules.asOf)
    const append = one.store.append.bind(one.store)
    one.store.append = async (...args) => {
      const place = await append(...args)
      one.store.append = append
      loseBehind(sequence)
      await other.rules.revoke({ subject: 'bob' })
      return place
    }
    await one.rules.revoke({ subject: 'alice' })
    await other.feed.refresh()
    expect(one.rules.isRevoked(token)).toBe(true)
    expect(other.rules.isRevoked(token)).toBe(true)
  })

  it('a revocation that was lost again after it came back comes back again', async () => {
    const { node, loseBehind } = await opened()
    const [one, other] = [await node(), await node()]
    const { sequence } = await one.store.append('topic', {})
    const token = principal('alice', one.rules.asOf)
    await one.rules.revoke({ subject: 'alice' })
    for (let n = 0; n < 3; n += 1) {
      loseBehind(sequence)
      await one.feed.refresh()
    }
    await other.feed.refresh()
    expect(other.rules.isRevoked(token)).toBe(true)
  })

  it('a switch that was lost before it could be read back is what the store has', async () => {
    const { node, loseBehind } = await opened()
    const one = await node()
    const applied: unknown[] = []
    one.feed.subscribe('switches', {
      apply: ({ value }) => void applied.push(value['n']),
      reset: () => void applied.splice(0),
    })
    const { sequence } = await one.store.append('switches', { n: 1 })
    await one.feed.refresh()
    const mend = breakReading(one.store)
    await one.feed.append('switches', { n: 2 })
    expect(applied).toEqual([1, 2])
    loseBehind(sequence)
    mend()
    await one.feed.refresh()
    expect(applied).toEqual([1])
  })

  it('each revocation is stored at most once a node, however often the store loses them', async () => {
    const { node, loseBehind } = await opened()
    const nodes = [await node(), await node(), await node()]
    const { sequence } = await nodes[0]!.store.append('topic', {})
    for (let n = 0; n < 5; n += 1) await nodes[0]!.rules.revoke({ subject: `user-${n}` })
    for (const { feed } of nodes) await feed.refresh()
    for (let n = 0; n < 3; n += 1) {
      loseBehind(sequence)
      for (let again = 0; again < 2; again += 1) await Promise.all(nodes.map(({ feed }) => feed.refresh()))
    }
    const stored = (await allChanges(nodes[0]!.store)).filter(({ topic }) => topic === 'revocation')
    expect(stored.length).toBeLessThanOrEqual(5 * nodes.length)
  })

  it('a node that has read only some of what came back issues nothing that outlives the rest', async () => {
    const { node, loseBehind } = await opened()
    const [one, other] = [await node(), await node()]
    const { sequence } = await one.store.append('topic', {})
    await other.feed.refresh()
    for (const subject of ['bob', 'alice']) await one.rules.revoke({ subject })
    loseBehind(sequence)
    const append = one.store.append.bind(one.store)
    const issued: Principal[] = []
    let before: Promise<unknown> = Promise.resolve()
    // One after the other, and Alice calls the other node when it has read some, but not that she may not.
    one.store.append = async (...args) => {
      const appended = before.then(async () => {
        const place = await append(...args)
        await other.feed.refresh()
        if (!other.rules.isRevoked(principal('alice', 0))) issued.push(principal('alice', other.rules.asOf))
        return place
      })
      before = appended
      return appended
    }
    await one.feed.refresh()
    await other.feed.refresh()
    expect(issued).toHaveLength(1)
    expect(issued.filter((token) => !other.rules.isRevoked(token))).toEqual([])
  })
})
