import type { RawResponse } from './raw-http.ts'

/** What is looked at of an answer. */
type Told = Pick<RawResponse, 'rawHeaders' | 'body'>

/** The upstreams that are open now. A port that was closed may be Postern's own next. */
const open = new Set<string>()

/** @returns to be called when the upstream is closed */
export function rememberUpstream(port: number): () => void {
  const address = `127.0.0.1:${port}`
  open.add(address)
  return () => void open.delete(address)
}

/** Errors of Postern's. Other bodies may be those of an upstream, which says what it likes. */
const isOfOurs = (body: string): boolean => /^\{"Errors":\[\{|<Errors><Error>/.test(body)

/**
 * C8.8: the address of an upstream shows in no header and no body of Postern's. Every answer of the tests that is read
 * over a raw socket, and every one to a handshake of a websocket, is looked at.
 */
export function refuseUpstreamAddress({ rawHeaders, body }: Told): void {
  for (const address of open) {
    const header = rawHeaders.find(([, value]) => value.includes(address))
    if (header !== undefined)
      throw new Error(`C8.8: the header ${header.join(': ')} tells an upstream's address`)
    if (isOfOurs(body) && body.includes(address)) throw new Error(`C8.8: ${body} tells an upstream's address`)
  }
}

/** The same for all answers of a connection, as they came. */
export function refuseUpstreamAddressIn(text: string): void {
  for (const answer of text.split(/(?=HTTP\/1\.[01] \d{3} )/)) {
    if (!answer.startsWith('HTTP/1.')) continue
    const end = answer.indexOf('\r\n\r\n')
    const lines = (end === -1 ? answer : answer.slice(0, end)).split('\r\n').slice(1)
    const rawHeaders = lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon), line.slice(colon + 1)] as const
    })
    refuseUpstreamAddress({ rawHeaders, body: end === -1 ? '' : answer.slice(end + 4) })
  }
}
