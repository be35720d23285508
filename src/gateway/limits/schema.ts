import {
  duration,
  fraction,
  mapOf,
  optional,
  section,
  wholeNumber,
  type Static,
} from '../../base/config/schema.ts'
import { reportUnknownName } from '../../base/config/problem-text.ts'
import type { KeyPath, Problems } from '../../base/config/problems.ts'
import { durationText } from '../../base/kernel/units.ts'
import { clientKeyProblem } from '../../identity/keys/issuers/issuers-schema.ts'
import { compileRate, type Rate } from './buckets.ts'

const rate = (description: string) =>
  section(
    {
      requests: wholeNumber({ minimum: 1, description: 'Number of calls in the time `per`.' }),
      per: duration({
        default: '1s',
        description:
          'The time for `requests`, in whole seconds. After a restart the rate is full again, but for that of a client with a store of kind `postgres`.',
      }),
      burst: optional(
        wholeNumber({
          minimum: 1,
          description: 'Most calls at once after a pause (size of the token bucket). Default: `requests`.',
        }),
      ),
    },
    { description },
  )

const inFlight = (description: string, options: { default?: number } = {}) =>
  wholeNumber({ minimum: 1, maximum: 1_000_000, description, ...options })

const clients = section(
  {
    rate: optional(
      rate('Most calls of a client in a time, over all workers. More is 429. Default: no limit.'),
    ),
    inFlight: inFlight(
      'Most calls of a client in flight. More is 429. With several backends, at most half may wait for one of them.',
      { default: 1000 },
    ),
    byId: mapOf(
      section({
        rate: optional(rate('Rate of this client. Default: `load.clients.rate`.')),
        inFlight: optional(
          inFlight('Most calls of this client in flight. Default: `load.clients.inFlight`.'),
        ),
      }),
      {
        default: {},
        keys: '^\\S+$',
        description: 'Other limits for single clients, by client id; with several issuers by `NAME:CLIENT`.',
      },
    ),
  },
  { default: {}, description: 'Limits per client. Only calls with a valid token count.' },
)

const backends = section(
  {
    inFlight: inFlight('Most calls in flight to a backend. More is 503.', {
      default: 1000,
    }),
    byName: mapOf(inFlight('Most calls in flight to this backend.'), {
      default: {},
      description: 'Other limits on calls in flight for single backends, by name.',
    }),
  },
  {
    default: {},
    description: 'Limits per backend, so that a backend that hangs does not stop the others.',
  },
)

const addresses = section(
  {
    rate: optional(
      rate('Most requests of an address (IPv6: of a /64 network) in a time. More is 429. Default: no limit.'),
    ),
  },
  { default: {}, description: 'Limits per client address.' },
)

const shedding = section(
  {
    delay: duration({
      orZero: true,
      default: '250ms',
      description:
        'While the event loop is late by more than this, a growing share of new calls is 503. `0s`: never.',
    }),
  },
  { default: {}, description: 'Refusal of calls when the process is overloaded.' },
)

const share = fraction({
  minimum: 0,
  maximum: 1,
  default: 0.1,
  description:
    'The part of a burst that new callers may use on all nodes together before the nodes have agreed on it: 0 to 1.',
})

export const loadSchema = section(
  { clients, backends, addresses, shedding, share },
  {
    default: {},
    description: 'Limits on the load. Limits on calls in flight are divided equally among the workers.',
  },
)

export type LoadConfig = Static<typeof loadSchema>

export interface ClientLimits {
  readonly rate: Rate | undefined
  readonly inFlight: number
  /** The part of `inFlight` that calls to one backend may take where there are several. */
  readonly perBackend: number
}

export interface CompiledLoad {
  readonly clients: ClientLimits
  readonly clientsById: ReadonlyMap<string, ClientLimits>
  readonly backends: number
  /** Whether a client has other backends to keep places for. */
  readonly severalBackends: boolean
  readonly backendsByName: ReadonlyMap<string, number>
  readonly addresses: Rate | undefined
  /** The part of a burst that all nodes together may let in before they have asked for it. */
  readonly share: number
  /** The delay above which calls are shed, in milliseconds; 0 never sheds. */
  readonly sheddingDelay: number
}

