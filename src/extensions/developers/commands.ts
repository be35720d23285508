import { plainText } from '../../base/http/body/json.ts'
import type { Catalogue } from '../../base/config/scopes/catalogue.ts'
import type { DocumentedOperation, WholeExample } from './document.ts'
import type { CodeExample } from './elements.ts'
import type { SampleLogin } from './schema.ts'

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

const shellWord = (text: string): string => (PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`)

/** A field of a form; curl encodes what needs it. */
const field = ([name, value]: readonly [string, string]): string =>
  UNRESERVED.test(value) ? `-d ${name}=${value}` : `--data-urlencode ${shellWord(`${name}=${value}`)}`

/** Names the method where curl would choose another one by itself. */
function methodOption({ method, form, body }: CurlCall): readonly string[] {
  const chosen = form === undefined && body === undefined ? 'GET' : 'POST'
  return method === undefined || method === chosen ? [] : [`-X ${method}`]
}

export function curlCommand(call: CurlCall): CodeExample {
  const { bearer, body, form = [], headers = [], url, user } = call
  const options = [
    ...methodOption(call),
    ...(user === undefined ? [] : [`-u ${shellWord(user)}`]),
    ...(bearer === undefined ? [] : [`-H "Authorization: Bearer $${bearer}"`]),
    ...headers.map(([name, value]) => `-H ${shellWord(`${name}: ${value}`)}`),
    ...form.map(field),
    ...(body === undefined ? [] : [`--data-binary ${shellWord(body)}`]),
  ]
  return { kind: 'Shell', text: [`curl -s ${shellWord(url)}`, ...options].join(' \\\n  ') }
}

const TOKEN_MEMBER = `sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/'`

export const keepToken = (call: CurlCall): CodeExample => ({
  kind: 'Shell',
  text: `TOKEN=$(${curlCommand(call).text} \\\n  | ${TOKEN_MEMBER})`,
})

/** What the commands on the pages fill in: the sample login, or words in capitals for the reader to replace. */
export interface FilledLogin extends SampleLogin {
  readonly fund: string
}

const TO_BE_REPLACED: FilledLogin = {
  client: 'CLIENT_ID',
  secret: 'CLIENT_SECRET',
  username: 'USERNAME',
  password: 'PASSWORD',
  business: 'BUSINESS',
  fund: 'FUND',
}

export const loginOf = (sample: SampleLogin | undefined): FilledLogin =>
  sample === undefined ? TO_BE_REPLACED : { ...sample, fund: sample.fund ?? TO_BE_REPLACED.fund }

export const tokenCall = (login: FilledLogin, tokenUrl: string, scopes: readonly string[]): CurlCall => ({
  url: tokenUrl,
  user: `${login.client}:${login.secret}`,
  form: [
    ['grant_type', 'password'],
    ['username', login.username],
    ['password', login.password],
    ['scope', [...scopes, `target:b/${login.business}`].join(' ')],
  ],
})

/** A path with values in place of its parameters; those without a value stay as words in capitals. */
export function filledPath(
  operation: DocumentedOperation,
  login: FilledLogin,
  example?: WholeExample,
): string {
  const places = [login.business, login.fund].slice(0, operation.places)
  return operation.parametersIn('path').reduce((filled, parameter, at) => {
    const { name, 'x-postern-segment': segment } = parameter
    const value = places[at] ?? plainText(example?.valueOf(parameter) ?? name.toUpperCase())
    const segments = segment === undefined ? [value] : value.split('/')
    return filled.replace(`{${name}}`, () => segments.map(encodeURIComponent).join('/'))
  }, operation.path)
}

/** The query of an example, or the required parameters with words in capitals. Empty, or with its `?`. */
export function queryOf(operation: DocumentedOperation, example: WholeExample | undefined): string {
  const pairs = operation.parametersIn('query').flatMap((parameter) => {
    const { name, required = false } = parameter
    const value = example?.valueOf(parameter) ?? (required ? name.toUpperCase() : undefined)
    return value === undefined ? [] : [`${encodeURIComponent(name)}=${encodeURIComponent(plainText(value))}`]
  })
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}

/** The list of scope values that satisfies an operation and allows least. */
export function leastScopes({ scopes }: DocumentedOperation, catalogue: Catalogue): readonly string[] {
  const weight = (values: readonly string[]): number => catalogue.close(values).size
  const [least = []] = [...scopes].sort((one, other) => weight(one) - weight(other))
  return least
}

export const withoutIncluded = (values: readonly string[], catalogue: Catalogue): readonly string[] => {
  const each = [...new Set(values)]
  const includes = (one: string, other: string): boolean => catalogue.close([one]).has(other)
  return each.filter(
    (value, at) =>
      !each.some(
        (other, otherAt) =>
          other !== value && includes(other, value) && (!includes(value, other) || otherAt < at),
      ),
  )
}
