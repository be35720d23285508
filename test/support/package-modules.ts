/** Modules as users of the published package write them. */

/** A module in TypeScript. */
export const BACKEND = `import type { ModuleAnswer, ModuleCall, ModuleFactory } from 'postern/backend'

interface Options { readonly greeting: string }

const createModule: ModuleFactory<Options> = ({ greeting }, { name }) => ({
  answer: (call: ModuleCall): ModuleAnswer => ({
    body: { kind: 'value', value: { Greeting: greeting, Business: call.business, Backend: name } },
  }),
})

export default createModule
`
/** Code that finds people. */
export const PEOPLE = `import type { PeopleFactory, PeopleUser } from 'postern/people'

const DORA: PeopleUser = { subject: 'subject-of-dora', username: 'dora', access: { ACME: 'Administrator' } }

const createPeople: PeopleFactory<{ password: string }> = (options) => ({
  findUserByName: (username) => (username === 'dora' ? DORA : undefined),
  findUserBySubject: async (subject, { signal }) => (signal.aborted ? null : DORA),
  verifyPassword: (user, password) => user !== undefined && password === options.password,
})

export default createPeople
`
/** A module over a forwarder. */
export const AROUND = `import type { ModuleAnswer, ModuleFactory, UpstreamAnswer } from 'postern/backend'

const createModule: ModuleFactory<{ tenant: string }> = ({ tenant }) => ({
  request: ({ upstream, business }) => ({ query: { tenant, business }, headers: { 'X-Target': upstream.target } }),
  response: async (_call, answer: UpstreamAnswer): Promise<ModuleAnswer> =>
    answer.status === 404 ? { ...answer, status: 410 } : { body: { kind: 'value', value: await answer.json() } },
})

export default createModule
`
/** A module in JavaScript, as a package has it. */
export const PACKAGED = `export default ({ greeting }) => ({
  answer: ({ business }) => ({ body: { kind: 'value', value: { Greeting: greeting, Business: business } } }) })`
