import { Buffer } from 'node:buffer'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { KeyPath, Problems } from '../../../config/problems.ts'
import { isMadeByPostern } from '../../../http/end-to-end-headers.ts'
import { isLoopback } from '../../../kernel/listen-address.ts'
import { reasonInWords } from '../../../kernel/thrown.ts'
import type { AuthConfig, OAuth2Config } from '../schema.ts'
import { type Credentials, fixedCredentials } from './credentials.ts'
import type { TokenSources } from './token-credentials.ts'
import { isToken68 } from './token-endpoint.ts'

/** Compiles one kind; undefined if a problem was reported. `at` is the section of that kind. */
type Compile<K extends keyof AuthConfig> = (
  config: NonNullable<AuthConfig[K]>,
  at: KeyPath,
  problems: Problems,
  sources: TokenSources,
) => Credentials | undefined

const AUTHORIZATION = 'authorization'

const KINDS: { readonly [K in keyof Required<AuthConfig>]: Compile<K> } = {
  basic: compileBasic,
  bearer: compileBearer,
  header: compileHeader,
  oauth2: compileOAuth2,
}

/** By which credentials an upstream is called: ours, the client's, or none. Only what the section says. */
interface Authorization {
  readonly credentials?: Credentials | undefined
  readonly forwardAuthorization?: boolean
}

/**
 * Compiles the keys `auth` and `forwardAuthorization`. Each takes the place of the other, where an operation says one
 * and its backend the other.
 * @param at the section that holds them
 */
export function compileAuthorization(
  { auth, forwardAuthorization }: AuthorizationConfig,
  at: KeyPath,
  problems: Problems,
  sources: TokenSources,
): Authorization {
  if (auth !== undefined && forwardAuthorization === true)
    problems.error([...at, 'auth'], 'stands beside `forwardAuthorization`; expected one of the two')
  if (auth !== undefined)
    return {
      credentials: compileAuth(auth, [...at, 'auth'], problems, sources),
      forwardAuthorization: false,
    }
  if (forwardAuthorization === undefined) return {}
  return { forwardAuthorization, ...(forwardAuthorization && { credentials: undefined }) }
}

interface AuthorizationConfig {
  readonly auth?: AuthConfig | undefined
  readonly forwardAuthorization?: boolean | undefined
}

function compileAuth(
  config: AuthConfig,
  path: KeyPath,
  problems: Problems,
  sources: TokenSources,
): Credentials | undefined {
  const kinds = (Object.keys(KINDS) as (keyof AuthConfig)[]).filter((kind) => config[kind] !== undefined)
  const [kind] = kinds
  if (kind === undefined || kinds.length > 1) {
    problems.error(path, `must have exactly one of \`${Object.keys(KINDS).join('`, `')}\``)
    return undefined
  }
  const compile = KINDS[kind] as Compile<keyof AuthConfig>
  return compile(config[kind] as never, [...path, kind], problems, sources)
}

/** RFC 7617 §2. */
function compileBasic(
  { user, password }: NonNullable<AuthConfig['basic']>,
  at: KeyPath,
  problems: Problems,
): Credentials | undefined {
  const before = problems.list.length
  if (user.includes(':')) problems.error([...at, 'user'], 'contains a colon, which ends the name of a user')
  for (const [key, text] of Object.entries({ user, password }))
    if (/[\x00-\x1f\x7f]/.test(text)) problems.error([...at, key], 'contains a control character')
  if (problems.list.length > before) return undefined
  return fixedCredentials(AUTHORIZATION, `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`)
}

function compileBearer(token: string, at: KeyPath, problems: Problems): Credentials | undefined {
  if (isToken68(token)) return fixedCredentials(AUTHORIZATION, `Bearer ${token}`)
  problems.error(at, 'is no bearer token: letters, digits and -._~+/, then = if any, 16 KiB at most')
  return undefined
}

/** Visible ASCII, with spaces between: what no receiver trims, folds or decodes. */
const VALUE = /^[!-~]+(?: +[!-~]+)*$/

function compileHeader(
  { name, value }: NonNullable<AuthConfig['header']>,
  at: KeyPath,
  problems: Problems,
): Credentials | undefined {
  const lower = name.toLowerCase()
  const isTaken = lower !== AUTHORIZATION && isMadeByPostern(name)
  const isSendable = VALUE.test(value)
  if (isTaken)
    problems.error([...at, 'name'], 'is a header that Postern makes itself, or that frames a message')
  if (!isSendable)
    problems.error([...at, 'value'], 'cannot stand in a header; expected visible ASCII, with spaces between')
  return isTaken || !isSendable ? undefined : fixedCredentials(lower, value)
}

function compileOAuth2(
  config: OAuth2Config,
  at: KeyPath,
  problems: Problems,
  sources: TokenSources,
): Credentials | undefined {
  const before = problems.list.length
  checkTokenUrl(config.tokenUrl, [...at, 'tokenUrl'], problems)
  const ca = readAuthorities(config.tls.ca, [...at, 'tls', 'ca'], problems)
  return problems.list.length > before ? undefined : sources.credentialsOf(config, ca)
}

function checkTokenUrl(text: string, at: KeyPath, problems: Problems): void {
  const url = URL.parse(text)
  if (url === null) problems.error(at, 'is no URL')
  else if (url.protocol !== 'https:' && !isLoopback(url.hostname.replace(/^\[|\]$/g, '')))
    problems.error(at, 'is http to another machine: anyone on the way could read the secret and the token')
}

/** Tried out at once, so that a broken file is reported at start and not by the first call. */
function readAuthorities(file: string | undefined, at: KeyPath, problems: Problems): Buffer | undefined {
  if (file === undefined) return undefined
  try {
    const ca = readFileSync(file)
    new X509Certificate(ca)
    return ca
  } catch (error) {
    problems.error(
      at,
      `names a file that is no certificate in PEM, or cannot be read (${reasonInWords(error)})`,
    )
    return undefined
  }
}
