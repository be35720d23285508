import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

export interface WrkResult {
  readonly requests: number
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  /** Answers that were not 2xx or 3xx, and sockets that failed. */
  readonly failed: number
}

export interface WrkOptions {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly seconds: number
  readonly connections?: number
  readonly script?: string
}

const UNITS: Readonly<Record<string, number>> = { us: 0.001, ms: 1, s: 1000 }

const number = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)

function latency(text: string, percentile: number): number {
  const [, value, unit] = new RegExp(`${percentile}%\\s+([0-9.]+)(us|ms|s)`).exec(text) ?? []
  return Number(value ?? 0) * (UNITS[unit ?? 'ms'] ?? 1)
}

/** One run of wrk, on one thread, against loopback. */
export async function wrk({
  url,
  headers = {},
  seconds,
  connections = 16,
  script,
}: WrkOptions): Promise<WrkResult> {
  const args = ['-t1', `-c${connections}`, `-d${seconds}s`, '--latency']
  for (const [name, value] of Object.entries(headers)) args.push('-H', `${name}: ${value}`)
  if (script !== undefined) args.push('-s', script)
  const { stdout } = await promisify(execFile)('wrk', [...args, url], { maxBuffer: 1 << 20 })
  return {
    requests: number(stdout, /([0-9]+) requests in/),
    perSecond: number(stdout, /Requests\/sec:\s+([0-9.]+)/),
    p50: latency(stdout, 50),
    p99: latency(stdout, 99),
    failed:
      number(stdout, /Non-2xx or 3xx responses: ([0-9]+)/) +
      number(stdout, /Socket errors: connect ([0-9]+)/) +
      number(stdout, /timeout ([0-9]+)/),
  }
}
