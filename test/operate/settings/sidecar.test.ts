import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { configFiles } from '../../support/config-files.ts'
import { startIssuerServer } from '../../support/issuer-server.ts'
import { SETTINGS } from '../../support/settings.ts'

const pathOf = (name: string): string => fileURLToPath(new URL(`../../../config/${name}`, import.meta.url))

/** The problems of config/sidecar.yaml with this text in it: severity, key path, message. */
async function check(yaml: string): Promise<readonly (readonly [string, string, string])[]> {
  const file = configFiles({ 'my.yaml': `extends: ${pathOf('sidecar.yaml')}\n${yaml}` })
  const { list: problems } = await SETTINGS.check(file('my.yaml'), { INTROSPECTION_SECRET: 'secret' })
  return problems.map(({ severity, path, message }) => [severity, path.join('.'), message])
}

const TWO = `
issuers:
  - { name: one, issuer: 'https://one.example', audience: a }
  - { name: two, issuer: 'https://two.example', audience: a }
`

describe('C11.2 the configuration of a sidecar', () => {
  const page = readFileSync(pathOf('sidecar.md'), 'utf8')
  const examples = [...page.matchAll(/^```yaml\n(.*?)^```/gms)].map((match) => match[1] ?? '')

  it('C11.2 may be as each example of its page', async () => {
    expect(examples).toHaveLength(3)
    for (const example of examples) expect(await check(example)).toEqual([])
  })

  it('C11.2 with several issuers, a limit or a list that does not say whose client it means is refused', async () => {
    const lists = (client: string): string => `
load: { clients: { byId: { '${client}': { inFlight: 5 } } } }
maintenance: [{ scope: service, from: '2099-01-01T00:00:00Z', allowClients: ['${client}'] }]
`
    expect(await check(TWO + lists('two:app'))).toEqual([])
    for (const client of ['app', 'three:app'])
      expect(await check(TWO + lists(client))).toEqual([
        ['error', `load.clients.byId.${client}`, expect.stringContaining(client)],
        ['error', 'maintenance.0.allowClients', expect.stringContaining(client)],
      ])
    const one = TWO.replace(/^.*name: two.*$/m, '')
    for (const client of ['app', 'three:app']) expect(await check(one + lists(client))).toEqual([])
  })

  it('C8.7 with several issuers, an id of a caller that does not say whose it is is warned of', async () => {
    const sent = (text: string): string => `
areas: { fund-data: { backend: service } }
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods: { GET: { scopes: { any: [fund.read] }, upstream: { headers: { X-Who: '${text}' } } } }
`
    const at = 'actions.0.methods.GET'
    for (const name of ['subject', 'client'])
      expect(await check(TWO + sent(`{${name}}`))).toEqual([
        ['warning', at, expect.stringContaining(`sends {${name}} without saying which issuer's it is`)],
      ])
    expect(await check(TWO + sent('{issuer}:{subject}'))).toEqual([])
    expect(await check(sent('{subject}'))).toEqual([])
    expect(await check(sent('{issuer}'))).toEqual([
      ['error', `${at}.upstream.headers.X-Who`, expect.stringContaining('there are not several')],
    ])
  })

  it('C11.2 is checked without a connection to any issuer', async () => {
    const server = await startIssuerServer()
    expect(await check(`issuers: [{ issuer: '${server.url}', audience: a }]`)).toEqual([])
    expect(server.requests).toEqual([])
  })

  it('C4.4a whose tokens are proven needs the address that clients call', async () => {
    const proven = `issuers: [{ issuer: 'https://one.example', audience: a, confirmation: dpop }]`
    expect(await check(proven)).toEqual([
      ['error', 'issuers.0.confirmation', expect.stringContaining('server.baseUrl')],
    ])
    expect(await check(`${proven}\nserver: { baseUrl: 'https://api.example' }`)).toEqual([])
  })

  it('C11.2 that asks for less than it could is warned of, with the name of the issuer', async () => {
    const risky = `issuers: [{ issuer: 'https://one.example', audience: none, confirmation: ignore }]`
    expect(await check(risky)).toEqual([
      ['warning', 'issuers.0.audience', expect.stringContaining('https://one.example')],
      ['warning', 'issuers.0.confirmation', expect.stringContaining('https://one.example')],
    ])
  })
})
