/** The parts of the configuration that `postern init` writes. */
export interface FirstConfiguration {
  readonly data: string
  /** Today, as `2026-01-15`. */
  readonly agreement: string
  readonly secretHash: string
  readonly subject: string
  readonly passwordHash: string
}

const TEMPLATE = `# A Postern configuration.
#   postern check FILE    reports its problems
#   postern serve FILE    serves it
# Every option, with its default: config/reference.md of Postern.

server:
  listen: 127.0.0.1:8080
  # The public addresses, once the service has a name and TLS:
  # authUrl: https://id.example.com
  # baseUrl: https://api.example.com
  # trustedProxies: [10.0.0.0/8]
admin:
  listen: 127.0.0.1:9090
  # The first start makes the token of the admin API, in the data folder. On an address other than loopback, set it:
  # token: { file: /run/secrets/admin-token }

data: <<data>> # keys and state; relative to the folder that Postern is started in

# Part of the media types of your API: application/vnd.{vendor}.action.v1+json
vendor: example

# What clients may ask for. The consent page shows the description.
scopes:
  fund.details.read: { description: See the details of funds }
  fund.details.maintain: { description: Change the details of funds, implies: [fund.details.read] }
  business.fund.list: { description: See the list of funds }

directory:
  businesses:
    EXAMPLE: # the code, as in paths and in targets: target:b/EXAMPLE
      name: Example Business
      funds: any # only the service knows them; or a list of codes, [SUPER1, SUPER2]

  roles: # what a user may do at a business
    Administrator: { scopes: [business.fund.list, fund.details.maintain] }
    Read-only: { scopes: [business.fund.list, fund.details.read] }

  # Clients and users of this file are changed here only. To add others without a change of this file:
  #   postern client add ID --kind partner --name NAME …
  #   postern user add USERNAME --access EXAMPLE=Read-only …
  clients:
    first-client:
      kind: customer # may use the password grant. partner: code flow. public: code flow without a secret
      name: First Client
      secrets: [<<secretHash>>]
      grants: [password, refresh_token]
      agreement: <<agreement>> # the day on which the customer agreement was signed
      businesses: [EXAMPLE]
      scopes:
        - openid
        - profile
        - offline_access
        - business.fund.list
        - fund.details.read
        - fund.details.maintain

  users:
    first-user:
      subject: <<subject>> # the claim sub: never change it, never give it to another user
      password: <<passwordHash>>
      customers: [first-client]
      access: { EXAMPLE: Administrator }
      claims: { name: First User }

# Where the data comes from. UPSTREAM_URL is the address of this service.
backends:
  funds:
    kind: http
    target: { env: UPSTREAM_URL, default: 'http://127.0.0.1:9000' }

areas:
  fund-data: { backend: funds }

# What may be called, and with which scopes:
#   {baseUrl}/api/1.0/b/EXAMPLE/fund-data/fund-list
#   {baseUrl}/api/1.0/f/EXAMPLE/{fund}/fund-data/fund-detail
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

/** The configuration as YAML. A test checks and serves it. */
export const firstConfiguration = (own: FirstConfiguration): string =>
  // A JSON string is valid YAML, whatever it contains.
  TEMPLATE.replace(/<<(\w+)>>/g, (_mark, name: string) =>
    JSON.stringify(own[name as keyof FirstConfiguration]),
  )
