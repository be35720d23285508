import { parseArgs } from 'node:util'
import { DURATION_PATTERN, parseDuration } from '../kernel/units.ts'
import { type Subcommand, singleName, type Terminal, UsageError, commandOf } from './command.ts'
import { editDirectory, linesOf } from './edit-directory.ts'
import { printJson, printRows } from './terminal.ts'
import { Report } from '../config/report.ts'

/** The option that writes each key of a client's record (src/directory/config.ts). */
const OPTIONS = {
  id: 'ID',
  kind: 'kind',
  name: 'name',
  grants: 'grant',
  businesses: 'business',
  scopes: 'scope',
  agreement: 'agreement',
  defaultScope: 'default-scope',
  redirectUris: 'redirect-uri',
  postLogoutRedirectUris: 'post-logout-redirect-uri',
  accessTokenLifetime: 'access-token-lifetime',
  idTokenAlgorithm: 'id-token-algorithm',
  secretPost: 'secret-post',
  requirePkce: 'require-pkce',
  resource: 'resource',
} as const

const text = { type: 'string' } as const
const texts = { type: 'string', multiple: true } as const
const flag = { type: 'boolean' } as const
const CONFIG = { config: text }
const JSON_TOO = { ...CONFIG, json: flag }

const ADD = {
  ...JSON_TOO,
  kind: text,
  name: text,
  grant: texts,
  business: texts,
  scope: texts,
  agreement: text,
  'default-scope': text,
  'redirect-uri': texts,
  'post-logout-redirect-uri': texts,
  'access-token-lifetime': text,
  'id-token-algorithm': text,
  'secret-post': flag,
  'require-pkce': flag,
  resource: flag,
} as const

/** What each kind is for (C6.1.5, C6.2); what else it may do must be said. */
const GRANTS: Readonly<Record<string, readonly string[]>> = {
  customer: ['password', 'refresh_token'],
  partner: ['authorization_code', 'refresh_token'],
  public: ['authorization_code', 'refresh_token'],
}

type Values = Readonly<Record<string, unknown>>

/** Both `--scope a --scope b` and `--scope 'a b'`. */
const words = (given: readonly string[] = []): readonly string[] =>
  given.flatMap((value) => value.split(' ')).filter((word) => word !== '')

/** The record that the options write; whatever was not said is left to the record's defaults. */
function written(id: string, values: Values): Values & { readonly id: string; readonly kind: string } {
  const said = Object.entries(OPTIONS).flatMap(([key, option]) =>
    values[option] === undefined ? [] : [[key, values[option]] as const],
  )
  const kind = typeof values['kind'] === 'string' ? values['kind'] : ''
  const byKind = { grants: GRANTS[kind] ?? GRANTS['customer'], requirePkce: kind !== 'customer' }
  return { ...byKind, ...Object.fromEntries(said), ...(kind !== '' && { kind }), id, kind }
}

function showSecret(
  id: string,
  secret: string | undefined,
  asJson: boolean | undefined,
  terminal: Terminal,
): void {
  if (asJson === true) {
    printJson({ client_id: id, ...(secret !== undefined && { client_secret: secret }) }, terminal)
    return
  }
  terminal.stdout.write(`client_id      ${id}\n`)
  if (secret === undefined) return
  terminal.stdout.write(`client_secret  ${secret}\n`)
  terminal.stderr.write('The secret is shown this once: only its hash is kept.\n')
}

const add: Subcommand['run'] = (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    allowNegative: true,
    options: ADD,
  })
  const id = singleName(positionals, 'client id')
  const said = values.scope === undefined ? values : { ...values, scope: words(values.scope) }
  const work = async ({ clients }: Parameters<Parameters<typeof editDirectory>[0]['work']>[0]) => {
    const { secret, warnings } = await clients.add(written(id, said))
    const report = new Report()
    report.problems.push(...warnings)
    for (const line of linesOf(report, OPTIONS)) terminal.stderr.write(`postern: ${line} (warning)\n`)
    showSecret(id, secret, values.json, terminal)
  }
  return editDirectory({ config: values.config, options: OPTIONS, work }, terminal)
}

const when = (ms: number | undefined): string =>
  ms === undefined ? '' : `, the old one until ${new Date(ms).toISOString().slice(0, 19)}Z`

