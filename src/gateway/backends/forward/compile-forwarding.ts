import { readFile } from 'node:fs/promises'
import { createSecureContext } from 'node:tls'
import type { KeyPath, Problems } from '../../../base/config/problems.ts'
import type { Signer } from '../../../base/contracts/people/keys.ts'
import type { Template } from '../../../base/contracts/calls/templates.ts'
import type { Clock } from '../../../base/kernel/clock.ts'
import { messageOf } from '../../../base/kernel/thrown.ts'
import { parseUpstreamAddress, type UpstreamAddress, type UpstreamTls } from '../../upstream/socket.ts'
import { solePlaceholder } from '../templates/parse.ts'
import type { FixedHeader } from '../templates/places.ts'
import { TokenSources } from './auth/token-credentials.ts'
import { parseOrReport } from '../templates/check-templates.ts'
import { checkAnswers, checkDataInXml, compileXml } from './compile-answers.ts'
import { compileExchange, reportTakenNames, reportTwoOfOneHeader } from './compile-request.ts'
import { namesValues } from './schema/named-values.ts'
import { identifyByHeaders, identifyByToken, identifyNobody } from './request.ts'
import { type OriginPattern, parseOriginPattern } from './schema/origins.ts'
import type { HttpBackendRules, Identify } from './rules.ts'
import type { ForwardingConfig } from './schema/schema.ts'
import type { TargetChange } from './target/targets.ts'
import { hostProblem, type VaryingRules } from './target/varying-targets.ts'

export interface ForwardingDependencies {
  readonly vendor: string
  readonly clock: Clock
  /** Absent where Postern has no keys of its own (C11.2). */
  readonly signer: Signer | undefined
  readonly targetChanged: (backend: string, target: string, change: TargetChange) => void
  /** Called before each further attempt at a call. */
  readonly retried: (backend: string) => void
  /**
   * Called with the reason when a backend cannot get tokens for its upstream; with undefined when it can again.
   * @param business whose tokens they are, where that makes a difference
   */
  readonly tokenChanged: (backend: string, failure: string | undefined, business?: string) => void
}

const DEFAULTS = {
  path: undefined,
  query: new Map<string, Template>(),
  queryOnly: undefined,
  headers: new Map<string, FixedHeader>(),
  requestHeaders: undefined,
  method: undefined,
  credentials: undefined,
  errors: undefined,
  types: undefined,
  ranges: 'bytes',
  forwarded: 'on',
  errorStatus: undefined,
  redirects: undefined,
  data: undefined,
  operations: undefined,
} as const

/** Compiles what forwarding backends have in common; undefined if a problem was reported that leaves nothing to open. */
export async function compileForwarding(
  name: string,
  config: ForwardingConfig,
  problems: Problems,
  dependencies: ForwardingDependencies,
): Promise<HttpBackendRules | undefined> {
  const at = ['backends', name]
  const targets = compileTargets(config, at, problems)
  const sources = new TokenSources(dependencies.clock, (failure, business) =>
    dependencies.tokenChanged(name, failure, business),
  )
  const varying = compileVarying(config, at, problems)
  const exchange = compileExchange(config, { sources, targets: targets ?? [] }, at, problems)
  const rules = { ...DEFAULTS, ...exchange }
  reportTakenNames(rules, at, problems)
  reportTwoOfOneHeader(rules, at, problems)
  const identify = compileIdentity(name, config, at, problems, dependencies)
  const tls = await compileTls(config, at, problems)
  const { format, payload, strictQuery, forwardAuthorization, responseHeaders, retries, timeouts } = config
  const xml =
    config.xml &&
    compileXml(
      config.xml,
      { format, payload, types: exchange.types, inherited: undefined },
      [...at, 'xml'],
      problems,
    )
  checkAnswers(exchange, { ...rules, payload }, at, problems)
  checkDataInXml({ data: exchange.data, xml }, at, problems)
  if (targets === undefined) return undefined
  return {
    name,
    vendor: dependencies.vendor,
    format,
    payload,
    strictQuery,
    forwardAuthorization,
    responseHeaders,
    retries,
    ...rules,
    xml,
    namesValues: namesValues(config),
    targets,
    identify,
    tls,
    sources,
    host: varying?.host === undefined ? config.host : undefined,
    varying,
    maxConnections: config.maxConnections,
    timeouts,
    connectionAge: config.connectionAge,
    closeDelimited: config.closeDelimited,
    ejection: config.ejection,
    healthCheck: config.healthCheck,
    targetChanged: (target, change) => dependencies.targetChanged(name, target, change),
    retried: () => dependencies.retried(name),
  }
}

