/** Users of the store, and the links by which they set their password: made by an operator, used over real sockets. */
import { expect } from 'vitest'
import type { Answered, Sent as Ordered } from './administered.ts'
import { postForm } from './oauth.ts'
import { openRaw, type RawResponse, sendRaw } from './raw-http.ts'
import { form, requestBytes, type Sent } from './requests.ts'

/** What a person chooses. */
export const CHOSEN = 'three plain words'

type Headers = NonNullable<Sent['headers']>

interface Operators {
  readonly call: (method: string, path: string, sent?: Ordered) => Promise<Answered>
}

/** A user of the store who may log in for the demo's customer; without a password unless `more` has one. Resolves with the subject. */
export async function addUser({ call }: Operators, username: string, more: object = {}): Promise<string> {
  const user = { username, customers: ['acme-books'], access: { ACME: 'Read-only' }, ...more }
  const { body, status } = await call('POST', '/users', { body: user })
  expect([username, status]).toEqual([username, 201])
  return body.record.subject as string
}

export interface MadeLink {
  readonly link: string
  readonly code: string
}

/** A link of the operator's for a user. @param body what is ordered, such as `for` */
export async function makeLink({ call }: Operators, username: string, body: object = {}): Promise<MadeLink> {
  const { body: made, status } = await call('POST', `/users/${username}/link`, { body })
  expect([username, status]).toEqual([username, 201])
  return { link: made.link, code: new URL(made.link as string).searchParams.get('code') ?? '' }
}

/** What a browser gets that has opened a link. */
export interface OpenedLink {
  /** The answer to the link itself, which leads on. */
  readonly moved: RawResponse
  /** Name and value, as the browser sends it from then on. */
  readonly cookie: string
  readonly page: RawResponse
  readonly csrf: string
  /** Sends the form of the page, with its hidden field and the cookie. */
  readonly send: (fields: Readonly<Record<string, string>>, headers?: Headers) => Promise<RawResponse>
  /** Sends it with this password in both fields. Who has set it is led on to a page that says so (`isSet`). */
  readonly choose: (password?: string, headers?: Headers) => Promise<RawResponse>
  /** Opens the page again. */
  readonly reload: () => Promise<RawResponse>
}

type Service = { readonly port: number }

export const ask = ({ port }: Service, sent: Sent): Promise<RawResponse> =>
  sendRaw(port, requestBytes(sent), { head: sent.method === 'HEAD' })

const PATH = '/connect/link'

export const csrfIn = ({ body }: RawResponse): string => /name="csrf" value="([^"]*)"/.exec(body)?.[1] ?? ''

/** Opens a link, as a browser does that follows where it leads. @param headers of every request */
export async function openLink(service: Service, code: string, headers: Headers = {}): Promise<OpenedLink> {
  const moved = await ask(service, { target: `${PATH}?code=${code}`, headers })
  const cookie = moved.headers['set-cookie']?.split(';')[0] ?? ''
  const reload = (): Promise<RawResponse> =>
    ask(service, { target: PATH, headers: { ...headers, Cookie: cookie } })
  const page = await reload()
  const csrf = csrfIn(page)
  const send: OpenedLink['send'] = (fields, more = {}) => {
    const sent = form({ csrf, ...fields })
    return ask(service, {
      method: 'POST',
      target: PATH,
      body: sent.body,
      headers: { ...sent.headers, Cookie: cookie, ...headers, ...more },
    })
  }
  const choose: OpenedLink['choose'] = (password = CHOSEN, more = {}) =>
    send({ password, again: password }, more)
  return { moved, cookie, page, csrf, send, choose, reload }
}

/** A page without what is another in every answer: the id of the request. */
export const withoutId = ({ body, headers }: RawResponse): string =>
  body.replaceAll(headers['x-request-id'] ?? '', 'ID')

/** Whether a password is somebody's, as the token endpoint says. */
export async function isPasswordOf({ port }: Service, username: string, password: string): Promise<boolean> {
  const params = { grant_type: 'password', username, password, scope: 'openid' }
  const { json, status } = await postForm({ authUrl: `http://127.0.0.1:${port}` }, '/connect/token', {
    params,
  })
  if (status !== 200) expect([status, json.error]).toEqual([400, 'invalid_grant'])
  return status === 200
}

/** So many requests for these targets, by turns, over a few connections that stay open. The cookie of the link goes with each. */
export async function askOften(
  { port }: Service,
  times: number,
  targets: readonly string[],
  code: string,
): Promise<void> {
  const cookie = `postern-link-${port}=${code}`
  const each = times / 10
  await Promise.all(
    Array.from({ length: 10 }, async () => {
      const connection = await openRaw(port)
      for (let n = 0; n < each; n += 1) {
        const target = targets[n % targets.length] ?? ''
        connection.send(requestBytes({ target, headers: { Cookie: cookie } }))
        const { status } = await connection.response()
        if (status !== 200 && status !== 303) throw new Error(`${target}: ${status}`)
      }
      connection.destroy()
    }),
  )
}

/** Whether an answer says that the password is set. */
export const isSet = ({ headers, status }: RawResponse): boolean =>
  status === 303 && headers['location'] === `${PATH}?done=password`