const list: Subcommand['run'] = (args, terminal) => {
  const { values } = parseArgs({ args: [...args], options: JSON_TOO })
  return editDirectory(
    {
      config: values.config,
      work: async ({ clients }) => {
        const all = await clients.list()
        if (values.json === true) printJson(all, terminal)
        else
          printRows(
            ['ID', 'KIND', 'SOURCE', 'STATE', 'SECRETS', 'NAME'],
            all.map(({ id, kind, name, source, disabled, secrets, oldSecretEndsAt }) => [
              ...[id, kind, source, disabled ? 'disabled' : 'enabled'],
              ...[`${secrets}${when(oldSecretEndsAt)}`, name],
            ]),
            terminal,
          )
      },
    },
    terminal,
  )
}

/** `disable` and `enable`. */
const onState =
  (verb: 'disable' | 'enable', told: string): Subcommand['run'] =>
  (args, terminal) => {
    const { positionals, values } = parseArgs({ args: [...args], allowPositionals: true, options: CONFIG })
    const id = singleName(positionals, 'client id')
    return editDirectory(
      {
        config: values.config,
        work: async ({ clients }) => {
          await clients[verb](id)
          terminal.stdout.write(`${id}: ${told}\n`)
        },
      },
      terminal,
    )
  }

const OVERLAP = '1d'

function overlapOf(given: string): number {
  if (!new RegExp(DURATION_PATTERN).test(given))
    throw new UsageError(`--overlap: expected a duration such as "12h" or "7d", got "${given}"`)
  return parseDuration(given)
}

const rotateSecret: Subcommand['run'] = (args, terminal) => {
  const { positionals, values } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: { ...JSON_TOO, overlap: { type: 'string', default: OVERLAP } },
  })
  const id = singleName(positionals, 'client id')
  const overlap = overlapOf(values.overlap)
  return editDirectory(
    {
      config: values.config,
      work: async ({ clients }) => {
        showSecret(id, await clients.rotateSecret(id, overlap), values.json, terminal)
        terminal.stderr.write(
          overlap > 0
            ? `The old secret is good until ${new Date(Date.now() + overlap).toISOString()}.\n`
            : 'The old secret is good no more.\n',
        )
      },
    },
    terminal,
  )
}

const ACTS: Readonly<Record<string, Subcommand>> = {
  add: {
    usage: 'add ID --kind KIND --name NAME …',
    summary: 'Adds a client, and shows its secret',
    options: [
      '--kind customer|partner|public    password grant; code flow; code flow without a secret',
      '--name NAME                       for people',
      '--scope VALUE …                   scope values it may be given; repeat it, or put spaces between',
      '--business CODE                   a business it may be given a target for; may be repeated',
      '--grant GRANT                     instead of what its kind is for; may be repeated',
      '--agreement DAY                   when the agreement was signed; the password grant needs it',
      '--redirect-uri URI                may be repeated',
      '--post-logout-redirect-uri URI    may be repeated',
      '--default-scope SCOPE             for requests without one',
      '--access-token-lifetime DURATION  instead of the service’s',
      '--id-token-algorithm ES256|RS256',
      '--secret-post                     allows the secret in the body',
      '--no-require-pkce                 allows the code flow without PKCE',
      '--resource                        may introspect other clients’ tokens',
      '--json',
    ],
    run: add,
  },
  list: {
    usage: 'list [--json]',
    summary: 'Every client, of the configuration and of the store',
    run: list,
  },
  disable: {
    usage: 'disable ID',
    summary: 'Refuses all it asks for, and revokes its tokens; within a second, everywhere',
    run: onState('disable', 'disabled, and its access tokens revoked'),
  },
  enable: {
    usage: 'enable ID',
    summary: 'Takes that back; what was revoked stays so',
    run: onState('enable', 'enabled'),
  },
  'rotate-secret': {
    usage: 'rotate-secret ID [--overlap 1d] [--json]',
    summary: 'Makes another secret; the old one stays good for the overlap (0s: ends at once)',
    run: rotateSecret,
  },
}

const NOTES = `Clients that stand in the configuration are listed, but changed only there. All take --config FILE (else
POSTERN_CONFIG, else config/demo.yaml); the service may run meanwhile, and follows within a second.`

/** `postern client …`: clients that stand in the store of a configuration. */
export const clientCommand = commandOf('client', ACTS, NOTES)
