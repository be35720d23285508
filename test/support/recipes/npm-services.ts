import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { SERVERS } from '../machine.ts'
import { makeFolder } from './files.ts'

/**
 * Services of recipes that are packages of .config/servers: `node npm-services.ts NAME PORT`. The data of tenants `t-7`
 * and `t-9` are in them, or are put there by the page's own commands.
 */

const load = createRequire(join(SERVERS, 'services.cjs'))
const [name = '', shownPort = ''] = process.argv.slice(2)
const port = Number(shownPort)
const HOST = '127.0.0.1'

const ORDERS: readonly Readonly<Record<string, string>>[] = [
  { _id: '1', Company: 't-7', No: 'A-1', Note: 'Leave it at the door' },
  { _id: '2', Company: 't-9', No: 'A-1', Note: 'of another company' },
  { _id: '3', Company: 't-9', No: 'B-2', Note: 'of another company' },
]

/** Listens on the port of the page once everything is there that the page finds. */
async function listen(server: Server, prepare: (url: string) => Promise<void>): Promise<void> {
  await once(server.listen(0, HOST), 'listening')
  await prepare(`http://${HOST}:${(server.address() as AddressInfo).port}`)
  server.close()
  server.closeAllConnections()
  await once(server, 'close')
  server.listen(port, HOST)
}

interface Callback<Result> {
  (error: unknown, result?: Result): void
}

const element = (name: string, parts: readonly string[]): string =>
  `<xsd:element name="${name}"><xsd:complexType><xsd:sequence>${parts
    .map(
      (part) =>
        `<xsd:element name="${part}" type="xsd:string" minOccurs="0" maxOccurs="${part === 'Tag' ? 'unbounded' : 1}"/>`,
    )
    .join('')}</xsd:sequence></xsd:complexType></xsd:element>`

const WSDL = `<definitions xmlns="http://schemas.xmlsoap.org/wsdl/" xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/"
  xmlns:xsd="http://www.w3.org/2001/XMLSchema" xmlns:o="urn:example:orders" targetNamespace="urn:example:orders">
  <types><xsd:schema targetNamespace="urn:example:orders" elementFormDefault="qualified">
    ${element('Order', ['Company', 'Article', 'Note', 'Tag'])}${element('OrderResponse', ['Company', 'Article', 'Note', 'Tags'])}
  </xsd:schema></types>
  <message name="In"><part name="in" element="o:Order"/></message>
  <message name="Out"><part name="out" element="o:OrderResponse"/></message>
  <portType name="P"><operation name="Order"><input message="o:In"/><output message="o:Out"/></operation></portType>
  <binding name="B" type="o:P">
    <soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <operation name="Order"><soap:operation soapAction="urn:example:orders#Order"/>
      <input><soap:body use="literal"/></input><output><soap:body use="literal"/></output></operation>
  </binding>
  <service name="Orders"><port name="P" binding="o:B"><soap:address location="http://${HOST}/orders"/></port></service>
</definitions>`

/** SOAP 1.1, by `soap`: an order is told back, unless it is of an article that there is not. */
function soap(): void {
  const library = load('soap') as { listen: (...args: readonly unknown[]) => unknown }
  const Order = ({ Company, Article, Note, Tag }: Readonly<Record<string, string | string[]>>) => {
    const Fault = {
      faultcode: 'soap:Client.NotFound',
      faultstring: 'There is no such article',
      statusCode: 500,
    }
    if (Article !== 'A-1') throw Object.assign(new Error(Fault.faultcode), { Fault })
    return { Company, Article, Note, Tags: Tag === undefined ? 0 : [Tag].flat().length }
  }
  const server = createServer()
  server.listen(port, HOST)
  library.listen(server, '/orders', { Orders: { P: { Order } } }, WSDL)
}

/** JSON-RPC 2.0, by `jayson`. */
function jsonRpc(): void {
  const { Server } = load('jayson') as {
    Server: new (methods: object) => { http(): { listen(port: number, host: string): void } }
  }
  type Params = Readonly<Record<string, unknown>>
  const orders: Params[] = ORDERS.map((order) => order)
  new Server({
    'order.find': ({ company, no }: Params, done: Callback<unknown>) => {
      const found = orders.find((order) => order['Company'] === company && order['No'] === no)
      if (found === undefined) done({ code: -32_001, message: 'There is no such order' })
      else done(null, found)
    },
    'order.add': (order: Params, done: Callback<unknown>) => {
      if (order['company'] === undefined) done({ code: -32_602, message: 'Invalid params' })
      else done(null, { added: order })
    },
  })
    .http()
    .listen(port, HOST)
}

