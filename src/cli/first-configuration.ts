/** What `postern init` writes: small, and a place for each thing. A test checks it and serves it. */
export interface FirstConfiguration {
  readonly data: string
  /** Today. */
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
  # What the world calls this service, once it stands behind a name and TLS:
  # authUrl: https://id.example.com
  # baseUrl: https://api.example.com
  # trustedProxies: [10.0.0.0/8]
admin:
  listen: 127.0.0.1:9090
  # The token of the admin API is drawn at the first start and kept in the data folder; off loopback it must be given:
  # token: { file: /run/secrets/admin-token }

data: <<data>> # keys and state; relative to where Postern is started

# Part of the media types of your API: application/vnd.{vendor}.action.v1+json
vendor: example

# What clients may ask for. People see the description when they are asked for consent.
scopes:
  fund.details.read: { description: See the details of funds }
  fund.details.maintain: { description: Change the details of funds, implies: [fund.details.read] }
  business.fund.list: { description: See the list of funds }

directory:
  businesses:
    EXAMPLE: # its code stands in paths and in targets: target:b/EXAMPLE
      name: Example Business
      funds: any # only the upstream knows them; or a list of codes, [SUPER1, SUPER2]

  roles: # what a user may do at a business
    Administrator: { scopes: [business.fund.list, fund.details.maintain] }
    Read-only: { scopes: [business.fund.list, fund.details.read] }

  # Clients and users that stand here are changed here only. More of them, without touching this file:
  #   postern client add ID --kind partner --name NAME …
  #   postern user add USERNAME --access EXAMPLE=Read-only …
  clients:
    first-client:
      kind: customer # may use the password grant; partner: code flow; public: code flow without a secret
      name: First Client
      secrets: [<<secretHash>>]
      grants: [password, refresh_token]
      agreement: <<agreement>> # when the customer agreement was signed
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
      subject: <<subject>> # the claim sub: never changed, never given to anybody else
      password: <<passwordHash>>
      customers: [first-client]
      access: { EXAMPLE: Administrator }
      claims: { name: First User }

# The services behind. UPSTREAM_URL says where this one is.
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
        items: { FundSummaries: FundSummary } # what an item of a list is called in XML

  - level: fund
    area: fund-data
    action: fund-detail
    methods:
      GET:
        scopes: { any: [fund.details.read] }
      POST:
        scopes: { any: [fund.details.maintain] }
        body:
          schema: # what does not fit it is 400, naming the field
            type: object
            additionalProperties: false
            properties:
              Name: { type: string, minLength: 1, maxLength: 200 }
`

/** The configuration as YAML. */
export const firstConfiguration = (own: FirstConfiguration): string =>
  // In quotes, as JSON writes them: that is YAML, whatever stands in them.
  TEMPLATE.replace(/<<(\w+)>>/g, (_mark, name: string) =>
    JSON.stringify(own[name as keyof FirstConfiguration]),
  )
