/** `postern revoke`: what is held is ended, at once and for good (C6.3.3). */
import { parseArgs } from 'node:util'
import { giveOrder, operatorName } from './admin-client.ts'
import { counted, countedFamilies } from './print-rows.ts'
import { UsageError, type Verb } from './verb.ts'

interface Revoked {
  readonly outcome: 'revoked' | 'previewed'
  readonly sessions: number
  readonly families: number
  readonly codes: number
  readonly consents: number
}

function told({ outcome, sessions, families, codes, consents }: Revoked): string {
  const list = [
    counted(sessions, 'session'),
    countedFamilies(families),
    counted(codes, 'code'),
    counted(consents, 'consent'),
  ].join(', ')
  return outcome === 'revoked'
    ? `revoked: ${list}, and the access tokens\n`
    : `would be revoked: ${list}, and the access tokens; nothing has changed\n`
}

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const RULE = { jti: text, family: text, subject: text, client: text, business: text }
const OPTIONS = { preview: flag, consents: flag, force: flag, config: text, reason: text }

export const revokeVerb: Verb = {
  help: `  --jti ID                     One access token
  --family ID                  A family of refresh tokens, its code and its access tokens
  --subject SUBJECT            A user: sessions, families, codes, access tokens
  --client ID, --business CODE  Families, codes, access tokens; several of --subject, --client and --business
                               mean what all that are given have in common
  --consents                   Consents too; they stay otherwise
  --preview                    Tells what would be revoked, and changes nothing
  --force                      Also where an id is not known; else that is refused, with exit code 1
  --reason TEXT                For the log
  --config FILE                The configuration that is served
`,
  run(args, terminal) {
    const { values } = parseArgs({ args: [...args], options: { ...RULE, ...OPTIONS } })
    const { config, ...order } = values
    if (!Object.keys(RULE).some((name) => Object.hasOwn(values, name)))
      throw new UsageError('expected whose tokens')
    const body = { ...order, by: operatorName(terminal) }
    return giveOrder({ method: 'POST', path: '/revoke', body }, config, terminal, told)
  },
}
