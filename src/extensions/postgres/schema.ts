/** The section `store` of kind `postgres`, and how a connection is made from it. */
import { readFileSync } from 'node:fs'
import { checkServerIdentity, type ConnectionOptions } from 'node:tls'
import type { Problems } from '../../base/config/problems.ts'
import {
  choice,
  duration,
  flag,
  list,
  literalText,
  name,
  optional,
  path,
  secret,
  section,
  type Static,
  text,
  wholeNumber,
} from '../../base/config/schema.ts'
import { SEAL_ADVICE, sealBytes } from '../../identity/keys/signing/seal.ts'
import type { StoreSection } from '../../state/stores/added-kinds.ts'
import { isLoopback } from '../../base/kernel/listen-address.ts'
import { reasonInWords } from '../../base/kernel/thrown.ts'

const tls = section(
  {
    ca: optional(
      path({ description: 'PEM file of certificate authorities to trust instead of the system’s.' }),
    ),
    serverName: optional(
      text({ description: 'Name that the certificate must have. Default: the host of `url`.' }),
    ),
    verify: choice(['always', 'off-insecure', 'no-tls-insecure'], {
      default: 'always',
      description:
        '`off-insecure`: any certificate. `no-tls-insecure`: no TLS. With both, others may read and change data.',
    }),
  },
  {
    description: 'TLS to Postgres. On this machine (loopback, Unix socket) TLS is used only if set.',
  },
)

const seal = section({
  id: name({ description: 'Name of the seal. It stands with what it has sealed.' }),
  key: secret({ description: '32 bytes, as `openssl rand -base64 32` prints them.' }),
})

export const postgresSchema = section(
  {
    url: secret({
      plain: true,
      description:
        '`postgres://user:password@host:5432/database`; `?host=/run/postgresql` for a Unix socket.',
    }),
    tls: optional(tls),
    seal: list(seal, {
      minItems: 1,
      maxItems: 10,
      description:
        'Seals for the signing keys and the secret values of businesses in the store, the same on every node. The first one seals, all of them open. A reload may change them.',
    }),
    schema: literalText({
      pattern: '^[a-z_][a-z0-9_]{0,62}$',
      expected: 'a name of small letters, digits and "_"',
      default: 'postern',
      description: 'The Postgres schema that holds the tables.',
    }),
    connections: wholeNumber({
      default: 8,
      minimum: 1,
      maximum: 100,
      description:
        'Connections of each process for requests; it has one more for what all calls go by. A node has one process more than `workers`, if these are several.',
    }),
    deadline: duration({
      default: '5s',
      description:
        'How long a request waits for the store in all, before it is answered 503. Where 1,000 wait for a connection in a process, 503 at once.',
    }),
    maxAge: duration({
      default: '15m',
      description: 'How long calls are served with what is known of the store while it cannot be reached.',
    }),
    migrate: choice(['auto', 'never'], {
      default: 'auto',
      description:
        '`auto`: a node that starts makes and migrates the tables. `never`: it waits until `postern migrate` has.',
    }),
    preparedStatements: flag({
      default: true,
      description: 'Whether statements are prepared. `false` for poolers that cannot keep them.',
    }),
  },
  { description: 'A Postgres database that several nodes share.', after: 'sqlite' },
)

export type PostgresSection = Static<typeof postgresSchema>

/** Without the seals: they are for the values that the store keeps, not for the store itself. */
export type PostgresConfig = Omit<PostgresSection, 'seal'>

/** The section of a store of this kind. */
export const postgresOf = (section: StoreSection): PostgresSection =>
  section as StoreSection & PostgresSection

export interface PostgresPlan {
  /** A host name, an address, or the folder of a Unix socket. */
  readonly host: string
  readonly port: number
  readonly user: string
  /** Empty: none. */
  readonly password: string
  readonly database: string
  readonly tls: ConnectionOptions | false
  readonly schema: string
  readonly connections: number
  /** How long one verb may take with all its attempts, in milliseconds. */
  readonly deadline: number
  readonly preparedStatements: boolean
  /** How long calls are served with what is known of the store while it cannot be reached, in milliseconds. */
  readonly maxAge: number
  /** Milliseconds that one statement may take, where that is more than usual. Needs a connection without a pooler. */
  readonly answerWithin?: number
}

const DEFAULT_PORT = 5432

