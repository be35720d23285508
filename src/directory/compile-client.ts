import type { Client } from '../contracts/people.ts'
import { LONGEST_ACCESS_TOKEN } from '../kernel/lifetimes.ts'
import { isTargetValue, parseTarget } from '../scopes/scope-token.ts'
import { isArgon2 } from './argon2-encoding.ts'
import type { Complaints } from './complaints.ts'
import type { ClientRecord } from './config.ts'
import { checkKnown, checkScopes, type ReferableNames } from './referable-names.ts'
import { redirectTrouble } from './redirect-uri.ts'
import { isSecretHash } from './secret-hash.ts'

type Rule = (client: ClientRecord, known: ReferableNames, complaints: Complaints) => void

const checkSecrets: Rule = ({ kind, secrets }, _, complaints) => {
  if (kind === 'public' && secrets.length > 0) complaints.error(['secrets'], 'a public client has no secret')
  if (kind !== 'public' && secrets.length === 0)
    complaints.error(['secrets'], `a ${kind} client needs a secret`, '`postern hash-password` makes a hash')
  if (secrets.length > 2) complaints.error(['secrets'], 'expected at most two: the old and the new one')
  for (const [index, hash] of secrets.entries())
    if (!isSecretHash(hash) && !isArgon2(hash))
      complaints.error(
        ['secrets', index],
        'expected a hash, `sha256:…` (for generated secrets) or `$argon2id$…`',
        '`postern hash-password` makes one',
      )
}

const checkGrants: Rule = (client, _, complaints) => {
  const { kind, grants, agreement, redirectUris } = client
  if (grants.includes('password') && kind !== 'customer')
    complaints.error(['grants'], `a ${kind} client may not use the password grant; only customers may`)
  if (grants.includes('password') && kind === 'customer' && agreement === undefined)
    complaints.warn(['agreement'], 'is missing: the password grant is refused until the agreement is signed')
  if (grants.includes('authorization_code') && redirectUris.length === 0)
    complaints.error(['redirectUris'], 'expected at least one, since the client may use the code flow')
  if (agreement !== undefined && Number.isNaN(Date.parse(agreement)))
    complaints.error(['agreement'], 'is no day of the calendar')
}

const checkBusinesses: Rule = ({ businesses }, known, complaints) => {
  for (const [index, code] of businesses.entries())
    checkKnown('business', code, known.businesses, ['businesses', index], complaints)
}

/** What C5.4 would refuse on every request that relies on it. */
const checkDefaultScope: Rule = ({ defaultScope, businesses, scopes }, { catalogue }, complaints) => {
  const values = defaultScope?.split(' ').filter((value) => value !== '') ?? []
  const allowed = catalogue.close(scopes)
  const targets = values.filter(isTargetValue)
  const strange = values.find((value) => !isTargetValue(value) && !allowed.has(value))
  if (strange !== undefined)
    complaints.error(['defaultScope'], `holds "${strange}", which the client’s \`scopes\` do not allow`)
  if (targets.length > 1) complaints.error(['defaultScope'], 'holds more than one target')
  for (const value of targets)
    if (!businesses.includes(parseTarget(value)?.business ?? ''))
      complaints.error(
        ['defaultScope'],
        `holds "${value}", which is no target at one of the client’s businesses`,
      )
}

const checkRedirects: Rule = ({ kind, redirectUris, postLogoutRedirectUris }, _, complaints) => {
  for (const [key, uris] of Object.entries({ redirectUris, postLogoutRedirectUris }))
    for (const [index, uri] of uris.entries()) {
      const trouble = redirectTrouble(uri, kind === 'public')
      if (trouble !== undefined) complaints.error([key, index], trouble)
    }
}

const checkSettings: Rule = ({ kind, resource, secretPost, accessTokenLifetime }, _, complaints) => {
  if (kind === 'public' && resource)
    complaints.error(['resource'], 'a public client cannot prove who it is, so it may not introspect')
  if (kind === 'public' && secretPost)
    complaints.error(['secretPost'], 'a public client has no secret to post')
  if (
    accessTokenLifetime !== undefined &&
    (accessTokenLifetime < 1000 || accessTokenLifetime > LONGEST_ACCESS_TOKEN)
  )
    complaints.error(['accessTokenLifetime'], 'expected `1s` to `24h`')
}

const RULES: readonly Rule[] = [
  checkSecrets,
  checkGrants,
  checkBusinesses,
  (client, known, complaints) => checkScopes(client.scopes, known.catalogue, ['scopes'], complaints),
  checkDefaultScope,
  checkRedirects,
  checkSettings,
]

/** Reports what would make the client useless or dangerous. */
export function compileClient(record: ClientRecord, known: ReferableNames, complaints: Complaints): Client {
  for (const rule of RULES) rule(record, known, complaints)
  return toClient(record)
}

/** The client as the contract has it. */
export function toClient({ secrets, accessTokenLifetime, ...same }: ClientRecord): Client {
  return {
    ...same,
    secretHashes: secrets,
    ...(accessTokenLifetime !== undefined && { accessTokenLifetime: Math.floor(accessTokenLifetime / 1000) }),
  }
}
