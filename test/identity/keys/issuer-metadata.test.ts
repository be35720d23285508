import type { ServerResponse } from 'node:http'
import { describe, expect, it } from 'vitest'
import {
  fetchMetadata,
  IssuerSource,
  MetadataRefused,
  metadataUrls,
} from '../../../src/identity/keys/issuers/issuer-source.ts'
import { makeIssuerKey } from '../../support/foreign-issuer.ts'
import {
  type IssuerAnswer,
  type IssuerServer,
  JWKS,
  OPENID,
  RFC_8414,
  startIssuerServer,
} from '../../support/issuer-server.ts'

const key = await makeIssuerKey('a')

/** With all addresses of it, as for an issuer of which nothing else is configured. */
async function read({ url: issuer }: IssuerServer, urls = metadataUrls(issuer), iss = issuer) {
  const { url, addressAt } = await fetchMetadata(iss, urls)
  return { url, jwksUri: addressAt('jwks_uri'), introspectionEndpoint: addressAt('introspection_endpoint') }
}

/** The metadata of a server whose answer is changed. */
async function changed(over: (server: IssuerServer) => object) {
  const server = await startIssuerServer([key.jwk])
  server.answers.set(OPENID, { ...(server.answers.get(OPENID) as object), ...over(server) })
  return server
}

describe('C11.2 where the metadata of an issuer is', () => {
  it.each([
    ['https://id.example', ['https://id.example' + OPENID, 'https://id.example' + RFC_8414]],
    ['https://id.example/', ['https://id.example' + OPENID, 'https://id.example' + RFC_8414]],
    [
      'https://id.example/realms/one',
      [`https://id.example/realms/one${OPENID}`, `https://id.example${RFC_8414}/realms/one`],
    ],
    [
      'https://id.example:8443/one/',
      [`https://id.example:8443/one${OPENID}`, `https://id.example:8443${RFC_8414}/one`],
    ],
  ])('C11.2 of %s: by OpenID Connect behind the path, by RFC 8414 before it', (issuer, urls) => {
    expect(metadataUrls(issuer)).toEqual(urls)
  })

  it('C11.2 is read with a byte order mark too', async () => {
    const server = await startIssuerServer([key.jwk])
    const text = JSON.stringify(server.answers.get(OPENID))
    server.answers.set(OPENID, (response: ServerResponse) => response.end(`\ufeff${text}`))
    expect(await read(server)).toMatchObject({ jwksUri: `${server.url}${JWKS}` })
  })

  it('C11.2 is looked for at both places; the second one only if there is nothing at the first', async () => {
    const server = await startIssuerServer()
    const metadata = server.answers.get(OPENID) as object
    await read(server)
    expect(server.requests.map(({ path }) => path)).toEqual([OPENID])
    server.answers.delete(OPENID)
    await expect(read(server)).rejects.toThrow('404')
    server.answers.set(RFC_8414, metadata)
    expect(await read(server)).toMatchObject({ jwksUri: `${server.url}${JWKS}`, url: server.url + RFC_8414 })
  })
})

describe('T3.5 metadata that is not believed', () => {
  it.each([
    ['another issuer', () => ({ issuer: 'https://other.example' })],
    ['the issuer with a slash more', ({ url }: IssuerServer) => ({ issuer: `${url}/` })],
    ['no issuer', () => ({ issuer: undefined })],
    ['a list of issuers', ({ url }: IssuerServer) => ({ issuer: [url] })],
    ['keys in a file', () => ({ jwks_uri: 'file:///etc/passwd' })],
    ['keys over ftp', () => ({ jwks_uri: 'ftp://127.0.0.1/keys' })],
    ['keys over http from another machine', () => ({ jwks_uri: 'http://192.0.2.1/keys' })],
    ['keys over http from the address of cloud metadata', () => ({ jwks_uri: 'http://169.254.169.254/' })],
    ['keys at a relative address', () => ({ jwks_uri: '/keys' })],
    ['keys at an address with credentials', () => ({ jwks_uri: 'https://a:b@id.example/keys' })],
    ['keys at no text', () => ({ jwks_uri: 7 })],
    ['introspection over http elsewhere', () => ({ introspection_endpoint: 'http://192.0.2.1/' })],
  ])('T3.5 %s', async (_, over) => {
    const server = await changed(over)
    await expect(read(server)).rejects.toBeInstanceOf(MetadataRefused)
    expect(server.asked(JWKS)).toHaveLength(0)
  })

  it('T3.5 http on this machine is for an issuer on this machine only', async () => {
    const server = await startIssuerServer()
    const metadata = { issuer: 'https://id.example', jwks_uri: `${server.url}${JWKS}` }
    server.answers.set(OPENID, metadata)
    const elsewhere = read(server, [`${server.url}${OPENID}`], 'https://id.example')
    await expect(elsewhere).rejects.toThrow('jwks_uri')
  })

  it.each<[string, IssuerAnswer]>([
    ['is no JSON', (response) => response.end('<html>')],
    ['is no object', (response) => response.end('null')],
    ['is larger than 128 KiB', (response) => response.end(`{"a":"${'x'.repeat(128 * 1024)}"}`)],
    [
      'breaks off',
      (response) => response.writeHead(200, { 'Content-Length': 99 }).write('{') && response.destroy(),
    ],
  ])('T3.5 an answer that %s', async (_, answer) => {
    const server = await startIssuerServer()
    server.answers.set(OPENID, answer)
    await expect(read(server)).rejects.toThrow()
    expect(server.asked(RFC_8414)).toHaveLength(0)
  })

  it('T3.5 a redirect is not followed', async () => {
    const other = await startIssuerServer()
    const server = await startIssuerServer()
    server.answers.set(OPENID, (response) => response.writeHead(302, { Location: other.url + OPENID }).end())
    await expect(read(server)).rejects.toThrow()
    expect(other.requests).toEqual([])
  })
})

