import type { ReadyDocument } from '../../src/http/ready-document.ts'
import type { OpenapiDocument, OpenapiOperation } from './openapi.ts'
import type { RawResponse } from './raw-http.ts'

/** A service in this process, whose document is read without a request: tests count those. */
export interface Describing {
  readonly worker: { readonly document: ReadyDocument | undefined } | undefined
}

interface Described {
  readonly pattern: RegExp
  readonly operations: Readonly<Record<string, OpenapiOperation>>
}

const known = new WeakMap<ReadyDocument, readonly Described[]>()

function read(document: ReadyDocument): readonly Described[] {
  const found = known.get(document)
  if (found !== undefined) return found
  const { paths } = JSON.parse(document.body.toString()) as OpenapiDocument
  const all = Object.entries(paths).map(([path, operations]) => ({
    pattern: new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{[^}]*\}/g, '[^/]+')}$`),
    operations,
  }))
  known.set(document, all)
  return all
}

/** The statuses that the document has for a call; undefined for a path that it does not have. */
function statusesOf(document: ReadyDocument, method: string, path: string): ReadonlySet<string> | undefined {
  const operations = read(document).find(({ pattern }) => pattern.test(path))?.operations
  if (operations === undefined) return undefined
  const asked = operations[(method === 'HEAD' ? 'GET' : method).toLowerCase()]
  const meant = asked === undefined ? Object.values(operations) : [asked]
  return new Set(meant.flatMap(({ responses }) => Object.keys(responses)))
}

/**
 * That the document has the status of an answer, if it has the path. What it cannot have: another target than a path,
 * and the answer to a preflight (C4.18), which is the same for every path.
 */
export function expectDocumented(
  { worker }: Partial<Describing>,
  { method = 'GET', target }: { readonly method?: string; readonly target: string },
  { status }: Pick<RawResponse, 'status'>,
): void {
  const document = worker?.document
  if (document === undefined || (method === 'OPTIONS' && status === 204)) return
  const statuses = statusesOf(document, method, target.split('?')[0] ?? '')
  const range = `${String(status).slice(0, 1)}XX`
  if (statuses === undefined || statuses.has(String(status)) || statuses.has(range)) return
  throw new Error(
    `${method} ${target} was answered ${status}, which the description of the API does not have`,
  )
}
