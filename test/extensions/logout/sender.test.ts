import { decodeProtectedHeader } from 'jose'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AuditEntry } from '../../../src/base/contracts/records/audit.ts'
import type { Client } from '../../../src/base/contracts/people/people.ts'
import type { Store } from '../../../src/base/contracts/records/store.ts'
import { LogoutQueue } from '../../../src/extensions/logout/queue.ts'
import { DELIVERY } from '../../../src/extensions/logout/records.ts'
import { LogoutSender } from '../../../src/extensions/logout/sender.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { createOutboundClient } from '../../../src/identity/keys/remote/outbound.ts'
import { MemoryStore } from '../../../src/state/stores/sqlite/memory.ts'
import { needing } from '../../support/machine.ts'
import { type LogoutReceiver, startLogoutReceiver } from './logout-receiver.ts'
import { type ManualAfter, manualAfter } from '../../support/manual-after.ts'
import { type MovableClock, movableClock } from '../../support/movable-clock.ts'
import { settled } from '../../support/settled.ts'
import { openShared, sharedStore } from '../../support/shared-store.ts'
import { client, ISSUER, openTestIdentity, verify } from '../../support/identity-under-test.ts'

const toldClient = (id: string, backchannelLogoutUri: string): Client => ({
  ...client(id),
  ...{ backchannelLogoutUri },
})

type Receivers = Readonly<Record<string, Pick<LogoutReceiver, 'url'>>>

interface Ended {
  readonly result: string
  readonly entry?: AuditEntry | undefined
}

/** A store whose notices several processes may send. */
class Service {
  readonly clock: MovableClock = movableClock()
  readonly store: Store
  readonly ends: Ended[] = []
  readonly notes: unknown[] = []
  clients: readonly Client[]
  readonly #identity
  readonly #waiting = new Set<() => void>()

  constructor(receivers: Receivers, store?: Store) {
    this.store = store ?? new MemoryStore(this.clock)
    this.clients = Object.entries(receivers).map(([id, { url }]) => toldClient(id, url))
    const { identity } = openTestIdentity()
    this.#identity = {
      ...identity.dependencies,
      people: {
        ...identity.dependencies.people,
        findClient: (id: string) => Promise.resolve(this.clients.find((each) => each.id === id)),
      },
      outbound: createOutboundClient({ allow: [], authUrl: 'http://127.0.0.1:1' }),
    }
  }

  /** The part of one process. Its timers run only when they are fired. */
  process(store = this.store): {
    readonly queue: LogoutQueue
    readonly sender: LogoutSender
    readonly timers: ManualAfter
  } {
    const timers = manualAfter()
    const queue = new LogoutQueue(store, this.clock)
    let last: string | undefined
    const sender = new LogoutSender({
      queue,
      store,
      clock: this.clock,
      after: timers.after,
      recorder: {
        count: (_family, result) => {
          last = result
          if (result === 'retried') this.#ended({ result })
        },
        note: (_level, event, facts) => this.notes.push({ event, ...facts }),
      },
      audit: { note: (entry) => this.#ended({ result: last ?? '', entry }) },
      identity: () => this.#identity,
    })
    onTestFinished(() => sender.stop())
    return { queue, sender, timers }
  }

  /** As if the client had got an id_token. */
  async party(client: string, sid: string | undefined, subject = 'sub-alice'): Promise<void> {
    const queue = new LogoutQueue(this.store, this.clock)
    const { config } = this.#identity
    for (const { kind, key, ...entry } of queue.partiesOf(toldClient(client, ''), subject, sid, config))
      await this.store.create(kind, key, entry)
  }

  #ended(end: Ended): void {
    this.ends.push(end)
    for (const look of this.#waiting) look()
  }

  /** Resolves when so many tries have ended, and what follows has run. */
  async ended(number: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (this.ends.length >= number) resolve()
      }
      this.#waiting.add(look)
      look()
    })
    await settled()
  }

  waiting = async (): Promise<number> => (await this.store.list(DELIVERY)).length
}

const EVENT = 'http://schemas.openid.net/event/backchannel-logout'

