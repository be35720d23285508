import type { Options } from '../../operator/verb.ts'
import type { CommandTable } from '../verbs.ts'
import { CALL_PARTS, JSON_ANSWER, METHOD_AND_PATH, SERVICE_ORDER } from './order.ts'

/** Whom a test token is for. */
const BEARER = {
  user: { type: 'string', value: 'NAME', help: 'The user, by name or subject' },
  client: {
    ...{ type: 'string', value: 'ID' },
    help: 'The client. Default: the first one that is granted such a token',
  },
  scope: {
    ...{ type: 'string', value: '"A B"' },
    help: 'What is asked for. Default: the default scope of the client, else all that the client may have',
  },
} as const satisfies Options

const ONLY_HERE =
  'Only a service that is on loopback, with all its addresses, issues test tokens. Each is recorded with your name.'

export const TOKEN = {
  verbs: {
    '': {
      summary:
        'Print an access token to try a running service with, without the secrets of its client and its user',
      notes: [
        'The token is what the token endpoint would give, for 15 minutes at most, and without a refresh token.',
        ONLY_HERE,
      ],
      arguments: [],
      options: {
        ...BEARER,
        business: { type: 'string', value: 'CODE', help: 'The business that it is for: its target' },
        fund: { type: 'string', value: 'CODE', help: 'With --business: only for this fund' },
        ...JSON_ANSWER,
        ...SERVICE_ORDER,
      },
      examples: [
        {
          line: 'postern token --user alice --business ACME',
          does: 'print a token for what alice may do at ACME',
        },
        {
          line: 'postern token --user alice --business ACME --client ledgerline --scope fund.read --json',
          does: 'the same through one client, with one scope, and what was granted',
        },
      ],
    },
  },
} as const satisfies CommandTable

export const TRY = {
  verbs: {
    '': {
      summary: 'Call a running service as a user: with a test token, and why the call was let in or refused',
      notes: [
        'The call is made: one that changes data changes it. `postern explain` tells the same without making it.',
        'The token is for the business that PATH names, unless --business names another.',
        ONLY_HERE,
        'The exit code is 0 if the status of the answer is below 400, 1 for any other, 2 if there was none.',
      ],
      arguments: METHOD_AND_PATH,
      options: {
        ...BEARER,
        business: {
          ...{ type: 'string', value: 'CODE' },
          help: 'The business that the token is for. Default: the one in PATH',
        },
        fund: { type: 'string', value: 'CODE', help: 'The token is only for this fund of the business' },
        ...CALL_PARTS,
        ...JSON_ANSWER,
        ...SERVICE_ORDER,
      },
      examples: [
        {
          line: 'postern try --user alice GET /api/1.0/b/ACME/fund-data/fund-list',
          does: 'list the funds of ACME as alice',
        },
        {
          line: 'postern try --user bob --business GLOBEX GET /api/1.0/b/ACME/fund-data/fund-list',
          does: 'see why bob is refused the funds of ACME',
        },
      ],
    },
  },
} as const satisfies CommandTable
