/** The text of the configuration that `postern init` writes. */
import { writeYaml } from '../../base/config/yaml.ts'
import { NOTHING, ANYTHING } from '../../base/http/body/body-schema.ts'
import { escapedForTerminal } from '../../operate/operation/terminal.ts'
import type { Answers } from './answers.ts'
import type {
  ValuesByBusiness,
  DescribedAction,
  DescribedService,
} from '../../operate/hooks/first-configuration.ts'

// The service that `postern init` assumes if none is described: its actions are there to be replaced.

const SAMPLE_SERVICE: DescribedService = {
  scopes: { 'hello.read': { description: 'Say hello' } },
  readScopes: ['hello.read'],
  areas: {},
  actions: [],
  schemas: {},
  path: undefined,
  usesFunds: false,
}

/** One of its actions, which `init` proposes to try. */
export const SAMPLE_CALL = { area: 'example', action: 'hello' } as const

/** A text, because its comments explain the keys. */
const SAMPLE_ACTIONS = `
areas:
  example: { backend: service }

# What may be called, and with which scopes. This is an example: put the calls of your service here.
#   {baseUrl}/api/1.0/b/{business}/example/hello
actions:
  - level: business # or fund: /api/1.0/f/{business}/{fund}/…
    area: example
    action: hello
    methods:
      GET:
        scopes: { any: [hello.read] }
`

/** The parts of the configuration that differ each time. */
interface FirstConfiguration extends Answers {
  readonly values: ValuesByBusiness
  /** Lines of extensions. */
  readonly added: readonly string[]
  /** The data folder. */
  readonly data: string
  /** Today, as `2026-01-15`. */
  readonly agreement: string
  readonly secretHash: string
  readonly subject: string
  readonly passwordHash: string
  /** Undefined: the sample. */
  readonly service: DescribedService | undefined
}

/** A JSON string is valid YAML, whatever it contains. */
const quoted = (text: string): string => JSON.stringify(text)

const indented = (text: string, spaces: number): string =>
  text.replace(/^(?=.)/gm, ' '.repeat(spaces)).trimEnd()

const head = ({ added, data }: FirstConfiguration): string => `# A Postern configuration.
#   postern check FILE    reports its problems
#   postern serve FILE    serves it
# Every option, with its default: config/reference.md of Postern.

server:
  listen: 127.0.0.1:8080
  # The public addresses, once the service has a name and TLS:
  # authUrl: https://id.example.com
  # baseUrl: https://api.example.com
  # trustedProxies: [10.0.0.0/8]
admin:
  listen: 127.0.0.1:9090
  # The first start makes the token of the admin API, in the data folder. On an address other than loopback, set it:
  # token: { file: /run/secrets/admin-token }

${added.map((line) => `${line}\n\n`).join('')}data: ${quoted(data)} # keys and state; relative to the folder that Postern is started in

# Clients name a version of an action by a media type that has this word: application/vnd.example.action.v1+json
vendor: example
`

const FUNDS = {
  yes: 'funds: any # only the service knows them; or a list of codes, [SUPER1, SUPER2]',
  no: 'funds: [] # no action is of a fund',
} as const

const businessText = (
  { code, name }: Answers['businesses'][number],
  values: ValuesByBusiness[string] | undefined,
  usesFunds: boolean,
): string => {
  const own = Object.entries(values ?? {}).map(([key, value]) => `${quoted(key)}: ${quoted(value)}`)
  return [
    `${quoted(code)}:\n  name: ${quoted(name)}\n  ${FUNDS[usesFunds ? 'yes' : 'no']}\n`,
    own.length === 0 ? '' : `  values: { ${own.join(', ')} }\n`,
  ].join('')
}

/** The scope of a request that names none: all that the service has, at the first business. */
const defaultScope = ({ businesses }: FirstConfiguration, scopes: readonly string[]): string =>
  [...scopes, `target:b/${businesses[0]?.code ?? ''}`].join(' ')

