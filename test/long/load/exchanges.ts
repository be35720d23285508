/** Token exchanges as a busy client makes them, alike for every service that is measured. */
import { createHash } from 'node:crypto'
import { Pool } from 'undici'

/** The demo's partner. */
export const CLIENT = 'ledgerline'
export const SECRET = 'ledgerline-secret'
export const REDIRECT = 'http://127.0.0.1:8090/callback'

const VERIFIER = 'v'.repeat(43)
export const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const AUTHORIZATION = `Basic ${Buffer.from(`${CLIENT}:${SECRET}`).toString('base64')}`

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
}

/** Asks a token endpoint over kept connections. */
export class TokenClient {
  readonly #pool: Pool
  readonly #path: string

  constructor(endpoint: string, connections: number) {
    const { origin, pathname } = new URL(endpoint)
    this.#pool = new Pool(origin, { connections })
    this.#path = pathname
  }

  redeem(code: string): Promise<Tokens> {
    return this.#ask({
      grant_type: 'authorization_code',
      code,
      redirect_uri: REDIRECT,
      code_verifier: VERIFIER,
    })
  }

  refresh({ refresh_token }: Tokens): Promise<Tokens> {
    return this.#ask({ grant_type: 'refresh_token', refresh_token })
  }

  async #ask(form: Readonly<Record<string, string>>): Promise<Tokens> {
    const { statusCode, body } = await this.#pool.request({
      method: 'POST',
      path: this.#path,
      headers: { authorization: AUTHORIZATION, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams(form).toString(),
    })
    const text = await body.text()
    if (statusCode !== 200) throw new Error(`${statusCode} ${text}`)
    return JSON.parse(text) as Tokens
  }

  close(): Promise<void> {
    return this.#pool.close()
  }
}

/** Runs the work over all items, so many at a time; answers the seconds that it took. */
export async function inParallel<T>(
  items: readonly T[],
  lanes: number,
  work: (item: T) => Promise<unknown>,
): Promise<number> {
  const started = performance.now()
  const queue = items.values()
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      for (const item of queue) await work(item)
    }),
  )
  return (performance.now() - started) / 1000
}

export const percentile = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN

export const median = (values: readonly number[]): number => percentile(values, 0.5)
