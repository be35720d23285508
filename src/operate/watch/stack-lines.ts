/**
 * Makes stacks tell the lines of the sources. The programs of the bundle import this first; the sources do not need it. A map
 * is read when a stack is told that has a line of its file: Node's own `--enable-source-maps` reads all of them at the start,
 * which takes 50 MB.
 */
import { readFileSync } from 'node:fs'
import { SourceMap, type SourceMapPayload } from 'node:module'

const BUNDLE = new URL('../../', import.meta.url).href

/** The maps by URL of the file. Undefined if its map cannot be read. */
const maps = new Map<string, SourceMap | undefined>()

function mapOf(url: string): SourceMap | undefined {
  if (!maps.has(url)) maps.set(url, readMap(url))
  return maps.get(url)
}

function readMap(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(new URL(`${url}.map`), 'utf8')) as SourceMapPayload)
  } catch {
    return undefined
  }
}

/** A line of a stack: `name (file:///…/dist/parts/log.js:7:9)` becomes `name (src/operate/watch/log/log.ts:5:3)`. */
function told(site: NodeJS.CallSite & { toString(): string }): string {
  const text = site.toString()
  const url = site.getScriptNameOrSourceURL()
  const [line, column] = [site.getLineNumber(), site.getColumnNumber()]
  if (!url?.startsWith(BUNDLE) || line === null || column === null) return text
  const entry = mapOf(url)?.findEntry(line - 1, column - 1)
  if (entry === undefined || !('originalSource' in entry)) return text
  const place = `${entry.originalSource}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
  return text.replace(`${url}:${line}:${column}`, () => place)
}

/**
 * The error as Node tells it: Node's own errors have their code in `toString`. An error that cannot be told must not hide the
 * stack.
 */
function headOf(error: Error): string {
  try {
    return String(error)
  } catch {
    return 'Error'
  }
}

Error.prepareStackTrace = (error, sites) =>
  [headOf(error), ...sites.map((site) => `    at ${told(site)}`)].join('\n')
