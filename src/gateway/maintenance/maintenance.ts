import type { ClosedBy, Closure, Switches } from '../../base/contracts/calls/switches.ts'
import { compileAddressList } from '../../base/http/head/addresses.ts'
import type { Clock } from '../../base/kernel/clock.ts'
import { isInForce, type MaintenanceSwitch, scopeText } from './switch.ts'

const NONE: ReadonlyMap<string, Closure> = new Map()

/**
 * The maintenance switches of this process (C9): compiled when they are set, because every call asks. Windows begin and
 * end by the clock: what was compiled holds for the time between two edges of windows, and is compiled anew by the
 * first call beyond them. Where no window is planned, no call asks the time.
 */
export class MaintenanceSwitches implements Switches {
  readonly #clock: Clock
  #all: readonly MaintenanceSwitch[] = []
  #closures = NONE
  /** The closures hold from here (included) to there (not included), in ms since the epoch. */
  #since = Number.NEGATIVE_INFINITY
  #until = Number.POSITIVE_INFINITY
  #timed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Replaces all switches at once. Throws RangeError, with nothing changed, if an allow list holds no addresses. */
  set(switches: readonly MaintenanceSwitch[]): void {
    for (const entry of switches) compileClosure(entry, this.#clock)
    this.#all = switches
    this.#timed = edgesOf(switches).length > 0
    this.#compile(this.#clock.now())
  }

  service(): Closure | undefined {
    return this.#current().get('service')
  }

  identity(): Closure | undefined {
    return this.#current().get('identity')
  }

  place(business: string, area: string, backend: string): Closure | undefined {
    const closures = this.#current()
    if (closures.size === 0) return undefined
    const found = [`business/${business}`, `area/${area}`, `backend/${backend}`].flatMap(
      (key) => closures.get(key) ?? [],
    )
    return mergeClosures(found)
  }

  #current(): ReadonlyMap<string, Closure> {
    if (this.#timed) {
      const now = this.#clock.now()
      // A wall clock may be set back, too.
      if (now >= this.#until || now < this.#since) this.#compile(now)
    }
    return this.#closures
  }

  #compile(now: number): void {
    const edges = edgesOf(this.#all)
    this.#since = Math.max(...edges.filter((edge) => edge <= now))
    this.#until = Math.min(...edges.filter((edge) => edge > now))
    const byScope = Map.groupBy(
      this.#all.filter((entry) => isInForce(entry, now)),
      ({ scope }) => scopeText(scope),
    )
    this.#closures = new Map(
      [...byScope].flatMap(([key, entries]) => {
        const closure = mergeClosures(entries.map((entry) => compileClosure(entry, this.#clock)))
        return closure === undefined ? [] : [[key, closure] as const]
      }),
    )
  }
}

const edgesOf = (switches: readonly MaintenanceSwitch[]): number[] =>
  switches.flatMap(({ from, until }) => [from ?? [], until ?? []].flat())

/** The default of Retry-After, in seconds. */
const RETRY_AFTER = 120

/** Throws RangeError if an entry of the allow list is no address. */
export function compileClosure(entry: MaintenanceSwitch, clock: Clock): Closure {
  const { message, retryAfter, until, addresses = [], clients = [] } = entry
  const left =
    until === undefined ? () => RETRY_AFTER : () => Math.max(1, Math.ceil((until - clock.now()) / 1000))
  return {
    message,
    get retryAfter() {
      return retryAfter ?? left()
    },
    admitsAddress: compileAddressList(addresses),
    clients: new Set(clients),
    closedBy: [closedByOf(entry)],
  }
}

/** Switches that are kept have a name, and say who set them. */
type NamedSwitch = MaintenanceSwitch & Partial<Pick<ClosedBy, 'id' | 'source' | 'by' | 'reason'>>

const closedByOf = ({ scope, id, source, from, until, by, reason }: NamedSwitch): ClosedBy => ({
  scope: scopeText(scope),
  id,
  source,
  from,
  until,
  by,
  reason,
})

/** Several closures of one call as one: a caller passes only if it is on the allow list of each. */
function mergeClosures(closures: readonly Closure[]): Closure | undefined {
  const [first, ...others] = closures
  if (first === undefined || others.length === 0) return first
  return {
    message: closures.find(({ message }) => message !== undefined)?.message,
    get retryAfter() {
      return Math.max(...closures.map(({ retryAfter }) => retryAfter))
    },
    admitsAddress: (address) => closures.every((closure) => closure.admitsAddress(address)),
    clients: new Set([...first.clients].filter((id) => others.every(({ clients }) => clients.has(id)))),
    closedBy: closures.flatMap(({ closedBy }) => closedBy),
  }
}
