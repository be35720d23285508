/** The tables of the commands that tell from a configuration and its store who has access: access, scopes, diff. */
import type { CommandTable } from '../verbs.ts'
import { METHOD_AND_PATH } from '../../operator/described-call.ts'
import { CONFIG } from './order.ts'

export const ACCESS = {
  verbs: {
    '': {
      summary: 'Show for each action and method who may call it, or what they lack',
      notes: [
        'Clients and users of the store are included. The store is only read, and the service may run meanwhile. Without --client and --user, every client and every user is shown: a client as if it acted for a user who may do everything, a user as if through a client that may have everything. Maintenance, rates and what a token asks for are not looked at: `postern explain` does that.',
      ],
      arguments: [],
      options: {
        client: { type: 'string', value: 'ID', help: 'This client only' },
        user: {
          ...{ type: 'string', value: 'NAME' },
          help: 'This user only; with --client, what a token of that client for this user opens',
        },
        business: { type: 'string', value: 'CODE', help: 'This business only' },
        csv: {
          type: 'boolean',
          help: "For spreadsheets; a text that a spreadsheet would run as a formula gets a ' before it",
        },
        json: {
          type: 'boolean',
          help: 'A list of {client, user, role, business, level, area, action, method, versions, access, missing}',
        },
        ...CONFIG,
      },
      examples: [
        {
          line: 'postern access --client globex-ledger --user bob',
          does: 'show what bob may do through this client',
        },
        { line: 'postern access --csv', does: 'print all of it for a spreadsheet' },
      ],
    },
  },
} as const satisfies CommandTable

export const SCOPES = {
  verbs: {
    '': {
      summary: 'Show which scopes a call needs, what implies them, and which clients and roles have them',
      notes: [
        'Clients of the store are included. PATH is that of a call, or an action as `postern access` lists it. A token is for a client and for a user: both must have the scope.',
      ],
      arguments: METHOD_AND_PATH,
      options: {
        json: {
          type: 'boolean',
          help: 'A list of {level, area, action, method, versions, reportOnly, groups, clients, roles}',
        },
        ...CONFIG,
      },
      examples: [
        { line: 'postern scopes GET /api/1.0/b/ACME/fund-data/fund-list', does: 'by the path of a call' },
        { line: 'postern scopes GET fund-data/fund-list', does: 'by the name of an action' },
      ],
    },
  },
} as const satisfies CommandTable

export const DIFF = {
  verbs: {
    '': {
      summary: 'Show who gains (+) and who loses (-) access between two configurations',
      notes: [
        'Clients and roles are shown by action, users by their role at a business. Clients and users of the store are included. The store is only read. An area that becomes report-only is open to anybody. The exit code is 2 if the scopes or the directory of one have problems.',
      ],
      arguments: [
        { name: 'OLD', kind: 'file' },
        { name: 'NEW', kind: 'file' },
      ],
      options: {
        json: { type: 'boolean', help: '{gained, lost}, each a list of {kind, who, what, where}' },
      },
      examples: [
        {
          line: 'postern diff my.yaml next.yaml',
          does: 'show what the change of a file would open and close',
        },
      ],
    },
  },
} as const satisfies CommandTable
