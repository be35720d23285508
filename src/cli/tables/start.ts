/** The tables of the commands with which one starts: init, check, serve, completion. */
import type { Verb } from '../../operator/verb.ts'
import { DEFAULT_FILE } from '../command.ts'
import type { CommandTable } from '../verbs.ts'
import { JSON_ANSWER } from './order.ts'

const FILE = [{ name: 'FILE', kind: 'file', optional: true }] as const
const FILE_NOTE = `FILE is the configuration. Default: ${DEFAULT_FILE}.`

export const CHECK = {
  verbs: {
    '': {
      summary: 'Report the problems of a configuration, without serving it',
      notes: [FILE_NOTE, 'The exit code is 2 if it could not be served.'],
      arguments: FILE,
      options: {
        strict: {
          type: 'boolean',
          help: 'Also list the operations that do not tell clients their summary, description, data or examples. Any warning makes the exit code 1',
        },
        expect: {
          ...{ type: 'string', kind: 'file' },
          help: 'Also tell whether calls are decided as this file expects: rows of a call, its client, user and target, and `allowed` or the reason of the refusal. Each row that is decided otherwise is shown with its line and with what would change it: exit code 1. No service needs to run. The store is only read',
        },
        connect: {
          type: 'boolean',
          help: 'Also connect to the store of kind postgres, and tell whether it can be used: address, rights, tables, clock. Exit code 1 if not',
        },
        json: {
          type: 'boolean',
          help: '{file, canBeServed, problems: [{severity, file, line, path, message, hint}]}; with --connect also {store: [{level, text}]}; with --expect also {calls, mismatches: [{file, line, row, call, client, user, target, expected, actual, words}]}',
        },
      },
      examples: [
        { line: 'postern check my.yaml', does: 'report its problems' },
        { line: 'postern check my.yaml --connect', does: 'try its database too' },
        { line: 'postern check my.yaml --strict --json', does: 'the same for a CI, which warnings fail too' },
        {
          line: 'postern check my.yaml --expect access.yaml',
          does: 'compare its decisions with what is expected',
        },
      ],
    },
  },
} as const satisfies CommandTable

export const SERVE = {
  verbs: {
    '': {
      summary: 'Serve a configuration until SIGTERM or SIGINT',
      notes: [
        FILE_NOTE,
        'SIGHUP makes it read its configuration again, SIGUSR2 replaces its worker processes one by one. What it has to tell stands in its log, as lines of JSON. The exit code is 2 if the configuration is refused.',
      ],
      arguments: FILE,
      options: {},
      examples: [
        { line: 'postern serve', does: 'serve the default configuration' },
        { line: 'POSTERN_PORT=8443 postern serve my.yaml', does: 'serve a file of your own on another port' },
      ],
    },
  },
} as const satisfies CommandTable

export const INIT = {
  verbs: {
    '': {
      summary: 'Write a first configuration, with new secrets',
      notes: [
        'It writes postern.yaml into FOLDER (default: the working folder) and overwrites nothing. On a terminal it asks for what no option tells. Elsewhere it takes the defaults.',
        'It prints the secret of the first client and the password of the first user, once, and the command that serves the file.',
      ],
      arguments: [{ name: 'FOLDER', kind: 'folder', optional: true }],
      options: {
        upstream: {
          ...{ type: 'string', kind: 'url' },
          help: 'Where your service is. Default: the address in --from, else http://127.0.0.1:9000',
        },
        business: {
          ...{ type: 'string', value: 'CODE[=NAME]', multiple: true },
          help: 'A business, by the code that stands in paths, and its name for people. Default: EXAMPLE',
        },
        client: { type: 'string', value: 'ID', help: 'The first client. Default: first-client' },
        user: { type: 'string', value: 'NAME', help: 'The first user. Default: first-user' },
        from: {
          ...{ type: 'string', kind: 'file' },
          help: 'An OpenAPI description of your service (3.1, 3.0 or 2.0, YAML or JSON): its operations become areas, actions and proposed scopes. What does not fit is told',
        },
        'business-parameter': {
          ...{ type: 'string', value: 'NAME', multiple: true },
          help: 'With --from: a parameter in path, query or header that is the code of the business: Postern sends that of the call. Case, X-, - and _ do not count. Default: business, businessId, businessCode, tenant, tenantId',
        },
        'fund-parameter': {
          ...{ type: 'string', value: 'NAME', multiple: true },
          help: 'With --from: the same for the code of the fund. Default: fund, fundId, fundCode',
        },
        yes: { type: 'boolean', help: 'Ask nothing: take the defaults of what no option tells' },
        ...JSON_ANSWER,
      },
      examples: [
        { line: 'postern init', does: 'ask, and write postern.yaml into this folder' },
        {
          line: "postern init my --upstream http://127.0.0.1:9000 --business 'ACME=Acme Advisory' --user alice",
          does: 'write my/postern.yaml without a question',
        },
        {
          line: 'postern init my --from openapi.yaml --business ACME --yes',
          does: 'take the operations of a service from its description',
        },
      ],
    },
  },
} as const satisfies CommandTable

const BASH = {
  summary: 'Print the completion of bash, for commands, verbs, options and their values',
  arguments: [],
  options: {},
  examples: [
    {
      line: 'source <(postern completion bash)',
      does: 'complete in this shell; in ~/.bashrc, in every new one',
    },
  ],
} as const satisfies Verb

const ZSH = {
  summary: 'Print the completion of zsh, with what each command and option does',
  arguments: [],
  options: {},
  examples: [
    { line: 'postern completion zsh > "${fpath[1]}/_postern"', does: 'install it, for every new shell' },
    { line: 'source <(postern completion zsh)', does: 'complete in this shell, behind compinit' },
  ],
} as const satisfies Verb

export const COMPLETION = { verbs: { bash: BASH, zsh: ZSH } } as const satisfies CommandTable