type RateConfig = NonNullable<LoadConfig['clients']['rate']>

const ratePaths = (config: LoadConfig): readonly (readonly [KeyPath, RateConfig | undefined])[] => [
  [['load', 'clients', 'rate'], config.clients.rate],
  [['load', 'addresses', 'rate'], config.addresses.rate],
  ...Object.entries(config.clients.byId).map(
    ([id, limits]) => [['load', 'clients', 'byId', id, 'rate'], limits.rate] as const,
  ),
]

/** The names of the configuration that limits may use. */
interface LoadNames {
  readonly backends: ReadonlySet<string>
  /** Undefined unless there are several: then clients are named with their issuer. */
  readonly issuers: ReadonlySet<string> | undefined
  /** Whether the rates of clients outlive a restart. */
  readonly keepsRates: boolean
}

/** The shortest window for which it matters that a rate is full again after a restart, in milliseconds. */
const LONG_PER = 600_000

export function checkLoad(
  config: LoadConfig,
  problems: Problems,
  { backends, issuers, keepsRates }: LoadNames,
): void {
  for (const id of Object.keys(config.clients.byId)) {
    const wrong = clientKeyProblem(id, issuers)
    if (wrong) problems.error(['load', 'clients', 'byId', id], wrong.message, wrong.hint)
  }
  for (const [path, settings] of ratePaths(config)) {
    if (settings !== undefined && (settings.per === 0 || settings.per % 1000 !== 0))
      problems.error(
        [...path, 'per'],
        'must be whole seconds, since clients are told it so',
        'such as "1s" or "1m"',
      )
    const isKept = keepsRates && !path.includes('addresses')
    if (settings !== undefined && settings.per >= LONG_PER && !isKept)
      problems.warn(
        [...path, 'per'],
        `is ${durationText(settings.per)}, but the rate is full again after each restart, since it is kept in memory`,
        'a store of kind `postgres` keeps the rates of clients, and none those of addresses',
      )
  }
  for (const name of Object.keys(config.backends.byName)) {
    if (!backends.has(name))
      reportUnknownName(problems, ['load', 'backends', 'byName', name], 'backend', name, backends)
  }
}

/** Half of a client's places, but never none: a cap of 1 cannot be shared out. */
const partOf = (inFlight: number): number => Math.max(1, Math.floor(inFlight / 2))

/**
 * @param workers processes that share the caps on calls in flight, on all nodes
 * @param backendCount how many backends the configuration has
 */
export function compileLoad(
  { clients, backends, addresses, shedding, share: shareOfBurst }: LoadConfig,
  workers = 1,
  backendCount = 1,
): CompiledLoad {
  const share = (cap: number): number => Math.ceil(cap / workers)
  const rateOf = (settings: RateConfig | undefined): Rate | undefined => settings && compileRate(settings)
  const limitsOf = (rate: Rate | undefined, cap: number): ClientLimits => {
    const inFlight = share(cap)
    return { rate, inFlight, perBackend: partOf(inFlight) }
  }
  const base = limitsOf(rateOf(clients.rate), clients.inFlight)
  return {
    clients: base,
    clientsById: new Map(
      Object.entries(clients.byId).map(([id, own]) => [
        id,
        limitsOf(rateOf(own.rate) ?? base.rate, own.inFlight ?? clients.inFlight),
      ]),
    ),
    backends: share(backends.inFlight),
    severalBackends: backendCount > 1,
    backendsByName: new Map(Object.entries(backends.byName).map(([name, cap]) => [name, share(cap)])),
    addresses: rateOf(addresses.rate),
    share: shareOfBurst,
    sheddingDelay: shedding.delay,
  }
}
