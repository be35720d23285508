/** Which calls the pages' commands make: with the login for trying, or with words in capitals to be replaced. */
import type { OperationDescription } from '../../contracts/api-description.ts'
import type { Catalogue } from '../../config/scopes/catalogue.ts'
import type { SampleLogin } from './schema.ts'
import type { CurlCall } from './curl.ts'

export interface Login extends SampleLogin {
  readonly fund: string
}

const TO_BE_REPLACED: Login = {
  client: 'CLIENT_ID',
  secret: 'CLIENT_SECRET',
  username: 'USERNAME',
  password: 'PASSWORD',
  business: 'BUSINESS',
  fund: 'FUND',
}

export const loginOf = (sample: SampleLogin | undefined): Login =>
  sample === undefined ? TO_BE_REPLACED : { ...sample, fund: sample.fund ?? TO_BE_REPLACED.fund }

/** Gets a token for the login's business. */
export const tokenCall = (login: Login, tokenUrl: string, scopes: readonly string[]): CurlCall => ({
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
  { parameters, path }: OperationDescription,
  login: Login,
  own: Readonly<Record<string, string>> = {},
): string {
  return parameters.reduce((filled, { kind, name }) => {
    const value = kind === 'own' ? (own[name] ?? name.toUpperCase()) : login[kind]
    return filled.replace(`{${name}}`, () => encodeURIComponent(value))
  }, path)
}

/** Of the lists of scope values that satisfy an operation, the one that allows least. */
export function leastScopes({ scopes }: OperationDescription, catalogue: Catalogue): readonly string[] {
  const weight = (values: readonly string[]): number => catalogue.close(values).size
  const [least = []] = [...scopes].sort((one, other) => weight(one) - weight(other))
  return least
}

/** The values without those that another one of them includes. */
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
