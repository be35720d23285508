import { onTestFinished } from 'vitest'
import { WebsocketBackend } from '../../../src/extensions/websocket/websocket-backend.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { startExampleUpstream } from '../../support/example-upstream.ts'
import { forwardingRules } from '../../support/http-backend.ts'
import { backendContract } from '../../support/suites/backend.contract.ts'

backendContract('stream with websockets', async () => {
  const { url, server } = await startExampleUpstream(0)
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return new WebsocketBackend(forwardingRules(url), true, systemClock)
})
