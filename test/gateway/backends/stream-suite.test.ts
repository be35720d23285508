import { onTestFinished } from 'vitest'
import { StreamBackend } from '../../../src/gateway/backends/forward/stream.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { startExampleUpstream } from '../../support/example-upstream.ts'
import { forwardingRules } from '../../support/http-backend.ts'
import { backendContract } from '../../support/suites/backend.contract.ts'

backendContract('stream', async () => {
  const { url, server } = await startExampleUpstream(0)
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return new StreamBackend(forwardingRules(url), true, systemClock)
})
