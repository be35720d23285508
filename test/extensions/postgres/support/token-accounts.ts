/**
 * Clients of several nodes that keep account of what they were given and of what was revoked, and so can tell what a trouble has
 * lost: a login, code or refresh token that is refused, a revoked token that is let in.
 */
import { decodeJwt } from 'jose'
import { authorizeUrl, CALLBACK, VERIFIER } from '../../../support/audited-people.ts'
import { type Caller, startCaller, statusesOf } from './callers.ts'
import type { World } from './node-troubles.ts'
import { type OAuthAnswer, postForm } from '../../../support/oauth.ts'
import { Person } from '../../../support/person.ts'
import { bearer } from '../../../support/requests.ts'
import { oneOf, type Random } from '../../../support/seeded-random.ts'
import { issueToken } from '../../../support/tokens.ts'

/** Alice logs in, bob's tokens are revoked: attempts of one user wait for each other (C11.7.7). */
const ALICE = { username: 'alice', scope: 'openid offline_access business.fund.list target:b/ACME' }
const BOB = { username: 'bob', scope: 'openid offline_access business.fund.list target:b/GLOBEX' }
const FUNDS = '/api/1.0/b/GLOBEX/fund-data/fund-list'
const PERSONS = 4
const REFRESHERS = 6
/** Tokens that are there to be revoked while nobody can log in. */
const STOCK = 12
/** Milliseconds. A code lives for 60 seconds. */
const CODE_KEPT = 1500
const CODE_LIVES = 55_000

export interface Lost {
  readonly what: 'login' | 'code' | 'refresh token'
  /** performance.now() when the login, code or family was given: what a failover may lose began late. */
  readonly givenAt: number
  /** Its use was answered 503 before, or not at all: it may have been carried out. */
  readonly isTriedBefore: boolean
}

export interface Accounts {
  readonly lost: readonly Lost[]
  /** Revoked tokens that were let in by a node that had to know. */
  readonly letIn: readonly string[]
  /** Milliseconds from the answer to a revocation until its token was let in for the last time, by any node. */
  readonly longestLetIn: number
  /** What was done, each with how often which status came. */
  told(): Readonly<Record<string, object>>
  /** Whether a login and a code, both asked for from now on, are given within ten seconds; tries all that is held once more. */
  settle(): Promise<boolean>
  stop(): Promise<void>
}

interface Held {
  token: string
  readonly client: string
  readonly begunAt: number
  isTriedBefore: boolean
}

interface Code {
  readonly code: string
  readonly givenAt: number
  readonly askAt: number
  isTriedBefore: boolean
}

interface Revoked {
  readonly access: string
  /** Of a family that was revoked. */
  readonly refresh: string | undefined
  readonly at: number
  readonly refusedBy: Set<string>
}

interface Place {
  readonly baseUrl: string
  readonly authUrl: string
}

export interface AccountsParts {
  readonly world: Pick<World, 'nodes' | 'order'>
  /** Where clients reach the service: a balancer, or one of the nodes. */
  readonly entry: () => Place
  /** Since when (performance.now()) a node must know what the others have changed until then; Infinity: it cannot. */
  readonly knowsSince: (at: number) => number
  readonly random: Random
}

/** Milliseconds after which a revocation is in force at every node that has no trouble (C6.3.3, C11.7.2). */
const SPREAD = 1000

class TokenAccounts implements Accounts {
  readonly lost: Lost[] = []
  readonly letIn: string[] = []
  longestLetIn = 0
  readonly #parts: AccountsParts
  readonly #held: Held[] = []
  readonly #codes: Code[] = []
  readonly #revoked: Revoked[] = []
  readonly #stock: { readonly access: string; readonly refresh: string }[] = []
  readonly #cookies: { readonly cookie: string; readonly begunAt: number }[] = []
  #callers: Readonly<Record<string, Caller>> = {}

  constructor(parts: AccountsParts) {
    this.#parts = parts
  }