describe('C6.3.3a notices that a login has ended', () => {
  it.each([200, 204])('C6.3.3a a notice that is answered with %i has arrived', async (status) => {
    const receiver = await startLogoutReceiver(status)
    const service = new Service({ books: receiver })
    const { queue, timers } = service.process()
    await service.party('books', 'session-1')
    await queue.endSession('session-1')
    await timers.fire()
    await service.ended(1)
    expect(await service.waiting()).toBe(0)
    expect(service.ends).toMatchObject([
      {
        result: 'arrived',
        entry: {
          event: 'logout.notified',
          outcome: 'success',
          actor: { kind: 'service' },
          on: { kind: 'logout', id: 'session-1', client: 'books', subject: 'sub-alice' },
        },
      },
    ])
    expect(receiver.notices).toMatchObject([{ method: 'POST', type: 'application/x-www-form-urlencoded' }])
  })

  it('C6.3.3a it is a logout token, good for two minutes, signed as the client’s id_tokens, without a nonce', async () => {
    const receiver = await startLogoutReceiver()
    const service = new Service({ books: receiver, ledger: receiver })
    service.clients = service.clients.map((each) =>
      each.id === 'ledger' ? { ...each, idTokenAlgorithm: 'ES256' } : each,
    )
    const { queue, timers } = service.process()
    for (const id of ['books', 'ledger']) await service.party(id, 'session-1')
    await queue.endSession('session-1')
    await timers.fire()
    await service.ended(2)
    const now = service.clock.now()
    for (const { claims, token } of receiver.notices) {
      const { payload } = await verify(token, claims.aud, 'logout+jwt', now)
      const issuedAt = Math.floor(now / 1000)
      expect(payload).toEqual({
        iss: ISSUER,
        sub: 'sub-alice',
        aud: claims.aud,
        iat: issuedAt,
        exp: issuedAt + 120,
        jti: expect.stringMatching(/^[\w-]{22}$/),
        sid: 'session-1',
        events: { [EVENT]: {} },
      })
    }
    const algorithms = receiver.notices.map(({ claims, token }) => [
      claims.aud,
      decodeProtectedHeader(token).alg,
    ])
    expect(Object.fromEntries(algorithms)).toEqual({ books: 'RS256', ledger: 'ES256' })
  })

  it('C6.3.3a of a user’s end `sub` stands alone, and each client is told once, whatever it got', async () => {
    const receiver = await startLogoutReceiver()
    const service = new Service({ books: receiver })
    const { queue, timers } = service.process()
    for (const sid of ['session-1', 'session-2', undefined]) await service.party('books', sid)
    await service.party('books', 'session-3', 'sub-bob')
    const forget = await queue.endSubject('sub-alice')
    await forget()
    await timers.fire()
    await service.ended(1)
    expect(receiver.notices.map(({ claims: { sid, sub } }) => [sub, sid])).toEqual([['sub-alice', undefined]])
    // Who was told is forgotten; bob stays.
    await queue.endSubject('sub-alice')
    await queue.endSession('session-1')
    expect(await service.waiting()).toBe(0)
    await queue.endSession('session-3')
    expect(await service.waiting()).toBe(1)
  })

  it.each([503, 429, 'cut'] as const)(
    'C6.3.3a %s: tried again after 5, 30 and 300 s, each time by a fresh token',
    async (answer) => {
      const receiver = await startLogoutReceiver(answer)
      const service = new Service({ books: receiver })
      const { queue, timers } = service.process()
      await service.party('books', 'session-1')
      await queue.endSession('session-1')
      await timers.fire()
      for (const [tries, pause] of [5000, 30_000, 300_000].entries()) {
        await service.ended(tries + 1)
        for (const part of [pause - 1, 1]) {
          await timers.fire()
          await settled()
          expect(service.ends.length).toBe(tries + 1)
          service.clock.advance(part)
        }
        await timers.fire()
      }
      await service.ended(4)
      expect(service.ends.map(({ result }) => result)).toEqual(['retried', 'retried', 'retried', 'failed'])
      const reason = answer === 'cut' ? 'unreachable' : `answered_${answer}`
      expect(service.ends.at(-1)?.entry).toMatchObject({
        event: 'logout.notified',
        outcome: 'failed',
        reason,
      })
      expect(service.notes).toMatchObject([{ event: 'logout_notice_failed', client: 'books', reason }])
      expect(new Set(receiver.notices.map(({ claims }) => claims.jti)).size).toBe(4)
      expect(await service.waiting()).toBe(0)
    },
  )

  it('C6.3.3a what came late has arrived', async () => {
    const receiver = await startLogoutReceiver(503)
    const service = new Service({ books: receiver })
    const { queue, timers } = service.process()
    await service.party('books', 'session-1')
    await queue.endSession('session-1')
    await timers.fire()
    await service.ended(1)
    receiver.answer = 200
    service.clock.advance(5000)
    await timers.fire()
    await service.ended(2)
    expect(service.ends.map(({ result }) => result)).toEqual(['retried', 'arrived'])
  })

  it('C6.3.3a an answer may take 5 s', async () => {
    const receiver = await startLogoutReceiver('silence')
    const service = new Service({ books: receiver })
    const { queue, timers } = service.process()
    await service.party('books', 'session-1')
    await queue.endSession('session-1')
    await timers.fire()
    await receiver.got(1)
    expect(timers.delays()).toContain(5000)
    await timers.fire()
    await service.ended(1)
    expect(service.ends).toEqual([{ result: 'retried' }])
  })

  it.each([400, 404, 302])('C6.3.3a %i is final, and no redirect is followed', async (status) => {
    const elsewhere = await startLogoutReceiver()
    const receiver = await startLogoutReceiver(status, { location: elsewhere.url })
    const service = new Service({ books: receiver })
    const { queue, timers } = service.process()
    await service.party('books', 'session-1')
    await queue.endSession('session-1')
    await timers.fire()
    await service.ended(1)
    expect(service.ends).toMatchObject([
      { result: 'failed', entry: { outcome: 'failed', reason: `answered_${status}` } },
    ])
    expect([receiver.notices.length, elsewhere.notices.length]).toEqual([1, 0])
  })

  it('C6.3.3a a client that is gone, or is not told any more, gets nothing', async () => {
    const receiver = await startLogoutReceiver()
    const service = new Service({ books: receiver, ledger: receiver })
    service.clients = [client('ledger')]
    const { queue, sender, timers } = service.process()
    for (const id of ['books', 'ledger']) await service.party(id, 'session-1')
    await queue.endSession('session-1')
    await timers.fire()
    await settled()
    await sender.stop()
    expect([await service.waiting(), receiver.notices.length, service.ends]).toEqual([0, 0, []])
  })
})

