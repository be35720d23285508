import { expect, it, onTestFinished } from 'vitest'
import { CLIENTS, startClient } from '../../support/clients/start-client.ts'
import { Visitor } from '../../support/clients/visitor.ts'
import { configFiles } from '../../support/config-files.ts'
import { freePort } from '../../support/free-port.ts'
import { needing } from '../../support/machine.ts'
import { DEMO } from '../../support/spawn-postern.ts'
import { postern } from '../../support/start-postern.ts'

it('C6.3.3a express-openid-connect is told of a logout at Postern', needing('clients of npm'), async () => {
  const program = CLIENTS['express-openid-connect']!
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const addresses = `redirectUris: ['${origin}${program.callback}'], backchannelLogoutUri: '${origin}/backchannel-logout'`
  const file = configFiles({
    'a.yaml': `extends: ${DEMO}\ndirectory: { clients: { ledgerline: { ${addresses} } } }\n`,
  })('a.yaml')
  const { authUrl, baseUrl } = await postern({ file, keeps: 'nothing' })
  const started = await startClient(program, { port, issuer: authUrl, baseUrl })
  onTestFinished(() => started.stop())
  const visitor = new Visitor(origin, authUrl)
  await visitor.logIn(program.login)
  expect((await visitor.open('/')).text).toContain('Alice')
  await visitor.logOutAtPostern()
  // Without a login its page leads to Postern.
  await expect.poll(async () => (await visitor.open('/')).location?.origin).toBe(new URL(authUrl).origin)
})
