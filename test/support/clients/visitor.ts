import { request } from 'undici'
import { Person, type Shown } from '../person.ts'

/** A person in front of a client: keeps the client's cookies, follows its redirects, and goes to Postern where they lead. */
export class Visitor {
  readonly #origin: string
  readonly #cookies = new Map<string, string>()
  readonly #person: Person

  constructor(origin: string, authUrl: string) {
    this.#origin = origin
    this.#person = new Person(authUrl)
  }

  /** Opens an address of the client: its page, or the address elsewhere that it leads to. */
  async open(path: string, form?: URLSearchParams): Promise<Shown> {
    // Not `fetch`: what it says of itself (Sec-Fetch-Mode) is not what a browser says that opens a page.
    const { body, headers, statusCode } = await request(new URL(path, this.#origin), {
      headers: {
        accept: 'text/html,*/*;q=0.8',
        cookie: [...this.#cookies].map((pair) => pair.join('=')).join('; '),
        ...(form && { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      ...(form && { method: 'POST', body: form.toString() }),
    })
    this.#keep([headers['set-cookie'] ?? []].flat())
    const text = await body.text()
    if (headers.location === undefined) return { status: statusCode, text, location: undefined }
    const location = new URL(String(headers.location), this.#origin)
    return location.origin === this.#origin
      ? this.open(location.href)
      : { status: statusCode, text, location }
  }

  #keep(cookies: readonly string[]): void {
    for (const cookie of cookies) {
      const [pair = ''] = cookie.split(';')
      const [name = '', ...value] = pair.split('=')
      this.#cookies.set(name, value.join('='))
    }
  }

  /** Begins at the client, logs in at Postern as alice for ACME, and comes back: the client's last page. */
  async logIn(path: string): Promise<Shown> {
    const { location } = await this.#begin(path)
    const asked = await this.#person.open(leaving(location))
    const consent = await this.#person.logIn(asked)
    const allowed = await this.#person.submit(consent, { decision: 'allow', business: 'ACME' })
    return this.open(leaving(allowed.location))
  }

  /** Logs out at Postern, without a word to the client. */
  async logOutAtPostern(): Promise<void> {
    await this.#person.submit(await this.#person.open('/connect/endsession'), { decision: 'logout' })
  }

  /** The page of Auth.js begins a login by a form with a token. */
  async #begin(path: string): Promise<Shown> {
    if (path !== '/auth/signin') return this.open(path)
    const { csrfToken } = JSON.parse((await this.open('/auth/csrf')).text) as { csrfToken: string }
    return this.open('/auth/signin/postern', new URLSearchParams({ csrfToken, callbackUrl: this.#origin }))
  }
}

function leaving(location: URL | undefined): string {
  if (location === undefined) throw new Error('the page leads nowhere')
  return location.href
}
