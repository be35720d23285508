import type { IncomingMessage, ServerResponse } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { ownService, type Handler } from './own-server.ts'
import type { Service, Surroundings } from './service.ts'

/** Services of recipes that nobody packs for this machine: each speaks the requests that its page shows, as documented. */

const read = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

const urlOf = (request: IncomingMessage): URL => new URL(request.url ?? '/', 'http://service')

function answer(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): ServerResponse {
  return response
    .writeHead(status, { 'Content-Type': 'application/json', ...headers })
    .end(JSON.stringify(body))
}

const served =
  (make: () => Handler) =>
  (where: Surroundings): Promise<Service> =>
    ownService(where, make())

/** A program of the nineties: it reads a form, and answers a line of text in ISO 8859-1. */
export const formService = served(() => {
  const orders = new Map<string, string[]>()
  return async (request, response) => {
    const form = new URLSearchParams(await read(request))
    const company = form.get('mandant') ?? ''
    const of = orders.get(company) ?? []
    orders.set(company, of)
    if (form.has('text')) of.push(form.get('text') ?? '')
    response.setHeader('Content-Type', 'text/plain; charset=ISO-8859-1')
    const text = `Aufträge von ${company}: ${of.map((each) => JSON.stringify(each)).join(', ')}\n`
    response.end(Buffer.from(text, 'latin1'))
  }
})

interface Found {
  readonly company: string
  readonly title: string
}

/** What the page asks of a search index: `POST /INDEX/_search` with a `bool` of `term` filters and one `match`. */
export const searchService = served(() => {
  const documents: readonly Found[] = [
    { company: 't-7', title: 'Harbour "View" trust deed' },
    { company: 't-9', title: 'Globex trust deed' },
  ]
  interface Asked {
    query: { bool: { filter: { term: Partial<Found> }[]; must: { match: { title: string } }[] } }
    size?: number
  }
  return async (request, response) => {
    const { query, size = 10 } = JSON.parse(await read(request)) as Asked
    const words = query.bool.must.flatMap(({ match }) => match.title.toLowerCase().match(/\w+/g) ?? [])
    const hits = documents
      .filter(({ company }) => query.bool.filter.every(({ term }) => term.company === company))
      .filter(({ title }) => words.some((word) => title.toLowerCase().includes(word)))
    const shown = hits
      .slice(0, size)
      .map((hit, at) => ({ _index: 'documents', _id: String(at + 1), _source: hit }))
    answer(response, 200, { took: 1, hits: { total: { value: hits.length, relation: 'eq' }, hits: shown } })
  }
})

/** What the page asks of PostgREST: a schema of each tenant by `Accept-Profile`, filters `eq.`, parts by `Range`. */
export const postgrest = served(() => {
  const schemas: Readonly<Record<string, Record<string, string>[]>> = {
    acme: [{ name: 'Margaret Okafor' }, { name: 'Daniel Reyes' }, { name: "Áine O'Brien" }],
    globex: [{ name: 'Peter Lee' }],
  }
  return async (request, response) => {
    const { method, headers } = request
    const schema = schemas[String(headers[method === 'GET' ? 'accept-profile' : 'content-profile'])]
    if (schema === undefined) return answer(response, 406, { code: 'PGRST106', message: 'Invalid schema' })
    if (method === 'POST') {
      schema.push(JSON.parse(await read(request)) as Record<string, string>)
      return response.writeHead(201).end()
    }
    const name = urlOf(request).searchParams.get('name')
    const rows = schema.filter((row) => name === null || `eq.${row['name']}` === name)
    const [, first = '0', last = ''] = /^(\d+)-(\d*)$/.exec(headers.range ?? '') ?? []
    const part = rows.slice(Number(first), last === '' ? undefined : Number(last) + 1)
    const range = `${first}-${Number(first) + part.length - 1}/${rows.length}`
    const status = part.length < rows.length ? 206 : 200
    return answer(response, status, part, { 'Content-Range': range, 'Range-Unit': 'items' })
  }
})

/** A service with a database of SQLite for each tenant, named in the query and opened by a user of its own. */
export const databases = served(() => {
  const keys: Readonly<Record<string, string>> = { acme_prod: 'acme:key-1', globex_prod: 'globex:key-2' }
  const opened = new Map<string, DatabaseSync>()
  const open = (name: string): DatabaseSync => {
    const database = opened.get(name) ?? new DatabaseSync(':memory:')
    if (!opened.has(name)) database.exec('create table notes (id integer primary key, text text not null)')
    opened.set(name, database)
    return database
  }
  return async (request, response) => {
    const name = urlOf(request).searchParams.get('db') ?? ''
    const expected = `Basic ${btoa(keys[name] ?? '')}`
    if (!Object.hasOwn(keys, name) || request.headers.authorization !== expected)
      return answer(response, 401, { error: 'unauthorized' })
    const database = open(name)
    if (request.method === 'POST') {
      const { text } = JSON.parse(await read(request)) as { text: string }
      database.prepare('insert into notes (text) values (?)').run(text)
      return answer(response, 201, { text })
    }
    return answer(response, 200, database.prepare('select * from notes order by id').all())
  }
})
