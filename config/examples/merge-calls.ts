/**
 * A worked example of a module over a forwarder: one action whose answer is made of two requests to the service, which
 * are sent at the same time. merge-calls.yaml serves it.
 */
import type { ForwardedCall, Json, ModuleFactory } from 'postern/backend'

const createModule: ModuleFactory = () => ({
  answer: async ({ action, business, fund = '', forward }: ForwardedCall) => {
    if (action !== 'fund-data/fund-detail') return forward()
    const path = `/businesses/${encodeURIComponent(business)}/funds/${encodeURIComponent(fund)}`
    const [detail, members] = await Promise.all([forward({ path }), membersOf(path, forward)])
    // Of a fund that is not there, and of any other refusal, the client is told what the service answered.
    if (detail.status !== 200) return detail
    const value = { ...objectOf(await detail.json()), Members: members }
    return { body: { kind: 'value', value } }
  },
})

/** The members of a fund; none if the service has none. It throws where the service does not answer: that is 503. */
async function membersOf(path: string, forward: ForwardedCall['forward']): Promise<Json> {
  const answer = await forward({ path: `${path}/members`, query: { limit: '100' } })
  if (answer.status === 404) return []
  if (answer.status !== 200) throw new Error(`members: the service answered ${answer.status}`)
  return answer.json()
}

const objectOf = (value: Json): object => (typeof value === 'object' && value !== null ? value : {})

export default createModule
