/** The table of `postern init`. */
import type { CommandTable } from '../verbs.ts'
import { JSON_ANSWER } from './order.ts'

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