describe('C11.2 the keys of an issuer that is found by its metadata', () => {
  function source(issuer: string, over: { jwks?: string; endpoint?: string } = {}) {
    const notes: [string, string, object | undefined][] = []
    const recorder = { note: (...note: [string, string, object?]) => void notes.push(note as never) }
    const made = new IssuerSource({ issuer, jwks: undefined, endpoint: undefined, ...over, recorder })
    return { made, notes }
  }

  it('C11.2 are read where the metadata says, each time anew: a key set may move', async () => {
    const server = await startIssuerServer([key.jwk])
    const { made, notes } = source(server.url)
    expect(await made.fetchKeys()).toMatchObject([{ kid: 'a' }])
    server.answers.delete(JWKS)
    await expect(made.fetchKeys()).rejects.toThrow('the key set answered 404')
    server.answers.set('/moved', { keys: [{ ...key.jwk, kid: 'b' }] })
    server.answers.set(OPENID, { issuer: server.url, jwks_uri: `${server.url}/moved` })
    expect(await made.fetchKeys()).toMatchObject([{ kid: 'b' }])
    expect(notes).toEqual([['info', 'issuer_keys_moved', { issuer: server.url }]])
  })

  it('C11.2 are first looked for where the metadata was the last time', async () => {
    const server = await startIssuerServer([key.jwk])
    server.answers.set(RFC_8414, server.answers.get(OPENID) as object)
    server.answers.delete(OPENID)
    const { made } = source(server.url)
    await made.fetchKeys()
    await made.fetchKeys()
    expect(server.asked(OPENID)).toHaveLength(1)
    expect(server.asked(RFC_8414)).toHaveLength(2)
  })

  it('C11.2 are read without the metadata if the configuration says where they are', async () => {
    const server = await startIssuerServer([key.jwk])
    const { made } = source(server.url, { jwks: `${server.url}${JWKS}` })
    expect(await made.fetchKeys()).toHaveLength(1)
    expect(server.asked(OPENID)).toHaveLength(0)
  })

  it('T3.5 metadata that is refused is logged with the reason, once', async () => {
    const server = await changed(() => ({ issuer: 'https://other.example' }))
    const { made, notes } = source(server.url)
    for (let times = 0; times < 3; times++) await expect(made.fetchKeys()).rejects.toThrow()
    expect(notes).toHaveLength(1)
    expect(notes[0]).toMatchObject(['error', 'issuer_metadata_refused', { issuer: server.url }])
    expect(JSON.stringify(notes)).toContain('other.example')
  })

  it('C11.2 an address in the metadata that nobody uses is no reason to refuse the others', async () => {
    const wrong = 'http://192.0.2.1/'
    const server = await changed(() => ({ introspection_endpoint: wrong }))
    expect(await source(server.url).made.fetchKeys()).toHaveLength(1)
    await expect(source(server.url, { endpoint: 'introspection_endpoint' }).made.fetchKeys()).rejects.toThrow(
      'introspection',
    )
    const other = await changed(() => ({ jwks_uri: wrong }))
    const own = { jwks: `${other.url}${JWKS}`, endpoint: 'introspection_endpoint' }
    expect(await source(other.url, own).made.fetchKeys()).toHaveLength(1)
    await expect(source(other.url).made.fetchKeys()).rejects.toThrow('jwks_uri')
  })

  it('C11.2 must be somewhere, unless all tokens are opaque', async () => {
    const server = await changed(() => ({ jwks_uri: undefined }))
    const { made, notes } = source(server.url)
    await expect(made.fetchKeys()).rejects.toThrow('jwks_uri')
    expect(notes).toHaveLength(1)
    expect(await source(server.url, { endpoint: 'introspection_endpoint' }).made.fetchKeys()).toEqual([])
  })
})
