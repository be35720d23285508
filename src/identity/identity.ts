import type { Answer, Door, Exchange } from '../base/contracts/calls/exchange.ts'
import { WITHOUT_ACTION } from '../base/contracts/records/recorder.ts'
import { prefersPage } from '../base/http/head/accept.ts'
import { Fault, toFault } from '../base/kernel/faults.ts'
import { withStoreBudget } from '../base/kernel/store-budget.ts'
import { openConsents } from './stored/consents.ts'
import { linkCookie, sessionCookie } from './stored/own-cookies.ts'
import { openSessions } from './stored/sessions.ts'
import { hashedPasswords, holdersOf, type IdentityDeps } from './dependencies/dependencies.ts'
import type { AddedEndpoints, MakeEndpoints } from './steps/added-endpoints.ts'
import type { Attempt, Endpoint, StepDependencies } from './steps/endpoint.ts'
import { ENDPOINTS } from './endpoints.ts'
import { discoveryDocument, RESOURCE_PATH, resourceAt } from './endpoints/documents.ts'
import { openClientFailures } from './guessing/failures.ts'
import { openFamiliarNetworks } from './guessing/familiar-networks.ts'
import { guardGuessing, systemTimer } from './guessing/guessing.ts'
import { LocalLockouts, recordLockout } from './guessing/lockouts.ts'
import { pageAnswer } from './pages/layout.ts'
import { notFoundPage } from './pages/notices.ts'
import { compileTheme } from './pages/theme.ts'
import { openCodes } from './stored/codes.ts'
import { openFamilies } from './stored/families.ts'

export interface Identity {
  readonly dependencies: StepDependencies
  /** By canonical path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>
  /** The links on the page of an unknown path. */
  readonly links: readonly AddedEndpoints['link'][]
}

interface AddedParts {
  /** Endpoints of extensions that tell of the service. */
  readonly made?: readonly MakeEndpoints[]
  /** Endpoints of extensions that belong to the authorization endpoint. */
  readonly authorization?: readonly Endpoint[]
}

export function openIdentity(
  deps: IdentityDeps,
  { made = [], authorization = [] }: AddedParts = {},
): Identity {
  const issuerPath = new URL(deps.urls.issuer).pathname.replace(/\/$/, '')
  const theme = compileTheme(deps.config.pages, issuerPath)
  const own = ENDPOINTS.toSpliced(1, 0, ...authorization)
  const metadata = discoveryDocument(deps, own)
  const dependencies: StepDependencies = {
    ...deps,
    people: holdersOf(deps.people),
    passwords: deps.passwords ?? hashedPasswords(deps.hasher),
    families: openFamilies(deps),
    codes: openCodes(deps),
    sessions: openSessions(deps),
    consents: openConsents(deps),
    cookie: sessionCookie(deps.urls.issuer),
    linkCookie: linkCookie(deps.urls.issuer),
    theme,
    networks: openFamiliarNetworks(deps),
    clientFailures: openClientFailures(deps),
    guessing: guardGuessing(deps.attempts ?? openLockouts(deps)),
    metadata: JSON.stringify(metadata),
    transport: transportOf(deps.urls),
  }
  const { catalogue, config: identity } = deps
  const further = made.map((make) => make({ catalogue, identity, theme, metadata }))
  // If two have one path, the last counts: Postern's own.
  const endpoints = [...further.flatMap((each) => each.endpoints), ...own]
  return {
    dependencies,
    links: further.map(({ link }) => link),
    endpoints: new Map(endpoints.map((endpoint) => [endpoint.path(issuerPath), endpoint])),
  }
}

const openLockouts = ({ audit, clock, config }: IdentityDeps): LocalLockouts =>
  new LocalLockouts(config.guessing, clock, systemTimer, (begun) => recordLockout(begun, audit))

/**
 * The door of the identity endpoints (C6). Each endpoint answers its own faults.
 * @param current gives the identity in force; called once per call
 * @param elsewhere answers every other path with a 404 in an envelope, unless a person asks for a page (C2.3)
 */
export const identityDoor =
  (current: () => Identity, elsewhere: Door): Door =>
  (exchange) => {
    const identity = current()
    const { endpoints, dependencies } = identity
    const { target } = exchange
    const endpoint = target instanceof Fault ? undefined : endpointAt(target.path, endpoints)
    return endpoint === undefined
      ? (answerUnknownPath(exchange, identity) ?? elsewhere(exchange))
      : withStoreBudget(() => answerAt(endpoint, exchange, dependencies), dependencies.store.patience)
  }

