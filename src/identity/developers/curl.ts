/** Commands for a POSIX shell, as the pages show them. */

export interface CurlCall {
  readonly url: string
  /** GET if left out, or POST with `form` or `body`. */
  readonly method?: string
  /** `id:secret` */
  readonly user?: string
  /** The variable of the shell that holds the access token. */
  readonly bearer?: 'TOKEN'
  readonly headers?: readonly (readonly [name: string, value: string])[]
  readonly form?: readonly (readonly [name: string, value: string])[]
  readonly body?: string
}

/** Text that means itself in a shell, and in a form (RFC 3986, unreserved, and what URLs have besides). */
const PLAIN = /^[A-Za-z0-9_./:-]+$/
const UNRESERVED = /^[A-Za-z0-9_.~-]+$/

/** One word of a shell: in single quotes unless it is plain. */
export const shellWord = (text: string): string =>
  PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`

/** A field of a form; curl encodes what needs it. */
const field = ([name, value]: readonly [string, string]): string =>
  UNRESERVED.test(value) ? `-d ${name}=${value}` : `--data-urlencode ${shellWord(`${name}=${value}`)}`

/** Names the method where curl would choose another one by itself. */
function methodOption({ method, form, body }: CurlCall): readonly string[] {
  const chosen = form === undefined && body === undefined ? 'GET' : 'POST'
  return method === undefined || method === chosen ? [] : [`-X ${method}`]
}

/** The command, an option a line. */
export function curlCommand(call: CurlCall): string {
  const { bearer, body, form = [], headers = [], url, user } = call
  const options = [
    ...methodOption(call),
    ...(user === undefined ? [] : [`-u ${shellWord(user)}`]),
    ...(bearer === undefined ? [] : [`-H "Authorization: Bearer $${bearer}"`]),
    ...headers.map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`),
    ...form.map(field),
    ...(body === undefined ? [] : [`--data-binary ${shellWord(body)}`]),
  ]
  return [`curl -s ${shellWord(url)}`, ...options].join(' \\\n  ')
}

const TOKEN_MEMBER = `sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/'`

/** Runs a call of the token endpoint and keeps the access token in the variable TOKEN. */
export const keepToken = (call: CurlCall): string => `TOKEN=$(${curlCommand(call)} \\\n  | ${TOKEN_MEMBER})`
