import { expect, it, onTestFinished } from 'vitest'
import { refuseUpstreamAddressIn, rememberUpstream } from '../../support/upstream-addresses.ts'

it('C8.8 an answer of the tests that tells an upstream’s address is found, wherever it stands', () => {
  onTestFinished(rememberUpstream(9))
  const fine = 'HTTP/1.1 101 X\r\nUpgrade: websocket\r\n\r\n\x81\x02ok'
  const data = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n127.0.0.1:9'
  const header = 'HTTP/1.1 101 X\r\nX-Node: http://127.0.0.1:9/\r\n\r\n'
  const body = 'HTTP/1.1 503 X\r\nA: b\r\n\r\n{"Errors":[{"Code":"127.0.0.1:9"}]}'
  for (const text of ['', 'no answer', fine, data, fine + data]) refuseUpstreamAddressIn(text)
  for (const text of [header, body, fine + header, data + body, header.trimEnd()])
    expect(() => refuseUpstreamAddressIn(text)).toThrow('C8.8')
})