describe('C6.3.3a a queue that outlives processes', () => {
  it('C6.3.3a a process that dies while it sends loses nothing: another one sends 15 s later', async () => {
    const receiver = await startLogoutReceiver('silence')
    const service = new Service({ books: receiver })
    const dead = service.process()
    await service.party('books', 'session-1')
    await dead.queue.endSession('session-1')
    await dead.timers.fire()
    await receiver.got(1)
    // From here on nothing of it runs.
    const heir = service.process()
    await heir.timers.fire()
    expect(receiver.notices.length).toBe(1)
    receiver.answer = 200
    service.clock.advance(15_000)
    await heir.timers.fire()
    await service.ended(1)
    expect(receiver.notices.length).toBe(2)
    expect(service.ends).toMatchObject([{ result: 'arrived' }])
    expect(await service.waiting()).toBe(0)
  })

  it('C6.3.3a what a command has queued is found by a process that sends', async () => {
    const receiver = await startLogoutReceiver()
    const service = new Service({ books: receiver })
    await service.party('books', 'session-1')
    await new LogoutQueue(service.store, service.clock).endSession('session-1')
    const { timers } = service.process()
    await timers.fire()
    await service.ended(1)
    expect(receiver.notices.length).toBe(1)
  })

  it('C6.3.3a two processes that look at once send each notice once', async () => {
    const receiver = await startLogoutReceiver()
    const service = new Service({ books: receiver })
    const command = new LogoutQueue(service.store, service.clock)
    const sids = Array.from({ length: 12 }, (_, at) => `session-${at}`)
    for (const sid of sids) await service.party('books', sid)
    for (const sid of sids) await command.endSession(sid)
    const [one, other] = [service.process(), service.process()]
    await Promise.all([one.timers.fire(), other.timers.fire()])
    await service.ended(sids.length)
    expect(receiver.notices.map(({ claims }) => claims.sid).sort()).toEqual(sids.sort())
  })

  it('C6.3.3a a session that is ended several times at once has one notice', async () => {
    const receiver = await startLogoutReceiver()
    const service = new Service({ books: receiver })
    const { queue } = service.process()
    await service.party('books', 'session-1')
    await Promise.all([1, 2, 3].map(() => queue.endSession('session-1')))
    expect(await service.waiting()).toBe(1)
  })

  it('C6.3.3a a clock that is set back holds no notice up', async () => {
    const receiver = await startLogoutReceiver()
    const service = new Service({ books: receiver })
    const command = new LogoutQueue(service.store, service.clock)
    await service.party('books', 'session-1')
    await command.endSession('session-1')
    service.clock.step(-86_400_000)
    const { timers } = service.process()
    await timers.fire()
    await service.ended(1)
    expect(receiver.notices.length).toBe(1)
  })
})

