import type { CommandTable } from '../verbs.ts'
import { CALL_PARTS, JSON_ANSWER, METHOD_AND_PATH, SERVICE_ORDER } from './order.ts'

export const EXPLAIN = {
  verbs: {
    '': {
      summary: 'Show whether a running service would let a call in, and each check with what it found',
      usage: '[OPTIONS] METHOD PATH, or --request ID, or --log -',
      notes: [
        'The call is not made: nothing reaches a backend, nothing is counted, no token is issued or remembered.',
        'The exit code is 0 if the call is let in, 1 if it is refused, 2 if that could not be told.',
        'Without a running service, the package export postern/explain tells the same of a configuration file.',
      ],
      arguments: METHOD_AND_PATH.map((argument) => ({ ...argument, optional: true })),
      options: {
        token: {
          ...{ type: 'string', kind: 'at-file', value: 'TOKEN|@FILE' },
          help: 'The access token of the call. @- reads it from standard input, which no process list shows',
        },
        client: { type: 'string', value: 'ID', help: 'In place of a token: the client that calls' },
        user: {
          ...{ type: 'string', value: 'NAME' },
          help: 'And its user. They have the token that the token endpoint would grant them',
        },
        target: { type: 'string', value: 'TARGET', help: 'Its target: b/ACME, or f/ACME/SUPER1' },
        scope: {
          ...{ type: 'string', value: '"A B"' },
          help: 'Its scope. Default: the default scope of the client, else all that the client may have',
        },
        ...CALL_PARTS,
        from: {
          ...{ type: 'string', value: 'ADDRESS' },
          help: 'Where the call comes from. Default: loopback. Behind a trusted proxy, the address of the proxy',
        },
        request: {
          ...{ type: 'string', value: 'ID' },
          help: 'In place of METHOD and PATH: the X-Request-Id of one of the last calls, which each process keeps. Shows what was decided then, what would be now, and the difference',
        },
        log: {
          ...{ type: 'string', words: ['-'] },
          help: 'The same of a line of the log, on standard input. Its client is taken to have the token that it would be given for its user now',
        },
        ...JSON_ANSWER,
        ...SERVICE_ORDER,
      },
      examples: [
        {
          line: 'postern explain --client acme-books --user alice --target b/ACME GET /api/1.0/b/ACME/fund-data/fund-list',
          does: 'show whether this call would be let in',
        },
        {
          line: 'postern explain --request 7c8b40a1f5d24a0e9c1d7f3b2a6e5d4c',
          does: 'show why a call of the past was refused',
        },
      ],
    },
  },
} as const satisfies CommandTable
