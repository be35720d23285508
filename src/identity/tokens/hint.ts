import { parseCompactToken } from '../../keys/token-verifier.ts'
import type { StepDependencies } from '../endpoint.ts'

/** Whom an id_token of ours was issued for, and to whom. */
export interface Hint {
  readonly client: string
  readonly subject: string
}

/** Seconds. A hint may have expired long ago (RP-Initiated Logout §2); only the keys' retirement ends it. */
const ANY_AGE = 10 * 365 * 86_400

/** What an `id_token_hint` proves; undefined if it is no id_token of ours. */
export async function readHint(
  text: string | undefined,
  { judge, urls }: StepDependencies,
): Promise<Hint | undefined> {
  if (text === undefined) return undefined
  try {
    const { aud: client } = parseCompactToken(text).payload
    if (typeof client !== 'string') return undefined
    const { claims } = await judge.verify(text, {
      issuer: urls.issuer,
      audience: client,
      typ: ['jwt'],
      algorithms: ['RS256', 'ES256'],
      leeway: ANY_AGE,
      longestLife: ANY_AGE,
    })
    const { sub } = claims
    return typeof sub === 'string' ? { client, subject: sub } : undefined
  } catch {
    // A hint is no credential: where it can't be read, or not now, there is none.
    return undefined
  }
}
