import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { UserModule } from '../../../src/extensions/modules/module.ts'
import createBackend from '../../../config/examples/sqlite-backend.ts'
import { systemClock } from '../../../src/base/kernel/clock.ts'
import { backendContract } from '../../support/suites/backend.contract.ts'

/** The example that is shipped: what holds for it holds for what is copied from it. */
backendContract('module', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'postern-module-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const options = { database: join(folder, 'data.db'), seed: '../demo-data.json' }
  const module = await createBackend(options, { name: 'funds', addFund: () => Promise.resolve() })
  const rules = {
    name: 'funds',
    timeout: 10_000,
    idle: 10_000,
    responseHeaders: [],
    answerLimit: 1024 ** 2,
    failed: () => undefined,
  }
  return new UserModule(module, rules, systemClock)
})