type Address = Pick<PostgresPlan, 'host' | 'port' | 'user' | 'password' | 'database'>

/** The parts of a URL, or what is wrong with it, in words that continue a sentence about it. */
function readAddress(url: string): Address | { readonly problem: string; readonly advice: string } {
  const parsed = URL.parse(url)
  const wanted = 'write postgres://user:password@host:5432/database'
  if (parsed === null || !['postgres:', 'postgresql:'].includes(parsed.protocol))
    return { problem: 'is no URL of a Postgres database', advice: wanted }
  const unknown = [...parsed.searchParams.keys()].find((name) => name !== 'host')
  if (unknown !== undefined)
    return {
      problem: `has the parameter ${unknown}, which is not read`,
      advice: unknown.startsWith('ssl') ? 'use store.tls instead' : 'leave it out',
    }
  const folder = parsed.searchParams.get('host')
  if (folder !== null && !folder.startsWith('/'))
    return { problem: 'has a `host` that is no folder', advice: 'name the folder of the Unix socket' }
  const host = folder ?? parsed.hostname.replace(/^\[(.*)\]$/, '$1')
  const user = decodeURIComponent(parsed.username)
  const database = decodeURIComponent(parsed.pathname.slice(1))
  if (host === '' || user === '' || database === '')
    return { problem: 'lacks the user, the host or the database', advice: wanted }
  const port = parsed.port === '' ? DEFAULT_PORT : Number(parsed.port)
  return { host, port, user, password: decodeURIComponent(parsed.password), database }
}

const isOnThisMachine = (host: string): boolean => host.startsWith('/') || isLoopback(host)

/** Reports an invalid address and invalid seals. */
export function checkStore(store: StoreSection, problems: Problems): void {
  if (store.kind !== 'postgres') return
  const section = postgresOf(store)
  checkAddress(section, problems)
  checkSeals(section.seal, problems)
}

function checkAddress({ url, tls: asked }: PostgresSection, problems: Problems): void {
  const address = readAddress(url)
  if ('problem' in address) problems.error(['store', 'url'], address.problem, address.advice)
  else if (address.host.startsWith('/') && asked !== undefined)
    problems.error(['store', 'tls'], 'is set, but a Unix socket has no TLS', 'leave it out')
  if (asked?.ca === undefined) return
  try {
    readFileSync(asked.ca)
  } catch (thrown) {
    problems.error(['store', 'tls', 'ca'], `names a file that cannot be read (${reasonInWords(thrown)})`)
  }
}

function checkSeals(seals: PostgresSection['seal'], problems: Problems): void {
  const ids = seals.map(({ id }) => id)
  for (const [at, { id, key }] of seals.entries()) {
    if (sealBytes(key) === undefined) problems.error(['store', 'seal', at, 'key'], 'is no key', SEAL_ADVICE)
    if (ids.indexOf(id) < at) problems.error(['store', 'seal', at, 'id'], 'is the name of another seal too')
  }
}

/** @throws Error if the URL is none; `checkStore` has reported that before. */
export function planPostgres(config: PostgresConfig): PostgresPlan {
  const address = readAddress(config.url)
  if ('problem' in address) throw new Error(`store.url ${address.problem}`)
  const { schema, connections, deadline, maxAge, preparedStatements } = config
  return {
    ...address,
    tls: tlsOf(config.tls, address.host),
    schema,
    connections,
    deadline,
    maxAge,
    preparedStatements,
  }
}

/** Where the store is, for people: no user, no password. */
export function storeLocation(config: PostgresConfig): string {
  const { host, port, database, schema } = planPostgres(config)
  return `postgres ${host}:${port}/${database}, schema ${schema}`
}

/** Off this machine everything is verified, unless the configuration names the danger. */
function tlsOf(asked: PostgresConfig['tls'], host: string): ConnectionOptions | false {
  if (asked === undefined ? isOnThisMachine(host) : asked.verify === 'no-tls-insecure') return false
  const { ca, serverName = host, verify = 'always' } = asked ?? {}
  return {
    // `pg` names the host itself in the handshake, and no name at all for an address: so the name is checked here.
    checkServerIdentity: (_host, certificate) => checkServerIdentity(serverName, certificate),
    rejectUnauthorized: verify === 'always',
    ...(ca !== undefined && { ca: readFileSync(ca) }),
  }
}
