import { onTestFinished } from 'vitest'
import { startExampleUpstream } from '../../support/example-upstream.ts'
import { openHttpBackend } from '../../support/http-backend.ts'
import { backendContract } from '../../support/suites/backend.contract.ts'

backendContract('http', async () => {
  const { url, server } = await startExampleUpstream(0)
  onTestFinished(() => {
    server.close()
    server.closeAllConnections()
  })
  return openHttpBackend(url)
})
