/** Streams and websockets that outlive the configuration they began with, and files whose contents change (C8.1). */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Configuration } from '../../src/operate/settings/configuration.ts'
import { configFiles } from '../support/config-files.ts'
import { postern, type StartedPostern } from '../support/start-postern.ts'
import { ROOT } from '../support/spawn-postern.ts'
import { at, streaming, withStream } from '../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../support/tokens.ts'
import { askWebsocket, messageOn, startWebsocketUpstream } from '../support/websocket-upstream.ts'

/** Milliseconds that a replaced configuration is kept at least. */
const DRAIN = 30
/** Of a fund of the sample data. */
const NAME = 'Harbour View Superannuation Fund'

const hasty = ({ server, ...rest }: Configuration): Configuration => ({
  ...rest,
  server: { ...server, timeouts: { ...server.timeouts, drain: DRAIN } },
})

/** The same, with the backend under another name: the one of before is open no more. */
function renamed(configuration: Configuration): Configuration {
  const { funds, ...others } = configuration.backends
  if (funds === undefined) throw new Error('no such backend')
  const areas = Object.entries(configuration.areas).map(([name, area]) => [
    name,
    area.backend === 'funds' ? { ...area, backend: 'moved' } : area,
  ])
  return { ...configuration, backends: { ...others, moved: funds }, areas: Object.fromEntries(areas) }
}

async function replace({ worker }: StartedPostern, configuration: Configuration): Promise<void> {
  await worker?.prepare(configuration)
  await worker?.commit()
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

async function metric({ adminUrl }: StartedPostern, name: string): Promise<string[]> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text()
  return text.split('\n').filter((line) => line.startsWith(`${name}{`))
}

async function start(upstreamUrl: string) {
  const gateway = await postern({
    ...streaming(upstreamUrl),
    keeps: 'nothing',
    change: (loaded) => hasty(withStream(loaded)),
  })
  const { access_token: token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  return { gateway, headers: { Authorization: `Bearer ${token}` } }
}

/** An upstream that sends so many events, with pauses between them. */
async function startEvents(most: number): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' })
    let count = 0
    const timer = setInterval(() => {
      count += 1
      response.write(`data: ${count}\n\n`)
      if (count === most) response.end()
    }, DRAIN)
    response.once('close', () => clearInterval(timer))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('what began on a configuration that was replaced', () => {
  it('T5.7 a websocket goes on beyond the time to drain, and counts as open as long as it is', async () => {
    const upstream = await startWebsocketUpstream()
    const { gateway, headers } = await start(upstream.url)
    const asked = await askWebsocket(gateway.baseUrl.replace('http', 'ws') + at('live/lobby'), { headers })
    if (asked.kind !== 'open') throw new Error(asked.body)
    const { socket } = asked
    await replace(gateway, renamed(gateway.configuration))
    for (let count = 0; count < 10; count++) {
      await pause(DRAIN)
      socket.send(`still here ${count}`)
      expect(String((await messageOn(socket)).data)).toBe(`still here ${count}`)
    }
    expect(await metric(gateway, 'postern_tunnels_open')).toContain('postern_tunnels_open{backend="funds"} 1')
    socket.close()
    const open = async () =>
      (await metric(gateway, 'postern_tunnels_open')).filter((line) => !line.endsWith(' 0'))
    await expect.poll(open).toEqual([])
    await expect
      .poll(async () => (await metric(gateway, 'postern_tunnels_ended_total')).join('\n'))
      .toContain('postern_tunnels_ended_total{backend="funds",end="closed"} 1')
  })

  it('T5.7 an event stream goes on beyond the time to drain', async () => {
    const { gateway, headers } = await start(await startEvents(12))
    const response = await fetch(gateway.baseUrl + at('events'), { headers })
    await replace(gateway, renamed(gateway.configuration))
    const text = await response.text()
    expect(text.match(/data: \d+/g)).toHaveLength(12)
  })

  it('a call that is long over holds nothing up: what was replaced is closed', async () => {
    const upstream = await startWebsocketUpstream()
    const { gateway, headers } = await start(upstream.url)
    await (await fetch(gateway.baseUrl + at('plain/one'), { headers })).text()
    const before = gateway.worker?.dependencies
    expect(before).toBeDefined()
    const closed = Promise.withResolvers<undefined>()
    // The upstream's connection is kept for calls to come, and closed with its backend.
    upstream.requests[0]?.socket.once('close', () => closed.resolve(undefined))
    await replace(gateway, renamed(gateway.configuration))
    await closed.promise
  })
})

describe('C8.1 files whose contents change', () => {
  it('sample data is read again when its file has changed, and written data stays when it has not', async () => {
    const sample = readFileSync(join(ROOT, 'config/demo-data.json'), 'utf8')
    const file = configFiles({ 'sample.json': sample })('sample.json')
    const withSample = (loaded: Configuration): Configuration => ({
      ...hasty(loaded),
      backends: { sample: { kind: 'memory', data: file } },
    })
    const gateway = await postern({ keeps: 'nothing', change: withSample })
    const kept = gateway.worker?.holdingsDigest
    await replace(gateway, gateway.configuration)
    const { access_token: token } = await issueToken(gateway, { scope: ALL_AT_ACME })
    const list = async (): Promise<string> => {
      const headers = { Authorization: `Bearer ${token}` }
      return (await fetch(gateway.baseUrl + at('fund-list'), { headers })).text()
    }
    expect(await list()).toContain(NAME)
    writeFileSync(file, sample.replaceAll(NAME, 'Another Name'))
    await replace(gateway, gateway.configuration)
    expect(await list()).toContain('Another Name')
    expect(gateway.worker?.holdingsDigest).toBe(kept)
  })
})