  async begin(): Promise<void> {
    for (let count = 0; count < PERSONS; count += 1) await this.#logInPerson()
    for (let count = 0; count < STOCK; count += 1) await this.#stockUp()
    for (let count = 0; count < REFRESHERS; count += 1) await this.#logIn()
    this.#callers = {
      logins: startCaller(() => this.#logIn(), 150),
      codes: startCaller(() => this.#askCode(), 100),
      'codes redeemed': startCaller(() => this.#redeem(), 30),
      'tokens to be revoked': startCaller(() => this.#stockUp(), 200),
      revocations: startCaller(() => this.#revoke(), 250),
      'calls with revoked tokens': startCaller(() => this.#tryRevoked(), 10),
      'refreshes with revoked tokens': startCaller(() => this.#tryRevokedRefresh(), 50),
      ...Object.fromEntries(
        Array.from({ length: REFRESHERS }, (_, at) => [
          `refreshes ${at + 1}`,
          startCaller(() => this.#refreshOne(), 60),
        ]),
      ),
    }
  }

  told(): Readonly<Record<string, object>> {
    const [mine, refreshers] = [Object.entries(this.#callers), [] as Caller[]]
    const told: Record<string, object> = {}
    for (const [name, caller] of mine)
      if (name.startsWith('refreshes ') && !name.includes('revoked')) refreshers.push(caller)
      else told[name] = statusesOf(caller.answers.filter(({ status }) => status !== IDLE))
    const refreshed = refreshers.flatMap(({ answers }) => answers.filter(({ status }) => status !== IDLE))
    return { ...told, refreshes: statusesOf(refreshed) }
  }

  async settle(): Promise<boolean> {
    const since = performance.now()
    const isBack = (name: string): boolean =>
      this.#callers[name]!.answers.some(({ at, status }) => at > since && status === 200)
    while (!isBack('logins') || !isBack('codes redeemed') || !isBack('revocations')) {
      if (performance.now() > since + 10_000) return false
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await this.stop()
    while (this.#codes.length > 0) await this.#redeem(true)
    for (const held of this.#held.splice(0)) await this.#refresh(held)
    for (const one of this.#revoked)
      for (const at of this.#parts.world.nodes.keys()) await this.#call(one, at)
    for (const { cookie, begunAt } of this.#cookies) await this.#askCode(cookie, begunAt)
    return true
  }

  async stop(): Promise<void> {
    await Promise.all(Object.values(this.#callers).map((caller) => caller.stop()))
  }

  #post(params: Readonly<Record<string, string>>, client = 'acme-books'): Promise<OAuthAnswer> {
    return postForm(this.#parts.entry(), '/connect/token', { params, client })
  }

  #pick = <T>(list: readonly T[]): T => oneOf(this.#parts.random, list)

  async #logIn(): Promise<number> {
    const { username, scope } = ALICE
    const password = `${username}-password`
    const { status, json } = await this.#post({ grant_type: 'password', username, password, scope })
    if (status === 200) this.#hold(json.refresh_token, 'acme-books')
    return status
  }

  #hold(token: string, client: string): void {
    this.#held.push({ token, client, begunAt: performance.now(), isTriedBefore: false })
  }

  async #refreshOne(): Promise<number> {
    const at = Math.floor(this.#parts.random() * this.#held.length)
    const [held] = this.#held.splice(at, 1)
    return held === undefined ? IDLE : this.#refresh(held)
  }

  async #refresh(held: Held): Promise<number> {
    const params = { grant_type: 'refresh_token', refresh_token: held.token }
    const { status, json } = await this.#post(params, held.client).catch(() => NO_ANSWER)
    if (status === 200) Object.assign(held, { token: json.refresh_token, isTriedBefore: false })
    if (status === 400) this.#lose('refresh token', held.begunAt, held.isTriedBefore)
    else this.#held.push(held)
    if (status !== 200) held.isTriedBefore = true
    return status
  }

  #lose(what: Lost['what'], givenAt: number, isTriedBefore = false): void {
    this.lost.push({ what, givenAt, isTriedBefore })
  }

  async #logInPerson(): Promise<void> {
    const person = new Person(this.#parts.entry().authUrl)
    const shown = await person.logIn(await person.open(authorizeUrl()))
    if (!shown.location) await person.submit(shown, { decision: 'allow' })
    this.#cookies.push({ cookie: person.cookie, begunAt: performance.now() })
  }

  async #askCode(cookie?: string, begunAt?: number): Promise<number> {
    const session = cookie === undefined ? this.#pick(this.#cookies) : { cookie, begunAt: begunAt ?? 0 }
    const person = new Person(this.#parts.entry().authUrl)
    person.cookie = session.cookie
    const { status, location } = await person.open(authorizeUrl({ prompt: 'none' }))
    const code = location?.searchParams.get('code')
    const error = location?.searchParams.get('error')
    if (code) {
      const now = performance.now()
      const askAt = now + this.#parts.random() * CODE_KEPT
      this.#codes.push({ code, givenAt: now, askAt, isTriedBefore: false })
      return 200
    }
    if (error === 'login_required') this.#lose('login', session.begunAt)
    return error === 'temporarily_unavailable' ? 503 : status
  }

  async #redeem(isLast = false): Promise<number> {
    const code = this.#codes.shift()
    if (code === undefined) return IDLE
    if (performance.now() < code.askAt && !isLast) return (this.#codes.push(code), IDLE)
    const params = { code: code.code, redirect_uri: CALLBACK, code_verifier: VERIFIER }
    const { status, json } = await this.#post(
      { grant_type: 'authorization_code', ...params },
      'ledgerline',
    ).catch(() => NO_ANSWER)
    if (status === 200) this.#hold(json.refresh_token, 'ledgerline')
    const isOld = performance.now() > code.givenAt + CODE_LIVES
    if (status === 400 && !isOld) this.#lose('code', code.givenAt, code.isTriedBefore)
    if (status !== 200 && status !== 400 && !isOld) this.#codes.push({ ...code, isTriedBefore: true })
    return status
  }

  async #stockUp(): Promise<number> {
    if (this.#stock.length >= STOCK) return IDLE
    const { access_token: access, refresh_token: refresh = '' } = await issueToken(this.#parts.entry(), BOB)
    // So that nodes know the token.
    await this.#callWith(this.#pick(this.#parts.world.nodes), access).catch(() => 0)
    this.#stock.push({ access, refresh })
    return 200
  }

  /** One token, or a family: by its client, or by an operator. */
  async #revoke(): Promise<number> {
    const one = this.#stock.shift()
    if (one === undefined) return IDLE
    const { nodes, order } = this.#parts.world
    const { jti, family } = decodeJwt<{ family: string }>(one.access)
    const how = Math.floor(this.#parts.random() * 3)
    const orders = [{ jti }, { family }]
    const asked =
      how === 2
        ? postForm(this.#parts.entry(), '/connect/revocation', { params: { token: one.refresh } }).then(
            ({ status }) => status,
          )
        : order(this.#pick(nodes), '/revoke', orders[how])
    const status = await asked.catch(() => 0)
    if (status === 200) {
      const refresh = how === 0 ? undefined : one.refresh
      this.#revoked.push({ access: one.access, refresh, at: performance.now(), refusedBy: new Set() })
    }
    return status
  }

  async #callWith({ baseUrl }: Place, token: string): Promise<number> {
    const answer = await fetch(`${baseUrl}${FUNDS}`, { headers: bearer(token) })
    await answer.arrayBuffer()
    return answer.status
  }

  async #tryRevoked(): Promise<number> {
    if (this.#revoked.length === 0) return IDLE
    // Half of the calls are with the latest ones.
    const latest = this.#revoked.slice(-8)
    const one = this.#pick(this.#parts.random() < 0.5 ? latest : this.#revoked)
    return this.#call(one, Math.floor(this.#parts.random() * this.#parts.world.nodes.length))
  }

  async #call(one: Revoked, at: number): Promise<number> {
    const node = this.#parts.world.nodes[at]!
    const askedAt = performance.now()
    const knowsSince = this.#parts.knowsSince(at)
    // While a node hears of nothing, one of its processes may know what another one has not read any more.
    const hasRefused = askedAt > knowsSince && one.refusedBy.has(node.baseUrl)
    const mustKnow = hasRefused || askedAt > Math.max(one.at, knowsSince) + SPREAD
    const status = await this.#callWith(node, one.access).catch(() => 0)
    if (status === 401) one.refusedBy.add(node.baseUrl)
    if (status === 200) {
      this.longestLetIn = Math.max(this.longestLetIn, askedAt - one.at)
      const late = (askedAt - one.at).toFixed(0)
      if (mustKnow) this.letIn.push(`node ${at + 1} let in a token ${late} ms after its revocation`)
    }
    return status
  }

  async #tryRevokedRefresh(): Promise<number> {
    const families = this.#revoked.filter(({ refresh }) => refresh !== undefined)
    if (families.length === 0) return IDLE
    const { at, refresh = '' } = this.#pick(families)
    const askedAt = performance.now()
    const { status } = await this.#post({ grant_type: 'refresh_token', refresh_token: refresh })
    if (status === 200)
      this.letIn.push(`a refresh token gave another ${(askedAt - at).toFixed(0)} ms after its revocation`)
    return status
  }
}

/** Nothing was there to be asked for. */
const IDLE = -1
const NO_ANSWER: Pick<OAuthAnswer, 'status' | 'json'> = { status: 0, json: {} }

/** The caller stops them. The nodes must be well. */
export async function startAccounts(parts: AccountsParts): Promise<Accounts> {
  const accounts = new TokenAccounts(parts)
  await accounts.begin()
  return accounts
}
