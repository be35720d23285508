import type { Call, UpstreamTraffic } from '../../../../base/contracts/calls/backend.ts'
import type { Placeholder, Template } from '../../../../base/contracts/calls/templates.ts'
import type { Clock } from '../../../../base/kernel/clock.ts'
import { Fault } from '../../../../base/kernel/faults.ts'
import type { PoolRules } from '../../../upstream/pool.ts'
import { isTls, type UpstreamAddress, type UpstreamTls } from '../../../upstream/socket.ts'
import { placeholdersIn, solePlaceholder } from '../../templates/parse.ts'
import type { CertainTemplate } from '../../templates/places.ts'
import { asText, findValue, unsendable } from '../../templates/sources.ts'
import { type OriginPattern, parseTargetValue } from '../schema/origins.ts'
import {
  checkHealth,
  type EjectionRules,
  type HealthCheckRules,
  OtherOrigins,
  type TargetChanged,
  UpstreamTarget,
  UpstreamTargets,
} from './targets.ts'

/** A target or a host that differs from call to call (C8.7). */
export interface VaryingRules {
  /** Undefined: the targets are those that are written. */
  readonly target: Placeholder | undefined
  readonly origins: readonly OriginPattern[]
  /** Undefined: the host is the one that is written, or the target's own. */
  readonly host: Template | undefined
  /** The templates of both. */
  readonly templates: readonly CertainTemplate[]
}

/** Where the calls of a backend go, and how its targets are used. */
export interface TargetRules extends PoolRules {
  /** The upstream's instances; their base paths are put before every request's. */
  readonly targets: readonly UpstreamAddress[]
  /** The Host header in place of the target's own. */
  readonly host: string | undefined
  readonly ejection: EjectionRules
  readonly healthCheck: HealthCheckRules | undefined
  readonly targetChanged: TargetChanged
  /** Called before each further attempt at a call. */
  readonly retried: () => void
}

/** Where a call goes. One object for all calls that go there, as long as its connections are kept. */
export interface CallTargets {
  readonly targets: UpstreamTargets
  readonly addresses: readonly UpstreamAddress[]
  readonly host: string | undefined
  readonly tls: UpstreamTls
  /** Whether a secret says where: then neither log nor error tells it. */
  readonly conceals: boolean
}

/** The connections to one origin, verified for one name. */
interface OpenedOrigin {
  readonly target: UpstreamTarget
  stopChecks: () => void
  /** How many of its health checks are under way: they are no calls. */
  probes: number
  /** Tells which origin was used last: it increases from call to call. */
  used: number
  isRetired: boolean
}

interface KeptTargets extends CallTargets {
  readonly opened: readonly OpenedOrigin[]
}

/** How many origins and names connections are kept to. */
const MOST_OPENED = 1000
/** How many targets named by calls are kept: with a path, there may be more of these than of origins. */
const MOST_KNOWN = 1000

/**
 * The targets of a backend whose `target` or `host` differs from call to call. Connections, health and ejection belong to an
 * origin and the name that its certificate was verified for: a connection is never used for another name.
 */
export class VaryingTargets {
  readonly #varying: VaryingRules
  readonly #rules: TargetRules
  readonly #clock: Clock
  readonly #urlOf: ((call: Call) => string) | undefined
  readonly #hostOf: ((call: Call) => string) | undefined
  /** The values of the business that say where calls go. */
  readonly #named: readonly string[]
  readonly #kept = new Map<string, KeptTargets>()
  readonly #opened = new Map<string, OpenedOrigin>()
  readonly #others: OtherOrigins
  #turn = 0
  #isClosed = false

  constructor(varying: VaryingRules, rules: TargetRules, clock: Clock) {
    this.#varying = varying
    this.#rules = rules
    this.#clock = clock
    const { target, host, templates } = varying
    this.#urlOf = target && compileUrl(target)
    this.#hostOf = host && compileHost(host)
    this.#named = templates
      .flatMap(({ template }) => placeholdersIn(template))
      .flatMap(({ to }) => (to.kind === 'value' ? [to.name] : []))
    this.#others = new OtherOrigins(rules)
  }

