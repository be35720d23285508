import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { ReadyDocument } from '../../src/base/http/head/entity-tag.ts'
import {
  mediaOf,
  type OpenapiDocument,
  type OpenapiOperation,
  type OpenapiResponse,
  resolved,
} from './openapi.ts'
import type { RawResponse } from './raw-http.ts'

/** A service in this process, whose document is read without a request: tests count those. */
export interface Describing {
  readonly worker: { readonly document: ReadyDocument | undefined } | undefined
}

/** What an answer is judged by; headers by lower-case name, undefined where they are not known. */
interface Judged extends Pick<RawResponse, 'status'> {
  readonly headers?: RawResponse['headers'] | undefined
}

interface Asked {
  readonly method?: string
  readonly target: string
}

interface Described {
  readonly pattern: RegExp
  readonly operations: Readonly<Record<string, OpenapiOperation>>
  readonly document: OpenapiDocument
}

/** Methods that OpenAPI has no place for stand in an extension (C11.3.1). */
function withFurther({ 'x-postern-operations': further = {}, ...known }: Record<string, object>) {
  const all = Object.entries(further).map(([method, operation]) => [
    method.toLowerCase(),
    operation as object,
  ])
  return { ...known, ...(Object.fromEntries(all) as object) } as Readonly<Record<string, OpenapiOperation>>
}

const known = new WeakMap<ReadyDocument, readonly Described[]>()

function read(ready: ReadyDocument): readonly Described[] {
  const found = known.get(ready)
  if (found !== undefined) return found
  const document = JSON.parse(ready.body.toString()) as OpenapiDocument
  const all = Object.entries(document.paths).map(([path, item]) => ({
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{[^}]*\}/g, '[^/]+')}$`),
    ...{ operations: withFurther(item as Record<string, object>), document },
  }))
  known.set(ready, all)
  return all
}

/** Headers whose presence the description has to tell. Others are named there, or pass as an upstream sent them. */
const TOLD_HEADERS = [...['retry-after', 'www-authenticate', 'allow', 'ratelimit', 'ratelimit-policy']]

/** Whether its types are ours. The type of a body that has no schema is what the data service says it is. */
const isOurs = ({ content = {} }: OpenapiResponse): boolean =>
  Object.values(content).every(({ schema }) => schema !== undefined)

/** What is wrong with an answer by the one response that describes it. */
function problemOf({ status, headers = {} }: Judged, response: OpenapiResponse) {
  const type = headers['content-type']
  if (type !== undefined && isOurs(response) && mediaOf(response, type) === undefined)
    return `${status} with a body of ${type}`
  const names = new Set(Object.keys(response.headers).map((name) => name.toLowerCase()))
  const untold = TOLD_HEADERS.find((name) => headers[name] !== undefined && !names.has(name))
  return untold === undefined ? undefined : `${status} with the header ${untold}`
}

/**
 * Why the document does not fit an answer; undefined if it does, or does not have the path. What it cannot have: another
 * target than a path, and the answer to a preflight (C4.18), which is the same for every path.
 */
function unfitting(ready: ReadyDocument, { method = 'GET', target }: Asked, answer: Judged) {
  const { status } = answer
  if (method === 'OPTIONS' && status === 204) return undefined
  const path = target.split('?')[0] ?? ''
  const found = read(ready).find(({ pattern }) => pattern.test(path))
  if (found === undefined) return undefined
  const { operations, document } = found
  const asked = operations[(method === 'HEAD' ? 'GET' : method).toLowerCase()]
  const meant = asked === undefined ? Object.values(operations) : [asked]
  const range = `${String(status).slice(0, 1)}XX`
  const nodes = meant.flatMap(({ responses }) => responses[status] ?? responses[range] ?? [])
  const responses = nodes.map((node) => resolved(document, node) as OpenapiResponse)
  if (responses.length === 0) return String(status)
  const problems = responses.map((response) => problemOf(answer, response))
  return problems.includes(undefined) ? undefined : problems[0]
}

const toldOf = ({ method = 'GET', target }: Asked, problem: string): string =>
  `${method} ${target.slice(0, 200)} was answered ${problem}, which the description of the API does not have`

/** That the document has an answer, if it has the path: its status, its type, and the headers that C11.3.3 names. */
export function expectDocumented({ worker }: Partial<Describing>, asked: Asked, answer: Judged): void {
  const problem = worker?.document && unfitting(worker.document, asked, answer)
  if (problem !== undefined) throw new Error(toldOf(asked, problem))
}

interface Watched {
  readonly describing: Describing
  readonly problems: Set<string>
}

/** The services of this process, by the port of their public listener. */
const watched = new Map<number, Watched>()

interface Finished {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly server: Server
}

// Node tells of every answer in this process, whatever the test asked with: fetch, a client library, bytes on a socket.
subscribe('http.server.response.finish', (message) => {
  const { request, response, server } = message as Finished
  const address = server.address()
  const service = address === null || typeof address === 'string' ? undefined : watched.get(address.port)
  const document = service?.describing.worker?.document
  if (service === undefined || document === undefined) return
  const asked = { method: request.method ?? '', target: request.url ?? '' }
  const answer = { status: response.statusCode }
  const problem = unfitting(document, asked, answer)
  if (problem !== undefined) service.problems.add(toldOf(asked, problem))
})

/**
 * Compares the status of every answer of a service with its document (C11.3.3).
 * @returns ends this, and throws if there was one that the document does not have
 */
export function watchAnswers(port: number, describing: Describing): () => void {
  const problems = new Set<string>()
  watched.set(port, { describing, problems })
  return () => {
    watched.delete(port)
    if (problems.size > 0) throw new Error([...problems].join('\n'))
  }
}
