import { createServer } from 'node:http'
import { buildSchema } from 'graphql'
import { createHandler } from 'graphql-http/lib/use/http'

/** A GraphQL service over HTTP that is told in `X-Tenant` whose data it is asked for: `node graphql.ts PORT`. */

const schema = buildSchema(`
  type Fund { code: ID! name: String! members: Int! }
  type Query { funds(atLeast: Int = 0): [Fund!]! fund(code: ID!): Fund }
`)

interface Fund {
  readonly code: string
  readonly name: string
  readonly members: number
}

const FUNDS: Readonly<Record<string, readonly Fund[]>> = {
  ACME: [
    { code: 'SUPER1', name: 'Harbour View Superannuation Fund', members: 3 },
    { code: 'SUPER2', name: 'Pacific Retirement Fund', members: 1 },
  ],
  GLOBEX: [{ code: 'GROWTH', name: 'Globex Growth', members: 2 }],
}

interface Context extends Record<PropertyKey, unknown> {
  /** Whose data are asked for. */
  readonly tenant: string
}

const fundsOf = ({ tenant }: Context): readonly Fund[] =>
  (Object.hasOwn(FUNDS, tenant) ? FUNDS[tenant] : []) ?? []

const ROOT_VALUE = {
  funds: ({ atLeast }: { atLeast: number }, context: Context) =>
    fundsOf(context).filter(({ members }) => members >= atLeast),
  fund: (asked: { code: string }, context: Context) =>
    fundsOf(context).find(({ code }) => code === asked.code),
}

const handle = createHandler<Context>({
  schema,
  rootValue: ROOT_VALUE,
  context: ({ raw }) => ({ tenant: String(raw.headers['x-tenant']) }),
})
createServer((request, response) => void handle(request, response)).listen(
  Number(process.argv[2]),
  '127.0.0.1',
)
