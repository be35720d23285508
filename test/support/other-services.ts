import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { XMLParser } from 'fast-xml-parser'

/** Small services of many kinds in one server. Each reads what it is asked for by its own protocol, and never by Postern's code. */

/** What a service understood of a request. */
export interface Understood {
  readonly kind: string
  readonly tenant: unknown
  /** What the client had to say. */
  readonly said: unknown
  readonly headers: IncomingMessage['headers']
}

interface Asked {
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

interface Kind {
  /** Of the path, decoded. */
  readonly at: RegExp
  readonly type: string
  readonly tenant: (asked: Asked, found: readonly string[]) => unknown
  readonly said?: (asked: Asked, found: readonly string[]) => unknown
  /** The answer, with what belongs to the tenant. */
  readonly answer: (own: string) => string
}

/** What each tenant has. */
export const OWN: Readonly<Record<string, string>> = { 't-7': 'Harbour', 't-9': 'Globex' }

/** Anything: a request that is not as it should be fails in the reading. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Anything = any

const xml = (text: string): Anything =>
  new XMLParser({
    ...{ removeNSPrefix: true, ignoreAttributes: false, parseTagValue: false, trimValues: false },
    ignoreDeclaration: true,
  }).parse(text)
const json = ({ body }: Asked): Anything => JSON.parse(body)
/** A literal between quotation marks, as a language of queries reads it: a mark within it would end it. */
const literals = (text: string | null, mark: string): readonly string[] =>
  (text ?? '').split(mark).filter((_part, at) => at % 2 === 1)

const JSON_TYPE = 'application/json'
const quoted = JSON.stringify

export const KINDS: Readonly<Record<string, Kind>> = {
  'xml-rpc': {
    at: /^\/RPC2$/,
    type: 'text/xml',
    tenant: ({ body }) => xml(body).methodCall.params.param[0].value.string,
    said: ({ body }) => xml(body).methodCall.params.param[1].value.string,
    answer: (own) =>
      `<?xml version="1.0"?><methodResponse><params><param><value><string>${own}</string></value></param></params></methodResponse>`,
  },
  sparql: {
    at: /^\/sparql$/,
    type: 'application/sparql-results+json',
    tenant: ({ query }) => literals(query.get('query'), '"')[0],
    said: ({ query }) => literals(query.get('query'), '"')[1],
    answer: (own) =>
      `{"head":{"vars":["n"]},"results":{"bindings":[{"n":{"type":"literal","value":${quoted(own)}}}]}}`,
  },
  fhir: {
    at: /^\/fhir\/([^/]+)\/Patient\/(.*)$/s,
    type: 'application/fhir+json; fhirVersion=4.0',
    tenant: (asked, [tenant]) =>
      asked.body === '' || json(asked).managingOrganization.reference === `Organization/${tenant}`
        ? tenant
        : undefined,
    said: (asked, [, id]) => (asked.body === '' ? id : json(asked).text),
    answer: (own) => `{"resourceType":"Patient","name":[{"family":${quoted(own)}}]}`,
  },
  soql: {
    at: /^\/services\/data\/v60\.0\/query$/,
    type: JSON_TYPE,
    tenant: ({ query }) => literals(query.get('q'), "'")[0],
    said: ({ query }) => literals(query.get('q'), "'")[1],
    answer: (own) => `{"totalSize":1,"done":true,"records":[{"Id":${quoted(own)}}]}`,
  },
  odoo: {
    at: /^\/jsonrpc$/,
    type: JSON_TYPE,
    tenant: (asked) => {
      const [db, , key] = json(asked).params.args
      return key === `key of ${db}` ? db : undefined
    },
    said: (asked) => json(asked).params.args[5][0].note,
    answer: (own) => `{"jsonrpc":"2.0","id":"1","result":[{"name":${quoted(own)}}]}`,
  },
  'odata-v2': {
    at: /^\/sap\/OrderSet\(Company='([^']*)',No='([^']*)'\)$/s,
    type: JSON_TYPE,
    tenant: (_asked, [tenant]) => tenant,
    said: (_asked, [, no]) => no,
    answer: (own) => `{"d":{"__metadata":{},"Name":${quoted(own)}}}`,
  },
  influx: {
    at: /^\/query$/,
    type: JSON_TYPE,
    tenant: ({ query }) => query.get('db'),
    said: ({ query }) => literals(query.get('q'), "'")[0],
    answer: (own) =>
      `{"results":[{"statement_id":0,"series":[{"name":"orders","values":[[1,${quoted(own)}]]}]}]}`,
  },
  solr: {
    at: /^\/solr\/orders\/select$/,
    type: JSON_TYPE,
    tenant: ({ query }) => /^company:"([^"]*)"$/.exec(query.get('fq') ?? '')?.[1],
    said: ({ query }) => query.get('q'),
    answer: (own) => `{"response":{"numFound":1,"docs":[{"name":${quoted(own)}}]}}`,
  },
  hal: {
    at: /^\/hal\/([^/]+)\/orders$/,
    type: 'application/hal+json',
    tenant: (_asked, [tenant]) => tenant,
    answer: (own) => `{"_links":{"self":{"href":"/x"}},"_embedded":{"orders":[{"name":${quoted(own)}}]}}`,
  },
  'json-api': {
    at: /^\/json-api\/orders$/,
    type: 'application/vnd.api+json',
    tenant: (asked) =>
      asked.headers['content-type'] === 'application/vnd.api+json'
        ? json(asked).data.relationships.company.data.id
        : undefined,
    said: (asked) => json(asked).data.attributes.note,
    answer: (own) => `{"data":{"type":"orders","id":"1","attributes":{"name":${quoted(own)}}}}`,
  },
  scim: {
    at: /^\/scim\/v2\/Users$/,
    type: 'application/scim+json',
    tenant: (asked) => json(asked)['urn:ietf:params:scim:schemas:extension:enterprise:2.0:User'].organization,
    said: (asked) => json(asked).displayName,
    answer: (own) => `{"id":"1","displayName":${quoted(own)}}`,
  },
  'by-header': {
    at: /^\/by-header$/,
    type: JSON_TYPE,
    tenant: ({ headers }) => headers['x-tenant-id'],
    said: (asked) => json(asked).Note,
    answer: (own) => `{"name":${quoted(own)}}`,
  },
  webdav: {
    at: /^\/dav\/([^/]+)\/(.*)$/s,
    type: 'application/xml; charset=utf-8',
    tenant: ({ body }, [tenant]) => ('allprop' in xml(body).propfind ? tenant : undefined),
    said: (_asked, [, path]) => path,
    answer: (own) =>
      `<d:multistatus xmlns:d="DAV:"><d:response><d:href>/x</d:href><d:propstat><d:prop><d:displayname>${own}</d:displayname></d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response></d:multistatus>`,
  },
  atom: {
    at: /^\/feeds\/([^/]+)$/,
    type: 'application/atom+xml',
    tenant: (_asked, [tenant]) => tenant,
    said: ({ query }) => query.get('q'),
    answer: (own) => `<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>${own}</title></entry></feed>`,
  },
  csv: {
    at: /^\/reports\/([^/]+)\.csv$/,
    type: 'text/csv; charset=utf-8',
    tenant: (_asked, [tenant]) => tenant,
    answer: (own) => `No,Name\r\n1,"${own}"\r\n`,
  },
  'by-host': {
    at: /^\/by-host$/,
    type: JSON_TYPE,
    tenant: ({ headers }) => /^(.*)\.app\.internal$/.exec(headers.host ?? '')?.[1],
    said: (asked) => json(asked).Note,
    answer: (own) => `{"name":${quoted(own)}}`,
  },
  transcoded: {
    at: /^\/v1\/tenants\/([^/]+)\/orders:create$/,
    type: JSON_TYPE,
    tenant: (asked, [tenant]) => (json(asked).parent === `tenants/${tenant}` ? tenant : undefined),
    said: (asked) => json(asked).order.note,
    answer: (own) => `{"name":${quoted(own)}}`,
  },
  arangodb: {
    at: /^\/_db\/([^/]+)\/_api\/cursor$/,
    type: JSON_TYPE,
    tenant: (_asked, [tenant]) => tenant,
    said: (asked) => json(asked).bindVars.note,
    answer: (own) => `{"result":[{"name":${quoted(own)}}],"hasMore":false,"code":201}`,
  },
  stripe: {
    at: /^\/v1\/charges$/,
    type: JSON_TYPE,
    tenant: ({ body }) => new URLSearchParams(body).getAll('metadata[tenant]').join(),
    said: ({ body }) => new URLSearchParams(body).get('description'),
    answer: (own) => `{"name":${quoted(own)}}`,
  },
}

export interface OtherServices {
  readonly url: string
  /** In order. */
  readonly understood: readonly Understood[]
  stop(): Promise<void>
}

export async function startOtherServices(): Promise<OtherServices> {
  const understood: Understood[] = []
  const server = createServer((request, response) => {
    void read(request).then((body) => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://service')
      const asked = {
        path: decodeURIComponent(pathname),
        query: searchParams,
        headers: request.headers,
        body,
      }
      for (const [kind, { at, type, tenant, said, answer }] of Object.entries(KINDS)) {
        const found = at.exec(asked.path)?.slice(1)
        if (found === undefined) continue
        const whose = tenant(asked, found)
        understood.push({ kind, tenant: whose, said: said?.(asked, found), headers: request.headers })
        response.writeHead(200, { 'Content-Type': type }).end(answer(OWN[String(whose)] ?? 'nobody'))
        return
      }
      response.writeHead(404).end()
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    understood,
    stop: async () => {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
