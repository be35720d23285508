/** `postern init --from`: what it makes of a description, and descriptions of the shapes that well-known services have. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { parse } from 'yaml'
import { runVerb } from '../../support/command-line.ts'
import { configFiles } from '../../support/config-files.ts'

export interface Written {
  readonly scopes: unknown
  readonly areas: unknown
  readonly schemas?: unknown
  readonly actions: readonly { readonly action: string; readonly methods: Record<string, unknown> }[]
  readonly backends: { readonly service: { readonly target: { readonly default: string } } }
}

/** The configuration that is made of a description, what was told, and the file. */
export async function made(description: string, ...options: readonly string[]) {
  const from = configFiles({ 'api.yaml': description })('api.yaml')
  const folder = join(dirname(from), 'own')
  const { code, stdout, stderr } = await runVerb(['init', folder, '--from', from, '--json', ...options])
  expect(stderr).toMatch(code === 3 ? /^postern: exit code 3: .* no business\. .*\n$/ : /^$/)
  expect([0, 3]).toContain(code)
  const shown = JSON.parse(stdout) as Record<'client_id' | 'client_secret' | 'username' | 'password', string>
  const { notes, try: tried } = JSON.parse(stdout) as { notes: readonly string[]; try: string | undefined }
  const table = readFileSync(join(folder, 'postern.operations.txt'), 'utf8')
  const file = join(folder, 'postern.yaml')
  const written = parse(readFileSync(file, 'utf8')) as Written
  return {
    code,
    table,
    file,
    shown,
    written,
    tried,
    notes: notes.map((note) => note.replace(from, 'api.yaml')),
  }
}

/** `METHOD action` of all that is written. */
export const callsOf = ({ actions }: Written): readonly string[] =>
  actions.flatMap(({ action, methods }) => Object.keys(methods).map((method) => `${method} ${action}`))

const OK = { responses: { '200': { description: 'ok' } } }

const parameter = (name: string, place = 'path') => ({
  ...{ name, in: place, schema: { type: 'string' } },
  ...(place === 'path' && { required: true }),
})

/** OpenAPI 3.0 with a GET, or the methods that are named, at each path. Every parameter in a path is described. */
export const describing = (paths: readonly string[], more: object = {}): string =>
  JSON.stringify({
    ...{ openapi: '3.0.3', info: { title: 'A', version: '1' } },
    paths: Object.fromEntries(
      paths.map((line) => {
        const [, methods = 'GET', path = line] = /^([A-Z,]+) (.*)$/.exec(line) ?? []
        const parameters = [...path.matchAll(/\{([^{}]+)\}/g)].map(([, name = '']) => parameter(name))
        const operations = methods.split(',').map((method) => [method.toLowerCase(), { parameters, ...OK }])
        return [path, Object.fromEntries(operations) as object]
      }),
    ),
    ...more,
  })

const RESOURCES = [
  ...['balances', 'beneficiaries', 'direct-debits', 'offers', 'parties', 'products', 'scheduled-payments'],
  ...['standing-orders', 'statements', 'transactions'],
] as const

/** As the account information of Open Banking UK: each list twice, of everybody and of one account. The former first. */
export const OPEN_BANKING = describing([
  'GET,POST /account-access-consents',
  'GET,DELETE /account-access-consents/{ConsentId}',
  ...['/accounts', '/accounts/{AccountId}'],
  ...RESOURCES.flatMap((name) => [`/${name}`, `/accounts/{AccountId}/${name}`]),
  ...['/accounts/{AccountId}/statements/{StatementId}', '/accounts/{AccountId}/party'],
])

/** As GitHub's: of an organisation, of the user and of a repository. */
export const REPOSITORIES = describing([
  ...['/issues', '/user/issues', '/orgs/{org}/issues', '/repos/{owner}/{repo}/issues'],
  ...['/organizations', '/orgs/{org}', 'GET,POST /orgs/{org}/repos', 'GET,POST /user/repos'],
  ...['/repositories', '/orgs/{org}/teams', '/user/teams', '/orgs/{org}/teams/{team_slug}'],
  ...['/orgs/{org}/packages/{name}', '/user/packages/{name}', '/users/{username}/packages/{name}'],
  ...['/orgs', '/packages/{id}', '/emojis', '/licenses/{license}'],
])
