/** Callers that ask one question after another until they are told to stop, and what they were answered. */
import { Agent, request } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { basic } from '../../../support/tokens.ts'

export interface Answered {
  /** performance.now() when it was asked. */
  readonly at: number
  /** 0: no answer, the connection broke. */
  readonly status: number
  /** Milliseconds. */
  readonly took: number
}

export interface Caller {
  readonly answers: readonly Answered[]
  stop(): Promise<void>
}

/** @param rest milliseconds between an answer and the next question */
export function startCaller(ask: () => Promise<number>, rest = 2): Caller {
  const answers: Answered[] = []
  const stopping = { now: false }
  const run = async (): Promise<void> => {
    while (!stopping.now) {
      const at = performance.now()
      const status = await ask().catch(() => 0)
      answers.push({ at, status, took: performance.now() - at })
      await pause(rest)
    }
  }
  const running = run()
  return {
    answers,
    stop: async () => {
      stopping.now = true
      await running
    },
  }
}

interface Asked {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

const send = (agent: Agent, { url, body, ...rest }: Asked): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const sent = request(url, { agent, ...rest }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (part: string) => (text += part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text }))
      response.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })

/** A data call with a token, again and again on one connection. */
export function callData(url: () => string, token: string, rest?: number): Caller {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = { Authorization: `Bearer ${token}` }
  const ask = async () => {
    const target = `${url()}/api/1.0/b/ACME/fund-data/fund-list`
    return (await send(agent, { method: 'GET', url: target, headers })).status
  }
  const caller = startCaller(ask, rest)
  return { ...caller, stop: () => caller.stop().then(() => agent.destroy()) }
}

export interface Refresher extends Caller {
  /** What it would send next. */
  readonly token: string
}

/** A client that refreshes, and keeps its token where it gets no new one. */
export function callRefresh(url: () => string, first: string, rest?: number): Refresher {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const headers = {
    Authorization: basic('acme-books'),
    'Content-Type': 'application/x-www-form-urlencoded',
  }
  let token = first
  const ask = async () => {
    const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: token }).toString()
    const answer = await send(agent, { method: 'POST', url: `${url()}/connect/token`, headers, body })
    if (answer.status === 200) token = (JSON.parse(answer.body) as { refresh_token: string }).refresh_token
    return answer.status
  }
  const caller = startCaller(ask, rest)
  return {
    ...caller,
    stop: () => caller.stop().then(() => agent.destroy()),
    get token() {
      return token
    },
  }
}

/** What was asked between two times, or since one. */
export const between = (callers: readonly Caller[], from: number, to = Infinity): readonly Answered[] =>
  callers.flatMap(({ answers }) => answers.filter(({ at }) => at >= from && at < to))

/** How often each status came. */
export function statusesOf(answers: readonly Answered[]): Readonly<Record<number, number>> {
  const counts: Record<number, number> = {}
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1
  return counts
}

/** The time of an answer, in milliseconds, that such a share of them did not exceed; 1: the longest. */
export function timeOf(answers: readonly Answered[], share: number): number {
  const times = answers.map(({ took }) => took).sort((one, other) => one - other)
  return times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0
}