  /** The URL and the host that a call says. */
  #said(call: Call): Pick<Destination, 'url' | 'host'> {
    return { url: this.#urlOf?.(call), host: this.#hostOf?.(call) }
  }

  /** Where a call would go: nothing is opened for it. @throws Fault as `of` */
  whereTo(call: Call): Pick<CallTargets, 'addresses' | 'host'> {
    const { url, host = this.#rules.host } = this.#said(call)
    return { addresses: url === undefined ? this.#rules.targets : [this.#judged(url)], host }
  }

  /** @throws Fault `business_value_missing`, `unsendable_value`, `unsendable_argument`, `upstream_unreachable` */
  of(call: Call): CallTargets {
    const { url, host } = this.#said(call)
    const conceals = this.#isSecret(call)
    const key = `${conceals ? 'secret' : ''}\n${url ?? ''}\n${host ?? ''}`
    const known = this.#kept.get(key)
    const found =
      known === undefined || known.opened.some(({ isRetired }) => isRetired)
        ? this.#find(key, { url, host, conceals, business: call.business })
        : known
    this.#turn += 1
    for (const opened of found.opened) opened.used = this.#turn
    return found
  }

  #isSecret({ values: { secrets } }: Call): boolean {
    return this.#named.some((name) => secrets.has(name))
  }

  #find(key: string, destination: Destination): KeptTargets {
    const { targets, tls: shared } = this.#rules
    const { url, host = this.#rules.host, conceals } = destination
    const addresses = url === undefined ? targets : [this.#judged(url)]
    // A written host changes nothing: the certificate is verified for the target's own name.
    const named =
      destination.host === undefined || shared.servername !== undefined ? undefined : nameOf(destination.host)
    const tls = named === undefined ? shared : { ...shared, servername: named }
    const asked = named === undefined ? this.#rules.host : destination.host
    const opened = addresses.map((address) => this.#open(address, tls, asked, destination))
    // Several may go to one origin, below different paths.
    const own = addresses.map((address, at) => this.#target(address, tls, opened[at]?.target))
    const found = {
      targets: new UpstreamTargets(own, this.#rules, this.#others),
      addresses,
      host,
      tls,
      conceals,
      opened,
    }
    this.#kept.delete(key)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size >= MOST_KNOWN && oldest !== undefined) this.#kept.delete(oldest)
    this.#kept.set(key, found)
    return found
  }

  #judged(url: string): UpstreamAddress {
    const { target, origins } = this.#varying
    const address = parseTargetValue(url, origins)
    if (typeof address !== 'string') return address
    if (target === undefined) throw new TypeError('a URL without a placeholder for it')
    throw unsendable(target, address)
  }

  #target(address: UpstreamAddress, tls: UpstreamTls, same?: UpstreamTarget): UpstreamTarget {
    return new UpstreamTarget(address, { ...this.#rules, tls }, this.#clock, this.#rules.targetChanged, same)
  }

  /** @param asked what Host says in its health checks */
  #open(
    address: UpstreamAddress,
    tls: UpstreamTls,
    asked: string | undefined,
    destination: Destination,
  ): OpenedOrigin {
    const name = isTls(address) ? (tls.servername ?? '') : ''
    const isWritten = destination.url === undefined
    const key = `${isWritten ? address.name : address.origin}\n${name}`
    const known = this.#opened.get(key)
    if (known !== undefined) return known
    // Nobody would close what is opened now, and its health checks would never end.
    if (this.#isClosed) throw refusedUnsent('the backend was closed')
    if (this.#opened.size >= MOST_OPENED) this.#retireOldest()
    const shown = { ...address, name: shownName(address, name, destination) }
    const target = this.#target(isWritten ? shown : { ...shown, basePath: '' }, tls)
    const opened: OpenedOrigin = {
      target,
      stopChecks: () => undefined,
      probes: 0,
      used: this.#turn,
      isRetired: false,
    }
    this.#startChecks(opened, asked)
    this.#opened.set(key, opened)
    return opened
  }

  /** The path that is checked is one of the origin, not of a business there. */
  #startChecks(opened: OpenedOrigin, host: string | undefined): void {
    const { healthCheck } = this.#rules
    if (healthCheck === undefined) return
    const { target } = opened
    opened.stopChecks = checkHealth(
      {
        probe: (request, callback) => {
          opened.probes += 1
          return target.probe(request, (error, response) => {
            opened.probes -= 1
            callback(error, response)
          })
        },
        setHealthy: (healthy) => target.setHealthy(healthy),
      },
      healthCheck,
      { host },
    )
  }

  /** Its calls, if any begin at this moment, end as they would. */
  #retireOldest(): void {
    let oldest: readonly [string, OpenedOrigin] | undefined
    for (const entry of this.#opened) {
      const [, { target, probes, used }] = entry
      if (target.inFlight <= probes && (oldest === undefined || used < oldest[1].used)) oldest = entry
    }
    if (oldest === undefined) throw refusedUnsent(`connections to ${MOST_OPENED} origins are in use already`)
    const [key, opened] = oldest
    this.#opened.delete(key)
    opened.isRetired = true
    opened.stopChecks()
    opened.target.retire()
  }

  get #all(): UpstreamTargets {
    const targets = [...this.#opened.values()].map(({ target }) => target)
    return new UpstreamTargets(targets, this.#rules, this.#others)
  }

  /** True where nothing was sent yet: then nothing is wrong. */
  get isHealthy(): boolean {
    return this.#opened.size === 0 || this.#all.isHealthy
  }

  get traffic(): UpstreamTraffic {
    return this.#all.traffic
  }

  close(): Promise<void> {
    this.#isClosed = true
    for (const { stopChecks } of this.#opened.values()) stopChecks()
    return this.#all.close()
  }
}

const refusedUnsent = (detail: string): Fault =>
  new Fault('upstream_unreachable', { detail, unchanged: true })

/** Where a call says that it goes. */
interface Destination {
  readonly url: string | undefined
  readonly host: string | undefined
  readonly conceals: boolean
  readonly business: string
}

/** The name of a target for the log. */
function shownName(address: UpstreamAddress, name: string, { url, conceals, business }: Destination): string {
  const own = url === undefined ? address.name : address.origin
  if (conceals) return url === undefined ? `${own} for ${business}` : `that of ${business}`
  return name === '' || name === new URL(address.origin).hostname ? own : `${own} as ${name}`
}

/** The name that a certificate has to bear. Names are compared without regard to case. */
const nameOf = (host: string): string => host.replace(/:\d+$/, '').toLowerCase()

const LABEL = /^[A-Za-z0-9-]{1,63}$/
/** The most characters of a whole name, with its dots (RFC 1035 §2.3.4). */
const LONGEST_NAME = 253

/** @returns what is wrong with it, if anything is */
export function hostProblem(host: string): string | undefined {
  const labels = host.replace(/:\d{1,5}$/, '').split('.')
  if (!labels.every((label) => LABEL.test(label)))
    return 'is no host name of letters, digits and hyphens, 63 at most between dots'
  if (labels.join('.').length > LONGEST_NAME) return 'is too long for a host name'
  return /^\d+$/.test(labels.at(-1) ?? '') ? 'is no host name, but an IP address' : undefined
}

function compileUrl(target: Placeholder): (call: Call) => string {
  const find = findValue(target.to)
  return (call) => asText(find(call), target)
}

/** Next to other text a value is a part of a name between dots; alone, it is a whole name. */
function compileHost(template: Template): (call: Call) => string {
  const isAlone = solePlaceholder(template) !== undefined
  const [blamed] = placeholdersIn(template)
  const parts = template.map((part) => (part.kind === 'text' ? part : { part, find: findValue(part.to) }))
  return (call) => {
    let host = ''
    for (const each of parts) {
      if ('text' in each) {
        host += each.text
        continue
      }
      const value = asText(each.find(call), each.part)
      if (value.includes(':') || (!isAlone && !LABEL.test(value)))
        throw unsendable(each.part, 'is no part of a host name: letters, digits and hyphens, 63 at most')
      host += value
    }
    const problem = hostProblem(host)
    if (problem !== undefined && blamed !== undefined) throw unsendable(blamed, problem)
    return host
  }
}
