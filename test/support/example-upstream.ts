/**
 * The example upstream of config/upstream.yaml: the demo world's data over HTTP, as JSON, bare payload. What a company's
 * own data service would be. `npm run upstream` serves it on 127.0.0.1:9000; UPSTREAM_PORT names another port.
 */
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { MemoryBackend } from '../../src/gateway/backends/memory/memory.ts'
import { type MemoryFile, parseMemoryFile } from '../../src/gateway/backends/memory/file.ts'
import type { ActionFacts, CallBody } from '../../src/base/contracts/calls/backend.ts'
import { parseJson, stringifyJson } from '../../src/base/http/body/json.ts'
import { Fault, toFault } from '../../src/base/kernel/faults.ts'
import { makeCall } from './calls.ts'

const DATA = new URL('../../config/demo-data.json', import.meta.url)

interface Place {
  readonly facts: ActionFacts
  readonly params: Record<string, string>
  readonly business: string
  readonly fund: string | undefined
}

/** `/api/1.0/b/ACME/area/action` or `/api/1.0/f/ACME/SUPER1/area/action`, as Postern forwards it. */
function placeOf(path: string, { actions }: MemoryFile): Place {
  const [, , , level, business = '', ...rest] = path.split('/').map(decodeURIComponent)
  const fund = level === 'f' ? rest.shift() : undefined
  for (const key of Object.keys(actions)) {
    const pattern = key.split('/')
    const params: Record<string, string> = {}
    const fits = pattern.every((segment, index) => {
      const [, name] = /^\{([^:}]+).*\}$/.exec(segment) ?? []
      if (name === undefined) return segment === rest[index]
      params[name] = rest[index] ?? ''
      return true
    })
    if (!fits || pattern.length !== rest.length) continue
    const [area = '', ...action] = pattern
    const facts: ActionFacts = {
      area,
      action: action.join('/'),
      level: fund === undefined ? 'business' : 'fund',
      versioned: false,
      safe: true,
      produces: undefined,
    }
    return { facts, params, business, fund }
  }
  throw new Fault('upstream_not_found')
}

async function bodyOf(request: IncomingMessage): Promise<CallBody> {
  const chunks: Buffer[] = await request.toArray()
  return chunks.length === 0 ? { kind: 'none' } : { kind: 'value', value: parseJson(Buffer.concat(chunks)) }
}

async function answer(backend: MemoryBackend, file: MemoryFile, request: IncomingMessage): Promise<string> {
  const path = (request.url ?? '').replace(/\?.*$/s, '')
  // What the first configuration of `postern init` calls.
  const [, greeted] = /\/b\/([^/]+)\/example\/hello$/.exec(path) ?? []
  if (greeted !== undefined) return stringifyJson({ Hello: greeted })
  const { facts, params, business, fund } = placeOf(path, file)
  const version = Number(request.headers['x-postern-action-version'] ?? 1)
  const method = request.method ?? 'GET'
  const call = makeCall({
    action: facts,
    params,
    business,
    fund,
    version,
    method,
    body: await bodyOf(request),
  })
  const { body } = await backend.answer(call)
  return body.kind === 'value' ? stringifyJson(body.value) : ''
}

/** Serves the demo's data; port 0 is any free one. */
export async function startExampleUpstream(port: number): Promise<{ url: string; server: Server }> {
  const file = parseMemoryFile(await readFile(DATA))
  const backend = new MemoryBackend('example', file)
  const respond = (response: ServerResponse, status: number, body: string): void => {
    response.writeHead(status, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    })
    response.end(body)
  }
  const server = createServer((request, response) => {
    answer(backend, file, request).then(
      (body) => respond(response, 200, body),
      (thrown: unknown) => {
        const fault = toFault(thrown)
        const error = { Code: fault.row.wire, Message: fault.publicText }
        respond(response, fault.status, JSON.stringify({ Errors: [error], Data: {} }))
      },
    )
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

if (import.meta.main) {
  const { url } = await startExampleUpstream(Number(process.env['UPSTREAM_PORT'] ?? 9000))
  console.log(`The demo's data is served at ${url}`)
}
