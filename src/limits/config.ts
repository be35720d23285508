import { duration, mapOf, optional, section, wholeNumber, type Static } from '../config/pieces.ts'
import type { KeyPath, Report } from '../config/report.ts'
import { compileRate, type Rate } from './buckets.ts'

const rate = (description: string) =>
  section(
    {
      requests: wholeNumber({ minimum: 1, description: 'Calls, in the time of `per`.' }),
      per: duration({ default: '1s', description: 'The time of `requests`, in whole seconds.' }),
      burst: optional(
        wholeNumber({
          minimum: 1,
          description: 'Calls at once after a rest (the size of the bucket). Default: `requests`.',
        }),
      ),
    },
    { description },
  )

const inFlight = (description: string, options: { default?: number } = {}) =>
  wholeNumber({ minimum: 1, maximum: 1_000_000, description, ...options })

const clients = section(
  {
    rate: optional(rate('The rate of a client over all workers; more is 429. Without it there is none.')),
    inFlight: inFlight(
      'Calls that a client may have in flight until their answers are sent; more is 429. Where there are several ' +
        'backends, calls that wait for one of them may be half of these (rounded down), so that one that hangs ' +
        'leaves room for calls to the others.',
      { default: 1000 },
    ),
    byId: mapOf(
      section({
        rate: optional(rate('Its rate. Default: `load.clients.rate`.')),
        inFlight: optional(inFlight('Its calls in flight. Default: `load.clients.inFlight`.')),
      }),
      { default: {}, keys: '^\\S+$', description: 'What differs for a client, by client id.' },
    ),
  },
  { default: {}, description: 'What a client may ask for. Counted behind the token’s check.' },
)

const backends = section(
  {
    inFlight: inFlight('Calls that may be in flight to a backend; more is 503, and the others go on.', {
      default: 1000,
    }),
    byName: mapOf(inFlight('Its calls in flight.'), {
      default: {},
      description: 'What differs for a backend, by name.',
    }),
  },
  {
    default: {},
    description: 'What a backend is asked at once, so that one that hangs takes only its own places.',
  },
)

const addresses = section(
  {
    rate: optional(
      rate(
        'The rate of an address (of a /64 of IPv6) at every door, before any token or password is looked at; more ' +
          'is 429. Without it there is none. Proxies count as their clients only where `server.trustedProxies` ' +
          'names them.',
      ),
    ),
  },
  { default: {}, description: 'What an address may ask for.' },
)

const shedding = section(
  {
    delay: duration({
      orZero: true,
      default: '250ms',
      description:
        'A growing share of new calls is answered 503 while the event loop is usually later than this. `0s`: never.',
    }),
  },
  { default: {}, description: 'What is refused so that the rest is answered in time.' },
)

export const loadSchema = section(
  { clients, backends, addresses, shedding },
  {
    default: {},
    description:
      'Protection from load. Caps on calls in flight are shared out among the workers in equal parts, rounded up.',
  },
)

export type LoadConfig = Static<typeof loadSchema>

export interface ClientLimits {
  readonly rate: Rate | undefined
  readonly inFlight: number
  /** Of `inFlight`, what calls to one backend may take where there are several. */
  readonly perBackend: number
}

/** The limits as they are asked for on every call. */
export interface CompiledLoad {
  readonly clients: ClientLimits
  readonly clientsById: ReadonlyMap<string, ClientLimits>
  readonly backends: number
  /** Whether a client has other backends to keep places for. */
  readonly severalBackends: boolean
  readonly backendsByName: ReadonlyMap<string, number>
  readonly addresses: Rate | undefined
  /** Milliseconds; 0 never sheds. */
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

/** Reports what the schema cannot say. @param backendNames those of the configuration */
export function checkLoad(config: LoadConfig, report: Report, backendNames: readonly string[]): void {
  for (const [path, settings] of ratePaths(config)) {
    if (settings !== undefined && (settings.per === 0 || settings.per % 1000 !== 0))
      report.error(
        [...path, 'per'],
        'must be whole seconds, since clients are told it so',
        'such as "1s" or "1m"',
      )
  }
  for (const name of Object.keys(config.backends.byName)) {
    if (!backendNames.includes(name))
      report.error(['load', 'backends', 'byName', name], 'is not a backend of this configuration')
  }
}

/** Half of a client's places, but never none: a cap of 1 cannot be shared out. */
const partOf = (inFlight: number): number => Math.max(1, Math.floor(inFlight / 2))

/**
 * @param workers processes that share the caps on calls in flight
 * @param backendCount how many backends the configuration has
 */
export function compileLoad(
  { clients, backends, addresses, shedding }: LoadConfig,
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
    sheddingDelay: shedding.delay,
  }
}