/** DynamoDB's protocol, by `dynalite`, which wants signatures but does not verify them. A table of each tenant. */
async function amazonJson(): Promise<void> {
  const create = async (url: string, table: string): Promise<void> => {
    await fetch(url, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/x-amz-json-1.0',
        'X-Amz-Target': 'DynamoDB_20120810.CreateTable',
        'X-Amz-Date': '20260101T000000Z',
        Authorization:
          'AWS4-HMAC-SHA256 Credential=a/20260101/local/dynamodb/aws4_request, SignedHeaders=host, Signature=a',
      },
      body: JSON.stringify({
        TableName: table,
        BillingMode: 'PAY_PER_REQUEST',
        AttributeDefinitions: [{ AttributeName: 'No', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'No', KeyType: 'HASH' }],
      }),
    })
  }
  const start = load('dynalite') as (options: object) => Server
  const service = start({ createTableMs: 0 })
  // Its own server loses the tables when it is closed.
  const server = createServer((request, response) => void service.emit('request', request, response))
  await listen(server, async (url) => {
    for (const table of ['orders-acme', 'orders-globex']) await create(url, table)
  })
}

/** OData 4.0, by `simple-odata-server` over a list in memory. */
async function odata(): Promise<void> {
  type Found = {
    skip(count: number): Found
    limit(count: number): Found
    exec(done: Callback<unknown>): void
  }
  type Query = { $filter: object; $skip?: number; $limit?: number }
  type Store = {
    find(filter: object): Found
    insertAsync(items: readonly object[]): Promise<void>
    insert(item: object, done: Callback<unknown>): void
  }
  type Service = Record<string, (...args: unknown[]) => void>
  const store = new (load('@seald-io/nedb') as new (options: object) => Store)({ inMemoryOnly: true })
  await store.insertAsync(ORDERS)
  const service = (load('simple-odata-server') as (url: string) => Service)(`http://${HOST}:${port}`)
  const text = { type: 'Edm.String' }
  service['model']?.({
    namespace: 'example',
    entityTypes: { Order: { _id: { ...text, key: true }, Company: text, No: text, Note: text } },
    entitySets: { Orders: { entityType: 'example.Order' } },
  })
  service['query']?.((...args: unknown[]) => {
    const [, { $filter, $skip, $limit }, , done] = args as [string, Query, unknown, Callback<unknown>]
    let found = store.find($filter)
    if ($skip !== undefined) found = found.skip($skip)
    if ($limit !== undefined) found = found.limit($limit)
    found.exec(done)
  })
  service['insert']?.((...args: unknown[]) => {
    const [, order, , done] = args as [string, object, unknown, Callback<unknown>]
    store.insert(order, done)
  })
  createServer((request, response) => service['handle']?.(request, response)).listen(port, HOST)
}

/** CouchDB's API, by `express-pouchdb`, with a database of each tenant. */
async function couchdb(): Promise<void> {
  type Pouch = { plugin(plugin: unknown): Pouch; defaults(options: object): unknown }
  const PouchDB = ['pouchdb-adapter-memory', 'pouchdb-mapreduce', 'pouchdb-find'].reduce<Pouch>(
    (pouch, each) => pouch.plugin(load(each)),
    load('pouchdb-core'),
  )
  const handler = load('express-pouchdb') as (pouch: unknown, options: object) => unknown
  const app = (load('express') as () => RequestListener & { use(handler: unknown): void })()
  const options = {
    ...{ inMemoryConfig: true, mode: 'minimumForPouchDB', overrideMode: { include: ['routes/find'] } },
  }
  app.use(handler(PouchDB.defaults({ adapter: 'memory' }), options))
  await listen(createServer(app), async (url) => {
    for (const database of ['acme', 'globex']) await fetch(`${url}/${database}`, { method: 'PUT' })
  })
}

/** S3's protocol, by `s3rver`, with a bucket of each tenant at a host of its own. */
async function s3(): Promise<void> {
  const S3rver = load('s3rver') as new (options: object) => { run(): Promise<unknown> }
  const { path, remove } = makeFolder()
  process.once('exit', remove).once('SIGTERM', () => process.exit(0))
  const configureBuckets = ['acme-files', 'globex-files'].map((bucket) => ({ name: bucket }))
  await new S3rver({
    ...{ address: HOST, port, silent: true, directory: path, serviceEndpoint: 'internal', configureBuckets },
  }).run()
}

const SERVICES: Readonly<Record<string, () => unknown>> = { soap, jsonRpc, amazonJson, odata, couchdb, s3 }
await SERVICES[name]?.()
