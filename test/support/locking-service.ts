import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { rememberUpstream } from './upstream-addresses.ts'

/** A service that keeps documents as many do: one entity tag for each state, and conditions of RFC 9110 §13. */
export interface LockingService {
  readonly url: string
  /** Every request: its method, and the conditions as they came. */
  readonly asked: { readonly method: string; readonly conditions: Readonly<Record<string, string>> }[]
  /** Makes the tag of a state; the default is `"v1"`, `"v2"` and so on. Every document begins anew with it. */
  tagBy(tag: (state: number) => string): void
  close(): Promise<void>
}

const CONDITIONS = ['if-match', 'if-none-match', 'if-range', 'if-modified-since', 'range'] as const
/** Of the last change of everything. A service that looked at it beside If-None-Match would answer 304 too often. */
export const CHANGED = 'Sun, 01 Nov 2026 00:00:00 GMT'

const listed = (header: string): string[] => header.match(/(?:W\/)?"[^"]*"/g) ?? []
const opaqueOf = (tag: string): string => tag.replace(/^W\//, '')

/** Whether RFC 9110 §13.2.2 lets the request through: else its status. */
function judged({ method = '', headers }: IncomingMessage, tag: string): 200 | 304 | 412 {
  const { 'if-match': match, 'if-none-match': none, 'if-modified-since': since } = headers
  const reads = method === 'GET' || method === 'HEAD'
  if (match !== undefined && match !== '*' && (tag.startsWith('W/') || !listed(match).includes(tag)))
    return 412
  if (none !== undefined) {
    const fits = none === '*' || listed(none).map(opaqueOf).includes(opaqueOf(tag))
    return !fits ? 200 : reads ? 304 : 412
  }
  return reads && since !== undefined && Date.parse(since) >= Date.parse(CHANGED) ? 304 : 200
}

/**
 * Documents at any path. `GET` shows one as JSON, within an envelope where the path ends in `envelope`; its version 2 by
 * `Accept` has another member, and one whose path ends in `numbered` has numbers for keys. Ranges are of those bytes. `PUT` and `POST` replace it and tell the new tag.
 */
export async function openLockingService(): Promise<LockingService> {
  const asked: LockingService['asked'] = []
  const documents = new Map<string, { state: number; title: string }>()
  let tagOf = (state: number): string => `"v${state}"`
  const server = createServer((request, response) => {
    const { method = '', url = '', headers } = request
    const found = CONDITIONS.flatMap((name) => {
      const value = headers[name]
      return typeof value === 'string' ? [[name, value] as const] : []
    })
    asked.push({ method, conditions: Object.fromEntries(found) })
    void request.toArray().then((chunks: Buffer[]) => {
      const key = url.replace(/\/(?:envelope|bytes|part|numbered)$/, '')
      const document = documents.get(key) ?? { state: 1, title: 'Füür' }
      documents.set(key, document)
      const status = judged(request, tagOf(document.state))
      const reads = method === 'GET' || method === 'HEAD'
      if (status === 200 && !reads) {
        document.state += 1
        document.title = (JSON.parse(Buffer.concat(chunks).toString()) as { title: string }).title
      }
      const tag = tagOf(document.state)
      const validators = { ETag: tag, 'Last-Modified': CHANGED, 'Accept-Ranges': 'bytes' }
      if (status !== 200) return response.writeHead(status, validators).end()
      const { title } = document
      const data = /\.v2\+/.test(headers.accept ?? '') ? { title, two: true } : { title }
      const body = url.endsWith('envelope') ? { Errors: [], Data: data } : { doc: data, title }
      const numbered = `{"b":1,"10":2,"9":${JSON.stringify(title)}}`
      const bytes = Buffer.from(url.endsWith('numbered') ? numbered : JSON.stringify(body))
      const type = url.endsWith('bytes') ? 'application/octet-stream' : 'application/json'
      const [, from] = /^bytes=(\d+)-$/.exec(headers.range ?? '') ?? []
      const ifRange = headers['if-range']
      const part = from !== undefined && (ifRange === undefined || ifRange === tag)
      const sent = part ? bytes.subarray(Number(from)) : bytes
      return response
        .writeHead(part ? 206 : 200, {
          ...validators,
          'Content-Type': type,
          'Content-Length': sent.length,
          ...(part && { 'Content-Range': `bytes ${from}-${bytes.length - 1}/${bytes.length}` }),
          ...(!reads && { 'Content-Location': url }),
        })
        .end(method === 'HEAD' ? undefined : sent)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const forget = rememberUpstream(port)
  return {
    ...{ url: `http://127.0.0.1:${port}`, asked },
    tagBy: (tag) => {
      tagOf = tag
      documents.clear()
    },
    close: () =>
      new Promise((resolve) => {
        forget()
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
