import type { KeyPath, Problems } from '../../config/problems.ts'
import { foldName } from '../../http/end-to-end-headers.ts'
import type { UpstreamAddress } from '../../upstream/socket.ts'
import { compileAuthorization } from './auth/compile.ts'
import type { TokenSources } from './auth/token-sources.ts'
import { compileAnswers } from './compile-answers.ts'
import { compileRequest } from './compile-request.ts'
import { isForbiddenResponseHeader } from './response.ts'
import type { ExchangeRules, RequestChanges } from './rules.ts'
import type { OperationUpstream } from './schema.ts'

/** The keys that a backend and an operation may have. */
type ExchangeConfig = Omit<OperationUpstream, 'backend'>

/** What an operation says. What it does not say is the backend's. */
export type ExchangeChanges = Partial<Omit<ExchangeRules, 'timeouts'>> & RequestChanges

/**
 * Compiles the keys that an operation may say differently from its backend (C8.7): those that are given.
 * @param at the section that holds them
 */
export function compileExchange(
  config: ExchangeConfig,
  { sources, targets }: { readonly sources: TokenSources; readonly targets: readonly UpstreamAddress[] },
  at: KeyPath,
  problems: Problems,
): ExchangeChanges {
  const { responseHeaders, format, payload } = config
  checkResponseHeaders(responseHeaders ?? [], at, problems)
  return {
    ...compileRequest(config, at, problems),
    ...(responseHeaders && { responseHeaders }),
    ...compileAuthorization(config, at, problems, sources),
    ...(format && { format }),
    ...(payload && { payload }),
    ...compileAnswers(config, targets, at, problems),
  }
}

function checkResponseHeaders(names: readonly string[], at: KeyPath, problems: Problems): void {
  for (const [index, name] of names.entries())
    if (isForbiddenResponseHeader(name))
      problems.error([...at, 'responseHeaders', index], 'is a header that never passes from an upstream')
}

/** Reports a header that two keys set. */
export function reportTwoOfOneHeader(
  { headers, credentials }: Pick<ExchangeRules, 'headers' | 'credentials'>,
  at: KeyPath,
  problems: Problems,
): void {
  if (credentials !== undefined && headers.has(foldName(credentials.name)))
    problems.error(at, `sets the header ${credentials.name} by \`auth\` and by \`headers\``)
}
