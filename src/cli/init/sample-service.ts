/** The service that `postern init` assumes if none is described: its actions are there to be replaced. */
import type { DescribedService } from './service.ts'

export const SAMPLE_SERVICE: DescribedService = {
  scopes: {
    'fund.details.read': { description: 'See the details of funds' },
    'fund.details.maintain': { description: 'Change the details of funds', implies: ['fund.details.read'] },
    'business.fund.list': { description: 'See the list of funds' },
  },
  readScopes: ['business.fund.list', 'fund.details.read'],
  areas: {},
  actions: [],
  path: undefined,
  usesFunds: true,
}

/** One of its actions, which `init` proposes to try. */
export const SAMPLE_CALL = { area: 'fund-data', action: 'fund-list' } as const

/** A text, because its comments explain the keys. */
export const SAMPLE_ACTIONS = `
areas:
  fund-data: { backend: service }

# What may be called, and with which scopes. These two are examples: put the calls of your service here.
#   {baseUrl}/api/1.0/b/{business}/fund-data/fund-list
#   {baseUrl}/api/1.0/f/{business}/{fund}/fund-data/fund-detail
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods:
      GET:
        scopes: { any: [business.fund.list, fund.details.read] }
        items: { FundSummaries: FundSummary } # the XML name of the items of a list

  - level: fund
    area: fund-data
    action: fund-detail
    methods:
      GET:
        scopes: { any: [fund.details.read] }
      POST:
        scopes: { any: [fund.details.maintain] }
        body:
          schema: # a body that does not match is 400, and the answer names the field
            type: object
            additionalProperties: false
            properties:
              Name: { type: string, minLength: 1, maxLength: 200 }
`
