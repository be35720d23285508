import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { certificateFolder, makeCertificate } from '../../support/certificates.ts'
import { postern } from '../../support/start-postern.ts'
import { at, streaming, type StreamChanges } from '../../support/streaming.ts'
import { ALL_AT_ACME, issueToken } from '../../support/tokens.ts'
import {
  askWebsocket,
  messageOn,
  startWebsocketUpstream,
  type Asked,
  type Whereabouts,
} from '../../support/websocket-upstream.ts'

/** Websockets to upstreams behind TLS and unix sockets. */

async function ask(where: Whereabouts, changes?: StreamChanges): Promise<{ asked: Asked; taken: number }> {
  const upstream = await startWebsocketUpstream(where)
  const gateway = await postern(streaming(upstream.url, changes))
  const { access_token: token } = await issueToken(gateway, { scope: ALL_AT_ACME })
  const asked = await askWebsocket(gateway.baseUrl.replace('http', 'ws') + at('live/lobby'), {
    headers: { Authorization: `Bearer ${token}` },
  })
  return { asked, taken: upstream.handshakes.length }
}

async function expectEcho(asked: Asked): Promise<void> {
  if (asked.kind !== 'open') throw new Error(`${asked.status} ${asked.body}`)
  asked.socket.send('hello')
  expect((await messageOn(asked.socket)).data.toString()).toBe('hello')
}

function serverCertificate(): { readonly ca: string; readonly tls: NonNullable<Whereabouts['tls']> } {
  const { certificate, key } = makeCertificate(certificateFolder(), 'upstream')
  return { ca: certificate, tls: { cert: readFileSync(certificate), key: readFileSync(key) } }
}

describe('C8.4 websockets to an upstream', () => {
  it('C8.1 over a unix socket', async () => {
    const { asked } = await ask({ path: join(certificateFolder(), 'upstream.sock') })
    await expectEcho(asked)
  })

  it('C8.1 over TLS, of an authority of its own', async () => {
    const { ca, tls } = serverCertificate()
    await expectEcho((await ask({ tls }, { tls: { ca } })).asked)
  })

  it('C8.4 refuses an upstream whose certificate nobody vouches for', async () => {
    const { tls } = serverCertificate()
    const { asked, taken } = await ask({ tls })
    expect([asked, taken]).toEqual([expect.objectContaining({ kind: 'refused', status: 503 }), 0])
  })

  it('C8.4 refuses an upstream whose certificate bears another name', async () => {
    const { ca, tls } = serverCertificate()
    const { asked, taken } = await ask({ tls }, { tls: { ca, serverName: 'other.example' } })
    expect([asked, taken]).toEqual([expect.objectContaining({ kind: 'refused', status: 503 }), 0])
  })
})
