/** What a person is shown, or where their browser was sent. */
export interface Shown {
  readonly status: number
  readonly text: string
  /** Of a redirect that leads away from the service. */
  readonly location: URL | undefined
}

type Fields = Readonly<Record<string, string>>

const unescape = (text: string): string => text.replaceAll('&quot;', '"').replaceAll('&amp;', '&')

/** A person with a browser that knows cookies and forms, and no more, over real sockets. */
export class Person {
  readonly #origin: string
  readonly #headers: Fields
  /** The session: with it, further codes need no page. */
  cookie = ''

  /** @param headers sent with every request: whom a proxy in front names, for example */
  constructor(authUrl: string, headers: Fields = {}) {
    this.#origin = new URL(authUrl).origin
    this.#headers = headers
  }

  /** Opens an address of the service, or posts a form to it; its redirects to itself are followed. */
  async open(url: string, form?: URLSearchParams): Promise<Shown> {
    const response = await fetch(new URL(url, this.#origin), {
      redirect: 'manual',
      headers: { ...this.#headers, cookie: this.cookie },
      ...(form && { method: 'POST', body: form }),
    })
    this.cookie = response.headers.get('set-cookie')?.split(';')[0] ?? this.cookie
    const text = await response.text()
    const to = response.headers.get('location')
    const location = to === null ? undefined : new URL(to, this.#origin)
    return location?.origin === this.#origin
      ? this.open(location.href)
      : { status: response.status, text, location }
  }

  /** Sends the form of a page, with its hidden field. */
  submit({ text }: Shown, fields: Fields): Promise<Shown> {
    const action = unescape(/<form method="post" action="([^"]*)"/.exec(text)?.[1] ?? '')
    const csrf = /name="csrf" value="([^"]*)"/.exec(text)?.[1] ?? ''
    return this.open(action, new URLSearchParams({ csrf, ...fields }))
  }

  logIn(page: Shown, username = 'alice'): Promise<Shown> {
    return this.submit(page, { username, password: `${username}-password` })
  }
}
