/**
 * `node test/long/prove/properties.ts [TIMES]`: whether the general rules hold (C4.8, C3.4) for 25 times as many random tokens
 * and targets as in a test run, and for new ones; 1 where one does not.
 */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../../..')
const vitest = join(ROOT, 'node_modules/.bin/vitest')
const config = join(ROOT, '.config/vitest.config.ts')
const { status } = spawnSync(vitest, ['run', '--config', config, 'test/gateway/properties.attack.test.ts'], {
  cwd: ROOT,
  env: { ...process.env, PROPERTY_SEED: 'random', PROPERTY_TIMES: process.argv[2] ?? '25' },
  stdio: 'inherit',
})
process.exitCode = status ?? 1