const directory = (own: FirstConfiguration, { scopes, readScopes, usesFunds }: DescribedService): string => {
  const names = Object.keys(scopes)
  const codes = own.businesses.map(({ code }) => quoted(code))
  return `
directory:
  businesses: # by the code, as in paths and in targets: target:b/${own.businesses[0]?.code ?? ''}
${indented(own.businesses.map((business) => businessText(business, own.values[business.code], usesFunds)).join(''), 4)}

  roles: # what a user may do at a business
    Administrator: { scopes: ${JSON.stringify(names)} }
    Read-only: { scopes: ${JSON.stringify(readScopes)} }

  # Clients and users of this file are changed here only. To add others without a change of this file:
  #   postern client add ID --kind partner --name NAME …
  #   postern user add USERNAME --access ${own.businesses[0]?.code ?? ''}=Read-only …
  clients:
    ${quoted(own.client)}:
      kind: customer # may use the password grant. partner: code flow. public: code flow without a secret
      name: ${quoted(own.client)} # for people
      secrets: [${quoted(own.secretHash)}]
      grants: [password, refresh_token]
      agreement: ${own.agreement} # the day on which the customer agreement was signed
      businesses: [${codes.join(', ')}]
      scopes: ${JSON.stringify(['openid', 'profile', 'offline_access', ...names])}
      # What a request gets that names no scope.
      defaultScope: ${quoted(defaultScope(own, names))}

  users:
    ${quoted(own.user)}:
      subject: ${quoted(own.subject)} # the claim sub: never change it, never give it to another user
      password: ${quoted(own.passwordHash)}
      customers: [${quoted(own.client)}]
      access: { ${codes.map((code) => `${code}: Administrator`).join(', ')} }
      claims: { name: ${quoted(own.user)} }
`
}

const scopesText = ({ scopes }: DescribedService): string => `
# What clients may ask for. The consent page shows the description.
${writeYaml({ scopes })}`

const backendText = (own: FirstConfiguration, { path, host, identity }: DescribedService): string => `
# Where the data comes from. The environment variable UPSTREAM_URL, if it is set, is the address of this service. The
# service is told who calls and for which business by the headers X-Postern-Subject, -Client, -Scope, -Business and
# -Fund; nobody but Postern must be able to reach it.
backends:
  service:
    kind: http
    target: { env: UPSTREAM_URL, default: ${quoted(own.upstream)} }
${host === undefined ? '' : `    host: ${quoted(host)} # by it the service tells the businesses apart\n`}\
${own.service === undefined || identity === true ? '    identity: headers # your service must tell the businesses apart by X-Postern-Business\n' : ''}\
${path === undefined ? '' : `    path: ${quoted(path)} # what is asked there\n`}`

/** YAML with schemas in it, those that are `true` and `false` too. */
const writeSchemas = (value: unknown): string => writeYaml(withBooleans(value))

function withBooleans(value: unknown): unknown {
  if (value === NOTHING) return false
  if (value === ANYTHING) return true
  if (Array.isArray(value)) return value.map(withBooleans)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, withBooleans(member)]))
}

/** Actions that are written at once: the writer's own tree of all of a large service takes 100 MB. */
const WRITTEN = 100

const itemsText = (actions: readonly DescribedAction[]): string =>
  writeSchemas({ actions }).replace(/^actions:\n/, '')

/** The list `actions`, as one text of its parts. */
function listText({ actions, remarks = () => [] }: DescribedService): string {
  const texts = ['actions:\n']
  let waiting: DescribedAction[] = []
  const write = (): void => {
    if (waiting.length > 0) texts.push(itemsText(waiting))
    waiting = []
  }
  for (const action of actions) {
    const said = remarks(action)
    if (said.length > 0 || waiting.length === WRITTEN) write()
    // A path of the description is anybody's text.
    for (const remark of said) texts.push(`  # ${escapedForTerminal(remark)}\n`)
    waiting.push(action)
  }
  write()
  return texts.join('')
}

const actionsText = (service: DescribedService): string => {
  const { areas, schemas } = service
  return `
${writeYaml({ areas })}
# What may be called, and with which scopes.
${listText(service)}${Object.keys(schemas).length === 0 ? '' : `\n# What bodies and answers are made of.\n${writeSchemas({ schemas })}`}`
}

/** The configuration as YAML. */
export function configurationText(own: FirstConfiguration): string {
  const service = own.service ?? SAMPLE_SERVICE
  return [
    head(own),
    scopesText(service),
    directory(own, service),
    backendText(own, service),
    own.service === undefined ? SAMPLE_ACTIONS : actionsText(service),
  ].join('')
}
