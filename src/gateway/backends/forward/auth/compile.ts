import { Buffer } from 'node:buffer'
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { KeyPath, Problems } from '../../../../base/config/problems.ts'
import type { Call } from '../../../../base/contracts/calls/backend.ts'
import type { Template } from '../../../../base/contracts/calls/templates.ts'
import { isMadeByPostern } from '../../../../base/http/head/end-to-end-headers.ts'
import { isLoopback } from '../../../../base/kernel/listen-address.ts'
import { reasonInWords } from '../../../../base/kernel/thrown.ts'
import { placeholdersIn } from '../../templates/parse.ts'
import type { CertainTemplate, Filled } from '../../templates/places.ts'
import { parseOrReport } from '../../templates/check-templates.ts'
import type { AuthConfig, OAuth2Config } from '../schema/schema.ts'
import {
  asHeaderText,
  compileChecked,
  type Credentials,
  filledCredentials,
  fixedCredentials,
  checkHeaderText,
} from './credentials.ts'
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

/** The credentials with which an upstream is called: ours, the client's, or none. Only what the section says. */
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

/** The templates that have placeholders. */
const madeOf = (texts: Readonly<Record<string, Template | undefined>>, ...at: string[]): CertainTemplate[] =>
  Object.entries(texts).flatMap(([key, template = []]) =>
    placeholdersIn(template).length === 0 ? [] : [{ at: [...at, key], template }],
  )

const fill = (text: Filled, call: Call): string => (typeof text === 'string' ? text : text(call))

/** Compiles credentials of HTTP Basic (RFC 7617 §2). */
function compileBasic(
  config: NonNullable<AuthConfig['basic']>,
  at: KeyPath,
  problems: Problems,
): Credentials | undefined {
  const before = problems.list.length
  const templates = {
    user: parseOrReport(config.user, [...at, 'user'], problems),
    password: parseOrReport(config.password, [...at, 'password'], problems),
  }
  const user = compileChecked(templates.user, (text) => checkUser(text) ?? checkBasic(text))
  const password = compileChecked(templates.password, checkBasic)
  for (const [key, text, check] of [
    ['user', user, checkUser],
    ['user', user, checkBasic],
    ['password', password, checkBasic],
  ] as const) {
    const why = typeof text === 'string' ? check(text) : undefined
    if (why !== undefined) problems.error([...at, key], why)
  }
  if (problems.list.length > before) return undefined
  if (typeof user === 'string' && typeof password === 'string')
    return fixedCredentials(AUTHORIZATION, basicOf(user, password))
  return filledCredentials(AUTHORIZATION, madeOf(templates, 'basic'), (call) =>
    basicOf(fill(user, call), fill(password, call)),
  )
}

const basicOf = (user: string, password: string): string =>
  `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`

const checkUser = (text: string): string | undefined =>
  text.includes(':') ? 'contains a colon, which ends the name of a user' : undefined

function checkBasic(text: string): string | undefined {
  if (/[\x00-\x1f\x7f]/.test(text)) return 'contains a control character'
  return text.isWellFormed() ? undefined : 'is no Unicode text'
}

function compileBearer(source: string, at: KeyPath, problems: Problems): Credentials | undefined {
  const before = problems.list.length
  const template = parseOrReport(source, at, problems)
  const token = compileChecked(template, checkHeaderText)
  if (problems.list.length > before) return undefined
  if (typeof token !== 'string')
    return filledCredentials(
      AUTHORIZATION,
      madeOf({ bearer: template }),
      (call) => `Bearer ${asHeaderText(token(call))}`,
    )
  if (isToken68(token)) return fixedCredentials(AUTHORIZATION, `Bearer ${token}`)
  problems.error(at, 'is no bearer token: letters, digits and -._~+/, then = if any, 16 KiB at most')
  return undefined
}

/** Visible ASCII with spaces between: no receiver trims, folds or decodes it. */
const VALUE = /^[!-~]+(?: +[!-~]+)*$/

