import { onTestFinished } from 'vitest'
import { answeringModule } from '../../../src/extensions/modules/answering.ts'
import { userModule } from '../../../src/extensions/modules/module.ts'
import type { ForwardedCall, Module } from '../../../src/base/contracts/calls/module.ts'
import { after, systemClock } from '../../../src/base/kernel/clock.ts'
import { startExampleUpstream } from '../../support/example-upstream.ts'
import { openHttpBackend } from '../../support/http-backend.ts'
import { backendContract } from '../../support/suites/backend.contract.ts'

const RULES = {
  name: 'around',
  clock: systemClock,
  after,
  timeout: 10_000,
  idle: 10_000,
  responseHeaders: [],
  answerLimit: 1024 ** 2,
  failed: () => undefined,
}

/** In front of the demo's data: modules that change nothing of them, in each of the ways that there are. */
const MODULES: Readonly<Record<string, Module>> = {
  'module with request': { request: () => undefined },
  'module with response': {
    response: async (_call, answer) =>
      answer.status === 200
        ? { headers: answer.headers, body: { kind: 'value', value: await answer.json() } }
        : answer,
  },
  'module with answer': { answer: (call: ForwardedCall) => call.forward() },
}

for (const [name, module] of Object.entries(MODULES))
  backendContract(`${name} over http`, async () => {
    const { url, server } = await startExampleUpstream(0)
    const under = openHttpBackend(url)
    onTestFinished(async () => {
      await under.close()
      server.close()
      server.closeAllConnections()
    })
    return userModule(answeringModule(module, true), RULES, under)
  })