function compileTargets(
  { target, targets }: ForwardingConfig,
  at: KeyPath,
  problems: Problems,
): readonly UpstreamAddress[] | undefined {
  if (target?.startsWith('{') === true && targets === undefined) return []
  if (target !== undefined && targets !== undefined) {
    problems.error([...at, 'targets'], 'stands beside `target`; expected one of the two')
    return undefined
  }
  const given = targets?.map((text, index) => ({ text, path: [...at, 'targets', index] }))
  const named = given ?? (target === undefined ? [] : [{ text: target, path: [...at, 'target'] }])
  if (named.length === 0) problems.error(at, 'has no upstream; expected `target` or `targets`')
  const parsed = named.map(({ text, path }) => {
    const address = /[{}]/.test(text) ? undefined : parseUpstreamAddress(text)
    if (address === undefined)
      problems.error(
        path,
        /[{}]/.test(text)
          ? 'has a placeholder beside other text; `target` is one whole placeholder, such as "{business.url}", or has none'
          : 'must be a plain address, without query, escapes or dots in its path',
      )
    return address
  })
  const usable = parsed.filter((address) => address !== undefined)
  return usable.length > 0 && usable.length === parsed.length ? usable : undefined
}

/** Where target or host differ from call to call; undefined: they do not. */
function compileVarying(
  { target: source = '', origins, host: hostSource = '' }: ForwardingConfig,
  at: KeyPath,
  problems: Problems,
): VaryingRules | undefined {
  const target = source.startsWith('{') ? compileTarget(source, [...at, 'target'], problems) : undefined
  if (source.startsWith('{') && origins === undefined)
    problems.error([...at, 'target'], 'is a placeholder; `origins` has to say where it may lead')
  if (!source.startsWith('{') && origins !== undefined)
    problems.error([...at, 'origins'], 'is for a `target` that is a placeholder, such as "{business.url}"')
  const host = hostSource.includes('{') ? compileHost(hostSource, [...at, 'host'], problems) : undefined
  if (target === undefined && host === undefined) return undefined
  return {
    target: target?.placeholder,
    origins: compileOrigins(origins ?? [], [...at, 'origins'], problems),
    host,
    templates: [
      ...(target === undefined ? [] : [{ at: ['target'], template: target.template }]),
      ...(host === undefined ? [] : [{ at: ['host'], template: host }]),
    ],
  }
}

function compileTarget(source: string, at: KeyPath, problems: Problems) {
  const template = parseOrReport(source, at, problems)
  const placeholder = solePlaceholder(template)
  if (placeholder?.to.kind === 'value') return { template, placeholder }
  if (template.length > 0)
    problems.error(
      at,
      'must be a value of the business, such as "{business.url}": no client says where calls go',
    )
  return undefined
}

/** The value of a placeholder is checked with each call. */
function compileHost(source: string, at: KeyPath, problems: Problems): Template | undefined {
  const template = parseOrReport(source, at, problems)
  const problem = hostProblem(template.map((part) => (part.kind === 'text' ? part.text : 'x')).join(''))
  if (problem !== undefined && template.length > 0) problems.error(at, problem)
  return problem === undefined ? template : undefined
}

function compileOrigins(
  origins: readonly string[],
  at: KeyPath,
  problems: Problems,
): readonly OriginPattern[] {
  return origins.flatMap((text, index) => {
    const origin = parseOriginPattern(text)
    if (typeof origin !== 'string') return [origin]
    problems.error([...at, index], origin)
    return []
  })
}

function compileIdentity(
  name: string,
  { identity = 'headers' }: ForwardingConfig,
  at: KeyPath,
  problems: Problems,
  { signer, clock }: ForwardingDependencies,
): Identify {
  if (identity === 'headers') return identifyByHeaders
  if (identity === 'none') return identifyNobody
  if (signer !== undefined) return identifyByToken(signer, name, clock)
  problems.error(
    [...at, 'identity'],
    'is token, which takes keys of our own to sign with, and a sidecar has none',
  )
  return identifyByHeaders
}

/** All files are read and tried out at once, so that a broken one is reported at start and not by the first call. */
async function compileTls({ tls }: ForwardingConfig, at: KeyPath, problems: Problems): Promise<UpstreamTls> {
  const where = [...at, 'tls']
  const [ca, cert, key] = await Promise.all(
    (['ca', 'cert', 'key'] as const).map((file) => readOrReport(tls[file], [...where, file], problems)),
  )
  if ((tls.cert === undefined) !== (tls.key === undefined))
    problems.error(where, 'has one of `cert` and `key`; expected both, or neither')
  const files = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
  try {
    createSecureContext(files)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    problems.error(where, `names files that are no certificates and key that go together${code}`)
  }
  return {
    ...files,
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
    unverified: tls.verify === 'off-insecure',
  }
}

export async function readOrReport(
  file: string | undefined,
  path: KeyPath,
  problems: Problems,
): Promise<Buffer | undefined> {
  if (file === undefined) return undefined
  try {
    return await readFile(file)
  } catch (error) {
    problems.error(path, `names a file that cannot be read: ${messageOf(error)}`)
    return undefined
  }
}
