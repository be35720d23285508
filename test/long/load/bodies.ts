/** Calls whose body is made by a template (C8.7), beside the same calls without, and a SOAP service beside the module that wraps it. */
import type { Case } from './cases.ts'
import { startPosternProcess } from './postern-process.ts'
import { PATH } from './subjects.ts'
import { bodyScript } from './wrk-scripts.ts'

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']

/** 1 KB. */
const BODY = JSON.stringify(
  Object.fromEntries(NAMES.map((name) => [name, `${name} & "co" ${'x'.repeat(83)}`])),
)

const leaves = NAMES.map((name) => `${name}: '{body/${name}}'`).join(', ')
const properties = NAMES.map((name) => `${name}: { type: string }`).join(', ')
const SCHEMA = `body: { schema: { type: object, additionalProperties: false, properties: { ${properties} } } }`

const action = (name: string, upstream: string): string =>
  `  - { level: business, area: fund-data, action: ${name}, methods: { POST: { scopes: { any: [fund.read] }, audit: none, auditReason: a benchmark, ${SCHEMA}${upstream} } } }`

const MADE_YAML = `actions:
  - { level: business, area: fund-data, action: fund-list, methods: { GET: { scopes: { any: [fund.read] } } } }
${[
  action('as-it-is', ''),
  action('json', `, upstream: { body: { template: { ${leaves} } } }`),
  action('form', `, upstream: { body: { format: form, template: { ${leaves} } } }`),
  action('xml', `, upstream: { body: { format: xml, template: { r: { ${leaves} } } } }`),
  action('set', ", upstream: { body: { set: { /k: '{business}' } } }"),
  action('require', ", upstream: { body: { require: { /k: '{business}' } } }").replace(
    'properties: { ',
    'properties: { k: { type: string }, ',
  ),
].join('\n')}
`

const SOAP_YAML = `backends:
  funds: { format: xml, xml: { dialect: plain, namespaces: strip, arrays: [Envelope/Body/ListFundsResponse/Fund] } }
actions:
  - level: business
    area: fund-data
    action: fund-list
    methods:
      GET:
        scopes: { any: [fund.read] }
        audit: none
        auditReason: a benchmark
        upstream:
          path: /soap
          method: POST
          headers: { SOAPAction: '"http://funds.example/2024#ListFunds"' }
          data: /Envelope/Body/ListFundsResponse
          body:
            type: text/xml; charset=utf-8
            template:
              s:Envelope:
                '@xmlns:s': http://schemas.xmlsoap.org/soap/envelope/
                s:Body: { f:ListFunds: { '@xmlns:f': http://funds.example/2024, f:Business: '{business}' } }
`

const MODULE_YAML = (upstream: string): string => `backends: { service: { target: '${upstream}' } }
actions:
  - { level: business, area: fund-data, action: fund-list, methods: { GET: { scopes: { any: [fund.read] }, audit: none, auditReason: a benchmark } } }
`

const pathOf = (name: string): string => PATH.replace('fund-list', name)

const AS_IT_IS = 'a body of 1 KB, as it is'
const BY_MODULE = 'SOAP, by a module'

export async function bodyCases(upstream: string): Promise<readonly Case[]> {
  const made = await startPosternProcess(upstream, MADE_YAML)
  const soap = await startPosternProcess(upstream, SOAP_YAML)
  const byModule = await startPosternProcess(upstream, MODULE_YAML(upstream), {
    file: 'examples/wrap-soap.yaml',
  })
  const scripts = [await bodyScript(BODY)]
  const one = (name: string, path: string, own = scripts): Case => ({
    name,
    subject: made,
    path: pathOf(path),
    scripts: own,
    beside: AS_IT_IS,
  })
  return [
    one(AS_IT_IS, 'as-it-is'),
    one('by a template of 10 leaves, JSON', 'json'),
    one('by a template of 10 leaves, form', 'form'),
    one('by a template of 10 leaves, XML', 'xml'),
    one('with a member that is set', 'set'),
    one('with a member that is required', 'require', [await bodyScript(BODY.replace('}', ',"k":"ACME"}'))]),
    { name: BY_MODULE, subject: byModule, path: PATH, beside: BY_MODULE },
    { name: 'SOAP, by a template', subject: soap, path: PATH, beside: BY_MODULE },
  ]
}