describe('C6.3.3a nodes that share a store', needing('postgresql'), () => {
  it('C6.3.3a send each notice once, and go on for a node that has died', async () => {
    const receiver = await startLogoutReceiver('silence')
    const config = await sharedStore()
    const open = async (): Promise<Store> => {
      const store = await openShared(config, systemClock)
      onTestFinished(() => store.close())
      return store
    }
    const [first, second] = [await open(), await open()]
    const service = new Service({ books: receiver }, first)
    service.clock.advance(Date.now() - service.clock.now())
    const dead = service.process()
    await service.party('books', 'session-0')
    await dead.queue.endSession('session-0')
    await dead.timers.fire()
    await receiver.got(1)
    receiver.answer = 200
    await first.release('deliveries')
    const sids = Array.from({ length: 8 }, (_, at) => `session-${at}`)
    const command = new LogoutQueue(first, service.clock)
    for (const sid of sids.slice(1)) await service.party('books', sid)
    for (const sid of sids.slice(1)) await command.endSession(sid)
    service.clock.advance(15_000)
    const [one, other] = [service.process(second), service.process(await open())]
    await Promise.all([one.timers.fire(), other.timers.fire()])
    await service.ended(8)
    expect(receiver.notices.map(({ claims }) => claims.sid).sort()).toEqual(['session-0', ...sids].sort())
    expect(await service.waiting()).toBe(0)
  })
})

describe('T5.20 a slow receiver of logout notices', () => {
  it('keeps no other client waiting: it has four places of sixteen, whatever waits for it', async () => {
    const [slow, quick] = [await startLogoutReceiver('silence'), await startLogoutReceiver()]
    const service = new Service({ slow, quick })
    const { queue, timers } = service.process()
    for (let at = 0; at < 40; at += 1) {
      await service.party('slow', `session-${at}`)
      await queue.endSession(`session-${at}`)
    }
    await timers.fire()
    await slow.got(4)
    await service.party('quick', 'session-x')
    await queue.endSession('session-x')
    // Not the time of the four that are under way.
    timers.fireAt(timers.delays().indexOf(0))
    await service.ended(1)
    expect([slow.notices.length, quick.notices.length]).toEqual([4, 1])
    expect(await service.waiting()).toBe(40)
  })

  it('what finds no place in memory stays in the store, and is sent later', async () => {
    const receiver = await startLogoutReceiver()
    const service = new Service({ books: receiver })
    const { queue, sender, timers } = service.process()
    for (let at = 0; at < 150; at += 1) {
      await service.party('books', `session-${at}`)
      await queue.endSession(`session-${at}`)
    }
    await timers.fire()
    await service.ended(100)
    await sender.stop()
    expect(await service.waiting()).toBeGreaterThan(0)
    service.clock.advance(15_000)
    await service.process().timers.fire()
    const arrived = (): number => new Set(receiver.notices.map(({ claims }) => claims.sid)).size
    while (arrived() < 150) await receiver.got(receiver.notices.length + 1)
  })

  it('five of them get sixteen notices at once', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => startLogoutReceiver('silence')))
    const names = all.map((_, at) => `client-${at}`)
    const service = new Service(
      Object.fromEntries(names.map((name, at) => [name, all[at] as LogoutReceiver])),
    )
    const { queue, timers } = service.process()
    for (const name of names)
      for (let at = 0; at < 5; at += 1) {
        await service.party(name, `${name}-${at}`)
        await queue.endSession(`${name}-${at}`)
      }
    await timers.fire()
    await Promise.all(all.slice(0, 4).map((each) => each.got(4)))
    await settled()
    expect(all.map(({ notices }) => notices.length)).toEqual([4, 4, 4, 4, 0])
  })
})
