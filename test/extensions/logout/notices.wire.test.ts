/** What clients are told when a login has ended, by a service that serves (C6.3.3a). */
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import { recordsOf } from '../../support/audit-files.ts'
import { ALICE, logInThrough } from '../../support/audited-people.ts'
import { startLogoutReceiver } from './logout-receiver.ts'
import { operated } from '../../support/operated.ts'
import { shared } from '../../support/shared.ts'
import { seriesOf } from '../../support/metrics.ts'
import { toldAt } from './told-client.ts'

/** Of one worker. */
const served = shared(async (answer: 200 | 'silence') => {
  const receiver = await startLogoutReceiver(answer)
  return { receiver, service: await operated(1, toldAt(receiver.url)) }
})

describe('C6.3.3a a service tells clients that a login has ended', () => {
  it('C6.3.3a a logout reaches the client: a token by the published keys, recorded and counted', async () => {
    const { receiver, service } = await served(200)
    const { idToken, logOut } = await logInThrough(service)
    expect((await logOut()).status).toBe(200)
    await receiver.got(1)
    const keys = createRemoteJWKSet(new URL(`${service.authUrl}/.well-known/jwks.json`))
    const { payload } = await jwtVerify(receiver.notices[0]?.token ?? '', keys, {
      ...{ issuer: service.authUrl, audience: 'ledgerline', typ: 'logout+jwt' },
    })
    expect(payload).toMatchObject({ sub: ALICE, sid: decodeJwt(idToken)['sid'] })
    await expect
      .poll(() => recordsOf(service, 'logout.notified'))
      .toMatchObject([
        {
          outcome: 'success',
          actor: { kind: 'service' },
          on: { kind: 'logout', client: 'ledgerline', subject: ALICE, id: decodeJwt(idToken)['sid'] },
        },
      ])
    await expect
      .poll(async () => (await seriesOf(service)).get('postern_logout_notices_total{result="arrived"}'))
      .toBe(1)
  })

  it('C6.3.3a, C6.3.6 a user that a configuration disables is told by `sub` alone', async () => {
    const { receiver, service } = await served.own(200)
    await logInThrough(service)
    service.write(
      `directory: { clients: { ledgerline: { backchannelLogoutUri: '${receiver.url}' } }, users: { alice: { disabled: true } } }`,
    )
    expect((await service.admin('POST', '/reload')).status).toBe(200)
    await receiver.got(1)
    expect(receiver.notices[0]?.claims).toMatchObject({ sub: ALICE })
    expect(receiver.notices[0]?.claims).not.toHaveProperty('sid')
  })

  it('T5.20 who logs out waits for no receiver', async () => {
    const { receiver, service } = await served('silence')
    const { logOut, person } = await logInThrough(service)
    expect((await logOut()).status).toBe(200)
    // Its notice is on the way, and never answered.
    await receiver.got(1)
    expect((await person.open('/connect/account')).text).toContain('<h1>Sign in</h1>')
  })

  it('C6.3.2 is announced where some client is told', async () => {
    const { service } = await served(200)
    const response = await fetch(`${service.authUrl}/.well-known/openid-configuration`)
    const metadata = (await response.json()) as Record<string, unknown>
    expect(metadata).toMatchObject({
      backchannel_logout_supported: true,
      backchannel_logout_session_supported: true,
    })
    expect(metadata['claims_supported']).toContain('sid')
  })

  it('C6.3.3a, C11.5.2 what an operator ends in another process than those that send is told too', async () => {
    const receiver = await startLogoutReceiver()
    const service = await operated(2, toldAt(receiver.url))
    const { idToken } = await logInThrough(service)
    await service.admin('DELETE', `/sessions?subject=${ALICE}`)
    await receiver.got(1)
    expect(receiver.notices[0]?.claims).toMatchObject({ sub: ALICE, sid: decodeJwt(idToken)['sid'] })
    await service.admin('POST', '/revoke', { subject: ALICE })
    await receiver.got(2)
    expect(receiver.notices[1]?.claims).toMatchObject({ sub: ALICE })
    expect(receiver.notices[1]?.claims).not.toHaveProperty('sid')
  })
})
