/** `postern init --from`: a first configuration from the OpenAPI description of a service. */
import { setFlagsFromString } from 'node:v8'
import type { Extension } from '../../operate/hooks/extension.ts'
import { UsageError } from '../../operate/operation/verb.ts'

/** A description of 4 MB leaves so much behind that V8, which has room, would take 80 MB more before it collects. */
const COLLECTED_OFTEN = '--heap-growing-percent=20'

/** Options that say how a description is read. */
const ABOUT_A_DESCRIPTION = [
  ...(['business-in', 'not-business', 'shared', 'value'] as const),
  ...(['fund-parameter', 'only', 'verbose'] as const),
] as const

export const extension = {
  firstConfiguration: {
    options: {
      from: {
        type: 'string',
        kind: 'file',
        help: 'An OpenAPI description of your service (3.1, 3.0 or 2.0, YAML or JSON): its operations become areas, actions and proposed scopes. What does not fit is told',
      },
      'business-parameter': {
        type: 'string',
        value: 'NAME',
        multiple: true,
        help: 'Is gone: --business-in takes its place',
      },
      'business-in': {
        type: 'string',
        value: 'PLACE[=VALUE]',
        multiple: true,
        help: 'With --from: where the service takes the business from: header:NAME, path:NAME, query:NAME, body:/POINTER, host or identity. Postern puts {business} there, its code, or VALUE, such as {business.tenant}. Default: parameters named business, businessId, businessCode, tenant, tenantId',
      },
      'not-business': {
        type: 'string',
        value: 'PLACE',
        multiple: true,
        help: 'With --from: a place that has the name of a business and is none: body:/POINTER, query:NAME, header:NAME, path:NAME or cookie:NAME. The client writes it',
      },
      shared: {
        type: 'string',
        value: 'OPERATION',
        multiple: true,
        help: "With --from: an operation that belongs to no business, such as 'GET /currencies'; * is any text",
      },
      value: {
        type: 'string',
        value: 'CODE.KEY=VALUE',
        multiple: true,
        help: 'With --from: a value of a business that --business-in names: ACME.tenant=t-7',
      },
      only: {
        type: 'string',
        value: 'TAG',
        multiple: true,
        help: "With --from: only the operations of this tag, or of a path such as 'GET /funds*'",
      },
      'fund-parameter': {
        type: 'string',
        value: 'NAME',
        multiple: true,
        help: 'With --from: the same for the code of the fund. Default: fund, fundId, fundCode',
      },
      verbose: {
        type: 'boolean',
        help: 'With --from: tell each thing that does not fit, not each kind of them with a count',
      },
    },
    address: 'the address in --from',
    notes: [
      'With --from it tells where the business of each operation is, and writes that table into postern.operations.txt beside the file. The exit code is 3 if operations were taken that have no business and that --shared does not name, and nobody could be asked: with --yes, or without a terminal. The files are written in this case too.',
    ],
    examples: [
      {
        line: 'postern init my --from openapi.yaml --business ACME --yes',
        does: 'take the operations of a service from its description',
      },
    ],
    file: 'postern.operations.txt',
    isNamed: ({ from, ...values }) => {
      const gone = values['business-parameter']
      if (Array.isArray(gone))
        throw new UsageError(
          `--business-parameter is gone: write ${gone.map((name) => `--business-in path:${String(name)}`).join(' ')} (or query:, header:, body:/, by where it stands)`,
        )
      const alone = ABOUT_A_DESCRIPTION.find((name) => values[name] !== undefined)
      if (from === undefined && alone !== undefined)
        throw new UsageError(`--${alone} is about a description: expected --from beside it`)
      return from !== undefined
    },
    open: async (values, usual) => {
      setFlagsFromString(COLLECTED_OFTEN)
      const { openDescriptionSource } = await import('./open-source.ts')
      return openDescriptionSource(values, usual)
    },
  },
} as const satisfies Extension