function compileHeader(
  { name, value: source }: NonNullable<AuthConfig['header']>,
  at: KeyPath,
  problems: Problems,
): Credentials | undefined {
  const before = problems.list.length
  const lower = name.toLowerCase()
  if (lower !== AUTHORIZATION && isMadeByPostern(name))
    problems.error([...at, 'name'], 'is a header that Postern makes itself, or that frames a message')
  const template = parseOrReport(source, [...at, 'value'], problems)
  const value = compileChecked(template, checkHeaderText)
  if (typeof value === 'string' && problems.list.length === before && !VALUE.test(value))
    problems.error([...at, 'value'], 'cannot stand in a header; expected visible ASCII, with spaces between')
  if (problems.list.length > before) return undefined
  if (typeof value === 'string') return fixedCredentials(lower, value)
  return filledCredentials(lower, madeOf({ value: template }, 'header'), (call) => asHeaderText(value(call)))
}

/** The keys of the section whose values may differ from call to call. */
const OAUTH2_TEMPLATES = ['clientId', 'clientSecret', 'scope', 'audience', 'resource'] as const

function compileOAuth2(
  config: OAuth2Config,
  at: KeyPath,
  problems: Problems,
  sources: TokenSources,
): Credentials | undefined {
  const before = problems.list.length
  checkTokenUrl(config.tokenUrl, [...at, 'tokenUrl'], problems)
  const ca = readAuthorities(config.tls.ca, [...at, 'tls', 'ca'], problems)
  const templates: Record<string, Template> = {}
  const filled: [string, Filled][] = []
  for (const key of OAUTH2_TEMPLATES) {
    const source = config[key]
    if (source === undefined) continue
    const template = parseOrReport(source, [...at, key], problems)
    templates[key] = template
    filled.push([key, compileChecked(template, key === 'scope' ? checkScope : checkFormText)])
  }
  if (problems.list.length > before) return undefined
  const rendered = (call: Call): OAuth2Config => ({
    ...config,
    ...Object.fromEntries(filled.map(([key, text]) => [key, fill(text, call)])),
  })
  const made = madeOf(templates, 'oauth2')
  const constants = Object.fromEntries(filled.filter(([, text]) => typeof text === 'string'))
  if (made.length === 0) return sources.credentialsOf({ ...config, ...constants }, ca)
  const ofCall = (call: Call): Credentials => sources.renderedOf(rendered(call), ca, call.business)
  return {
    name: AUTHORIZATION,
    renewable: true,
    templates: made,
    ofCall,
    line: (call) => ofCall(call).line(call),
    refused: () => true,
  }
}

const checkFormText = (text: string): string | undefined =>
  text === '' ? 'is empty' : text.isWellFormed() ? undefined : 'is no Unicode text'

const checkScope = (text: string): string | undefined =>
  /^[!#-[\]-~]+(?: [!#-[\]-~]+)*$/.test(text) ? undefined : 'is no list of scope values'

function checkTokenUrl(text: string, at: KeyPath, problems: Problems): void {
  const url = URL.parse(text)
  if (/[{}]/.test(text))
    problems.error(at, 'holds a placeholder; the token endpoint is the same for all calls')
  else if (url === null) problems.error(at, 'is no URL')
  else if (url.protocol !== 'https:' && !isLoopback(url.hostname.replace(/^\[|\]$/g, '')))
    problems.error(at, 'is http to another machine: anyone on the way could read the secret and the token')
}

/** Tried out at once, so that a broken file is reported at start and not by the first call. */
function readAuthorities(file: string | undefined, at: KeyPath, problems: Problems): Buffer | undefined {
  if (file === undefined) return undefined
  try {
    const ca = readFileSync(file)
    return new X509Certificate(ca).raw.length > 0 ? ca : undefined
  } catch (error) {
    problems.error(
      at,
      `names a file that is no certificate in PEM, or cannot be read (${reasonInWords(error)})`,
    )
    return undefined
  }
}