const endpointAt = (path: string, endpoints: Identity['endpoints']): Endpoint | undefined =>
  endpoints.get(path) ?? (resourceAt(path) === undefined ? undefined : endpoints.get(RESOURCE_PATH))

const API = 'api'

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** A page for people who mistype an address, without the address in it (C2.3). Undefined where no page is due. */
function answerUnknownPath(exchange: Exchange, { dependencies, links }: Identity): Answer | undefined {
  const { head, refusal, target } = exchange
  if (target instanceof Fault || target.segments[0] === API || refusal !== undefined) return undefined
  if (!METHODS.has(head.method) || !prefersPage(head.headers.accept)) return undefined
  const { theme } = dependencies
  const page = notFoundPage({
    top: target.path === '/' || target.path === theme.at('') || target.path === theme.at('/'),
    name: theme.name,
    account: theme.at('/connect/account'),
    links,
  })
  const answer = pageAnswer(theme, page, { ...dependencies.transport, Vary: 'Accept' })
  record(exchange, dependencies, new Fault('outside'), answer.status)
  return answer
}

async function answerAt(
  endpoint: Endpoint,
  exchange: Exchange,
  dependencies: StepDependencies,
): Promise<Answer> {
  const attempt: Attempt = { grant: 'none', client: undefined, subject: undefined }
  let fault: Fault | undefined
  let answer: Answer
  try {
    if (exchange.refusal !== undefined) throw exchange.refusal
    refuseIfClosed(endpoint, exchange, dependencies)
    answer =
      preflightAt(endpoint, exchange, dependencies) ??
      (await serve(endpoint, exchange, attempt, dependencies))
  } catch (thrown) {
    fault = toFault(thrown)
    answer = endpoint.refuse(fault, dependencies, { ...attempt, id: exchange.id })
  }
  record(exchange, dependencies, fault ?? attempt.redirectedFault, answer.status)
  const cors = endpoint.crossOrigin ? dependencies.cors : undefined
  const headers = {
    ...answer.headers,
    ...dependencies.transport,
    ...(fault?.facts.headers ?? attempt.headers),
  }
  return { ...answer, headers: cors ? cors.onAnswer(exchange.head, headers) : headers }
}

/** HSTS for this host (C6.2.3, RFC 6797). The operator decides about other hosts of the domain, and browsers' preload lists. */
const HTTPS_ONLY = { 'Strict-Transport-Security': 'max-age=31536000' }

const transportOf = ({ issuer }: IdentityDeps['urls']): StepDependencies['transport'] =>
  issuer.startsWith('https:') ? HTTPS_ONLY : {}

/** The answer to a CORS preflight request (C4.18); undefined if this is none. */
function preflightAt(
  { crossOrigin }: Endpoint,
  { head }: Exchange,
  { cors }: StepDependencies,
): Answer | undefined {
  if (!crossOrigin || cors?.isPreflight(head) !== true) return undefined
  return { status: 204, headers: cors.preflight(head), body: undefined }
}

function serve(
  endpoint: Endpoint,
  exchange: Exchange,
  attempt: Attempt,
  dependencies: StepDependencies,
): Answer | Promise<Answer> {
  requireMethod(endpoint, exchange)
  return endpoint.steps({ exchange, attempt, asOf: dependencies.rules.asOf }, dependencies)
}

/** Maintenance of the service does not close the identity endpoints; their own switch does (C9.2). */
function refuseIfClosed(
  { closes }: Endpoint,
  { clientAddress }: Exchange,
  { switches }: StepDependencies,
): void {
  const closure = closes ? switches.identity() : undefined
  if (closure === undefined || closure.admitsAddress(clientAddress)) return
  const { message, retryAfter } = closure
  throw new Fault('identity_maintenance', { retryAfter, ...(message !== undefined && { notice: message }) })
}

function requireMethod({ methods }: Endpoint, { head }: Exchange): void {
  if (!methods.includes(head.method)) throw new Fault('oauth_method', { allow: methods })
}

function record(
  exchange: Exchange,
  dependencies: StepDependencies,
  fault: Fault | undefined,
  status: number,
): void {
  dependencies.recorder.decision({
    exchange,
    door: 'identity',
    fault,
    status,
    ...WITHOUT_ACTION,
    totalMs: dependencies.clock.monotonic() - exchange.startedAt,
  })
}
