import { createHash, randomBytes } from 'node:crypto'
import { Person } from './person.ts'

/** Where a service answers, and the authorization request that is walked. */
export interface CodeWalk {
  readonly authUrl: string
  readonly params: Readonly<Record<string, string>>
  readonly username: string
  /** For the picker. */
  readonly business?: string
}

export interface WalkedCode {
  readonly code: string
  readonly verifier: string
  /** All that the client was sent. */
  readonly answer: URLSearchParams
  /** The session: with it, further codes need no page. */
  readonly cookie: string
}

/** A person who logs in, chooses and allows: to a code. Throws, with what was shown, where there is none. */
export async function walkToCode({ authUrl, params, username, business }: CodeWalk): Promise<WalkedCode> {
  const person = new Person(authUrl)
  const verifier = randomBytes(32).toString('base64url')
  const query = new URLSearchParams({
    response_type: 'code',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
    ...params,
  })
  const login = await person.open(`${authUrl}/connect/authorize?${query.toString()}`)
  let shown = await person.logIn(login, username)
  if (shown.status === 200)
    shown = await person.submit(shown, { decision: 'allow', ...(business !== undefined && { business }) })
  const answer = shown.location?.searchParams
  const code = answer?.get('code') ?? undefined
  if (answer === undefined || code === undefined)
    throw new Error(`no code: ${shown.status} ${shown.location?.href ?? shown.text}`)
  return { code, verifier, answer, cookie: person.cookie }
}
