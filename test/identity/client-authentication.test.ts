import { describe, expect, it } from 'vitest'
import { requestToken, basic, client, openTestIdentity } from '../support/identity-under-test.ts'

const NO_HEADER = { authorization: '' }

describe('C6.1.2 client authentication', () => {
  it.each([
    ['an unknown client', basic('nobody', 'x')],
    ['a wrong secret', basic('acme-books', 'wrong')],
    ['an empty secret', basic('acme-books', '')],
    ['a disabled client', basic('retired')],
    ['no credentials', ''],
    ['another case of Basic', basic('acme-books').replace('Basic', 'basic')],
    ['another scheme', 'Bearer x'],
    ['no base64', 'Basic !!!'],
    ['no colon', `Basic ${Buffer.from('acme-books').toString('base64')}`],
  ])('C6.1.2 %s is 400 invalid_client, always the same', async (_, authorization) => {
    const clients = [client('acme-books'), client('retired', { disabled: true })]
    const { status, json } = await requestToken(openTestIdentity({ clients }), {}, { authorization })
    expect(status).toBe(400)
    expect(json).toEqual({
      error: 'invalid_client',
      error_description: 'Client authentication failed. Check the client id and secret.',
    })
  })

  it('C6.1.3 is 401 with a Basic challenge where RFC 6749 is to be kept strictly', async () => {
    const service = openTestIdentity({ config: { strictRfc6749: true } })
    const { status, headers, json } = await requestToken(
      service,
      {},
      { authorization: basic('acme-books', 'wrong') },
    )
    expect([status, json.error, headers['Cache-Control']]).toEqual([401, 'invalid_client', 'no-store'])
    expect(headers['WWW-Authenticate']).toMatch(/^Basic realm="http:\/\/id\.test"/)
  })

  it.each([
    ['as sent', 'app one', 'p+%41:ä'],
    ['form-encoded', 'app+one', 'p%2B%2541%3A%C3%A4'],
    ['form-encoded with %20', 'app%20one', 'p%2b%2541%3a%c3%a4'],
  ])('C6.1.2 a pair %s is accepted', async (_, id, secret) => {
    const special = client('app one', { secretHashes: ['sha256:p+%41:ä'] })
    const service = openTestIdentity({ clients: [special] })
    const { json } = await requestToken(service, { username: 'nobody' }, { authorization: basic(id, secret) })
    expect(json.error).toBe('invalid_grant')
  })

  it('C6.1.2 both secrets are good during a rotation', async () => {
    const secretHashes = ['sha256:old', 'slow-new']
    for (const secret of ['old', 'slow-new']) {
      const service = openTestIdentity({ clients: [client('acme-books', { secretHashes })] })
      expect((await requestToken(service, {}, { authorization: basic('acme-books', secret) })).status).toBe(
        200,
      )
    }
  })

  it('T3.9 a failure costs one slow verification, whether or not the client exists and however its secret is kept', async () => {
    const clients = [
      client('quick'),
      client('slow', { secretHashes: ['slow'] }),
      client('off', { disabled: true }),
    ]
    for (const id of ['quick', 'slow', 'off', 'nobody']) {
      const service = openTestIdentity({ clients })
      await requestToken(service, {}, { authorization: basic(id, 'wrong') })
      expect(service.verified.filter((encoded) => encoded?.startsWith('sha256:') !== true)).toHaveLength(1)
    }
  })

  it('C6.3.5 a generated secret costs no slow verification, form-encoded neither', async () => {
    const service = openTestIdentity({ clients: [client('acme-books', { secretHashes: ['sha256:s+'] })] })
    await requestToken(service, { username: undefined }, { authorization: basic('acme%2Dbooks', 's%2B') })
    expect(service.verified).toEqual(['sha256:s+'])
  })

  it('C6.1.2 an equal client_id in the body is accepted, another is invalid_request', async () => {
    expect((await requestToken(openTestIdentity(), { client_id: 'acme-books' })).status).toBe(200)
    const { json } = await requestToken(openTestIdentity(), { client_id: 'other' })
    expect(json.error).toBe('invalid_request')
  })

  it('C6.1.2 credentials in the body count, unless the client may not use them', async () => {
    const body = { client_id: 'acme-books', client_secret: 'acme-books-secret' }
    expect((await requestToken(openTestIdentity(), body, NO_HEADER)).status).toBe(200)
    const wrong = { ...body, client_secret: 'wrong' }
    expect((await requestToken(openTestIdentity(), wrong, NO_HEADER)).json.error).toBe('invalid_client')
    const clients = [client('acme-books', { authentication: ['client_secret_basic'] })]
    expect((await requestToken(openTestIdentity({ clients }), body, NO_HEADER)).json.error).toBe(
      'invalid_client',
    )
  })

  it('C6.1.2 Basic credentials are invalid_client of a client that may not use them', async () => {
    const clients = [client('acme-books', { authentication: ['client_secret_post'] })]
    expect((await requestToken(openTestIdentity({ clients }))).json.error).toBe('invalid_client')
  })

  it('C6.1.2 a secret in header and body at once is refused', async () => {
    const body = { client_secret: 'acme-books-secret' }
    expect((await requestToken(openTestIdentity(), body)).json.error).toBe('invalid_request')
    const wrong = { authorization: basic('acme-books', 'wrong') }
    expect((await requestToken(openTestIdentity(), body, wrong)).json.error).toBe('invalid_client')
  })

  it('C6.1.2 a public client is known by its client_id, and may not use the password grant', async () => {
    const clients = [client('pocketbooks', { kind: 'public', secretHashes: [], grants: ['password'] })]
    const { json } = await requestToken(
      openTestIdentity({ clients }),
      { client_id: 'pocketbooks' },
      NO_HEADER,
    )
    expect(json.error).toBe('unauthorized_client')
  })

  it('C6.1.2 a confidential client is not known by its client_id alone', async () => {
    const { json } = await requestToken(openTestIdentity(), { client_id: 'acme-books' }, NO_HEADER)
    expect(json.error).toBe('invalid_client')
  })
})
