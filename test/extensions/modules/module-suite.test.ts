import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { answeringModule } from '../../../src/extensions/modules/answering.ts'
import { userModule } from '../../../src/extensions/modules/module.ts'
import createModule from '../../../config/examples/sqlite-backend.ts'
import { after, systemClock } from '../../../src/base/kernel/clock.ts'
import { backendContract } from '../../support/suites/backend.contract.ts'

/** The example that is shipped: what holds for it holds for what is copied from it. */
backendContract('module', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-module-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const options = { database: join(folder, 'data.db'), seed: '../demo-data.json' }
  const module = await createModule(options, { name: 'funds', addFund: () => Promise.resolve() })
  const rules = {
    name: 'funds',
    clock: systemClock,
    after,
    timeout: 10_000,
    idle: 10_000,
    responseHeaders: [],
    answerLimit: 1024 ** 2,
    failed: () => undefined,
  }
  return userModule(answeringModule(module, false), rules)
})
