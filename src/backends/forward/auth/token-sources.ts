import { isDeepStrictEqual } from 'node:util'
import type { Clock } from '../../../kernel/clock.ts'
import type { OAuth2Config } from './schema.ts'
import { TokenCredentials } from './token-credentials.ts'
import { TokenEndpoint } from './token-endpoint.ts'

interface TokenSource {
  readonly config: OAuth2Config
  readonly ca: Buffer | undefined
  readonly endpoint: TokenEndpoint
  readonly credentials: TokenCredentials
}

/**
 * The tokens that a backend and its operations send, by how they are got: who gets them in the same way shares one, and
 * a reload that leaves the backend as it is leaves them too.
 */
export class TokenSources {
  readonly #clock: Clock
  readonly #changed: (failure: string | undefined) => void
  readonly #sources: TokenSource[] = []

  /** @param changed told why tokens cannot be got; undefined once they can again */
  constructor(clock: Clock, changed: (failure: string | undefined) => void) {
    this.#clock = clock
    this.#changed = changed
  }

  /** @param ca PEM text of the authorities to trust instead of the system's */
  credentialsOf(config: OAuth2Config, ca: Buffer | undefined): TokenCredentials {
    const known = this.#sources.find((each) => isDeepStrictEqual([each.config, each.ca], [config, ca]))
    if (known !== undefined) return known.credentials
    const endpoint = new TokenEndpoint(config, ca)
    const ask = () => endpoint.ask()
    const credentials = new TokenCredentials({ ask, clock: this.#clock, changed: this.#changed })
    this.#sources.push({ config, ca, endpoint, credentials })
    return credentials
  }

  async close(): Promise<void> {
    for (const { credentials } of this.#sources) credentials.close()
    await Promise.all(this.#sources.map(({ endpoint }) => endpoint.close()))
  }
}
